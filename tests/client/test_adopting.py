"""Detaching and adopting: a lease outlives its incarnation, and the old one is fenced off."""

from typing import Any

import pytest

import leasehold
from leasehold.testing.clock import FakeClock
from tests.client.worlds import SIGNAL_SECONDS, World


async def test_a_detached_lease_stands_and_is_nobodys_to_keep(
    world: World, leases: Any, strangers: Any, clock: FakeClock
) -> None:
    lease = await leases.acquire("door", ttl=30)
    left = lease.detach()

    assert left.lease_id == lease.lease_id
    assert lease.remaining == 0
    with pytest.raises(leasehold.LeaseLost, match="detached"):
        lease.ensure()
    with pytest.raises(leasehold.Held):
        await strangers.acquire("door")
    clock.advance(30)
    world.keep()
    assert not lease.lost
    await strangers.acquire("door")


async def test_closing_the_client_does_not_release_what_was_detached(world: World, strangers: Any) -> None:
    leases = world.connect(holder="ann")
    lease = await leases.acquire("door")
    lease.detach()
    await leases.close()

    with pytest.raises(leasehold.Held):
        await strangers.acquire("door")


async def test_an_adopted_lease_has_a_new_id_and_a_higher_token(
    world: World, strangers: Any, clock: FakeClock
) -> None:
    first = world.connect(holder="agent-7")
    old = await first.acquire("door", ttl=45, mode="shared", metadata={"a": 1}, max_renewals=9)
    left = old.detach()
    second = world.connect()

    new = await second.adopt(left.lease_id, holder="agent-7")

    assert new.lease_id != old.lease_id
    assert new.token > old.token
    assert new.lease.adopted_from == old.lease_id
    assert (new.mode, new.remaining, new.lease.metadata) == ("shared", 45.0, {"a": 1})
    assert new.lease.max_renewals == 9
    status = await second.get(old.lease_id)
    assert (status.lease.state, status.lease.release_reason) == ("released", "transferred")


async def test_who_still_uses_the_old_lease_loses_it_loudly(world: World, clock: FakeClock) -> None:
    leases = world.connect(holder="agent-7")
    old = await leases.acquire("door", ttl=30)
    new = await leases.acquire("door", ttl=30, adopt=True)
    clock.advance(11)
    world.keep()

    assert await old.lost.wait(SIGNAL_SECONDS)
    new.ensure()
    assert await old.release() is False
    new.ensure()


async def test_only_ones_own_lease_is_adopted(leases: Any, strangers: Any) -> None:
    lease = await leases.acquire("door")

    with pytest.raises(leasehold.Held) as held:
        await strangers.adopt(lease.lease_id, holder="bob")
    assert held.value.holder == "ann"
    with pytest.raises(leasehold.LeaseNotFound):
        await strangers.adopt("nonsense", holder="ann")
    lease.ensure()


async def test_adopting_what_nobody_holds_any_more_is_a_new_grant(
    leases: Any, strangers: Any, clock: FakeClock
) -> None:
    old = await leases.acquire("door", ttl=5)
    clock.advance(5)

    new = await strangers.adopt(old.lease_id, holder="ann")

    assert new.token > old.token
    assert new.lease.adopted_from is None


async def test_a_lease_that_the_same_client_adopts_is_lost_here_at_once(leases: Any) -> None:
    old = await leases.acquire("door")
    new = await leases.adopt(old.lease_id, holder="ann")

    with pytest.raises(leasehold.LeaseTerminal, match=f"was adopted by ann as lease {new.lease_id}"):
        old.ensure()
    assert old.lost
    new.ensure()


async def test_a_lease_that_the_same_client_revokes_is_lost_here_at_once(leases: Any) -> None:
    lease = await leases.acquire("door")
    assert await leases.revoke(lease.lease_id, reason="stuck", operator="ops")

    with pytest.raises(leasehold.LeaseTerminal, match=r"is over \(revoked by ops: stuck\)"):
        lease.ensure()
    assert (lease.lost.error.ended_by, lease.lost.error.end_reason) == ("ops", "stuck")
    await leases.acquire("door")


async def test_a_lease_that_the_same_client_transfers_is_not_held_here_any_more(leases: Any) -> None:
    lease = await leases.acquire("door")
    await leases.transfer(lease.lease_id, to="bob", holder="ann")

    with pytest.raises(leasehold.LeaseLost):
        lease.ensure()
    assert not lease.lost, "it was handed on, not lost"
