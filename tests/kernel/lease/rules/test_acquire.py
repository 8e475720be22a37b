import itertools
from typing import Any

import pytest

from leasehold.kernel.lease.answers import Granted
from leasehold.kernel.lease.events import LeaseIssued, LeaseReleased
from leasehold.kernel.lease.model import Lease, LeaseState, Mode, ReleaseReason
from leasehold.kernel.lease.quotas import Quotas
from leasehold.kernel.ledger.refusals import Refusal, RefusalCode
from leasehold.kernel.ledger.tick import Tick
from tests.kernel.records import a_lease
from tests.kernel.registrar import SECOND, TTL, Registrar, expect

EXCLUSIVE, SHARED = Mode.EXCLUSIVE, Mode.SHARED


@pytest.fixture
def registrar() -> Registrar:
    return Registrar()


def test_a_free_resource_is_granted_with_everything_the_claim_said(registrar: Registrar) -> None:
    claim = registrar.claim(
        "ann",
        "door",
        tenant="acme",
        mode=SHARED,
        max_renewals=3,
        bound_to_boot=False,
        metadata={"task": 42},
        config_version="c1",
        zone_version="z1",
    )

    granted = expect(Granted, registrar.ask(claim))

    assert granted == Granted(
        lease=Lease(
            lease_id=claim.lease_id,
            tenant="acme",
            resource="door",
            holder="ann",
            token=2**23 + 1,
            ttl_ns=TTL,
            issued_tick=Tick(value=registrar.clock),
            expires_tick=Tick(value=registrar.clock + TTL),
            issued_at_ns=registrar.wall_ns,
            expires_at_ns=registrar.wall_ns + TTL,
            mode=SHARED,
            max_renewals=3,
            bound_to_boot=False,
            metadata={"task": 42},
            config_version="c1",
            zone_version="z1",
        ),
        expires_in_ns=TTL,
    )
    issued = registrar.ledger[-1]
    assert (issued.actor, issued.request) == ("ann", claim.request_key)


@pytest.mark.parametrize(("held", "asked"), list(itertools.product(Mode, Mode)))
def test_only_sharers_hold_a_resource_together(registrar: Registrar, held: Mode, asked: Mode) -> None:
    first = registrar.grant("ann", mode=held)

    answer = registrar.ask(registrar.claim("bob", mode=asked))

    if (held, asked) == (SHARED, SHARED):
        assert expect(Granted, answer).lease.token > first.token
    else:
        assert expect(Refusal, answer).code == "HELD"


def test_the_refusal_says_who_holds_it_since_when_and_until_when(registrar: Registrar) -> None:
    lease = registrar.grant("ann", mode=SHARED)
    registrar.advance(4)
    registrar.wall_ns += 999

    assert registrar.deny("bob") == Refusal(
        code=RefusalCode.HELD,
        lease_id=lease.lease_id,
        resource="door",
        holder="ann",
        mode=SHARED,
        state=LeaseState.ACTIVE,
        token=lease.token,
        since_ns=lease.issued_at_ns,
        expires_in_ns=TTL - 4 * SECOND,
    )


def test_of_several_obstacles_the_refusal_names_the_one_that_lasts_longest(registrar: Registrar) -> None:
    registrar.grant("ann", mode=SHARED, ttl_ns=5 * SECOND)
    registrar.grant("bea", mode=SHARED, ttl_ns=9 * SECOND)
    registrar.grant("cem", mode=SHARED, ttl_ns=7 * SECOND)

    assert registrar.deny("dan").holder == "bea"


@pytest.mark.parametrize(
    "expires",
    [None, Tick(value=1, rate=9), Tick(value=1, era=7)],
    ids=["no ticks", "other rate", "other era"],
)
def test_an_obstacle_of_unknown_time_lasts_longest(registrar: Registrar, expires: Tick | None) -> None:
    registrar.grant("ann", mode=SHARED)
    registrar.put(
        a_lease(lease_id="z", holder="zoe", token=1, mode=SHARED, issued_tick=None, expires_tick=expires)
    )
    registrar.grant("bea", mode=SHARED)

    refusal = registrar.deny("dan")

    assert (refusal.holder, refusal.expires_in_ns) == ("zoe", None)


