"""How an asynchronous client waits for the registrar; the counterpart of `blocking.calls`."""

import asyncio
import threading
import time
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Any, TypeVar

from leasehold.client.aio.lookout import Lookout
from leasehold.client.waits import LOOK_EVERY_SECONDS
from leasehold.engine.desk import Desk, Outcome
from leasehold.engine.questions import AnswerType, FindWon, Question
from leasehold.kernel.lease.answers import Granted
from leasehold.kernel.ledger.commands import Command

_Returned = TypeVar("_Returned")
_Awaited = asyncio.Future[Outcome]


class _Mailbox:
    """What comes back to one event loop.

    The outcomes of a batch wake the loop once, and one timer sees to it that no call waits for ever: for
    each call by itself, both would cost more than the call.
    """

    def __init__(self, desk: Desk, loop: asyncio.AbstractEventLoop) -> None:
        self._desk = desk
        self._loop = loop
        self._arrived: deque[tuple[_Awaited, Outcome]] = deque()
        self._is_rung_for = False
        self._awaited: deque[tuple[float, Any, _Awaited]] = deque()
        """In the order of their deadlines; some have their outcome already."""
        self._is_timed = False

    def call(self, command: Command) -> _Awaited:
        """Send a command; return what its outcome comes in."""
        future: _Awaited = self._loop.create_future()
        call = self._desk.submit(command, partial(self._arrive, future))
        awaited = self._awaited
        while awaited and awaited[0][2].done():
            awaited.popleft()
        awaited.append((self._loop.time() + self._desk.timeout, call, future))
        if not self._is_timed:
            self._set_timer()
        return future

    def _arrive(self, future: _Awaited, outcome: Outcome) -> None:
        """Take in an outcome, from the thread that has it."""
        self._arrived.append((future, outcome))
        # In this order: the loop notes first that nobody has rung for it, and then takes what has arrived.
        if not self._is_rung_for:
            self._is_rung_for = True
            try:
                self._loop.call_soon_threadsafe(self._deliver)
            except RuntimeError:  # the loop was closed: nobody waits any more
                self._arrived.clear()

    def _deliver(self) -> None:
        self._is_rung_for = False
        arrived = self._arrived
        while arrived:
            future, outcome = arrived.popleft()
            if not future.done():
                future.set_result(outcome)

    def _set_timer(self) -> None:
        self._is_timed = True
        self._loop.call_at(self._awaited[0][0], self._look)

    def _look(self) -> None:
        """Stop waiting for another process to finish writing, unless the command is under way."""
        self._is_timed = False
        awaited, now = self._awaited, self._loop.time()
        while awaited and (awaited[0][2].done() or awaited[0][0] <= now):
            _, call, future = awaited.popleft()
            busy = None if future.done() else self._desk.withdraw(call)
            if busy is not None:
                future.set_result(busy)
        if awaited:
            self._set_timer()


class AsyncCalls:
    """Waits by suspending the calling task."""

    def __init__(self, desk: Desk) -> None:
        self._desk = desk
        self._lookout = Lookout(desk)
        self._mailboxes: dict[asyncio.AbstractEventLoop, _Mailbox] = {}
        """By event loop: a client may outlive the loop it was first used in."""

    @staticmethod
    def caller() -> object:
        """Return who is calling: a task, or a thread outside of any event loop."""
        try:
            return asyncio.current_task() or threading.current_thread()
        except RuntimeError:
            return threading.current_thread()

    def call(self, command: Command) -> _Awaited:
        """Run a command; to be awaited for its outcome.

        A task that is cancelled meanwhile does not take the command back: it may have been run already.
        """
        loop = asyncio.get_running_loop()
        mailbox = self._mailboxes.get(loop)
        if mailbox is None:
            for gone in [one for one in list(self._mailboxes) if one.is_closed()]:
                self._mailboxes.pop(gone, None)
            mailbox = self._mailboxes[loop] = _Mailbox(self._desk, loop)
        return mailbox.call(command)

    async def won(self, question: FindWon) -> Granted | None:
        """Return None: a task has to ask. To look it would need a thread, and those may all be busy."""
        del question
        return None

    async def ask(self, question: Question[AnswerType]) -> AnswerType:
        """Ask a question, without holding up the event loop."""
        return await asyncio.to_thread(self._desk.ask, question)

    async def aside(self, function: Callable[..., _Returned], *given: Any, **named: Any) -> _Returned:
        """Call something that blocks, without holding up the event loop."""
        return await asyncio.to_thread(function, *given, **named)

    async def close(self) -> None:
        """Close the desk."""
        await asyncio.to_thread(self._desk.close)

    async def until(self, condition: Callable[[], bool], patience_seconds: float) -> None:
        """Wait for something that others bring about soon, but not longer than that."""
        deadline = time.monotonic() + patience_seconds
        while not condition() and time.monotonic() < deadline:
            await asyncio.sleep(LOOK_EVERY_SECONDS)

    async def until_beyond(self, position: int, patience_seconds: float | None = None) -> None:
        """Wait until the ledger goes beyond a position, or cannot be looked at any more, or for so long."""
        with suppress(TimeoutError):
            async with asyncio.timeout(patience_seconds):
                await self._lookout.wait(position)
