"""Loss is loud: what a task sees, waits for, or is interrupted by when its lease is gone."""

import asyncio
from contextlib import suppress

from leasehold.client.held import AnyHeldLease
from leasehold.client.inputs import Duration, seconds_of
from leasehold.errors import LeaseholdError


class AsyncLoss:
    """Fires once, when a lease is lost. True once it has; `error` says why."""

    def __init__(self, lease: AnyHeldLease) -> None:
        self._lease = lease

    def __repr__(self) -> str:
        how = "not lost" if self._lease.loss is None else f"lost: {self._lease.loss}"
        return f"<lease {self._lease.lease_id} on {self._lease.resource}, {how}>"

    def __bool__(self) -> bool:
        return self._lease.loss is not None

    @property
    def error(self) -> LeaseholdError | None:
        """Why the lease is lost; None as long as it is not."""
        return self._lease.loss

    async def wait(self, timeout: Duration | None = None) -> bool:
        """Wait until the lease is lost; return False if that has not happened within `timeout` seconds."""
        loop, fired = asyncio.get_running_loop(), asyncio.Event()

        def hear() -> None:
            with suppress(RuntimeError):  # The loop was closed: nobody waits any more.
                loop.call_soon_threadsafe(fired.set)

        self._lease.hearers.append(hear)
        try:
            async with asyncio.timeout(None if timeout is None else seconds_of(timeout)):
                # Look once more: the loss may have come before it could be heard.
                return self._lease.loss is not None or await fired.wait()
        except TimeoutError:
            return False
        finally:
            self._lease.hearers.remove(hear)


class AsyncBody:
    """The body of an `async with` statement: the calling task, which is cancelled when the lease is lost."""

    def __init__(self) -> None:
        self._task = asyncio.current_task()
        self._loop = asyncio.get_running_loop()
        self._cancelled = False
        self._cancelled_before = 0 if self._task is None else self._task.cancelling()
        """How often the task was cancelled before, by others."""

    @property
    def runs_elsewhere(self) -> bool:
        """Say whether it is running, and not in the task that asks."""
        return self._task is not None and self._task is not asyncio.current_task()

    def interrupt(self) -> None:
        """Cancel the body. Called from the keeper's thread."""
        with suppress(RuntimeError):  # The loop was closed, and the body with it.
            self._loop.call_soon_threadsafe(self._cancel)

    def _cancel(self) -> None:
        if self._task is not None and not self._cancelled:  # Of several leases, more than one may be lost.
            self._cancelled = True
            self._task.cancel()

    def leave(self, error: BaseException | None) -> bool:
        """Return whether `error` is our own cancellation, and nobody else's besides."""
        task, self._task = self._task, None
        if task is None or not self._cancelled:
            return False
        only_by_us = task.uncancel() <= self._cancelled_before
        return only_by_us and isinstance(error, asyncio.CancelledError)
