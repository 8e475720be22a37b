"""The contract of a lease manager, by the names of its own tests, and what it says when it refuses."""

import asyncio
import uuid
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from leasehold.files import (
    FileLease,
    LeaseAcquisitionRequest,
    LeaseEvent,
    LeaseReleaseRequest,
    LeaseRenewalRequest,
    LeaseStatus,
    LeaseTransferRequest,
    LeaseUpgradeRequest,
)
from tests.client.worlds import World

AGENT, OTHER = str(uuid.UUID(int=7)), str(uuid.UUID(int=8))


def claim(path: str = "src/app.py", agent: str = AGENT, **fields: Any) -> LeaseAcquisitionRequest:
    return LeaseAcquisitionRequest(path, agent, **{"blocking": False} | fields)


async def acquired(leases: Any, **fields: Any) -> FileLease:
    response = await leases.files.acquire_lease(claim(**fields))
    assert response.success, response.error
    lease: FileLease = response.lease
    return lease


async def test_lease_creation(leases: Any, repository: Path) -> None:
    """The fields of the request in the contract's order, and every property of the lease."""
    request = LeaseAcquisitionRequest("src/app.py", AGENT, 600, 5, 30_000, True)
    lease = (await leases.files.acquire_lease(request)).lease
    assert (lease.file_path, lease.agent_id) == ("src/app.py", AGENT)
    assert lease.resource == leases.files.name("src/app.py").resource
    assert (lease.ttl_seconds, lease.renewal_count, lease.max_renewals) == (600, 0, 5)
    assert lease.status is LeaseStatus.ACTIVE
    assert lease.expires_at == pytest.approx(lease.created_at + 600)
    assert lease.updated_at == lease.created_at
    assert await leases.files.get_lease(lease.id) == lease
    assert await leases.files.get_lease("no such") is None


async def test_lease_is_valid(leases: Any, world: World, repository: Path) -> None:
    lease = await acquired(leases, ttl_seconds=10)
    assert lease.is_valid
    world.clock.advance(10)  # type: ignore[attr-defined]
    over = await leases.files.get_lease(lease.id)
    assert not over.is_valid
    assert over.status is LeaseStatus.EXPIRED


async def test_lease_renewal(leases: Any, world: World, repository: Path) -> None:
    lease = await acquired(leases, ttl_seconds=10, max_renewals=1)
    assert lease.can_be_renewed
    world.clock.advance(5)  # type: ignore[attr-defined]
    renewed = (await leases.files.renew_lease(LeaseRenewalRequest(lease.id, AGENT, 20))).lease
    assert (renewed.renewal_count, renewed.time_remaining) == (1, pytest.approx(20))
    assert not renewed.can_be_renewed
    response = await leases.files.renew_lease(LeaseRenewalRequest(lease.id, AGENT))
    assert response.error.startswith("Maximum renewals exceeded: ")
    assert (await leases.files.get_lease(lease.id)).is_valid


async def test_time_remaining(leases: Any, world: World, repository: Path) -> None:
    lease = await acquired(leases, ttl_seconds=10)
    assert lease.time_remaining == pytest.approx(10)
    world.clock.advance(4)  # type: ignore[attr-defined]
    assert (await leases.files.get_lease(lease.id)).time_remaining == pytest.approx(6)
    world.clock.advance(60)  # type: ignore[attr-defined]
    assert (await leases.files.get_lease(lease.id)).time_remaining == 0


async def test_lease_status_transitions(leases: Any, strangers: Any, world: World, repository: Path) -> None:
    """Active to released, expired, or taken away; pending to active, or failed. No way back."""
    released = await acquired(leases)
    assert (await leases.files.release_lease(LeaseReleaseRequest(released.id, AGENT))).success
    assert (await leases.files.get_lease(released.id)).status is LeaseStatus.RELEASED
    expired = await acquired(leases, ttl_seconds=1)
    world.clock.advance(1)  # type: ignore[attr-defined]
    revoked = await acquired(leases)
    assert await strangers.files.force_release_agent_leases(AGENT, "did not answer") == 1
    taken = await leases.files.get_lease(revoked.id)
    assert (taken.status, taken.ended_because) == (LeaseStatus.RELEASED, "did not answer")
    for lease in (released, expired, revoked):
        for answer in (
            await leases.files.renew_lease(LeaseRenewalRequest(lease.id, AGENT)),
            await leases.files.release_lease(LeaseReleaseRequest(lease.id, AGENT)),
        ):
            assert not answer.success
            assert answer.error
    assert (await leases.files.get_lease(expired.id)).status is LeaseStatus.EXPIRED


