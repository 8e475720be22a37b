"""Renewing: extends or fails, each lease on its own, and never brings one back."""

from typing import Any

import pytest

import leasehold
from leasehold.engine.trust import Trust
from leasehold.testing.clock import FakeClock
from tests.client.worlds import World


async def test_a_renewal_counts_from_now(leases: Any, clock: FakeClock) -> None:
    lease = await leases.acquire("door", ttl=30)
    clock.advance(20)
    await lease.renew()

    assert lease.remaining == 30
    assert lease.lease.renewal_count == 1
    (status,) = await leases.inspect("door")
    assert (status.expires_in, status.lease.renewal_count) == (30.0, 1)


async def test_a_renewal_can_ask_for_another_ttl_which_then_stays(leases: Any, clock: FakeClock) -> None:
    lease = await leases.acquire("door", ttl=30)
    status = await leases.renew(lease, ttl=90)

    assert (status.expires_in, lease.remaining) == (90.0, 90.0)
    clock.advance(60)
    await lease.renew()
    assert lease.remaining == 90


async def test_a_renewal_never_shortens(leases: Any, clock: FakeClock) -> None:
    lease = await leases.acquire("door", ttl=30)
    clock.advance(5)

    with pytest.raises(leasehold.RenewalDoesNotExtend, match=r"25\.0 s more"):
        await lease.renew(ttl=10)
    assert lease.remaining == 25
    assert not lease.lost


async def test_a_renewal_while_the_clock_stands_still_succeeds_unchanged(leases: Any) -> None:
    lease = await leases.acquire("door", ttl=30)
    await lease.renew()

    assert (lease.remaining, lease.lease.renewal_count) == (30.0, 0)


async def test_a_lease_is_renewed_by_its_id_under_its_holders_name(leases: Any, clock: FakeClock) -> None:
    lease = await leases.acquire("door", ttl=30, holder="eve")
    clock.advance(10)

    with pytest.raises(leasehold.NotHolder) as refused:
        await leases.renew(lease.lease_id)
    assert refused.value.holder == "eve"
    status = await leases.renew(lease.lease_id, holder="eve")

    assert status.expires_in == 30
    assert lease.remaining == 30, "the keeper hears of it, too"


async def test_who_asks_under_a_wrong_name_does_not_lose_the_lease_for_its_holder(
    leases: Any, clock: FakeClock
) -> None:
    lease = await leases.acquire("door", ttl=30)
    clock.advance(10)

    for named in (lease, lease.lease_id):
        with pytest.raises(leasehold.NotHolder):
            await leases.renew(named, holder="mallory")

    assert not lease.lost
    lease.ensure()


async def test_many_are_renewed_each_with_its_own_result(
    leases: Any, strangers: Any, clock: FakeClock
) -> None:
    fine = [await leases.acquire(f"door-{number}", ttl=30) for number in range(3)]
    released = await leases.acquire("released", ttl=30)
    await released.release()
    expired = await leases.acquire("expired", ttl=5)
    exhausted = await leases.acquire("exhausted", ttl=30, max_renewals=0)
    another = await strangers.acquire("another", ttl=30)
    clock.advance(10)

    results = await leases.renew_many(
        [fine[0], released.lease_id, fine[1], expired, "no-such-lease", exhausted, another.lease_id, fine[2]]
    )

    assert [type(result).__name__ for result in results] == [
        "LeaseStatus",
        "LeaseTerminal",
        "LeaseStatus",
        "LeaseExpired",
        "LeaseNotFound",
        "RenewalsExhausted",
        "NotHolder",
        "LeaseStatus",
    ]
    assert [lease.remaining for lease in fine] == [30.0] * 3
    assert expired.lost
    assert not exhausted.lost
    assert exhausted.remaining == 20


async def test_many_leases_of_several_holders_are_renewed_in_each_ones_name(
    leases: Any, clock: FakeClock
) -> None:
    held = [await leases.acquire(f"door-{name}", ttl=30, holder=name) for name in ("ann", "bob")]
    held += [await leases.acquire(f"window-{name}", ttl=30, holder=name) for name in ("bob", "ann")]
    clock.advance(10)

    results = await leases.renew_many(held)

    assert [result.lease.holder for result in results] == ["ann", "bob", "bob", "ann"]
    assert [result.lease.lease_id for result in results] == [lease.lease_id for lease in held]
    assert not any(lease.lost for lease in held)


async def test_renewing_none_asks_nobody(leases: Any) -> None:
    assert await leases.renew_many([]) == []


async def test_more_than_a_batch_is_renewed_in_several(world: World, clock: FakeClock) -> None:
    leases = world.connect(holder="ann")
    held = [await leases.acquire(f"door-{number}", ttl=30) for number in range(30)]
    clock.advance(10)

    # The same leases over and over: the limit counts names, and each gets its answer.
    results = await leases.renew_many(held * 50)

    assert [result.lease.lease_id for result in results] == [lease.lease_id for lease in held] * 50
    assert all(result.expires_in == 30 for result in results)


async def test_an_expired_lease_is_not_renewed_and_is_lost(leases: Any, clock: FakeClock) -> None:
    lease = await leases.acquire("door", ttl=30)
    clock.advance(30)

    with pytest.raises(leasehold.LeaseExpired):
        await leases.renew(lease)
    assert lease.lost
    with pytest.raises(leasehold.LeaseExpired):
        lease.ensure()


async def test_a_lease_that_was_lost_stays_lost_even_if_the_registrar_would_renew_it(
    world: World, clock: FakeClock
) -> None:
    leases = world.connect(holder="ann", trust=Trust(margin_ns=5 * 10**9, drift_ppm=0))
    lease = await leases.acquire("door", ttl=30)
    clock.advance(26)
    with pytest.raises(leasehold.LeaseExpired):
        lease.ensure()

    with pytest.raises(leasehold.LeaseExpired):
        await lease.renew()
    (status,) = await leases.inspect("door")
    assert (status.expires_in, status.lease.renewal_count) == (4.0, 0)


async def test_a_released_lease_is_not_renewed_through_its_object(leases: Any) -> None:
    lease = await leases.acquire("door")
    await lease.release()

    with pytest.raises(leasehold.LeaseLost, match="released or detached"):
        await lease.renew()
    with pytest.raises(leasehold.LeaseTerminal):
        await leases.renew(lease)


@pytest.mark.parametrize("unlimited", [-1, -7])
async def test_any_negative_number_of_renewals_means_without_limit(
    leases: Any, clock: FakeClock, unlimited: int
) -> None:
    lease = await leases.acquire("door", ttl=30, max_renewals=unlimited)
    for _ in range(5):
        clock.advance(10)
        await lease.renew()

    assert lease.lease.renewal_count == 5


async def test_renewals_end_when_they_are_used_up(leases: Any, clock: FakeClock) -> None:
    lease = await leases.acquire("door", ttl=30, max_renewals=2)
    for _ in range(2):
        clock.advance(10)
        await lease.renew()
    clock.advance(10)

    with pytest.raises(leasehold.RenewalsExhausted, match=r"20\.0 s more"):
        await lease.renew()
    lease.ensure()
    assert lease.remaining == 20
