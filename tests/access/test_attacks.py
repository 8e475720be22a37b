"""What somebody with a key would try who wants more than it allows."""

import threading
from collections.abc import Callable
from typing import Any

import pytest

from leasehold.access import NotAuthenticated, authenticate
from leasehold.access.law.commands import CreateAccessKey
from leasehold.access.law.model import AccessKey, Role
from leasehold.access.questions import ListAccessKeys
from leasehold.engine.audit import audit
from leasehold.engine.batch import Request, Rules, run_taken
from leasehold.engine.jobs import Backup, RotateKey, Verify
from leasehold.engine.port import EntryQuery, Store
from leasehold.engine.questions import (
    Certify,
    FindBeginning,
    FindHead,
    FindLease,
    FollowLedger,
    Question,
    ReadLedger,
)
from leasehold.engine.registrar import Registrar
from leasehold.errors import JobUnknown, NotHolder, NotPermitted
from leasehold.kernel.lease.answers import Released, Renewed, Waiting
from leasehold.kernel.lease.commands import Derive, Release, Renew, Revoke, Transfer
from leasehold.kernel.ledger.commands import Caller, Command, Right, SweepDue
from leasehold.kernel.ledger.refusals import Refusal
from leasehold.settings.law import ChangeSetting
from leasehold.testing.clock import FakeClock
from tests.access.keys import create, created, desk_of, revoke, rotate
from tests.engine.doubles import claim, expect, granted, release

HOUR_NS = 3600 * 10**9


def denied(outcome: object) -> str:
    return expect(Refusal, outcome).rule


@pytest.mark.parametrize("role", [Role.VIEWER, Role.HOLDER, Role.OPERATOR])
def test_nobody_but_an_admin_touches_keys(registrar: Registrar, role: Role) -> None:
    own = created(registrar, role)
    desk = desk_of(registrar, own)
    commands = [
        create(Role.ADMIN)[1],
        create(Role.VIEWER, "acme")[1],
        create(Role.ADMIN, only_first=True)[1],
        rotate(own.key_id)[1],
        revoke(own.key_id),
    ]
    assert [denied(desk.call(command)) for command in commands] == ["NOT_PERMITTED"] * len(commands)
    with pytest.raises(NotPermitted):
        desk.ask(ListAccessKeys())


def test_an_admin_of_one_tenant_stays_in_it(registrar: Registrar) -> None:
    desk = desk_of(registrar, created(registrar, Role.ADMIN, "acme"))
    mine, theirs, root = [created(registrar, Role.ADMIN, tenant) for tenant in ("acme", "initech", None)]

    assert denied(desk.call(create(Role.VIEWER)[1])) == "NOT_PERMITTED"
    assert denied(desk.call(create(Role.ADMIN, only_first=True)[1])) == "NOT_PERMITTED"
    assert denied(desk.call(create(Role.VIEWER, "initech")[1])) == "NOT_PERMITTED"
    nowhere = expect(Refusal, desk.call(revoke("no-such-key", tenant="acme")))
    for key in (theirs, root):
        refusal = expect(Refusal, desk.call(revoke(key.key_id, tenant="acme")))
        assert refusal.rule == nowhere.rule == "ACCESS_KEY_NOT_FOUND"
        assert str(refusal.detail).replace(key.key_id, "") == str(nowhere.detail).replace("no-such-key", "")
        assert denied(desk.call(rotate(key.key_id, tenant="acme")[1])) == "ACCESS_KEY_NOT_FOUND"
    assert {one.tenant for one in desk.ask(ListAccessKeys())} == {"acme"}
    expect(AccessKey, desk.call(revoke(mine.key_id, tenant="acme")))


def test_a_page_of_keys_tells_nothing_of_the_keys_of_other_tenants(registrar: Registrar) -> None:
    desk = desk_of(registrar, created(registrar, Role.ADMIN, "acme"))
    (own,) = desk.ask(ListAccessKeys())
    for number in range(20):
        created(registrar, Role.VIEWER, f"tenant-{number}")

    assert desk.ask(ListAccessKeys(after="0", limit=1)) == [own]


def test_a_caller_bound_to_a_tenant_without_a_key_creates_no_key_for_all(registrar: Registrar) -> None:
    desk = registrar.for_caller(Caller(tenant="default"))
    assert denied(desk.call(create(Role.ADMIN)[1])) == "NOT_PERMITTED"


