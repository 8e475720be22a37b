"""How an asynchronous client waits for the registrar; the counterpart of `calls`."""

import asyncio
import threading
import time
import weakref
from collections import deque
from collections.abc import Callable
from functools import partial
from typing import Any, TypeVar

from leasehold.client.calls import LOOK_EVERY_SECONDS
from leasehold.client.lookout import Lookout
from leasehold.engine.desk import Desk, Outcome
from leasehold.engine.questions import FindWon, Question
from leasehold.kernel.lease.answers import Granted
from leasehold.kernel.ledger.commands import Command

_Returned = TypeVar("_Returned")
_Arrival = tuple["asyncio.Future[Outcome]", Outcome]


class _Patience:
    """How long the calls of one event loop wait: one timer for all, because a timer each costs more."""

    def __init__(self, desk: Desk) -> None:
        self._desk = desk
        self._waiting: deque[tuple[float, Any, asyncio.Future[Outcome]]] = deque()
        """In the order of their deadlines; some have their outcome already."""
        self._armed = False

    def begin(self, loop: asyncio.AbstractEventLoop, call: Any, future: "asyncio.Future[Outcome]") -> None:
        """See to it that a call does not wait for ever."""
        waiting = self._waiting
        while waiting and waiting[0][2].done():
            waiting.popleft()
        waiting.append((loop.time() + self._desk.timeout, call, future))
        if not self._armed:
            self._arm(loop)

    def _arm(self, loop: asyncio.AbstractEventLoop) -> None:
        self._armed = True
        loop.call_at(self._waiting[0][0], self._look)

    def _look(self) -> None:
        self._armed = False
        loop = asyncio.get_running_loop()
        now = loop.time()
        while self._waiting and (self._waiting[0][2].done() or self._waiting[0][0] <= now):
            _, call, future = self._waiting.popleft()
            if not future.done():
                self._withdraw(call, future)
        if self._waiting:
            self._arm(loop)

    def _withdraw(self, call: Any, future: "asyncio.Future[Outcome]") -> None:
        """Stop waiting for another process to finish writing, unless the command is under way."""
        busy = self._desk.withdraw(call)
        if busy is not None:
            future.set_result(busy)


class AwaitableCalls:
    """Waits by suspending the calling task. Outcomes of one batch wake the event loop once."""

    def __init__(self, desk: Desk) -> None:
        self._desk = desk
        self._lookout = Lookout(desk)
        self._lock = threading.Lock()
        self._arrived: dict[asyncio.AbstractEventLoop, list[_Arrival]] = {}
        """By event loop: a client may outlive the loop it was first used in."""
        self._patience: weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, _Patience] = (
            weakref.WeakKeyDictionary()
        )

    @staticmethod
    def caller() -> object:
        """Return who is calling: a task, or a thread outside of any event loop."""
        try:
            return asyncio.current_task() or threading.current_thread()
        except RuntimeError:
            return threading.current_thread()

    async def call(self, command: Command) -> Outcome:
        """Run a command and wait for its outcome.

        A task that is cancelled meanwhile does not take the command back: it may have been run already.
        """
        loop = asyncio.get_running_loop()
        future: asyncio.Future[Outcome] = loop.create_future()
        call = self._desk.submit(command, partial(self._arrive, loop, future))
        patience = self._patience.get(loop)
        if patience is None:
            patience = self._patience[loop] = _Patience(self._desk)
        patience.begin(loop, call, future)
        return await future

    def _arrive(
        self, loop: asyncio.AbstractEventLoop, future: "asyncio.Future[Outcome]", outcome: Outcome
    ) -> None:
        with self._lock:
            arrived = self._arrived.setdefault(loop, [])
            arrived.append((future, outcome))
            if len(arrived) > 1:
                return
        try:
            loop.call_soon_threadsafe(self._deliver, loop)
        except RuntimeError:  # the loop was closed: nobody waits any more
            with self._lock:
                del self._arrived[loop]

    def _deliver(self, loop: asyncio.AbstractEventLoop) -> None:
        with self._lock:
            arrived = self._arrived.pop(loop)
        for future, outcome in arrived:
            if not future.done():
                future.set_result(outcome)

    async def won(self, question: FindWon) -> Granted | None:
        """Return None: a task has to ask. To look it would need a thread, and those may all be busy."""
        del question
        return None

    async def ask(self, question: Question) -> Any:
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

    async def until_beyond(self, position: int) -> None:
        """Wait until the ledger goes beyond a position, or cannot be looked at any more."""
        await self._lookout.wait(position)
