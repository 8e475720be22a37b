"""Where the tasks of a client wait for the ledger to grow.

One thread watches the store for all of them, however many there are: a thread for each would soon take up all
that their event loop has for everything else. It runs while somebody waits, and a moment longer.
"""

import asyncio
import threading

from leasehold.engine.port import Store
from leasehold.errors import LeaseholdError

_ROUND_SECONDS = 0.1
"""How long a newcomer waits at most for what the others are beyond already."""

_LINGER_SECONDS = 1.0


class _Waiter:
    """A task that waits until the ledger goes beyond a position."""

    def __init__(self, position: int) -> None:
        self.position = position
        self._loop = asyncio.get_running_loop()
        self.told: asyncio.Future[None] = self._loop.create_future()

    def tell(self, error: LeaseholdError | None) -> None:
        """Let it go on, from the thread; with an error, if there was one."""
        try:
            self._loop.call_soon_threadsafe(self._go_on, error)
        except RuntimeError:  # the loop was closed: nobody waits any more
            return

    def _go_on(self, error: LeaseholdError | None) -> None:
        if self.told.done():
            return
        if error is None:
            self.told.set_result(None)
        else:
            self.told.set_exception(error)


class Lookout:
    """Watches one store for all tasks that wait for something to happen there."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._changed = threading.Condition()
        self._waiters: set[_Waiter] = set()
        self._thread: threading.Thread | None = None

    async def wait(self, position: int) -> None:
        """Return once the ledger goes beyond a position."""
        waiter = _Waiter(position)
        with self._changed:
            self._waiters.add(waiter)
            self._changed.notify()
            if self._thread is None or not self._thread.is_alive():  # as in a forked child
                self._thread = threading.Thread(target=self._watch, name="leasehold-lookout", daemon=True)
                self._thread.start()
        try:
            await waiter.told
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
                if self._store.wait(position, _ROUND_SECONDS):
                    self._tell(position)
            except LeaseholdError as error:
                self._tell(None, error)

    def _tell(self, position: int | None, error: LeaseholdError | None = None) -> None:
        """Let those go on who wait behind a position; None: all."""
        with self._changed:
            told = {one for one in self._waiters if position is None or one.position <= position}
            self._waiters -= told
        for waiter in told:
            waiter.tell(error)
