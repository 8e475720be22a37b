"""Interrupted callers: Ctrl-C and cancellation, at whatever moment, leave nothing behind and nobody stuck.

The interpreter looks for signals where a function begins and where a built-in one returns. `CtrlC` raises
KeyboardInterrupt at the nth of these moments; the tests go through them all, until a call comes through
undisturbed.
"""

import _weakrefset
import asyncio
import gc
import signal
import sys
import threading
import weakref
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

import leasehold
from leasehold.engine.audit import audit
from leasehold.engine.questions import FindHolders
from leasehold.engine.registrar import Registrar
from leasehold.stores.memory import MemoryStore
from leasehold.stores.sqlite import SqliteStore
from tests.client.processes import Python
from tests.client.worlds import SIGNAL_SECONDS
from tests.engine.doubles import WatchedStore, registrar_of
from tests.lanes import by_length

# What runs there runs when the collector pleases, and what it raises goes nowhere.
_FINALIZERS = (weakref.__file__, _weakrefset.__file__)


class CtrlC:
    """Interrupts a call at the nth moment at which a signal could."""

    def __init__(self, nth: int) -> None:
        self._left = nth
        self.moment = "none"

    @staticmethod
    def is_moment(frame: FrameType, event: str) -> bool:
        return event in ("call", "c_return") and frame.f_code.co_filename not in _FINALIZERS

    def __call__(self, frame: FrameType, event: str, argument: Any) -> None:
        if not self.is_moment(frame, event):
            return
        self._left -= 1
        if self._left == 0:
            sys.setprofile(None)
            where = f"{frame.f_code.co_filename}:{frame.f_lineno}"
            self.moment = f"{event} {getattr(argument, '__name__', '')} at {where}"
            raise KeyboardInterrupt

    def interrupts(self, call: Callable[[], object]) -> bool:
        """Make the call, and say whether it was interrupted before it was over."""
        gc.disable()  # What a collection runs in between is no part of the call.
        sys.setprofile(self)
        try:
            call()
        except KeyboardInterrupt:
            return True
        finally:
            sys.setprofile(None)
            gc.enable()
        assert self.moment == "none", f"Ctrl-C was swallowed on {self.moment}"
        return False


@pytest.fixture
def client(local_kind: str, tmp_path: Path) -> Iterator[leasehold.Client]:
    store = MemoryStore() if local_kind == "memory" else SqliteStore(tmp_path / "x.db", durability="fast")
    with leasehold.Client(Registrar(store, timeout=SIGNAL_SECONDS), holder="ann") as leases:
        leases.acquire("warm up").release()
        yield leases


def assert_free(client: leasehold.Client, moment: str) -> None:
    """Nobody holds the door, and nobody is stuck: what was interrupted is ahead of this in the queue."""
    lease = client.try_acquire("door", holder="bob")
    assert lease is not None, f"left behind after Ctrl-C on {moment}"
    lease.release()


def assert_sound(client: leasehold.Client) -> None:
    assert audit(registrar_of(client).store).problems == []


def test_ctrl_c_at_any_moment_of_acquiring_leaves_no_lease_behind(client: leasehold.Client) -> None:
    for nth in range(1, 5_000):
        ctrl_c = CtrlC(nth)
        if not ctrl_c.interrupts(lambda: client.acquire("door")):
            break
        assert_free(client, ctrl_c.moment)
    assert nth > 50
    assert_sound(client)


def test_ctrl_c_at_any_moment_of_releasing_leaves_the_lease_kept_or_released(
    client: leasehold.Client,
) -> None:
    kept = 0
    for nth in range(1, 5_000):
        lease = client.acquire("door")
        ctrl_c = CtrlC(nth)
        if not ctrl_c.interrupts(lease.release):
            break
        if lease.lease_id in client._holdings.held:
            kept += 1  # The release had not begun; the holder still has it.
            lease.ensure()
            assert lease.release() is True, ctrl_c.moment
        assert_free(client, ctrl_c.moment)
    assert nth > kept + 50
    assert_sound(client)


