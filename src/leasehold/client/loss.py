"""Loss is loud: what a holder sees, waits for, or is interrupted by when its lease is gone."""

import asyncio
import threading

from leasehold.errors import LeaseholdError


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
        if not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._fired.set)

    async def wait(self, timeout: float | None = None) -> bool:
        """Wait until the lease is lost; return False if that has not happened within `timeout` seconds."""
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
        self._loop: asyncio.AbstractEventLoop | None = None
        self._cancelled = False

    def enter(self) -> None:
        """Note which task the body runs in."""
        self._loop = asyncio.get_running_loop()
        self._task = asyncio.current_task()

    def interrupt(self) -> None:
        """Cancel the body. Called from the keeper's thread."""
        if self._loop is not None and not self._loop.is_closed():
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
        return task.uncancel() == 0 and isinstance(error, asyncio.CancelledError)
