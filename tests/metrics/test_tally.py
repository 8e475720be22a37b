"""What is counted for monitoring, on every store and over a wire."""

from typing import Any

import pytest

from leasehold import Held, WaitTimeout
from leasehold.metrics.tally import HOLDERS_MAXIMUM, OTHERS
from leasehold.testing.clock import FakeClock
from tests.client.worlds import World


async def test_what_happened_is_counted(leases: Any, strangers: Any, clock: FakeClock) -> None:
    lease = await leases.acquire("a", ttl=10)
    other = await leases.acquire("b", ttl=10)
    clock.advance(1)
    await leases.renew_many([lease, other])
    with pytest.raises(Held):
        await strangers.acquire("a")
    await lease.release()
    await leases.revoke(other.lease_id, reason="policy")
    (await leases.acquire("c", ttl=1)).detach()
    clock.advance(2)
    await leases.sweep()
    assert (await strangers.tally()).happened == {
        "acquired": 3,
        "renewed": 2,
        "released": 1,
        "expired": 1,
        "revoked": 1,
        "waited": 0,
        "timed_out": 0,
        "gave_up": 0,
    }


async def test_a_tally_goes_on_where_the_last_one_ended(leases: Any) -> None:
    for _ in range(3):
        await (await leases.acquire("a")).release()
        before = (await leases.tally()).happened
    assert before["acquired"] == before["released"] == 3
    assert (await leases.tally()).happened == before


async def test_counts_survive_pruning(leases: Any, clock: FakeClock) -> None:
    await (await leases.acquire("a")).release()
    await leases.tally()
    clock.advance(40 * 86_400)
    await (await leases.acquire("b")).release()
    await leases.prune()
    assert (await leases.tally()).happened["acquired"] == 2


async def test_what_soft_state_has_lost_is_counted_anew(world: World, leases: Any) -> None:
    await (await leases.acquire("a")).release()
    await leases.tally()
    for nonsense in (b"", b"nonsense", b'{"position":99999,"counts":{}}'):
        world.store().soft.put("metrics", {"default": nonsense})
        assert (await leases.tally()).happened["acquired"] == 1


async def test_who_holds_how_many_leases_and_for_how_long(
    leases: Any, strangers: Any, clock: FakeClock
) -> None:
    await leases.acquire("a", ttl=600)
    clock.advance(30)
    await leases.acquire("b", ttl=600)
    await strangers.acquire("c", ttl=600)
    (await strangers.acquire("gone", ttl=1)).detach()
    clock.advance(5)
    found = (await leases.tally()).holders
    assert {name: (one.leases, one.longest_held) for name, one in found.items()} == {
        "ann": (2, 35.0),
        "bob": (1, 5.0),
    }


async def test_only_so_many_holders_are_told_apart(leases: Any) -> None:
    for number in range(HOLDERS_MAXIMUM + 5):
        await leases.acquire(f"r{number}", holder=f"h{number}", ttl=600)
    await leases.acquire("one more", holder="h104", ttl=600)
    found = (await leases.tally()).holders
    assert len(found) == HOLDERS_MAXIMUM + 1
    assert found["h104"].leases == 2
    assert found[OTHERS].leases == 5


async def test_tenants_are_counted_apart(world: World, leases: Any) -> None:
    await leases.acquire("a", ttl=600)
    theirs = await world.connect(tenant="blue").tally()
    assert (theirs.holders, theirs.happened["acquired"]) == ({}, 0)


async def test_waits_and_timeouts_are_counted(real_world: World) -> None:
    ann, bob = real_world.connect(holder="ann"), real_world.connect(holder="bob", is_steady=True)
    await ann.acquire("a", ttl=600)
    with pytest.raises(WaitTimeout):
        await bob.acquire("a", wait=0.05)
    found = await ann.tally()
    assert (found.happened["waited"], found.happened["timed_out"], found.waiting) == (1, 1, 0)