def test_ctrl_c_at_any_moment_of_a_block_leaves_no_lease_behind(client: leasehold.Client) -> None:
    def block() -> None:
        with client.acquire("door"):
            pass

    known: set[str] = set()
    for nth in range(1, 5_000):
        ctrl_c = CtrlC(nth)
        if not ctrl_c.interrupts(block):
            break
        for lease_id in list(client._holdings.held):
            # Before the first line of __enter__ or __exit__ nothing can be done by anybody; but the client
            # still knows the lease, and gives it back when it is closed.
            known.add(ctrl_c.moment)
            client.release(lease_id)
        assert_free(client, ctrl_c.moment)
    assert len(known) <= 2, known
    assert_sound(client)


@pytest.mark.deep
def test_ctrl_c_in_a_leader_leaves_nobody_else_stuck(client: leasehold.Client) -> None:
    """Other threads go on acquiring and releasing while this one is interrupted at every moment."""
    stop = threading.Event()
    rounds = [0, 0, 0]

    def go_on(number: int) -> None:
        while not stop.is_set():
            client.acquire(f"other-{number}").release()
            rounds[number] += 1

    others = [threading.Thread(target=go_on, args=(number,), daemon=True) for number in range(3)]
    for other in others:
        other.start()
    for nth in range(1, 400, by_length(1, 4)):
        ctrl_c = CtrlC(nth)
        ctrl_c.interrupts(lambda: client.acquire("door"))
        for lease in [one for one in list(client._holdings.held.values()) if one.resource == "door"]:
            client.release(lease.lease_id)
        assert_free(client, ctrl_c.moment)
    stop.set()
    for other in others:
        other.join(SIGNAL_SECONDS)
        assert not other.is_alive(), "a caller was never answered"
    assert min(rounds) > 0
    assert_sound(client)


INTERRUPTED = """
import sys, leasehold
leases = leasehold.connect(sys.argv[1], holder="ann")
print("connected", flush=True)
sys.stdin.readline()
try:
    print("asking", flush=True)
    leases.acquire("door", ttl=3600)
except KeyboardInterrupt:
    print("interrupted", flush=True)
sys.stdin.readline()
leases.acquire("another")
print("going on", flush=True)
leases.close()
"""


def test_a_real_ctrl_c_while_another_process_writes_leaves_no_lease_behind(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "leases")
    registrar = Registrar(store)
    with Python(INTERRUPTED, str(tmp_path / "leases")) as process:
        assert process.read_line() == "connected"
        with store.write():
            process.write_line("ask")  # It has to wait for the end of our transaction.
            assert process.read_line() == "asking"
            process.send(signal.SIGINT)
            assert process.read_line() == "interrupted"
        process.write_line("go on")
        assert process.read_line() == "going on"
        assert process.ends() == 0
    assert registrar.ask(FindHolders(tenant="default", resource="door")) == []
    registrar.close()


class Stalled:
    """A client whose store is kept busy, as by another process."""

    def __init__(self) -> None:
        self.store = WatchedStore(MemoryStore())
        self.leases = leasehold.AsyncClient(Registrar(self.store), holder="ann")

    async def wait_for_the_store(self) -> None:
        assert await asyncio.to_thread(self.store.waiting.acquire, timeout=SIGNAL_SECONDS)


async def test_a_cancelled_acquire_that_was_not_decided_yet_leaves_no_lease() -> None:
    stalled = Stalled()
    leases = stalled.leases
    stalled.store.occupy()
    acquiring = asyncio.ensure_future(leases.acquire("door"))
    await stalled.wait_for_the_store()
    acquiring.cancel()
    with pytest.raises(asyncio.CancelledError):
        await acquiring
    stalled.store.vacate()

    await leases.acquire("door", holder="bob")
    assert [entry.event.type for entry in await leases.history(resource="door")] == [
        "lease.issued",
        "lease.released",
        "lease.issued",
    ]
    await leases.close()


