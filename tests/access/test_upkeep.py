"""Access keys under verify, rebuild and prune, and what a key costs a batch."""

import pytest

from leasehold.access import authenticate
from leasehold.access.law.family import invariants
from leasehold.access.law.model import ACCESS, AccessRecord, Role, record_key
from leasehold.engine.audit import audit, rebuild
from leasehold.engine.batch import Recall, Request, Rules, run_taken
from leasehold.engine.port import Store
from leasehold.engine.pruning import prune
from leasehold.engine.questions import FindHead
from leasehold.engine.registrar import Registrar
from leasehold.kernel.ledger.commands import LOCAL, Caller
from leasehold.kernel.ledger.state import State
from leasehold.testing.clock import FakeClock
from tests.access.keys import create, created, desk_of, revoke, rotate
from tests.engine.doubles import WatchedStore, claim, granted

DAY_NS = 86_400 * 10**9


def records(store: Store) -> dict[str, AccessRecord]:
    with store.snapshot() as snapshot:
        return dict(snapshot.state().of(ACCESS))


def test_tables_can_be_rebuilt_from_the_ledger(registrar: Registrar, store: Store) -> None:
    key, other = created(registrar, Role.HOLDER, "acme", holders=("a*",)), created(registrar, Role.ADMIN)
    registrar.call(rotate(key.key_id, overlap_ns=DAY_NS)[1])
    registrar.call(rotate(other.key_id)[1])
    gone = created(registrar, Role.VIEWER, lifetime_ns=DAY_NS)
    registrar.call(revoke(gone.key_id))
    before = records(store)

    rebuild(store, lambda done, total: None)

    assert records(store) == before
    assert audit(store).problems == []


def test_pruning_lets_go_of_keys_that_were_revoked_long_ago_and_of_no_others(
    registrar: Registrar, store: Store, clock: FakeClock
) -> None:
    revoked, expired, live = [
        created(registrar, Role.VIEWER, lifetime_ns=lifetime_ns) for lifetime_ns in (0, DAY_NS, 0)
    ]
    registrar.call(revoke(revoked.key_id))
    clock.advance(10 * 86_400)
    late = created(registrar, Role.VIEWER)
    registrar.call(revoke(late.key_id))

    assert prune(store, actor="ann", keep_ns=5 * DAY_NS).records == 1

    left = {record.key_id for record in records(store).values()}
    assert left == {expired.key_id, live.key_id, late.key_id}
    assert authenticate(registrar, live.text) is not None
    assert audit(store).problems == []


def test_a_key_costs_a_batch_one_record_and_a_local_caller_none(registrar: Registrar, store: Store) -> None:
    key = created(registrar, Role.HOLDER, "acme")
    caller = authenticate(registrar, key.text)
    assert caller is not None
    watched, recall = WatchedStore(store), Recall()

    def read_for(who: Caller, *resources: str) -> list[set[str]]:
        watched.reads.clear()
        requests = [Request(claim(one, tenant="acme"), who) for one in resources]
        for outcome in run_taken(watched, requests, Rules(), recall=recall, blocking=True):
            granted(outcome)
        return [keys.families[ACCESS].keys for keys in watched.reads if ACCESS in keys.families]

    assert read_for(LOCAL, "a", "b") == []
    assert read_for(caller, "c", "d", "e") == [{record_key(key.key_id)}]
    assert read_for(caller, "f") == [], "nobody else has written since"


def test_a_key_that_another_process_revokes_is_not_remembered_as_it_was(
    registrar: Registrar, store: Store
) -> None:
    desk = desk_of(registrar, created(registrar, Role.HOLDER, "acme"))
    granted(desk.call(claim("a", tenant="acme")))
    neighbour = Registrar(store)
    neighbour.call(revoke(desk.caller.access))
    refusal = desk.call(claim("b", tenant="acme"))
    assert refusal.rule == "NOT_AUTHENTICATED"


@pytest.mark.parametrize(
    ("field", "value", "problem"),
    [
        ("key_id", "other", "is filed under another id"),
        ("tenant", "initech", "does not bear the mark of its tenant"),
        ("holders", ("ann",), "is bound to holders, and its role is viewer"),
        ("earlier_digest", "0" * 64, "has an earlier secret"),
    ],
)
def test_what_no_command_could_have_left_is_found(
    registrar: Registrar, store: Store, field: str, value: object, problem: str
) -> None:
    created(registrar, Role.VIEWER, "acme")
    with store.snapshot() as snapshot:
        state = snapshot.state()
    ((key, record),) = state.of(ACCESS).items()
    fields = {name: getattr(record, name) for name in record.__struct_fields__}
    state.records[ACCESS][key] = AccessRecord(**{**fields, field: value})
    assert isinstance(state, State)
    assert problem in " ".join(invariants(state))


def test_who_asks_beside_others_is_admitted_for_itself(registrar: Registrar, store: Store) -> None:
    callers = [
        authenticate(registrar, created(registrar, Role.HOLDER, tenant).text)
        for tenant in ("acme", "initech")
    ]
    requests = [
        Request(claim(f"{number} {tenant}", tenant=tenant), caller or LOCAL)
        for tenant in ("acme", "initech")
        for number, caller in enumerate(callers)
    ]
    outcomes = run_taken(store, requests, Rules(), blocking=True)
    codes = [getattr(outcome, "rule", "granted") for outcome in outcomes]
    assert codes == ["granted", "NOT_PERMITTED", "NOT_PERMITTED", "granted"]
    assert registrar.ask(FindHead()).position > 0


def test_a_tenant_can_have_only_so_many_keys(registrar: Registrar, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("leasehold.access.law.rules.KEYS_MAXIMUM", 2)
    created(registrar, Role.VIEWER, "acme")
    created(registrar, Role.VIEWER, "acme")
    refusal = registrar.call(create(Role.VIEWER, "acme")[1])
    assert (refusal.code, refusal.limit) == ("LIMIT_EXCEEDED", 2)
    created(registrar, Role.VIEWER, "initech")
