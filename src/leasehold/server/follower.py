"""Where any number of tasks wait for the ledger to grow, with one thread that watches it for all of them.

Promised: whoever waits is woken once the ledger goes beyond its position, soon after the commit. A hint and
nothing more: who is woken looks for itself, and meets there whatever keeps it from looking.

The thread runs while somebody waits, and a moment longer.
"""

import asyncio
import contextlib
import threading

from leasehold.engine.desk import Desk
from leasehold.engine.questions import FindHead

_ROUND_SECONDS = 1.0
"""How often the thread looks whether anybody waits at all."""
_REST_SECONDS = 0.005
"""How long it rests after each look: under load there is something new all the time."""
_TROUBLE_SECONDS = 0.25
"""How long it leaves a store alone that cannot be looked at."""


class Follower:
    """Watches one ledger for the tasks of one event loop."""

    def __init__(self, desk: Desk) -> None:
        """`desk` has to be one that may ask where the ledger ends, whoever waits."""
        self._desk = desk
        self._lock = threading.Lock()
        self._known = 0
        """The ledger goes at least this far."""
        self._waiting: dict[asyncio.Future[None], int] = {}
        self._thread: threading.Thread | None = None
        self._stopped = threading.Event()

    async def beyond(self, position: int, timeout: float) -> bool:
        """Return True once the ledger goes beyond `position`; False after `timeout` seconds, or at a stop."""
        with self._lock:
            if position < self._known:
                return True
            if self._stopped.is_set():
                return False
            woken: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._waiting[woken] = position
            if self._thread is None:
                thread = threading.Thread(target=self._watch, name="leasehold-follower", daemon=True)
                thread.start()
                self._thread = thread
        try:
            async with asyncio.timeout(timeout):
                await woken
        except TimeoutError:
            return False
        finally:
            with self._lock:
                self._waiting.pop(woken, None)
        return not self._stopped.is_set()

    @property
    def is_stopped(self) -> bool:
        """Say whether nobody can wait here any more."""
        return self._stopped.is_set()

    def stop(self) -> None:
        """Let everybody go on who waits, and nobody wait any more."""
        self._stopped.set()
        with self._lock:
            woken, self._waiting = list(self._waiting), {}
        _wake(woken)

    def _watch(self) -> None:
        while self._is_wanted():
            try:
                if self._desk.wait(self._known, _ROUND_SECONDS):
                    self._tell(self._desk.ask(FindHead()).position)
                    self._stopped.wait(_REST_SECONDS)
            except Exception:
                # The store is gone, or closed: whoever waits looks again, and meets that there.
                self._tell(None)
                self._stopped.wait(_TROUBLE_SECONDS)

    def _is_wanted(self) -> bool:
        with self._lock:
            if self._waiting and not self._stopped.is_set():
                return True
            self._thread = None
            return False

    def _tell(self, known: int | None) -> None:
        """Wake those who wait for less than what is known now; if nobody knows, everybody."""
        with self._lock:
            self._known = self._known if known is None else known
            woken = [one for one, position in self._waiting.items() if known is None or position < known]
            for one in woken:
                del self._waiting[one]
        _wake(woken)


def _wake(waiting: list[asyncio.Future[None]]) -> None:
    for one in waiting:
        with contextlib.suppress(RuntimeError):  # the loop was closed: nobody waits any more
            one.get_loop().call_soon_threadsafe(_go_on, one)


def _go_on(woken: asyncio.Future[None]) -> None:
    if not woken.done():
        woken.set_result(None)
