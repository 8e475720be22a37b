"""Waiting in line: who gets what, when, and what is left behind by those who do not wait any more."""

import asyncio
import gc
import math
import os
import signal
import threading
import time
from collections.abc import Callable, Coroutine, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

import leasehold
from leasehold.engine.audit import audit
from leasehold.engine.registrar import Registrar
from leasehold.stores.memory import MemoryStore
from tests.client.processes import Python
from tests.client.test_interrupts import CtrlC
from tests.client.worlds import SIGNAL_SECONDS, World
from tests.engine.doubles import claim, registrar_of
from tests.lanes import by_length


def meanwhile(world: World, work: Coroutine[Any, Any, Any]) -> "asyncio.Future[Any]":
    """Begin some work that may have to wait: in a thread for a blocking client, in a task for the other."""
    if world.blocking:
        return asyncio.ensure_future(asyncio.to_thread(asyncio.run, work))
    return asyncio.ensure_future(work)


async def queued(client: Any, count: int = 1) -> None:
    """Wait until so many claims have joined a queue."""
    seen = 0
    async for entry in client.watch(after=0):
        seen += entry.event.type in ("lease.queued", "lease.upgrade_queued")
        if seen == count:
            return


async def soon(work: "asyncio.Future[Any]") -> Any:
    return await asyncio.wait_for(work, SIGNAL_SECONDS)


async def nobody_waits(client: Any) -> bool:
    return not (await client.list(states=["pending"])).statuses


async def test_who_is_refused_is_told_what_the_holder_needs_it_for(real_world: World) -> None:
    ann, ben = real_world.connect(holder="ann"), real_world.connect(holder="ben")
    await ann.acquire("door", ttl=60, reason="nightly build")
    for wait in (0, 0.05):
        with pytest.raises(leasehold.Held, match=r"held by ann \(nightly build\)") as refused:
            await ben.acquire("door", wait=wait)
        assert refused.value.reason == "nightly build"
    await ann.acquire_all(["a", "b"], ttl=60, reason="tidying")
    with pytest.raises(leasehold.Held) as refused:
        await ben.acquire_all(["c", "b"])
    assert refused.value.reason == "tidying"
    with pytest.raises(leasehold.InvalidInput, match="reason"):
        await ann.acquire("gate", reason=7)


async def test_a_waiter_gets_the_lease_when_it_is_released(real_world: World) -> None:
    ann, bob = real_world.connect(holder="ann"), real_world.connect(holder="bob")
    first = await ann.acquire("door", ttl=60)

    async def wait() -> Any:
        return await bob.acquire("door", ttl=60, wait=SIGNAL_SECONDS)

    waiting = meanwhile(real_world, wait())
    await queued(ann)
    await first.release()
    second = await soon(waiting)

    assert second.token > first.token
    second.ensure()
    assert await nobody_waits(ann)


async def test_what_nobody_holds_is_had_without_waiting(real_world: World) -> None:
    ann = real_world.connect(holder="ann")
    async with ann.acquire("door", wait=math.inf) as lease:
        lease.ensure()
    assert [entry.event.type for entry in await ann.history(resource="door")] == [
        "lease.issued",
        "lease.released",
    ]


@pytest.mark.parametrize("wait", [None, 0, False])
async def test_who_does_not_want_to_wait_is_told_at_once(real_world: World, wait: Any) -> None:
    ann, bob = real_world.connect(holder="ann"), real_world.connect(holder="bob")
    await ann.acquire("door")
    with pytest.raises(leasehold.Held) as refused:
        await bob.acquire("door", wait=wait)
    assert type(refused.value) is leasehold.Held
    assert await nobody_waits(ann)


@pytest.mark.parametrize("wait", [-1, "soon", math.nan])
async def test_a_wait_that_makes_no_sense_is_refused(real_world: World, wait: Any) -> None:
    ann = real_world.connect(holder="ann")
    with pytest.raises(leasehold.InvalidInput, match="wait must be seconds from 0 on"):
        await ann.acquire("door", wait=wait)


async def test_a_wait_in_vain_says_how_long_it_was_who_holds_it_and_which_place_it_had(
    real_world: World,
) -> None:
    ann, bob = real_world.connect(holder="ann"), real_world.connect(holder="bob")
    await ann.acquire("door", ttl=60)
    with pytest.raises(leasehold.WaitTimeout) as refused:
        await bob.acquire("door", wait=0.05)
    error = refused.value
    assert (error.code, error.resource, error.holder, error.position) == ("WAIT_TIMEOUT", "door", "ann", 1)
    assert 0.05 <= (error.waited or 0) < SIGNAL_SECONDS
    assert 0 < (error.expires_in or 0) <= 60
    assert "still held by ann" in str(error)
    assert "place 1 in the queue" in str(error)
    assert await nobody_waits(ann)
    assert await bob.try_acquire("door", wait=0.01) is None


