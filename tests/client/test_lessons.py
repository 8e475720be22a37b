"""What went wrong in systems like this one. Each test is a mistake that must not be made here."""

from pathlib import Path
from typing import Any

import pytest

import leasehold
from leasehold.client import aio, blocking, held
from leasehold.testing.clock import FakeClock
from tests.client.worlds import World


async def test_an_expired_lease_that_nobody_swept_does_not_block(
    leases: Any, strangers: Any, clock: FakeClock
) -> None:
    await leases.acquire("file", ttl=10)
    clock.advance(10)

    await strangers.acquire("file")


async def test_the_same_agent_does_not_hold_a_file_twice(world: World) -> None:
    one, two = world.connect(holder="agent-7"), world.connect(holder="agent-7")
    await one.acquire("file")

    with pytest.raises(leasehold.AlreadyHeld):
        await two.acquire("file")


async def test_renewing_does_not_revive_a_released_lease(leases: Any) -> None:
    lease = await leases.acquire("file")
    await lease.release()

    with pytest.raises(leasehold.LeaseTerminal):
        await leases.renew(lease.lease_id)
    assert await leases.inspect("file") == []


async def test_renewing_does_not_revive_an_expired_lease(leases: Any, clock: FakeClock) -> None:
    lease = await leases.acquire("file", ttl=10)
    clock.advance(10)

    with pytest.raises(leasehold.LeaseExpired):
        await leases.renew(lease.lease_id)
    assert await leases.inspect("file") == []


async def test_renewing_does_not_revive_a_lease_whose_file_another_agent_has_by_now(
    leases: Any, strangers: Any, clock: FakeClock
) -> None:
    lost = await leases.acquire("file", ttl=10)
    clock.advance(10)
    taken = await strangers.acquire("file")

    with pytest.raises(leasehold.LeaseTerminal):
        await leases.renew(lost.lease_id)
    assert [status.lease.lease_id for status in await leases.inspect("file")] == [taken.lease_id]


async def test_releasing_twice_succeeds_once(leases: Any) -> None:
    lease = await leases.acquire("file")

    assert [await lease.release() for _ in range(3)] == [True, False, False]
    assert len(await leases.history(types=["lease.released"])) == 1


async def test_a_late_release_does_not_end_somebody_elses_newer_lease(
    leases: Any, strangers: Any, clock: FakeClock
) -> None:
    lost = await leases.acquire("file", ttl=10)
    clock.advance(10)
    taken = await strangers.acquire("file")
    await lost.release()

    taken.ensure()
    assert await leases.inspect("file") != []


async def test_ending_a_lease_by_force_writes_history(leases: Any, strangers: Any) -> None:
    lease = await leases.acquire("file")
    await strangers.revoke(lease.lease_id, reason="stuck")

    assert [entry.event.type for entry in await leases.history(lease_id=lease.lease_id)] == [
        "lease.issued",
        "lease.revoked",
    ]


async def test_a_query_for_active_leases_returns_no_others(leases: Any) -> None:
    for number in range(3):
        await (await leases.acquire(f"ended-{number}")).release()
    await leases.acquire("active")

    page = await leases.list(states=["active"])
    assert [status.lease.resource for status in page.statuses] == ["active"]


@pytest.mark.parametrize("ttl", [0, -1])
async def test_a_time_to_live_of_zero_is_refused(leases: Any, ttl: int) -> None:
    with pytest.raises(leasehold.InvalidInput, match="ttl"):
        await leases.acquire("file", ttl=ttl)
    assert await leases.inspect("file") == []


async def test_the_refusal_names_the_holder_and_the_next_step(leases: Any, strangers: Any) -> None:
    await leases.acquire("file")

    with pytest.raises(leasehold.Held, match=r"file is held by ann .* try again then, or ask them"):
        await strangers.acquire("file")


async def test_a_renewal_sets_the_time_and_does_not_add_to_it(leases: Any, clock: FakeClock) -> None:
    lease = await leases.acquire("file", ttl=10)
    for _ in range(5):
        clock.advance(1)
        await lease.renew()

    assert lease.remaining == 10


async def test_tokens_do_not_restart_after_a_release(leases: Any) -> None:
    tokens = []
    for _ in range(5):
        async with leases.acquire("file") as lease:
            tokens.append(lease.token)

    assert tokens == sorted(set(tokens))


async def test_a_change_of_the_wall_clock_ends_no_lease_and_keeps_none_alive(
    leases: Any, strangers: Any, clock: FakeClock
) -> None:
    lease = await leases.acquire("file", ttl=10)
    clock.jump_wall(10**6)
    lease.ensure()
    with pytest.raises(leasehold.Held):
        await strangers.acquire("file")
    clock.jump_wall(-(10**7))
    clock.advance(10)

    with pytest.raises(leasehold.LeaseExpired):
        lease.ensure()
    await strangers.acquire("file")


async def test_a_lapsed_lease_that_nobody_took_can_be_claimed_again_by_its_owner(
    leases: Any, clock: FakeClock
) -> None:
    lapsed = await leases.acquire("file", ttl=10)
    clock.advance(10)

    assert (await leases.acquire("file")).token > lapsed.token


async def test_a_holder_that_crashed_blocks_for_its_ttl_and_no_longer(
    leases: Any, strangers: Any, clock: FakeClock
) -> None:
    (await leases.acquire("file", ttl=10)).detach()
    clock.advance(9.999)
    with pytest.raises(leasehold.Held) as held:
        await strangers.acquire("file")
    assert held.value.retry_after is not None
    clock.advance(held.value.retry_after)

    await strangers.acquire("file")


def test_nothing_is_released_by_the_garbage_collector_nor_kept_per_thread() -> None:
    modules = [Path(path) for package in (aio, blocking) for path in Path(package.__path__[0]).glob("*.py")]
    for module in (*modules, Path(held.__file__)):
        text = module.read_text()
        assert "__del__" not in text
        assert "threading.local" not in text


def test_a_lease_that_nobody_refers_to_any_more_is_still_held() -> None:
    with leasehold.connect("memory:") as leases:
        leases.acquire("file")

        assert len(leases.inspect("file")) == 1
