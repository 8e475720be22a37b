"""Where the tasks of a client wait for the ledger to grow.

One thread watches the store for all of them, however many there are: a thread for each would soon take up all
that their event loop has for everything else. It runs while somebody waits, and a moment longer.
"""

import asyncio
import threading

from leasehold.engine.desk import Desk

_ROUND_SECONDS = 0.1
"""How long a newcomer waits at most for what the others are beyond already."""

_LINGER_SECONDS = 1.0


class _Waiter:
    """A task that waits until the ledger goes beyond a position."""

    def __init__(self, position: int) -> None:
        self.position = position
        self._loop = asyncio.get_running_loop()
        self.woken: asyncio.Future[None] = self._loop.create_future()

    def wake(self) -> None:
        """Let it go on, from the thread."""
        try:
            self._loop.call_soon_threadsafe(self._go_on)
        except RuntimeError:  # the loop was closed: nobody waits any more
            return

    def _go_on(self) -> None:
        if not self.woken.done():
            self.woken.set_result(None)


class Lookout:
    """Watches one ledger for all tasks that wait for something to happen there."""

    def __init__(self, desk: Desk) -> None:
        self._desk = desk
        self._changed = threading.Condition()
        self._waiters: set[_Waiter] = set()
        self._thread: threading.Thread | None = None

    async def wait(self, position: int) -> None:
        """Return once the ledger goes beyond a position. A hint: it may come early, so look again."""
        waiter = _Waiter(position)
        with self._changed:
            self._waiters.add(waiter)
            self._changed.notify()
            if self._thread is None:
                thread = threading.Thread(target=self._watch, name="leasehold-lookout", daemon=True)
                thread.start()
                self._thread = thread  # Not before: Ctrl-C must not leave us with one that never started.
        try:
            await waiter.woken
        finally:
            with self._changed:
                self._waiters.discard(waiter)

    def _watch(self) -> None:
        while True:
            with self._changed:
                if not self._changed.wait_for(lambda: self._waiters, _LINGER_SECONDS):
                    self._thread = None
                    return
                position = min(waiter.position for waiter in self._waiters)
            try:
                grown = self._desk.wait(position, _ROUND_SECONDS)
            except Exception:
                grown = True  # Whoever waits looks again, and meets the error there.
            if grown:
                self._wake()

    def _wake(self) -> None:
        with self._changed:
            woken, self._waiters = self._waiters, set()
        for waiter in woken:
            waiter.wake()
