"""Loss is loud: what a holder sees, waits for, or is interrupted by when its lease is gone."""

import asyncio
import logging
import queue
import threading
from collections.abc import Callable
from contextlib import suppress

from leasehold.errors import LeaseholdError

_logger = logging.getLogger(__name__)


class Loss:
    """Fires once, when a lease is lost. True once it has; `error` says why."""

    def __init__(self) -> None:
        self.error: LeaseholdError | None = None
        self._fired: threading.Event | None = None

    def __bool__(self) -> bool:
        return self.error is not None

    def fire(self, error: LeaseholdError) -> None:
        """Tell everybody who waits."""
        self.error = error
        if self._fired is not None:
            self._fired.set()

    def wait(self, timeout: float | None = None) -> bool:
        """Wait until the lease is lost; return False if that has not happened within `timeout` seconds."""
        fired = self._event()
        # Ask again: the loss may have come before there was an event to set.
        return self.error is not None or fired.wait(timeout)

    def _event(self) -> threading.Event:
        """Make the event when somebody first waits; most leases are never waited for."""
        with _making:
            if self._fired is None:
                self._fired = threading.Event()
            return self._fired


_making = threading.Lock()


class AsyncLoss:
    """Fires once, when a lease is lost. True once it has; `error` says why."""

    def __init__(self) -> None:
        self.error: LeaseholdError | None = None
        self._loop = asyncio.get_running_loop()
        self._fired = asyncio.Event()

    def __bool__(self) -> bool:
        return self.error is not None

    def fire(self, error: LeaseholdError) -> None:
        """Tell everybody who waits. Called from the keeper's thread."""
        self.error = error
        with suppress(RuntimeError):  # The loop was closed: nobody waits any more.
            self._loop.call_soon_threadsafe(self._fired.set)

    async def wait(self, timeout: float | None = None) -> bool:
        """Wait until the lease is lost; return False if that has not happened within `timeout` seconds."""
        if self.error is not None:
            return True
        try:
            async with asyncio.timeout(timeout):
                await self._fired.wait()
        except TimeoutError:
            return False
        return True


class Body:
    """The body of a `with` statement. It cannot be interrupted; it has to ask, or to look at `lease.lost`."""

    def enter(self) -> None:
        """Note that the body begins."""

    def interrupt(self) -> None:
        """Do nothing: there is no safe way to stop a thread."""

    def leave(self, error: BaseException | None) -> bool:
        """Return False: an error in the body is the body's own."""
        del error
        return False


class AsyncBody:
    """The body of an `async with` statement: a task, which is cancelled when the lease is lost."""

    def __init__(self) -> None:
        self._task: asyncio.Task[object] | None = None
        self._loop = asyncio.get_running_loop()
        self._cancelled = False
        self._cancelled_before = 0

    def enter(self) -> None:
        """Note which task the body runs in, and how often it was cancelled before by others."""
        self._task = asyncio.current_task()
        self._cancelled_before = 0 if self._task is None else self._task.cancelling()

    def interrupt(self) -> None:
        """Cancel the body. Called from the keeper's thread."""
        with suppress(RuntimeError):  # The loop was closed, and the body with it.
            self._loop.call_soon_threadsafe(self._cancel)

    def _cancel(self) -> None:
        if self._task is not None:
            self._cancelled = True
            self._task.cancel()

    def leave(self, error: BaseException | None) -> bool:
        """Return whether `error` is our own cancellation, and nobody else's besides."""
        task, self._task = self._task, None
        if task is None or not self._cancelled:
            return False
        only_by_us = task.uncancel() <= self._cancelled_before
        return only_by_us and isinstance(error, asyncio.CancelledError)


class Announcer:
    """Calls what holders gave us to call on a loss, in a thread where it may take its time, and fail."""

    def __init__(self) -> None:
        self.restart()

    def restart(self) -> None:
        """Start with nothing to announce: at first, and in a forked child."""
        self._losses: queue.SimpleQueue[_Announcement] = queue.SimpleQueue()
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None

    def announce(self, on_lost: Callable[[LeaseholdError], None], error: LeaseholdError) -> None:
        """Have `on_lost` called with `error` soon. Whoever renews leases does not wait for it."""
        self._losses.put((on_lost, error))
        with self._lock:
            if self._thread is None:
                thread = threading.Thread(
                    target=_announce_all, args=(self._losses,), name="leasehold-on-lost", daemon=True
                )
                thread.start()
                self._thread = thread


_Announcement = tuple[Callable[[LeaseholdError], None], LeaseholdError]


def _announce_all(losses: "queue.SimpleQueue[_Announcement]") -> None:
    while True:
        on_lost, error = losses.get()
        try:
            on_lost(error)
        except Exception:
            _logger.exception("on_lost failed for lease %s", error.lease_id)