def test_the_last_admin_key_for_all_tenants_stays(registrar: Registrar, clock: FakeClock) -> None:
    last, other = created(registrar, Role.ADMIN), created(registrar, Role.ADMIN, lifetime_ns=HOUR_NS)
    created(registrar, Role.ADMIN, "acme")
    expect(AccessKey, registrar.call(revoke(other.key_id)))
    created(registrar, Role.ADMIN, lifetime_ns=HOUR_NS)
    clock.advance(3600)

    refusal = expect(Refusal, registrar.call(revoke(last.key_id)))
    assert refusal.rule == "LAST_ADMIN_KEY"
    assert "create another one first, or rotate this one" in str(refusal.detail)

    created(registrar, Role.ADMIN)
    expect(AccessKey, registrar.call(revoke(last.key_id)))


def test_a_key_that_is_revoked_before_its_command_in_the_same_batch_loses(
    registrar: Registrar, store: Store
) -> None:
    key = created(registrar, Role.HOLDER, "acme")
    caller = authenticate(registrar, key.text)
    assert caller is not None
    requests = [
        Request(claim("door", tenant="acme"), caller),
        Request(revoke(key.key_id)),
        Request(claim("window", tenant="acme"), caller),
    ]
    before, ended, after = run_taken(store, requests, Rules(), blocking=True)
    granted(before)
    expect(AccessKey, ended)
    assert denied(after) == "NOT_AUTHENTICATED"


def test_a_command_that_waits_for_its_turn_is_decided_by_how_the_key_stands_then(
    registrar: Registrar, store: Store
) -> None:
    key = created(registrar, Role.HOLDER, "acme")
    desk, outcomes, told = desk_of(registrar, key), list[Any](), threading.Event()
    desk.call(claim("wall", tenant="acme"))

    def note(outcome: Any) -> None:
        outcomes.append(outcome)
        told.set()

    registrar.submit(revoke(key.key_id), lambda outcome: None)
    desk.submit(claim("door", tenant="acme"), note)
    assert told.wait(30)
    assert denied(outcomes[0]) == "NOT_AUTHENTICATED"
    assert audit(store).problems == []


def test_a_claim_that_waits_under_a_revoked_key_costs_others_the_claim_window_at_most(
    registrar: Registrar, clock: FakeClock
) -> None:
    key = created(registrar, Role.HOLDER, "acme")
    held = granted(registrar.call(claim("door", "bob", tenant="acme")))
    expect(Waiting, desk_of(registrar, key).call(claim("door", "ann", tenant="acme", wait=True)))
    registrar.call(revoke(key.key_id))
    registrar.call(release(held))

    expect(Refusal, registrar.call(claim("door", "bob", tenant="acme")))
    clock.advance(2)
    assert granted(registrar.call(claim("door", "bob", tenant="acme"))).holder == "bob"


def test_a_claim_that_waits_is_lost_with_its_key(registrar: Registrar) -> None:
    key = created(registrar, Role.HOLDER, "acme")
    desk = desk_of(registrar, key)
    held = granted(registrar.call(claim("door", "bob", tenant="acme")))
    waiting = claim("door", "ann", tenant="acme", wait=True)
    expect(Waiting, desk.call(waiting))
    registrar.call(revoke(key.key_id))
    registrar.call(release(held))

    assert denied(desk.call(waiting)) == "NOT_AUTHENTICATED"
    asks: list[Callable[[], Any]] = [
        lambda: desk.ask(FindLease(lease_id=waiting.lease_id)),
        lambda: desk.ask(FollowLedger(query=EntryQuery())),
        lambda: desk.wait(0, 0),
    ]
    for ask in asks:
        with pytest.raises(NotAuthenticated):
            ask()


def test_who_was_let_in_with_the_old_secret_loses_with_it(registrar: Registrar, clock: FakeClock) -> None:
    old = created(registrar, Role.VIEWER)
    desk = desk_of(registrar, old)
    _, command = rotate(old.key_id, overlap_ns=HOUR_NS)
    registrar.call(command)
    desk.ask(FindHead())
    clock.advance(3600)
    with pytest.raises(NotAuthenticated):
        desk.ask(FindHead())


def test_a_key_loses_when_it_expires(registrar: Registrar, clock: FakeClock) -> None:
    desk = desk_of(registrar, created(registrar, Role.HOLDER, "acme", lifetime_ns=HOUR_NS))
    granted(desk.call(claim("door", tenant="acme")))
    clock.advance(3600)
    assert denied(desk.call(claim("window", tenant="acme"))) == "NOT_AUTHENTICATED"


def test_a_wall_clock_that_is_set_back_revives_no_key(registrar: Registrar, clock: FakeClock) -> None:
    key = created(registrar, Role.VIEWER, lifetime_ns=HOUR_NS)
    clock.advance(3600)
    clock.jump_wall(-7200)
    assert authenticate(registrar, key.text) is None


def test_a_machine_that_is_switched_off_keeps_no_key_alive(registrar: Registrar, clock: FakeClock) -> None:
    short, long = [created(registrar, Role.VIEWER, lifetime_ns=number * HOUR_NS) for number in (1, 3)]
    clock.reboot(down_seconds=3600)
    opens = [authenticate(registrar, key.text) is not None for key in (short, long)]
    assert opens == [False, True]


