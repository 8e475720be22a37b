"""What went wrong in the systems this one learned from. Each test is a bug that must not come back."""

import pytest

from leasehold.kernel.lease.answers import Ended
from leasehold.kernel.lease.model import LeaseState, Mode
from leasehold.kernel.ledger.refusals import Refusal
from leasehold.kernel.ledger.tick import Tick
from tests.kernel.records import a_lease
from tests.kernel.registrar import SECOND, TTL, Registrar, expect


@pytest.fixture
def registrar() -> Registrar:
    return Registrar()


def test_a_lease_without_ticks_is_expired_for_its_holder_and_taken_over_by_nobody(
    registrar: Registrar,
) -> None:
    lease = registrar.put(a_lease(lease_id="foreign", token=1, expires_tick=None))

    assert lease.is_expired_at(Tick(value=0))
    assert registrar.refuse_renewal(lease) == "UNKNOWN_TIME"
    assert registrar.deny("bob").code == "HELD"


def test_empty_ids_are_refused(registrar: Registrar) -> None:
    for field in ("lease_id", "resource", "holder", "request_id", "tenant"):
        refusal = registrar.deny(**{field: ""})
        assert (refusal.code, refusal.field) == ("INVALID_INPUT", field)


def test_of_any_number_of_racing_claims_one_wins(registrar: Registrar) -> None:
    claims = [registrar.claim(f"racer-{number}") for number in range(20)]

    codes = [getattr(registrar.ask(claim), "code", "granted") for claim in claims]

    assert codes == ["granted"] + ["HELD"] * 19


def test_an_expired_lease_that_nobody_swept_does_not_block(registrar: Registrar) -> None:
    registrar.grant("crashed")
    registrar.advance(10)

    registrar.grant("bob")

    assert registrar.holders() == ["bob"]
    assert registrar.history()[-2:] == ["lease.expired", "lease.issued"]


def test_the_same_holder_does_not_hold_a_resource_twice(registrar: Registrar) -> None:
    registrar.grant("ann", mode=Mode.SHARED)

    assert registrar.deny("ann", mode=Mode.SHARED).code == "ALREADY_HELD"


def test_renewing_revives_neither_a_released_nor_an_expired_lease(registrar: Registrar) -> None:
    released, expired = registrar.grant("ann", "a"), registrar.grant("ann", "b")
    registrar.end(released)
    registrar.advance(10)

    assert registrar.refuse_renewal(released) == "LEASE_TERMINAL"
    assert registrar.refuse_renewal(expired) == "LEASE_EXPIRED"


def test_renewing_does_not_revive_a_lease_whose_resource_somebody_else_holds_by_now(
    registrar: Registrar,
) -> None:
    lost = registrar.grant("ann")
    registrar.advance(10)
    taken = registrar.grant("bob")

    assert registrar.refuse_renewal(lost) == "LEASE_TERMINAL"
    assert registrar.lease(taken.lease_id).state is LeaseState.ACTIVE


def test_releasing_twice_does_not_succeed_twice(registrar: Registrar) -> None:
    lease = registrar.grant("ann")

    assert [registrar.end(lease).already for _ in range(3)] == [False, True, True]
    assert registrar.history().count("lease.released") == 1


def test_ending_a_lease_by_force_writes_history(registrar: Registrar) -> None:
    lease = registrar.grant("ann")
    expect(Ended, registrar.revoke(lease, operator="olga", reason="stuck"))

    assert (registrar.history()[-1], registrar.ledger[-1].actor) == ("lease.revoked", "olga")


@pytest.mark.parametrize("ttl_ns", [0, -SECOND])
def test_a_time_to_live_of_zero_is_refused(registrar: Registrar, ttl_ns: int) -> None:
    lease = registrar.grant("bob", "window")

    assert registrar.deny("ann", ttl_ns=ttl_ns).field == "ttl"
    assert registrar.lease(lease.lease_id) == lease


def test_the_refusal_names_the_holder(registrar: Registrar) -> None:
    registrar.grant("ann")

    assert registrar.deny("bob").holder == "ann"


@pytest.mark.parametrize("max_renewals", [-1, -5])
def test_any_negative_number_of_renewals_is_unlimited(registrar: Registrar, max_renewals: int) -> None:
    lease = registrar.grant("ann", max_renewals=max_renewals)
    for number in range(1, 11):
        registrar.advance(5)
        renewed = registrar.extend(lease)
        assert (renewed.lease.renewal_count, renewed.expires_in_ns) == (number, TTL)


def test_renewals_count_from_the_last_renewal_and_not_from_the_grant(registrar: Registrar) -> None:
    lease = registrar.grant("ann")
    for _ in range(5):
        registrar.advance(TTL // SECOND // 3)
        assert registrar.extend(lease).expires_in_ns == TTL


def test_a_renewal_that_cannot_extend_is_not_a_loss(registrar: Registrar) -> None:
    lease = registrar.grant("ann", max_renewals=0)
    registrar.advance(1)

    refusal = expect(Refusal, registrar.renew(lease)[0])

    assert not refusal.code.means_loss
    assert registrar.lease(lease.lease_id).ticks_remaining(registrar.now().tick) == TTL - SECOND


def test_a_late_notice_of_expiry_does_not_move_the_end_of_the_lease(registrar: Registrar) -> None:
    lease = registrar.grant("ann")
    registrar.advance(10**6)
    registrar.wall_ns += 10**6 * SECOND

    (swept,) = registrar.sweep(lease)

    assert swept.terminated_at_ns == lease.expires_at_ns


def test_a_lapsed_lease_that_nobody_took_can_be_claimed_again_by_its_owner(registrar: Registrar) -> None:
    lapsed = registrar.grant("ann")
    registrar.advance(10)

    assert registrar.grant("ann").token > lapsed.token
