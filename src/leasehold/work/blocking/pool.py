"""The threads of a blocking consumer; the counterpart of `aio.pool`.

The calling thread listens: for the bell, for signals, and for the end. The source is read in a thread that
nobody waits for, because nobody can interrupt it.
"""

import inspect
import select
import signal
import socket
import threading
import time
from collections.abc import AsyncIterable, Callable, Iterable
from contextlib import suppress
from typing import Any

from leasehold.engine.bells import Bells
from leasehold.errors import InvalidInput
from leasehold.work.consuming import Handler, Item, Line, Message, Schedule, Source

_STOP_SIGNALS = (signal.SIGTERM, signal.SIGINT)
_LOOK_EVERY_SECONDS = 0.1
"""How often a caller's `stop` is asked."""


def checked_handler(handler: Handler) -> Handler:
    """Return a handler that a thread can call; refuse one that would only be awaited."""
    if not callable(handler):
        raise InvalidInput(f"handler must be a function, not {handler!r:.80}", field="handler")
    if inspect.iscoroutinefunction(handler) or inspect.iscoroutinefunction(type(handler).__call__):
        raise _only_for_asyncio()
    return handler


def checked_source(source: Source) -> Source:
    """Return a source that a thread can read; refuse one that would have to be awaited."""
    if isinstance(source, Iterable):
        return source
    if isinstance(source, AsyncIterable):
        raise InvalidInput(
            "source must be a plain iterable here; asynchronous ones are for connect_async", field="source"
        )
    raise InvalidInput(f"source must be an iterable of messages, not {source!r:.80}", field="source")


def _only_for_asyncio() -> InvalidInput:
    return InvalidInput(
        "handler must be a plain function here; coroutine functions are for connect_async", field="handler"
    )


class Pool:
    """Runs a feeder, some workers and a keeper in threads, and wakes them."""

    schedule: Schedule

    def __init__(self, bells: Bells, stop: Callable[[], bool] | None) -> None:
        self._bells = bells
        self._bell = bells.take()
        self._asked_to_stop = stop
        self._changed = threading.Condition()
        self._is_stopping = False
        self._is_fed = False
        self._are_workers_done = threading.Event()
        self._error: BaseException | None = None
        self._working: set[str] = set()
        """The workers that have not ended. A thread counts as alive for a moment after it has said so."""
        self._poked, self._poke = socket.socketpair()
        self._poke.setblocking(False)

    def address(self, number: int) -> str:
        """Return where to ring for a line; empty where nobody can be rung for."""
        return "" if self._bell is None else f"{self._bell.name}.{number}"

    def items(self, source: Source) -> Iterable[Item]:
        """Return what a source yields."""
        return source  # type: ignore[return-value]

    def call(self, handler: Handler, message: Message) -> None:
        """Have a message processed."""
        result = handler(message)
        if inspect.iscoroutine(result):  # Nothing has happened: it must not count as processed.
            result.close()
            raise _only_for_asyncio()

    def notify(self) -> None:
        """Let everybody look again who waits for something."""
        with self._changed:
            self._changed.notify_all()

    def stop(self) -> None:
        """Let no worker begin anything more."""
        self._is_stopping = True
        self._wake_listener()

    def _wake_listener(self) -> None:
        with suppress(OSError):  # It is awake anyway: so many pokes are waiting already.
            self._poke.send(b".")

    def has_room(self) -> bool:
        """Wait until there is room for one more message; return False if it is not wanted any more."""
        with self._changed:
            self._changed.wait_for(lambda: self._is_stopping or not self.schedule.is_full)
        return not self._is_stopping

    def next_line(self) -> Line | None:
        """Wait for a line to work on; return None once there will be none."""
        with self._changed:
            while not self._is_stopping:
                now = time.monotonic()
                line = self.schedule.take(now)
                if line is not None:
                    return line
                if self._is_fed and self.schedule.is_empty:
                    return None
                self._changed.wait(self.schedule.seconds_until_next(now))
        return None

    def pause(self, seconds: float) -> bool:
        """Wait for so long; return False once all workers have ended."""
        return not self._are_workers_done.wait(seconds)

    def run(
        self,
        feed: Callable[[], None],
        work: Callable[[], None],
        keep: Callable[[], None],
        *,
        concurrency: int,
        handle_signals: bool,
    ) -> None:
        """Run everything until it is done, or somebody says to stop; raise what any part of it raises."""
        feeder = self._thread(lambda: self._feed(feed), "feeder")
        self._working = {f"worker-{number + 1}" for number in range(concurrency)}
        workers = [self._thread(work, name) for name in sorted(self._working)]
        keeper = self._thread(keep, "keeper")
        before = self._handle_signals() if handle_signals else {}
        try:
            for thread in (feeder, keeper, *workers):
                thread.start()
            self._listen()
        except BaseException:
            self._is_stopping = True
            raise
        finally:
            self.notify()
            for thread in workers:
                thread.join()
            self._are_workers_done.set()
            keeper.join()
            for number, handler in before.items():
                signal.signal(number, signal.SIG_DFL if handler is None else handler)
            if self._bell is not None:
                self._bells.give(self._bell)
            self._poked.close()
            self._poke.close()
        if self._error is not None:
            raise self._error

    def _thread(self, part: Callable[[], None], name: str) -> threading.Thread:
        def guarded() -> None:
            try:
                part()
            except BaseException as error:
                self._error = self._error or error
                self.stop()
            finally:
                self._working.discard(name)
                self._wake_listener()

        return threading.Thread(target=guarded, name=f"leasehold-consumer-{name}", daemon=True)

    def _feed(self, feed: Callable[[], None]) -> None:
        try:
            feed()
        except BaseException as error:  # It is raised once the workers are done with all that came before.
            self._error = self._error or error
        finally:
            self._is_fed = True
            self.notify()

    def _handle_signals(self) -> dict[int, Any]:
        if threading.current_thread() is not threading.main_thread():
            return {}
        return {number: signal.signal(number, lambda *_: self.stop()) for number in _STOP_SIGNALS}

    def _listen(self) -> None:
        """Pass on what is rung and who says to stop, until all workers have ended."""
        poll = select.poll()
        poll.register(self._poked, select.POLLIN)
        if self._bell is not None:
            poll.register(self._bell.fileno(), select.POLLIN)
        timeout = None if self._asked_to_stop is None else _LOOK_EVERY_SECONDS * 1000
        while self._working:
            readable = {number for number, _ in poll.poll(timeout)}
            if self._poked.fileno() in readable:
                self._poked.recv(4096)
            if self._bell is not None and self._bell.fileno() in readable:
                self.schedule.ring(self._bell.heard())
            if self._asked_to_stop is not None and self._asked_to_stop():
                self._is_stopping = True
            self.notify()