def test_nobody_is_let_in_as_the_bearer_of_another_kind_of_key(registrar: Registrar) -> None:
    key = created(registrar, Role.ADMIN, "acme")
    forged = [
        Caller(access=key.key_id, generation=1),
        Caller(access=key.key_id, tenant="initech", generation=1),
        Caller(access=key.key_id, tenant="acme"),
        Caller(access=key.key_id, tenant="acme", generation=2),
        Caller(access="unknown", tenant="acme", generation=1),
    ]
    for caller in forged:
        with pytest.raises(NotAuthenticated):
            registrar.for_caller(caller).ask(FindHead())


class Unheard(Command, frozen=True, kw_only=True, tag="unheard"):
    """A command that nobody has classified."""


class Unasked(Question[int], frozen=True, kw_only=True, tag="unasked"):
    """A question that nobody has classified."""


def test_what_nobody_has_classified_is_for_admins(registrar: Registrar) -> None:
    guest = desk_of(registrar, created(registrar, Role.OPERATOR))
    with pytest.raises(NotPermitted):
        guest.ask(Unasked())
    assert Unheard(request_id="r").right is Right.ADMINISTER


@pytest.mark.parametrize("job", [RotateKey(actor="eve"), Backup(file="/nowhere/at/all")])
def test_an_operator_has_no_job_done_that_is_for_admins(registrar: Registrar, job: Any) -> None:
    operator, admin = [desk_of(registrar, created(registrar, role)) for role in (Role.OPERATOR, Role.ADMIN)]
    with pytest.raises(NotPermitted):
        operator.start_job("mine", job)
    admin.start_job("theirs", job)
    for ask in (operator.find_job, operator.cancel_job):
        with pytest.raises(NotPermitted):
            ask("theirs")


def test_nobody_writes_history_in_the_registrars_name(registrar: Registrar) -> None:
    admin = desk_of(registrar, created(registrar, Role.ADMIN))
    key = created(registrar, Role.VIEWER)
    lease = granted(registrar.call(claim("door")))
    ended = Revoke(lease_id=lease.lease_id, operator="registrar", reason="reboot", request_id="revoke")
    changed = ChangeSetting(holder="registrar", key="max_renewals", value=3, request_id="change")

    assert expect(Refusal, registrar.call(ended)).field == "operator"
    for command in (changed, revoke(key.key_id, holder="registrar")):
        assert denied(admin.call(command)) == "NOT_PERMITTED"
    with pytest.raises(NotPermitted):
        admin.start_job("mine", RotateKey(actor="registrar"))


def test_who_may_have_no_job_done_learns_of_none(registrar: Registrar) -> None:
    holder, operator = [desk_of(registrar, created(registrar, role)) for role in (Role.HOLDER, Role.OPERATOR)]
    operator.start_job("job", Verify())
    said = set()
    for job_id in ("job", "no such job"):
        with pytest.raises(NotPermitted) as refused:
            holder.find_job(job_id)
        said.add(str(refused.value))
    assert len(said) == 1
    with pytest.raises(JobUnknown):
        operator.find_job("no such job")