def test_tokens_rise_whatever_becomes_of_the_leases(registrar: Registrar) -> None:
    tokens = [registrar.grant("ann", "a").token]
    released = registrar.grant("bob", "b")
    tokens.append(released.token)
    registrar.end(released)
    tokens.append(registrar.grant("cem", "b").token)
    registrar.advance(60)
    tokens.append(registrar.grant("dan", "b").token)
    tokens.append(registrar.grant("dan", "b", adopt=True).token)
    registrar.reboot()
    tokens.append(registrar.grant("eve", "b").token)
    registrar.identity = "copied:1"
    tokens.append(registrar.grant("fay", "c").token)

    assert tokens == sorted(set(tokens))


def test_an_expired_lease_blocks_nobody_and_its_end_is_recorded_with_the_grant(registrar: Registrar) -> None:
    before = registrar.grant("ann")
    registrar.advance(10)

    after = registrar.grant("bob")

    assert registrar.history()[-2:] == ["lease.expired", "lease.issued"]
    assert registrar.lease(before.lease_id).state is LeaseState.EXPIRED
    assert after.token > before.token


def test_one_tick_before_its_expiry_a_lease_still_blocks(registrar: Registrar) -> None:
    registrar.grant("ann")
    registrar.clock += TTL - 1

    assert registrar.deny("bob").expires_in_ns == 1


def test_a_refused_claim_does_not_even_record_an_expiry(registrar: Registrar) -> None:
    registrar.grant("ann", mode=SHARED, ttl_ns=SECOND)
    registrar.grant("bea", mode=SHARED)
    registrar.advance(2)
    before = registrar.history()

    registrar.deny("dan")

    assert registrar.history() == before


def test_wall_time_has_no_say(registrar: Registrar) -> None:
    registrar.grant("ann")

    registrar.wall_ns += 10**18
    assert registrar.deny("bob").code == "HELD"
    registrar.wall_ns = 0
    registrar.advance(10)
    assert registrar.grant("bob").issued_at_ns == 0


def test_asking_again_for_what_one_holds_is_refused(registrar: Registrar) -> None:
    lease = registrar.grant("ann", mode=SHARED)

    for mode in Mode:
        refusal = registrar.deny("ann", mode=mode)
        assert (refusal.code, refusal.lease_id, refusal.holder) == ("ALREADY_HELD", lease.lease_id, "ann")


def test_what_one_held_and_lost_by_time_can_be_claimed_again(registrar: Registrar) -> None:
    before = registrar.grant("ann")
    registrar.advance(10)

    after = registrar.grant("ann")

    assert after.token > before.token
    assert after.adopted_from is None


def test_adopting_is_a_transfer_to_oneself_that_fences_off_the_lost_incarnation(registrar: Registrar) -> None:
    lost = registrar.grant("ann")

    adopted = registrar.grant("ann", adopt=True)

    ended, issued = registrar.ledger[-2:]
    assert isinstance(ended, LeaseReleased)
    assert isinstance(issued, LeaseIssued)
    assert (ended.reason, ended.request, ended.actor) == (ReleaseReason.TRANSFERRED, None, "ann")
    assert registrar.lease(lost.lease_id).release_reason is ReleaseReason.TRANSFERRED
    assert adopted.lease_id != lost.lease_id
    assert adopted.token > lost.token
    assert adopted.adopted_from == lost.lease_id
    assert registrar.refuse_renewal(lost) == "LEASE_TERMINAL"


def test_adopting_what_nobody_holds_is_an_ordinary_claim(registrar: Registrar) -> None:
    assert registrar.grant("ann", adopt=True).adopted_from is None


def test_nobody_adopts_what_somebody_else_holds(registrar: Registrar) -> None:
    registrar.grant("ann")

    refusal = registrar.deny("bob", adopt=True)

    assert (refusal.code, refusal.holder) == ("HELD", "ann")


def test_a_sharer_cannot_adopt_its_way_past_the_other_sharers(registrar: Registrar) -> None:
    registrar.grant("ann", mode=SHARED)
    bobs = registrar.grant("bob", mode=SHARED)

    refusal = registrar.deny("ann", mode=EXCLUSIVE, adopt=True)
    assert (refusal.code, refusal.holder) == ("HELD", "bob")

    registrar.end(bobs)
    assert registrar.grant("ann", mode=EXCLUSIVE, adopt=True).mode is EXCLUSIVE


