"""What differs between the halves: how to wait, and how to stop a handler in time."""

import asyncio
import inspect
from collections.abc import Callable
from typing import Any

from leasehold.workflows.guarding import OutOfTime

AsyncLock = asyncio.Lock


class AsyncGrowth:
    """Something that grows, and that can be waited for."""

    def __init__(self) -> None:
        self._changed = asyncio.Event()

    def grow(self) -> None:
        """Wake everybody who waits."""
        changed, self._changed = self._changed, asyncio.Event()
        changed.set()

    async def until(self, has_grown: Callable[[], bool], seconds: float) -> None:
        """Return once it has grown, or after a while."""
        changed = self._changed  # Before the look: what grows after it sets this one.
        if has_grown():
            return
        try:
            async with asyncio.timeout(seconds):
                await changed.wait()
        except TimeoutError:
            return


async def within(seconds: float, handler: Callable[[Any], Any], action: object) -> Any:
    """Return what a handler makes of an action; raise OutOfTime if that takes longer, and cancel it.

    A handler that is no coroutine runs in a thread, which cannot be stopped: nobody waits for it any more.
    """
    limit = asyncio.timeout(seconds)
    try:
        async with limit:
            if inspect.iscoroutinefunction(handler):
                return await handler(action)
            made = await asyncio.to_thread(handler, action)
            return await made if inspect.isawaitable(made) else made
    except TimeoutError:
        if limit.expired():
            raise OutOfTime from None
        raise