async def test_waiters_come_in_the_order_of_their_priority_and_then_of_their_coming(
    real_world: World,
) -> None:
    ann = real_world.connect(holder="ann")
    first = await ann.acquire("door")
    order: list[str] = []

    async def wait(holder: str, priority: int) -> None:
        client = real_world.connect(holder=holder)
        async with client.acquire("door", wait=True, priority=priority):
            order.append(holder)

    waiting = []
    for number, (holder, priority) in enumerate([("bob", 5), ("cid", 5), ("dan", 9)], 1):
        waiting.append(meanwhile(real_world, wait(holder, priority)))
        await queued(ann, number)
    await first.release()
    for one in waiting:
        await soon(one)
    assert order == ["dan", "bob", "cid"]


async def test_a_wait_that_could_never_end_is_refused_and_names_the_way_round(real_world: World) -> None:
    ann, bob = real_world.connect(holder="ann"), real_world.connect(holder="bob")
    door = await ann.acquire("door")
    await bob.acquire("window")

    async def wait() -> Any:
        return await bob.acquire("door", wait=SIGNAL_SECONDS)

    waiting = meanwhile(real_world, wait())
    await queued(ann)
    with pytest.raises(leasehold.Deadlock) as refused:
        await ann.acquire("window", wait=SIGNAL_SECONDS)
    assert refused.value.cycle == ("ann", "window", "bob", "door", "ann")
    await door.release()
    await soon(waiting)


async def test_several_resources_are_had_whole_or_not_at_all(real_world: World) -> None:
    ann, bob = real_world.connect(holder="ann"), real_world.connect(holder="bob")
    window = await ann.acquire("window")
    with pytest.raises(leasehold.Held):
        await bob.acquire_all(["door", "window"])
    assert await bob.inspect("door") == []

    async def wait() -> Any:
        return await bob.acquire_all({"door": "exclusive", "window": "shared"}, wait=SIGNAL_SECONDS)

    waiting = meanwhile(real_world, wait())
    await queued(ann, 2)
    await window.release()
    both = await soon(waiting)
    assert [(one.resource, one.mode.value) for one in both] == [("door", "exclusive"), ("window", "shared")]
    assert both["door"].token != both["window"].token
    assert len(both) == 2
    async with both:
        both.ensure()
    assert await ann.inspect("door") == [] == await ann.inspect("window")


async def test_a_block_under_several_leases_tells_when_one_of_them_was_lost(real_world: World) -> None:
    ann = real_world.connect(holder="ann")

    async def lose_one() -> None:
        async with ann.acquire_all(["door", "window"]) as both:
            await ann.revoke(both["window"].lease_id, reason="test")
            with pytest.raises(leasehold.LeaseLost):
                await both["window"].renew()

    with pytest.raises(leasehold.LeaseLost):
        await lose_one()
    assert await ann.inspect("door") == []


async def test_a_claim_on_no_resource_is_refused(real_world: World) -> None:
    ann = real_world.connect(holder="ann")
    with pytest.raises(leasehold.InvalidInput, match="at least one"):
        await ann.acquire_all([])


async def test_a_sharer_becomes_the_only_one_once_the_others_have_gone(real_world: World) -> None:
    ann, bob = real_world.connect(holder="ann"), real_world.connect(holder="bob")
    mine = await ann.acquire("door", mode="shared")
    theirs = await bob.acquire("door", mode="shared")
    before = mine.token
    with pytest.raises(leasehold.Held):
        await mine.upgrade()
    with pytest.raises(leasehold.WaitTimeout, match="held by bob"):
        await mine.upgrade(wait=0.01)

    async def upgrade() -> None:
        await mine.upgrade(wait=SIGNAL_SECONDS)

    upgrading = meanwhile(real_world, upgrade())
    await queued(ann, 2)
    await theirs.release()
    await soon(upgrading)
    assert mine.mode is leasehold.Mode.EXCLUSIVE
    assert mine.token > before
    mine.ensure()
    await mine.renew()
    exclusive = mine.token
    await mine.downgrade()
    assert (mine.mode, mine.token) == (leasehold.Mode.SHARED, exclusive)
    await bob.acquire("door", mode="shared")


async def test_a_lease_is_handed_to_another_holder_in_one_step(real_world: World) -> None:
    ann, bob = real_world.connect(holder="ann"), real_world.connect(holder="bob")
    mine = await ann.acquire("door")
    theirs = await mine.transfer("bob", ttl=30)
    assert (theirs.holder, theirs.ttl_ns) == ("bob", 30_000_000_000)
    assert theirs.token > mine.token
    assert not mine.lost, "who gives something away has not lost it"
    assert await mine.release() is False
    taken = await bob.adopt(theirs.lease_id, holder="bob")
    await taken.release()