async def test_acquire_release_lease(leases: Any, strangers: Any, repository: Path) -> None:
    lease = await acquired(leases)
    refused = await strangers.files.acquire_lease(claim(agent=OTHER))
    assert (refused.success, refused.lease, refused.holder) == (False, None, AGENT)
    assert refused.error.startswith("File already locked: src/app.py is held by ")
    assert (await leases.files.release_lease(LeaseReleaseRequest(lease.id, AGENT))).success
    assert (await strangers.files.acquire_lease(claim(agent=OTHER))).success


async def test_blocking_acquisition(real_world: World, repository: Path) -> None:
    leases, strangers = real_world.connect(holder="ann"), real_world.connect(holder="bob")
    lease = await acquired(leases)
    response = await strangers.files.acquire_lease(claim(agent=OTHER, blocking=True, timeout_ms=60))
    assert response.error.startswith("Acquisition timeout: ")
    assert response.waited_ms >= 60
    assert response.holder == AGENT
    entries = leases.watch(after=await leases.position(), resource=lease.resource)
    waiting = _begin(real_world, lambda: strangers.files.acquire_lease(claim(agent=OTHER, blocking=True)))
    while (await anext(entries)).event.type != "lease.queued":
        pass
    await entries.aclose()
    assert (await leases.files.release_lease(LeaseReleaseRequest(lease.id, AGENT))).success
    assert (await waiting).lease.agent_id == OTHER


def _begin(world: World, call: Callable[[], Any]) -> "asyncio.Task[Any]":
    """Ask in the background, whatever the colour of the client."""

    async def ask() -> Any:
        return await call()

    if world.blocking:
        return asyncio.ensure_future(asyncio.to_thread(asyncio.run, ask()))
    return asyncio.ensure_future(ask())


async def test_cleanup_expired(leases: Any, world: World, repository: Path) -> None:
    expiring = await acquired(leases, ttl_seconds=1)
    await acquired(leases, path="docs/", ttl_seconds=60)
    world.clock.advance(2)  # type: ignore[attr-defined]
    assert await leases.files.cleanup_expired_leases() == 1
    assert await leases.files.cleanup_expired_leases() == 0
    types = [entry.event.type for entry in await leases.history(lease_id=expiring.id)]
    assert types == ["lease.issued", "lease.expired"]


async def test_concurrent_acquisitions(world: World, repository: Path) -> None:
    clients = [world.connect(holder=f"client-{number}") for number in range(8)]
    asked = [
        _begin(world, partial(one.files.acquire_lease, claim(agent=f"agent-{number}")))
        for number, one in enumerate(clients)
    ]
    responses = [await one for one in asked]
    (winner,) = [one.lease.agent_id for one in responses if one.success]
    assert {one.holder for one in responses if not one.success} == {winner}


async def test_an_agent_that_does_not_own_a_lease_is_told_so(leases: Any, repository: Path) -> None:
    lease = await acquired(leases)
    for response in (
        await leases.files.renew_lease(LeaseRenewalRequest(lease.id, OTHER)),
        await leases.files.release_lease(LeaseReleaseRequest(lease.id, OTHER)),
        await leases.files.transfer_lease(LeaseTransferRequest(lease.id, OTHER, "x")),
    ):
        assert response.error.startswith("Agent doesn't own lease: ")
    for response in (
        await leases.files.renew_lease(LeaseRenewalRequest("none", OTHER)),
        await leases.files.release_lease(LeaseReleaseRequest("none", OTHER)),
        await leases.files.upgrade_lease(LeaseUpgradeRequest("none", OTHER)),
    ):
        assert response.error.startswith("Lease not found: ")


async def test_queries_tell_what_stands_and_no_more(leases: Any, world: World, repository: Path) -> None:
    await leases.acquire("no file")
    file = await acquired(leases)
    folder = await acquired(leases, path="docs/", agent=OTHER)
    virtual = await acquired(leases, path="service://db")
    gone = await acquired(leases, path="gone.txt", ttl_seconds=1)
    world.clock.advance(2)  # type: ignore[attr-defined]
    files = leases.files
    assert {one.id for one in await files.get_all_leases()} == {file.id, folder.id, virtual.id}
    assert {one.id for one in await files.get_agent_leases(AGENT)} == {file.id, virtual.id}
    assert [one.id for one in await files.get_file_leases("docs/deep/a.md")] == [folder.id]
    assert [one.id for one in await files.get_file_leases("service://db")] == [virtual.id]
    assert await files.get_file_leases("gone.txt") == []
    assert await files.has_agent_lease(OTHER, "docs/deep/a.md")
    assert not await files.has_agent_lease(AGENT, "docs/deep/a.md")
    assert not await files.has_agent_lease(AGENT, gone.file_path)
    assert await files.is_file_locked("docs/a.md")
    assert not await files.is_file_locked("docs2/a.md")
    assert await files.in_the_way("docs", mode="shared")