async def test_an_acquire_that_runs_into_a_timeout_leaves_no_lease() -> None:
    stalled = Stalled()
    stalled.store.occupy()

    async def acquire() -> None:
        async with asyncio.timeout(0.02), stalled.leases.acquire("door"):
            pytest.fail("entered")

    with pytest.raises(TimeoutError):
        await acquire()
    stalled.store.vacate()
    await stalled.leases.acquire("door", holder="bob")
    await stalled.leases.close()


async def test_an_acquire_cancelled_after_any_number_of_turns_leaves_no_lease(
    local_kind: str, tmp_path: Path
) -> None:
    url = "memory:" if local_kind == "memory" else str(tmp_path / "leases")
    leases = await leasehold.connect_async(url, holder="ann", durability="fast")
    granted = 0
    for turns in range(1, 60):
        acquiring = asyncio.ensure_future(leases.acquire("door"))
        for _ in range(turns):
            await asyncio.sleep(0)
        acquiring.cancel()
        try:
            lease = await acquiring
        except asyncio.CancelledError:
            pass
        else:
            granted += 1
            await lease.release()
        other = await leases.try_acquire("door", holder="bob")
        assert other is not None, f"left behind when cancelled after {turns} turns"
        await other.release()
    assert granted < 59
    await leases.close()


async def test_a_cancelled_release_is_made_all_the_same() -> None:
    stalled = Stalled()
    lease = await stalled.leases.acquire("door")
    stalled.store.occupy()
    releasing = asyncio.ensure_future(lease.release())
    await stalled.wait_for_the_store()
    releasing.cancel()
    with pytest.raises(asyncio.CancelledError):
        await releasing
    stalled.store.vacate()

    await stalled.leases.acquire("door", holder="bob")
    await stalled.leases.close()


async def test_a_cancelled_acquire_of_a_client_that_was_closed_meanwhile_is_still_cancelled() -> None:
    stalled = Stalled()
    stalled.store.occupy()
    acquiring = asyncio.ensure_future(stalled.leases.acquire("door"))
    await stalled.wait_for_the_store()
    registrar_of(stalled.leases)._committer._closed = True
    acquiring.cancel()

    with pytest.raises(asyncio.CancelledError):
        await acquiring
    stalled.store.vacate()


def test_a_client_can_be_used_in_one_event_loop_after_another() -> None:
    """Even if the first loop ended with answers on their way that nobody was there to take."""
    store = WatchedStore(MemoryStore())
    leases = leasehold.AsyncClient(Registrar(store), holder="ann")

    async def leave_early() -> None:
        asyncio.ensure_future(leases.acquire("one"))  # noqa: RUF006
        await asyncio.sleep(0)

    async def acquire(resource: str) -> None:
        await asyncio.wait_for(leases.acquire(resource), SIGNAL_SECONDS)

    for number in range(20):
        asyncio.run(leave_early())
        asyncio.run(acquire(f"door-{number}"))
    asyncio.run(leases.close())


async def test_an_acquire_that_meets_the_closing_of_its_client_gives_the_lease_back() -> None:
    stalled = Stalled()
    other = Registrar(stalled.store)
    hold = stalled.leases._holdings.hold

    def closed_meanwhile(*arguments: Any) -> Any:
        stalled.leases._session.is_closed = True
        return hold(*arguments)

    stalled.leases._holdings.hold = closed_meanwhile  # type: ignore[assignment]
    with pytest.raises(leasehold.ClientClosed, match="given back"):
        await stalled.leases.acquire("door")
    stalled.leases._holdings.hold = hold  # type: ignore[method-assign]
    stalled.leases._session.is_closed = False
    await stalled.leases.acquire("behind it in the queue", holder="bob")

    assert other.ask(FindHolders(tenant="default", resource="door")) == []
    await stalled.leases.close()