async def test_a_lease_that_cannot_be_handed_over_is_kept(real_world: World) -> None:
    ann, bob = real_world.connect(holder="ann"), real_world.connect(holder="bob")
    mine = await ann.acquire("door", mode="shared")
    await bob.acquire("door", mode="shared")
    with pytest.raises(leasehold.AlreadyHeld):
        await mine.transfer("bob")
    mine.ensure()
    await mine.renew()


async def test_after_a_revocation_a_lock_delay_keeps_others_out(real_world: World) -> None:
    ann, bob = real_world.connect(holder="ann"), real_world.connect(holder="bob")
    mine = await ann.acquire("door", lock_delay=60)
    await ann.revoke(mine.lease_id, reason="test")
    with pytest.raises(leasehold.Held) as refused:
        await bob.acquire("door")
    assert refused.value.holder == "registrar"
    await ann.acquire("door")


@pytest.mark.parametrize("is_steady", [True, False])
async def test_closing_a_client_ends_its_waits_and_leaves_nothing_in_the_queue(
    real_world: World, is_steady: bool
) -> None:
    ann, bob = real_world.connect(holder="ann"), real_world.connect(holder="bob", is_steady=is_steady)
    await ann.acquire("door")

    async def wait() -> Any:
        return await bob.acquire("door", wait=True)

    waiting = meanwhile(real_world, wait())
    await queued(ann)
    await bob.close()
    with pytest.raises(leasehold.ClientClosed) as closed:
        await soon(waiting)
    # Who has lost a reply may be asking again: then it is told where commands are taken in.
    assert "left the queue" in str(closed.value) or not is_steady
    assert await nobody_waits(ann)


async def test_a_wait_cancelled_after_any_number_of_turns_leaves_nothing(
    local_kind: str, tmp_path: Path
) -> None:
    url = "memory:" if local_kind == "memory" else str(tmp_path / "leases")
    leases = await leasehold.connect_async(url, durability="fast")
    door = await leases.acquire("door", holder="bob")
    for turns in range(1, 80):
        waiting = asyncio.ensure_future(leases.acquire("door", wait=True, holder="ann"))
        for _ in range(turns):
            await asyncio.sleep(0)
        if turns % 2:
            await door.release()
        waiting.cancel()
        with suppress(asyncio.CancelledError):
            await (await waiting).release()
        if turns % 2:
            door = await asyncio.wait_for(leases.acquire("door", wait=True, holder="bob"), SIGNAL_SECONDS)
        else:
            # Behind what was given back in the same queue of commands.
            await leases.renew(door)
        assert await nobody_waits(leases), turns
    await leases.close()


@pytest.fixture
def crowded(local_kind: str, tmp_path: Path) -> Iterator[leasehold.Client]:
    url = "memory:" if local_kind == "memory" else str(tmp_path / "leases")
    client = leasehold.connect(url, durability="fast", holder="ann")
    if local_kind == "memory":
        client.close()
        client = leasehold.Client(Registrar(MemoryStore(), timeout=SIGNAL_SECONDS), holder="ann")
    yield client
    began = time.monotonic()
    client.close()
    assert time.monotonic() - began < 5.0, "it waited for somebody who does not wait any more"
    del client
    gc.collect()


def interrupts(ctrl_c: CtrlC, call: Callable[[], object]) -> bool:
    """Make the call, and say whether a Ctrl-C came before it was over.

    The interpreter swallows one that comes while it closes a generator, as the law has many.
    """
    try:
        return ctrl_c.interrupts(call)
    except AssertionError:
        return True


@pytest.mark.deep
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_ctrl_c_at_any_moment_of_waiting_leaves_neither_a_waiter_nor_a_lease(
    crowded: leasehold.Client,
) -> None:
    """The wait is as short as it can be, and in vain; every moment of it is interrupted once."""
    blocker = crowded.acquire("door", holder="bob", ttl=600)

    def wait() -> None:
        try:
            crowded.acquire("door", wait=0.001)
        except leasehold.WaitTimeout:
            return

    wait()
    for nth in range(1, 5_000, by_length(1, 4)):
        ctrl_c = CtrlC(nth)
        if not interrupts(ctrl_c, wait):
            break
        crowded.renew(blocker)  # Behind it in the queue of commands.
        waiting = crowded.list(states=["pending"]).statuses
        assert waiting == [], f"left behind after Ctrl-C on {ctrl_c.moment}"
    assert nth > 100
    gc.collect()  # A socket that was being made when Ctrl-C came is closed by this.
    assert audit(registrar_of(crowded).store).problems == []


