"""Interrupted callers: Ctrl-C and cancellation, at whatever moment, leave nothing behind and nobody stuck.

The interpreter looks for signals where a function begins and where a built-in one returns. `CtrlC` raises
KeyboardInterrupt at the nth of these moments; the tests go through them all, until a call comes through
undisturbed.
"""

import asyncio
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

import leasehold
from leasehold.engine.audit import audit
from leasehold.engine.registrar import Registrar
from leasehold.kernel.commands import Acquire
from leasehold.stores.memory import MemoryStore
from leasehold.stores.sqlite import SqliteStore
from tests.client.worlds import SIGNAL_SECONDS, World
from tests.engine.doubles import WatchedStore


class CtrlC:
    """Interrupts a call at the nth moment at which a signal could."""

    def __init__(self, nth: int) -> None:
        self._left = nth
        self.moment = "none"

    def __call__(self, frame: FrameType, event: str, argument: Any) -> None:
        if event not in ("call", "c_return"):
            return
        self._left -= 1
        if self._left == 0:
            sys.setprofile(None)
            where = f"{frame.f_code.co_filename}:{frame.f_lineno}"
            self.moment = f"{event} {getattr(argument, '__name__', '')} at {where}"
            raise KeyboardInterrupt

    def interrupts(self, call: Callable[[], object]) -> bool:
        """Make the call, and say whether it was interrupted."""
        sys.setprofile(self)
        try:
            call()
        except KeyboardInterrupt:
            return True
        finally:
            sys.setprofile(None)
        return False


@pytest.fixture
def client(store_kind: str, tmp_path: Path) -> Any:
    store = MemoryStore() if store_kind == "memory" else SqliteStore(tmp_path / "x.db", durability="fast")
    with leasehold.Client(Registrar(store, timeout=5), holder="ann") as leases:
        leases.acquire("warm up").release()
        yield leases


def store_of(client: leasehold.Client) -> Any:
    return client._registrar.store


def test_ctrl_c_at_any_moment_of_acquiring_leaves_no_lease_behind(client: leasehold.Client) -> None:
    for nth in range(1, 5_000):
        ctrl_c = CtrlC(nth)
        if not ctrl_c.interrupts(lambda: client.acquire("door")):
            break
        # Either nothing is held, or (at the very last moment, when there is only the return to come) the
        # client holds it, and so knows how to give it back.
        client.release_all()
        with leasehold.Client(client._registrar, holder="bob") as other:
            assert other.try_acquire("door") is not None, ctrl_c.moment
            other.release_all()
            other._closed = True
    assert nth > 50
    assert audit(store_of(client)).problems == []
