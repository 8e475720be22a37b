"""The tasks of an asynchronous consumer; the counterpart of `blocking.pool`."""

import asyncio
import inspect
import signal
import time
from collections.abc import AsyncIterable, AsyncIterator, Awaitable, Callable, Iterable
from contextlib import suppress

from leasehold.engine.bells import Bells
from leasehold.errors import InvalidInput
from leasehold.work.consuming import Handler, Item, Line, Message, Schedule, Source

_STOP_SIGNALS = (signal.SIGTERM, signal.SIGINT)
_LOOK_EVERY_SECONDS = 0.1
"""How often a caller's `stop` is asked."""

_Coroutine = Callable[[], Awaitable[None]]


def checked_handler(handler: Handler) -> Handler:
    """Return a handler that a task can call, be it a coroutine function or not."""
    if not callable(handler):
        raise InvalidInput(f"handler must be a function, not {handler!r:.80}", field="handler")
    return handler


def checked_source(source: Source) -> Source:
    """Return a source that a task can read, be it asynchronous or not."""
    if not isinstance(source, Iterable | AsyncIterable):
        raise InvalidInput(f"source must be an iterable of messages, not {source!r:.80}", field="source")
    return source


class AsyncPool:
    """Runs a feeder, some workers and a keeper as tasks, and wakes them."""

    schedule: Schedule

    def __init__(self, bells: Bells, stop: Callable[[], bool] | None) -> None:
        self._bells = bells
        self._bell = bells.take()
        self._asked_to_stop = stop
        self._changed = asyncio.Condition()
        self._is_stopping = False
        self._is_fed = False
        self._are_workers_done = asyncio.Event()
        self._notifying: set[asyncio.Task[None]] = set()

    def address(self, number: int) -> str:
        """Return where to ring for a line; empty where nobody can be rung for."""
        return "" if self._bell is None else f"{self._bell.name}.{number}"

    async def items(self, source: Source) -> AsyncIterator[Item]:
        """Yield what a source does, whichever way."""
        if isinstance(source, AsyncIterable):
            async for item in source:
                yield item
        else:
            for item in source:
                yield item
                await asyncio.sleep(0)  # So that others get their turn, however much there is.

    async def call(self, handler: Handler, message: Message) -> None:
        """Have a message processed."""
        result = handler(message)
        if inspect.isawaitable(result):
            await result

    def notify(self) -> None:
        """Let everybody look again who waits for something."""
        task = asyncio.ensure_future(self._notify())
        self._notifying.add(task)
        task.add_done_callback(self._notifying.discard)

    async def _notify(self) -> None:
        async with self._changed:
            self._changed.notify_all()

    def stop(self) -> None:
        """Let no worker begin anything more."""
        self._is_stopping = True
        self.notify()

    async def has_room(self) -> bool:
        """Wait until there is room for one more message; return False if it is not wanted any more."""
        async with self._changed:
            await self._changed.wait_for(lambda: self._is_stopping or not self.schedule.is_full)
        return not self._is_stopping

    async def next_line(self) -> Line | None:
        """Wait for a line to work on; return None once there will be none."""
        while not self._is_stopping:
            now = time.monotonic()
            line = self.schedule.take(now)
            if line is not None:
                return line
            if self._is_fed and self.schedule.is_empty:
                return None
            seconds = self.schedule.seconds_until_next(now)
            async with self._changed:
                with suppress(TimeoutError):
                    async with asyncio.timeout(seconds):
                        await self._changed.wait()
        return None

    async def pause(self, seconds: float) -> bool:
        """Wait for so long; return False once all workers have ended."""
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._are_workers_done.wait()
        return not self._are_workers_done.is_set()

    async def run(
        self, feed: _Coroutine, work: _Coroutine, keep: _Coroutine, *, concurrency: int, handle_signals: bool
    ) -> None:
        """Run everything until it is done, or somebody says to stop; raise what any part of it raises."""
        loop = asyncio.get_running_loop()
        if self._bell is not None:
            loop.add_reader(self._bell.fileno(), self._hear)
        handled = [number for number in _STOP_SIGNALS if handle_signals and self._handles(loop, number)]
        aside = [loop.create_task(part) for part in (self._feed(feed), self._watch_for_stop())]
        keeper = asyncio.ensure_future(self._guarded(keep))
        try:
            async with asyncio.TaskGroup() as group:
                workers = [group.create_task(self._guarded(work)) for _ in range(concurrency)]
                group.create_task(self._fail_with(aside[0], workers))
        except BaseExceptionGroup as errors:
            raise errors.exceptions[0] from None
        finally:
            self._are_workers_done.set()
            for number in handled:
                loop.remove_signal_handler(number)
            if self._bell is not None:
                loop.remove_reader(self._bell.fileno())
                self._bells.give(self._bell)
            for task in aside:
                task.cancel()
            # Last: who is cancelled a second time goes no further.
            await asyncio.gather(*aside, keeper, return_exceptions=True)
        keeper.result()

    async def _feed(self, feed: _Coroutine) -> None:
        try:
            await feed()
        finally:
            self._is_fed = True
            await self._notify()

    async def _guarded(self, part: _Coroutine) -> None:
        try:
            await part()
        except BaseException:
            self.stop()
            raise

    async def _fail_with(self, feeding: asyncio.Task[None], workers: list[asyncio.Task[None]]) -> None:
        """Raise what feeding has failed with, once the workers are done with all that came before."""
        await asyncio.wait(workers)
        if feeding.done():
            feeding.result()

    async def _watch_for_stop(self) -> None:
        while self._asked_to_stop is not None and not self._is_stopping:
            if self._asked_to_stop():
                self.stop()
            await asyncio.sleep(_LOOK_EVERY_SECONDS)

    def _handles(self, loop: asyncio.AbstractEventLoop, number: int) -> bool:
        try:
            loop.add_signal_handler(number, self.stop)
        except (RuntimeError, ValueError):  # not in the main thread
            return False
        return True

    def _hear(self) -> None:
        assert self._bell is not None, "it is listened to"
        heard = self._bell.heard()
        self.schedule.ring(heard)
        self.notify()
