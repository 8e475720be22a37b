"""A duration is a number of seconds or a `timedelta`, whichever its caller has at hand."""

import math
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

import leasehold
from leasehold.testing.clock import FakeClock
from tests.client.worlds import World

DAY = timedelta(days=1)


async def _transferred(leases: Any, lease: Any, ttl: Any) -> Any:
    return (await leases.transfer(lease, to="bob", ttl=ttl)).lease


async def _handed_over(leases: Any, lease: Any, ttl: Any) -> Any:
    del leases
    return await lease.transfer("bob", ttl=ttl)


async def _renewed(leases: Any, lease: Any, ttl: Any) -> Any:
    return (await leases.renew(lease, ttl=ttl)).lease


async def _renewed_by_itself(leases: Any, lease: Any, ttl: Any) -> Any:
    del leases
    await lease.renew(ttl)
    return lease.lease


async def _renewed_together(leases: Any, lease: Any, ttl: Any) -> Any:
    return (await leases.renew_many([lease], ttl=ttl))[0].lease


async def _derived(leases: Any, lease: Any, ttl: Any) -> Any:
    return (await leases.derive(lease, "part", ttl=ttl)).lease


async def _derived_by_itself(leases: Any, lease: Any, ttl: Any) -> Any:
    del leases
    return (await lease.derive("part", ttl=ttl)).lease


async def _acquired(leases: Any, lease: Any, ttl: Any) -> Any:
    del lease
    return (await leases.acquire("gate", ttl=ttl)).lease


async def _acquired_together(leases: Any, lease: Any, ttl: Any) -> Any:
    del lease
    return (await leases.acquire_all(["gate", "window"], ttl=ttl))["window"].lease


WAYS: list[Callable[[Any, Any, Any], Any]] = [
    _acquired,
    _acquired_together,
    _derived,
    _derived_by_itself,
    _handed_over,
    _renewed,
    _renewed_by_itself,
    _renewed_together,
    _transferred,
]


@pytest.mark.parametrize("way", WAYS)
async def test_a_lease_lasts_as_long_as_a_timedelta_says(leases: Any, way: Any) -> None:
    is_within = way in (_derived, _derived_by_itself)
    lease = await leases.acquire("door", ttl=DAY if is_within else 60, scope=leasehold.Scope(unlimited=True))
    ttl = timedelta(hours=2, seconds=3, microseconds=1)

    assert (await way(leases, lease, ttl)).ttl_ns == 7_203_000_001_000


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("ttl", [timedelta(microseconds=-1), -DAY, timedelta(), timedelta.max])
async def test_a_lease_that_would_last_less_than_nothing_or_for_ever_is_refused(
    leases: Any, way: Any, ttl: timedelta
) -> None:
    lease = await leases.acquire("door", scope=leasehold.Scope(unlimited=True))
    before = await leases.history()

    with pytest.raises((leasehold.InvalidInput, leasehold.LimitExceeded), match="ttl must be") as refused:
        await way(leases, lease, ttl)

    assert refused.value.field == "ttl"
    assert await leases.history() == before


async def test_a_wait_can_be_a_timedelta(real_world: World) -> None:
    holder, waiter = real_world.connect(holder="ann"), real_world.connect(holder="bob")
    await holder.acquire("door", mode="shared")
    shared = await waiter.acquire("door", mode="shared")
    patience = timedelta(milliseconds=20)

    ways: list[Callable[[], Any]] = [
        lambda: waiter.acquire("door", holder="dora", wait=patience),
        lambda: waiter.acquire_all(["gate", "door"], holder="cleo", wait=patience),
        lambda: shared.upgrade(wait=patience),
        lambda: waiter.upgrade(shared, wait=patience),
    ]
    for wait_in_vain in ways:
        with pytest.raises(leasehold.WaitTimeout) as refused:
            await wait_in_vain()
        assert refused.value.waited is not None
        assert refused.value.waited >= 0.02


async def test_a_wait_of_no_time_is_none_and_a_negative_one_is_refused(world: World) -> None:
    await world.connect(holder="ann").acquire("door")
    waiter = world.connect(holder="bob")

    with pytest.raises(leasehold.Held) as refused:
        await waiter.acquire("door", wait=timedelta())
    assert not isinstance(refused.value, leasehold.WaitTimeout)
    with pytest.raises(leasehold.InvalidInput, match="wait must be seconds from 0 on"):
        await waiter.acquire("door", wait=-DAY)


async def test_the_longest_timedelta_waits_as_long_as_it_takes(real_world: World) -> None:
    leases = real_world.connect(holder="ann")
    await leases.acquire("door", ttl=timedelta(milliseconds=20), max_renewals=0)

    won = await real_world.connect(holder="bob").acquire("door", wait=timedelta.max)

    assert won.holder == "bob"


async def test_a_lock_delay_can_be_a_timedelta(leases: Any, strangers: Any) -> None:
    for lease in (
        await leases.acquire("door", lock_delay=timedelta(seconds=5)),
        (await leases.acquire_all(["gate"], lock_delay=timedelta(seconds=5)))["gate"],
    ):
        await leases.revoke(lease.lease_id, reason="for once")
        with pytest.raises(leasehold.Held) as refused:
            await strangers.acquire(lease.resource)
        assert refused.value.expires_in == 5.0
    with pytest.raises(leasehold.InvalidInput, match="lock_delay must be seconds from 0 on"):
        await leases.acquire("window", lock_delay=-DAY)


async def test_what_is_kept_of_history_can_be_a_timedelta(leases: Any, clock: FakeClock) -> None:
    await (await leases.acquire("door")).release()
    clock.advance(2 * DAY.total_seconds())

    assert (await leases.prune(keep=3 * DAY, dry_run=True)).entries == 0
    assert (await leases.prune(keep=DAY, dry_run=True)).entries > 0
    with pytest.raises(leasehold.InvalidInput, match="keep must be seconds from 0 on"):
        await leases.prune(keep=-DAY)


async def test_a_loss_is_awaited_for_a_timedelta(leases: Any) -> None:
    lease = await leases.acquire("door")

    for patience in (timedelta(milliseconds=1), timedelta(), -DAY, -1):
        assert await lease.lost.wait(patience) is False
    await leases.revoke(lease.lease_id, reason="for once")
    with pytest.raises(leasehold.LeaseLost):
        await leases.renew(lease)
    assert await lease.lost.wait(DAY) is True


def test_a_timeout_can_be_a_timedelta(tmp_path: Path) -> None:
    with leasehold.connect("memory:", timeout=timedelta(seconds=3)) as leases:
        assert leases._session.desk.timeout == 3.0
    with pytest.raises(leasehold.InvalidInput, match="timeout must be seconds from 0 on"):
        leasehold.connect(tmp_path / "leases", timeout=-DAY)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("moment", [DAY, timedelta(), "now", -1, math.nan, None])
async def test_a_duration_is_no_moment(leases: Any, moment: Any) -> None:
    with pytest.raises(leasehold.InvalidInput, match=r"^moment must be a datetime, or seconds since 1970"):
        await leases.held_at(moment)