@pytest.mark.deep
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_ctrl_c_at_any_moment_of_being_granted_leaves_neither_a_waiter_nor_a_lease(
    crowded: leasehold.Client,
) -> None:
    """The blocker expires at once, so the second question is answered with the lease."""
    for nth in range(1, 5_000, by_length(1, 4)):
        crowded._session.desk.call(claim("door", "bob", ttl_ns=3_000_000))
        ctrl_c = CtrlC(nth)
        if not interrupts(ctrl_c, lambda: crowded.acquire("door", wait=True)):
            crowded.release_all("ann")
            break
        if crowded._holdings.held:
            crowded.release_all("ann")  # Swallowed, and so it was granted.
            continue
        crowded.acquire("other", holder="bob").release()  # Behind it in the queue of commands.
        left = [one for one in crowded.inspect("door") if one.lease.holder == "ann"]
        assert left == [], f"held after Ctrl-C on {ctrl_c.moment}"
        assert crowded.list(states=["pending"]).statuses == [], f"waits after Ctrl-C on {ctrl_c.moment}"
        crowded.release_all("bob")
    assert nth > 100
    gc.collect()  # A socket that was being made when Ctrl-C came is closed by this.
    assert audit(registrar_of(crowded).store).problems == []


WAITER = """
import sys, leasehold
leases = leasehold.connect(sys.argv[1], holder="bob")
print("connected", flush=True)
try:
    with leases.acquire("door", wait=True):
        print("mine", flush=True)
except KeyboardInterrupt:
    print("interrupted", flush=True)
leases.close()
"""


def follow(client: leasehold.Client, kind: str) -> None:
    for entry in client.watch(after=0):
        if entry.event.type == kind:
            return


def test_a_real_ctrl_c_ends_a_wait_and_leaves_nothing(tmp_path: Path) -> None:
    path = str(tmp_path / "leases")
    with leasehold.connect(path, holder="ann") as ann, ann.acquire("door"), Python(WAITER, path) as process:
        assert process.read_line() == "connected"
        follow(ann, "lease.queued")
        process.send(signal.SIGINT)
        assert process.read_line() == "interrupted"
        assert process.ends() == 0
        assert ann.list(states=["pending"]).statuses == []
        assert os.listdir(f"{path}/bells") == []


def test_a_waiter_in_another_process_is_woken_long_before_it_would_ask(tmp_path: Path) -> None:
    path = str(tmp_path / "leases")
    with leasehold.connect(path, holder="ann") as ann, Python(WAITER, path) as process:
        lease = ann.acquire("door", ttl=600)
        assert process.read_line() == "connected"
        follow(ann, "lease.queued")
        lease.release()
        assert process.read_line() == "mine"
        assert process.ends() == 0
        entries = {entry.event.type: entry.event.at_ns for entry in ann.history(resource="door")}
    assert entries["lease.released"] - entries["lease.queued"] < 5_000_000_000


def test_a_killed_waiter_costs_the_next_one_no_more_than_the_claim_window(tmp_path: Path) -> None:
    path = str(tmp_path / "leases")
    with leasehold.connect(path, holder="ann") as ann:
        lease = ann.acquire("door", ttl=600)
        with Python(WAITER, path) as process:
            assert process.read_line() == "connected"
            follow(ann, "lease.queued")
            process.send(signal.SIGKILL)
            process.ends()
        cid = leasehold.connect(path, holder="cid")
        got = threading.Event()

        def wait() -> None:
            with cid.acquire("door", wait=SIGNAL_SECONDS):
                got.set()

        waiting = threading.Thread(target=wait)
        waiting.start()
        while len(ann.list(states=["pending"]).statuses) < 2:
            pass
        lease.release()
        assert got.wait(2.0 + 1.5), "the claim window, and some time for a busy machine"
        waiting.join(SIGNAL_SECONDS)
        cid.close()
        assert os.listdir(f"{path}/bells") == [], "who rang in vain has removed what the dead one left"


def test_a_forked_child_leaves_the_wait_to_its_parent(tmp_path: Path) -> None:
    path = str(tmp_path / "leases")
    with leasehold.connect(path, holder="ann") as ann:
        lease = ann.acquire("door", holder="cid")
        got = threading.Event()

        def wait() -> None:
            with ann.acquire("door", wait=SIGNAL_SECONDS):
                got.set()

        waiting = threading.Thread(target=wait)
        waiting.start()
        follow(ann, "lease.queued")
        child = os.fork()
        if child == 0:
            try:
                os._exit(len(ann._holdings.undoing()))
            finally:
                os._exit(99)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        assert len(os.listdir(f"{path}/bells")) == 1, "the child has not removed it"
        lease.release()
        assert got.wait(SIGNAL_SECONDS)
        waiting.join(SIGNAL_SECONDS)