async def test_a_shared_lease_is_upgraded_once_others_have_gone(
    leases: Any, strangers: Any, repository: Path
) -> None:
    mine, theirs = [await acquired(leases, agent=agent, mode="shared") for agent in (AGENT, OTHER)]
    request = LeaseUpgradeRequest(mine.id, AGENT, blocking=False)
    refused = await leases.files.upgrade_lease(request)
    assert (refused.success, refused.holder) == (False, OTHER)
    await leases.files.release_lease(LeaseReleaseRequest(theirs.id, OTHER))
    upgraded = (await leases.files.upgrade_lease(LeaseUpgradeRequest(mine.id, AGENT))).lease
    assert (upgraded.mode, upgraded.id) == ("exclusive", mine.id)
    assert upgraded.token > mine.token


async def test_a_lease_is_transferred_in_one_step(leases: Any, repository: Path) -> None:
    lease = await acquired(leases)
    new = (await leases.files.transfer_lease(LeaseTransferRequest(lease.id, AGENT, OTHER, 60))).lease
    assert (new.agent_id, new.file_path, new.ttl_seconds) == (OTHER, "src/app.py", 60)
    assert new.token > lease.token
    assert (await leases.files.get_lease(lease.id)).ended_because == "transferred"


async def test_what_the_settings_say_holds_where_a_request_says_nothing(
    leases: Any, strangers: Any, repository: Path
) -> None:
    lease = await acquired(leases)
    assert (lease.ttl_seconds, lease.max_renewals) == (3_600, -1)
    await leases.settings.set("default_ttl_seconds", 120)
    await leases.settings.set("max_renewals", 3, resource=leases.files.name("docs").resource)
    other = await acquired(leases, path="docs")
    assert (other.ttl_seconds, other.max_renewals) == (120, 3)
    await leases.settings.set("blocking_mode_enabled", False)
    request = claim(agent=OTHER, blocking=True, timeout_ms=60_000)
    assert (await strangers.files.acquire_lease(request)).error.startswith("File already locked")


async def test_who_does_not_say_how_long_to_wait_waits_as_long_as_the_setting_says(
    real_world: World, repository: Path
) -> None:
    leases, strangers = real_world.connect(holder="ann"), real_world.connect(holder="bob")
    await acquired(leases)
    await leases.settings.set("acquisition_timeout_ms", 60)
    response = await strangers.files.acquire_lease(claim(agent=OTHER, blocking=True))
    assert response.error.startswith("Acquisition timeout: ")
    assert 60 <= response.waited_ms < 30_000


async def test_callbacks_hear_of_everything_and_disturb_nothing(
    leases: Any, strangers: Any, repository: Path
) -> None:
    heard: list[LeaseEvent] = []

    def fail(event: LeaseEvent) -> None:
        heard.append(event)
        raise ZeroDivisionError

    leases.files.on(fail)
    first = await acquired(leases, mode="shared")
    await leases.files.renew_lease(LeaseRenewalRequest(first.id, AGENT))
    await leases.files.upgrade_lease(LeaseUpgradeRequest(first.id, AGENT))
    await leases.files.acquire_lease(claim(agent=OTHER))
    moved = (await leases.files.transfer_lease(LeaseTransferRequest(first.id, AGENT, OTHER))).lease
    await leases.files.release_lease(LeaseReleaseRequest(moved.id, OTHER))
    kinds = ["acquired", "renewed", "upgraded", "failed", "transferred", "released"]
    assert [event.kind for event in heard] == kinds
    assert heard[-1].lease is not None
    assert heard[-1].lease.status is LeaseStatus.RELEASED


@pytest.mark.parametrize(
    "fields",
    [
        {"ttl_seconds": 0},
        {"ttl_seconds": -1},
        {"agent": ""},
        {"path": ""},
        {"path": "a\0"},
        {"mode": "all"},
        {"timeout_ms": -1, "blocking": True},
        {"priority": 0, "blocking": True},
        {"max_renewals": 1 << 40},
    ],
)
async def test_a_request_that_can_never_be_right_is_refused_and_changes_nothing(
    leases: Any, repository: Path, fields: dict[str, Any]
) -> None:
    response = await leases.files.acquire_lease(claim(**fields))
    assert not response.success
    assert response.error
    assert await leases.files.get_all_leases() == []
