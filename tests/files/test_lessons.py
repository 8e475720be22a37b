"""What the manager that this contract came with did wrong: each its own test."""

import asyncio
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import leasehold
from leasehold.files import LeaseReleaseRequest, LeaseRenewalRequest, LeaseStatus
from leasehold.kernel.lease.commands import Acquire
from tests.client.worlds import World
from tests.files.test_manager import AGENT, OTHER, acquired, claim

_RACER = """
import sys, leasehold
from leasehold.files import LeaseAcquisitionRequest
with leasehold.connect(sys.argv[1]) as leases:
    print("ready", flush=True)
    sys.stdin.readline()
    request = LeaseAcquisitionRequest("src/app.py", sys.argv[2], blocking=False)
    print(leases.files.acquire_lease(request).success, flush=True)
"""


def test_of_racing_processes_one_wins(repository: Path, tmp_path: Path) -> None:
    """There it was a select, an insert and an update without a transaction."""
    url = f"sqlite:///{tmp_path}/race/.leasehold/leases.db"
    leasehold.connect(url).close()
    racers = [
        subprocess.Popen(
            [sys.executable, "-c", _RACER, url, f"agent-{number}"],
            cwd=repository,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for number in range(6)
    ]
    for racer in racers:
        assert racer.stdout is not None
        assert racer.stdout.readline() == "ready\n"
    for racer in racers:
        assert racer.stdin is not None
        racer.stdin.write("\n")
        racer.stdin.flush()
    wins = [racer.communicate()[0].strip() for racer in racers]
    assert sorted(wins) == ["False"] * 5 + ["True"]


async def test_an_expired_lease_that_nobody_swept_blocks_nobody(
    leases: Any, strangers: Any, world: World, repository: Path
) -> None:
    await acquired(leases, ttl_seconds=1)
    world.clock.advance(1)  # type: ignore[attr-defined]
    assert not await strangers.files.is_file_locked("src/app.py")
    assert (await strangers.files.acquire_lease(claim(agent=OTHER))).success


async def test_a_waiter_that_died_blocks_nobody_for_ever(
    leases: Any, strangers: Any, world: World, repository: Path
) -> None:
    """A waiter is a pending lease; it leaves when nothing was heard of it for 30 s."""
    held = await acquired(leases)
    dead = leases.files.name("src/app.py").resource
    session = getattr(strangers, "target", strangers)._session
    await asyncio.to_thread(
        session.desk.call,
        Acquire(request_id="x", lease_id="x", resource=dead, holder="dead", ttl_ns=10**10, wait=True),
    )
    (waiter,) = await leases.queue(dead)
    assert (await leases.files.get_lease("x")).status is LeaseStatus.PENDING
    world.clock.advance(31)  # type: ignore[attr-defined]
    await leases.files.release_lease(LeaseReleaseRequest(held.id, AGENT))
    assert (await strangers.files.acquire_lease(claim(agent=OTHER))).success
    assert (await leases.files.get_lease(waiter.lease.lease_id)).status is LeaseStatus.FAILED


async def test_an_agent_never_holds_a_file_twice(leases: Any, strangers: Any, repository: Path) -> None:
    first = await acquired(leases)
    assert (await acquired(strangers)).id == first.id
    assert [one.id for one in await leases.files.get_file_leases("src/app.py")] == [first.id]


async def test_renewing_never_revives(leases: Any, world: World, repository: Path) -> None:
    """Neither a released nor an expired lease, also when somebody else holds the file by then."""
    released = await acquired(leases)
    await leases.files.release_lease(LeaseReleaseRequest(released.id, AGENT))
    expired = await acquired(leases, ttl_seconds=1)
    world.clock.advance(1)  # type: ignore[attr-defined]
    theirs = await acquired(leases, agent=OTHER)
    for lease in (released, expired):
        assert not (await leases.files.renew_lease(LeaseRenewalRequest(lease.id, AGENT))).success
    assert [one.id for one in await leases.files.get_all_leases()] == [theirs.id]


async def test_releasing_twice_succeeds_once(leases: Any, repository: Path) -> None:
    lease = await acquired(leases)
    request = LeaseReleaseRequest(lease.id, AGENT)
    first, second = [await leases.files.release_lease(request) for _ in range(2)]
    assert (first.success, second.success) == (True, False)
    assert "ended already" in second.error


async def test_forced_release_writes_history_and_leaves_nobody_waiting(
    leases: Any, strangers: Any, repository: Path, world: World
) -> None:
    await acquired(leases, agent=OTHER)
    lease = await acquired(leases, path="docs")
    session = getattr(strangers, "target", strangers)._session
    resource = leases.files.name("src/app.py").resource
    await asyncio.to_thread(
        session.desk.call,
        Acquire(request_id="x", lease_id="x", resource=resource, holder=AGENT, ttl_ns=10**10, wait=True),
    )
    assert await strangers.files.force_release_agent_leases(AGENT) == 2
    assert await leases.queue(resource) == []
    history = await leases.history(lease_id=lease.id)
    assert [entry.event.type for entry in history] == ["lease.issued", "lease.revoked"]
    assert history[-1].event.reason == "force release"


async def test_queries_for_what_is_active_return_nothing_else(
    leases: Any, world: World, repository: Path
) -> None:
    for path in ("a", "b"):
        await acquired(leases, path=f"./{path}", ttl_seconds=1)
    released = await acquired(leases, path="./c")
    await leases.files.release_lease(LeaseReleaseRequest(released.id, AGENT))
    world.clock.advance(2)  # type: ignore[attr-defined]
    for found in (
        await leases.files.get_all_leases(),
        await leases.files.get_agent_leases(AGENT),
        await leases.files.get_file_leases("."),
    ):
        assert found == []


async def test_a_ttl_of_nothing_is_refused(leases: Any, repository: Path) -> None:
    assert not (await leases.files.acquire_lease(claim(ttl_seconds=0))).success


async def test_however_a_path_is_spelled_it_is_one_file(
    leases: Any, strangers: Any, repository: Path
) -> None:
    (repository / "link").symlink_to("src/app.py")
    lease = await acquired(leases, path="./src/app.py")
    for path in ("src/app.py", "link", "src/../src/app.py", str(repository / "src/app.py")):
        refused = await strangers.files.acquire_lease(claim(path, OTHER))
        assert refused.holder == AGENT
        assert refused.facts["lease_id"] == lease.id


async def test_waiting_is_a_queue(leases: Any, strangers: Any, repository: Path) -> None:
    """Whoever came first is served first, and is told its place."""
    held = await acquired(leases)
    resource = held.resource
    for name in ("first", "second"):
        command = Acquire(
            request_id=name, lease_id=name, resource=resource, holder=name, ttl_ns=10**10, wait=True
        )
        session = getattr(strangers, "target", strangers)._session
        await asyncio.to_thread(session.desk.call, command)
    refused = await strangers.files.acquire_lease(claim(agent=OTHER))
    assert (refused.holder, refused.facts["position"]) == (AGENT, 3)
    await leases.files.release_lease(LeaseReleaseRequest(held.id, AGENT))
    assert (await leases.files.get_lease("first")).status is LeaseStatus.ACTIVE
    assert (await leases.files.get_lease("second")).status is LeaseStatus.PENDING


@pytest.mark.parametrize("limit", [-1, -7])
async def test_any_negative_number_of_renewals_is_no_limit(leases: Any, repository: Path, limit: int) -> None:
    lease = await acquired(leases, max_renewals=limit, ttl_seconds=60)
    assert lease.max_renewals == -1
    for _ in range(5):
        assert (await leases.files.renew_lease(LeaseRenewalRequest(lease.id, AGENT, 3_600))).success