def test_adopting_leaves_the_other_sharers_alone(registrar: Registrar) -> None:
    registrar.grant("ann", mode=SHARED)
    bobs = registrar.grant("bob", mode=SHARED)

    registrar.grant("ann", mode=SHARED, adopt=True)

    assert registrar.lease(bobs.lease_id).state is LeaseState.ACTIVE


def test_the_same_name_in_another_tenant_is_another_resource_and_another_holder(registrar: Registrar) -> None:
    registrar.grant("ann", tenant="acme")

    registrar.grant("ann", tenant="umbrella")
    assert registrar.deny("bob", tenant="umbrella").code == "HELD"


def test_a_lease_id_is_used_once_in_all_tenants_and_the_refusal_tells_nothing_else(
    registrar: Registrar,
) -> None:
    taken = registrar.grant("ann", tenant="acme")
    registrar.end(taken)

    refusal = registrar.deny("bob", "window", tenant="umbrella", lease_id=taken.lease_id)

    assert refusal == Refusal(code=RefusalCode.LEASE_EXISTS, lease_id=taken.lease_id)


def test_the_order_of_refusals_is_exists_then_already_held_then_held_then_quota() -> None:
    registrar = Registrar(Quotas(leases_per_holder=1, leases_per_tenant=2))
    anns = registrar.grant("ann", "a", mode=SHARED)
    registrar.grant("bob", "a", mode=SHARED)

    assert registrar.deny("ann", "a", lease_id=anns.lease_id).code == "LEASE_EXISTS"
    assert registrar.deny("ann", "a").code == "ALREADY_HELD"
    assert registrar.deny("ann", "a", adopt=True).code == "HELD"
    assert registrar.deny("ann", "b").field == "leases_per_holder"
    assert registrar.deny("cem", "b").field == "leases_per_tenant"


@pytest.mark.parametrize("given", [-1, -2, -(2**70)])
def test_any_negative_number_of_renewals_means_without_limit(registrar: Registrar, given: int) -> None:
    assert registrar.grant("ann", max_renewals=given).max_renewals == -1


def test_a_claim_that_is_its_own_request_is_recognised_by_its_lease(registrar: Registrar) -> None:
    claim = registrar.claim(lease_id="lease-a", request_id="lease-a")
    first = expect(Granted, registrar.ask(claim))
    registrar.advance(1)

    again = expect(Granted, registrar.ask(claim))

    assert (again.lease, again.repeated, again.ended) == (first.lease, True, False)
    assert again.expires_in_ns == TTL - SECOND
    assert expect(LeaseIssued, registrar.ledger[-1]).request is None


def test_such_a_request_is_still_recognised_when_its_lease_was_renewed_or_has_ended(
    registrar: Registrar,
) -> None:
    claim = registrar.claim(lease_id="lease-a", request_id="lease-a")
    lease = expect(Granted, registrar.ask(claim)).lease
    registrar.extend(lease, ttl_ns=2 * TTL)
    assert expect(Granted, registrar.ask(claim)).repeated
    registrar.release(lease)

    again = expect(Granted, registrar.ask(claim))

    assert (again.repeated, again.ended, again.expires_in_ns) == (True, True, 0)


@pytest.mark.parametrize(
    "other",
    [
        {"holder": "bob"},
        {"resource": "window"},
        {"mode": SHARED},
        {"tenant": "acme"},
        {"max_renewals": 1},
        {"bound_to_boot": False},
        {"metadata": {"task": 1}},
        {"config_version": "c2"},
        {"zone_version": "z2"},
    ],
)
def test_another_claim_under_the_id_of_a_lease_is_no_retry(
    registrar: Registrar, other: dict[str, Any]
) -> None:
    expect(Granted, registrar.ask(registrar.claim(lease_id="lease-a", request_id="lease-a")))

    assert registrar.deny(**({"lease_id": "lease-a", "request_id": "lease-a"} | other)).code == "LEASE_EXISTS"
