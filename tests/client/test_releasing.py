"""Releasing, revoking, sweeping: every end is on record, once."""

from typing import Any

import pytest

import leasehold
from leasehold.kernel.lease.commands import Release
from leasehold.testing.clock import FakeClock
from tests.client.worlds import World
from tests.engine.doubles import registrar_of


async def ends(leases: Any) -> list[tuple[str, str]]:
    """How leases ended so far: resource and kind of end."""
    history = await leases.history(types=["lease.released", "lease.expired", "lease.revoked"])
    return [(entry.event.resource, entry.event.type) for entry in history]


async def test_a_release_gives_the_resource_back_and_says_why(leases: Any, strangers: Any) -> None:
    lease = await leases.acquire("door")

    assert await lease.release("Completed") is True
    assert not lease.lost
    status = await leases.get(lease.lease_id)
    assert (status.lease.state, status.lease.release_reason) == ("released", "completed")
    assert (status.lease.ended_by, status.expires_in) == ("ann", 0.0)
    await strangers.acquire("door")


async def test_a_second_release_says_already_and_changes_nothing(leases: Any, strangers: Any) -> None:
    lease = await leases.acquire("door")
    assert await lease.release() is True
    theirs = await strangers.acquire("door")

    assert await lease.release() is False
    assert await leases.release(lease) is False
    assert await leases.release(lease.lease_id) is False
    theirs.ensure()
    assert await ends(leases) == [("door", "lease.released")]


async def test_a_release_of_a_lease_that_is_gone_raises_nothing(
    leases: Any, strangers: Any, clock: FakeClock
) -> None:
    expired = await leases.acquire("expired", ttl=5)
    revoked = await leases.acquire("revoked")
    taken = await leases.acquire("taken", ttl=5)
    await strangers.revoke(revoked.lease_id, reason="stuck")
    clock.advance(5)
    await strangers.acquire("taken")

    for lease in (expired, revoked, taken):
        assert await lease.release() is False


async def test_a_release_of_a_lease_that_the_store_has_forgotten_raises_nothing(
    world: World, leases: Any
) -> None:
    lease = await leases.acquire("door")
    forgotten = world.connect(holder="ann", tenant="another")  # Where nobody ever heard of that lease.
    plain = getattr(lease, "target", lease)
    plain._claims = getattr(forgotten, "target", forgotten)._claims

    assert await lease.release() is False


async def test_only_the_holder_releases(leases: Any, strangers: Any) -> None:
    lease = await leases.acquire("door")

    with pytest.raises(leasehold.NotHolder, match="belongs to ann") as refused:
        await strangers.release(lease.lease_id)
    assert refused.value.holder == "ann"
    with pytest.raises(leasehold.NotHolder):
        await leases.release(lease, holder="mallory")
    lease.ensure()
    assert await strangers.release(lease.lease_id, holder="ann") is True


async def test_a_lease_released_by_its_id_is_not_reported_as_lost(
    world: World, leases: Any, clock: FakeClock
) -> None:
    lease = await leases.acquire("door", ttl=30)
    assert await leases.release(lease.lease_id) is True
    clock.advance(11)
    world.keep()
    clock.advance(30)
    world.keep()

    assert not lease.lost


async def test_releasing_an_unknown_id_is_an_error(leases: Any) -> None:
    with pytest.raises(leasehold.LeaseNotFound, match="there is no lease nonsense"):
        await leases.release("nonsense")


async def test_all_leases_of_a_holder_are_released_more_than_a_page_of_them(
    leases: Any, strangers: Any
) -> None:
    for number in range(1_050):
        await leases.acquire(f"door-{number}")
    theirs = await strangers.acquire("window")

    assert await leases.release_all() == 1_050
    assert await leases.release_all() == 0
    assert (await leases.list()).statuses == [await leases.get(theirs.lease_id)]


async def test_all_leases_of_somebody_else_are_released_by_name_with_a_reason(
    leases: Any, strangers: Any, clock: FakeClock
) -> None:
    mine = await leases.acquire("mine")
    crashed = [await strangers.acquire(f"door-{number}", ttl=30) for number in range(3)]
    await strangers.acquire("expired", ttl=5)
    clock.advance(5)

    assert await leases.release_all("bob", reason="aborted") == 3
    for lease in crashed:
        status = await leases.get(lease.lease_id)
        assert status.lease.release_reason == "aborted"
    mine.ensure()


async def test_leases_released_together_are_not_reported_as_lost(
    world: World, leases: Any, clock: FakeClock
) -> None:
    held = [await leases.acquire(f"door-{number}", ttl=30) for number in range(3)]
    await leases.release_all()
    clock.advance(60)
    world.keep()

    assert not any(lease.lost for lease in held)


async def test_a_revocation_ends_a_lease_and_history_says_who_and_why(leases: Any, strangers: Any) -> None:
    lease = await leases.acquire("door")

    assert await strangers.revoke(lease.lease_id, reason="maintenance", operator="olga") is True
    assert await strangers.revoke(lease.lease_id, reason="again") is False
    status = await leases.get(lease.lease_id)
    assert (status.lease.state, status.lease.ended_by, status.lease.end_reason) == (
        "revoked",
        "olga",
        "maintenance",
    )
    (entry,) = await leases.history(types=["lease.revoked"])
    assert (entry.event.actor, entry.event.reason, entry.event.holder) == ("olga", "maintenance", "ann")
    with pytest.raises(leasehold.LeaseNotFound):
        await leases.revoke("nonsense", reason="none")


async def test_a_sweep_records_ends_that_time_has_brought(leases: Any, clock: FakeClock) -> None:
    for number in range(5):
        await leases.acquire(f"door-{number}", ttl=5)
    await leases.acquire("lasting", ttl=60)
    assert await leases.sweep() == 0
    clock.advance(5)

    assert await leases.sweep(limit=2) == 2
    assert await leases.sweep() == 3
    assert await leases.sweep() == 0
    assert len(await ends(leases)) == 5


async def test_a_sweep_goes_beyond_one_batch(world: World, clock: FakeClock) -> None:
    leases = world.connect(holder="ann")
    for number in range(1_010):
        await leases.acquire(f"door-{number}", ttl=5)
    clock.advance(5)
    plain = getattr(leases, "target", leases)
    registrar_of(plain)._committer._next_sweep = float("inf")  # Nobody sweeps in passing.

    assert await leases.sweep(limit=5_000) == 1_010


async def test_a_release_that_was_interrupted_is_made_all_the_same(
    leases: Any, strangers: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    lease = await leases.acquire("door")
    plain = getattr(leases, "target", leases)
    send = plain._session.send

    def interrupted(command: Any) -> Any:
        if isinstance(command, Release):
            monkeypatch.setattr(plain._session, "send", send)
            raise KeyboardInterrupt
        return send(command)

    monkeypatch.setattr(plain._session, "send", interrupted)
    with pytest.raises(KeyboardInterrupt):
        await lease.release()
    await leases.acquire("behind it in the queue")

    await strangers.acquire("door")