class TestABoundHolder:
    """A key that is bound to holders acts for no other."""

    @pytest.fixture
    def desk(self, registrar: Registrar) -> Registrar:
        return desk_of(registrar, created(registrar, Role.HOLDER, holders=("ann", "ci-*")))

    @pytest.mark.parametrize("name", ["ann", "ci-", "ci-7"])
    def test_its_own_names_are_good(self, desk: Registrar, name: str) -> None:
        lease = granted(desk.call(claim("door", name)))
        expect(Released, desk.call(release(lease)))

    @pytest.mark.parametrize("name", ["bob", "ann2", "Ann", "an", "ci", "xci-7", "\u0430nn", "*"])
    def test_others_are_not(self, desk: Registrar, name: str) -> None:
        assert denied(desk.call(claim("door", name))) == "NOT_PERMITTED"

    def test_it_ends_and_extends_no_lease_of_another(self, registrar: Registrar, desk: Registrar) -> None:
        theirs = granted(registrar.call(claim("door", "bob")))
        ids = (theirs.lease_id,)
        as_bob: list[Command] = [
            Renew(holder="bob", lease_ids=ids, request_id="a"),
            Release(holder="bob", lease_ids=ids, request_id="b"),
            Transfer(holder="bob", lease_id=ids[0], to="ann", new_lease_id="n", request_id="c"),
            Derive(
                holder="bob",
                parent_id=ids[0],
                lease_id="d",
                resource="x",
                child_holder="ann",
                request_id="d",
            ),
        ]
        assert {denied(desk.call(command)) for command in as_bob} == {"NOT_PERMITTED"}
        as_ann = expect(Renewed, desk.call(Renew(holder="ann", lease_ids=ids, request_id="e")))
        assert [one.code for one in as_ann.outcomes if isinstance(one, Refusal)] == ["NOT_HOLDER"]
        revoking = Revoke(operator="ann", lease_id=ids[0], reason="mine", request_id="f")
        assert denied(desk.call(revoking)) == "NOT_PERMITTED"
        assert denied(desk.call(SweepDue(limit=1, request_id="g"))) == "NOT_PERMITTED"

    def test_it_gets_no_certificate_of_another(self, registrar: Registrar, desk: Registrar) -> None:
        theirs = granted(registrar.call(claim("door", "bob")))
        for holder in ("", "bob"):
            with pytest.raises(NotPermitted):
                desk.ask(Certify(lease_id=theirs.lease_id, holder=holder))
        with pytest.raises(NotHolder):
            desk.ask(Certify(lease_id=theirs.lease_id, holder="ann"))
        own = granted(desk.call(claim("window", "ann")))
        assert desk.ask(Certify(lease_id=own.lease_id, holder="ann"))

    def test_it_looks_at_everything(self, registrar: Registrar, desk: Registrar) -> None:
        theirs = granted(registrar.call(claim("door", "bob")))
        found = desk.ask(FindLease(lease_id=theirs.lease_id))
        assert found is not None
        assert found.lease == theirs


def test_a_viewer_gets_no_certificate(registrar: Registrar) -> None:
    """Whoever shows one is taken for the lease's holder."""
    lease = granted(registrar.call(claim("door")))
    with pytest.raises(NotPermitted):
        desk_of(registrar, created(registrar, Role.VIEWER)).ask(Certify(lease_id=lease.lease_id))


def test_a_late_copy_of_a_creation_revives_no_revoked_key(registrar: Registrar, clock: FakeClock) -> None:
    key, command = create(Role.VIEWER)
    registrar.call(command)
    registrar.call(revoke(key.key_id))
    assert expect(AccessKey, registrar.call(command)).is_live is False
    clock.advance(7200)
    assert denied(registrar.call(command)) == "ACCESS_KEY_EXISTS"
    assert authenticate(registrar, key.text) is None


def test_no_ledger_and_no_answer_holds_a_secret(registrar: Registrar, store: Store) -> None:
    key = created(registrar, Role.ADMIN)
    new, command = rotate(key.key_id, overlap_ns=HOUR_NS)
    answer = registrar.call(command)
    entries = registrar.ask(ReadLedger(query=EntryQuery(family="access")))
    assert len(entries) == 2
    said = repr([answer, entries, registrar.ask(ListAccessKeys()), registrar.ask(FindBeginning())])
    for secret in (key.secret, new.secret):
        assert secret not in said
        assert all(secret.encode() not in entry.body for entry in entries)
    assert new.digest not in repr([answer, registrar.ask(ListAccessKeys())])


def test_history_says_with_which_key_a_key_was_made(registrar: Registrar) -> None:
    admin = created(registrar, Role.ADMIN)
    key, command = create(Role.VIEWER, "acme")
    desk_of(registrar, admin).call(command)
    events: list[Any] = [
        entry.event for entry in registrar.ask(ReadLedger(query=EntryQuery(family="access")))
    ]
    assert [(one.key_id, one.by) for one in events] == [(admin.key_id, ""), (key.key_id, admin.key_id)]


@pytest.mark.parametrize(
    ("fields", "field"),
    [
        ({"digest": "0" * 63}, "digest"),
        ({"digest": "G" * 64}, "digest"),
        ({"key_id": "11111111aa"}, "key_id"),
        ({"holders": ("a",)}, "holders"),
        ({"role": Role.HOLDER, "holders": ("*",)}, "holders"),
        ({"role": Role.HOLDER, "holders": ("a*b",)}, "holders"),
        ({"role": Role.HOLDER, "holders": ("",)}, "holders"),
        ({"role": Role.HOLDER, "holders": ("a",) * 65}, "holders"),
        ({"lifetime_ns": -1}, "expires"),
        ({"lifetime_ns": 2**62}, "expires"),
        ({"description": "x" * 2000}, "description"),
        ({"only_first": True}, "only_first"),
    ],
)
def test_what_no_key_can_be_is_refused(registrar: Registrar, fields: dict[str, Any], field: str) -> None:
    _, command = create(Role.VIEWER)
    values = {name: getattr(command, name) for name in command.__struct_fields__}
    refusal = expect(Refusal, registrar.call(CreateAccessKey(**{**values, **fields})))
    assert refusal.field == field
