"""The line to a server: one thread that puts what is waiting into requests, and asks again what was lost.

Whoever has something to ask hands it in and goes on, or waits for its outcome; nobody's event loop is ever
held up. While some requests are under way, whatever else is handed in is gathered, and leaves together: the
more callers there are, the fewer requests each of them costs.

Promised: every item gets its outcome once, by its deadline (give or take a tenth of a second). Items that are
about the same lease leave in the order in which they were handed in, and none of them before the one ahead
has its outcome, except together with it. What was lost is asked again, after a growing pause that is
different for everybody, with the same request ids. What the server says about when to come back is kept to.
A server that was never reached is given up soon: its address may be wrong, and nobody should have to wait for
a whole timeout to hear that.

Not promised: that a request which was given up never arrives. It may be on its way for as long as a network
can keep it; what it is granted then ends with its TTL.
"""

import asyncio
import itertools
import math
import random
import threading
import time
from collections import deque
from collections.abc import Callable, Coroutine
from contextlib import suppress
from typing import Any

from leasehold.client.http.call import Call
from leasehold.client.http.exchange import Exchange, NotAnswered
from leasehold.client.http.lane import Lane
from leasehold.engine.desk import Failure
from leasehold.engine.wire import FindJob, Garbled, Wire, read_reply, spell_request
from leasehold.errors import ClientClosed, ReplyLost, ServerUnreachable
from leasehold.kernel.ledger.commands import Command

COMMANDS_UNDER_WAY = 2
QUESTIONS_UNDER_WAY = 4
"""How many requests of each kind are under way at once; what comes then is gathered."""
_ATTEMPT_SECONDS = 10.0
"""How long a request waits for its reply; then it is taken for lost, and sent again."""
_FIRST_CONTACT_SECONDS = 2.0
"""How long a server is tried that was never reached before."""
_PAUSE_SECONDS = 0.05
_PAUSE_MAXIMUM_SECONDS = 2.0
_LOOK_SECONDS = 0.1


class Line:
    """A thread with an event loop, and everything on its way to one server."""

    def __init__(self, base: str, wire: Wire, api_key: str | None) -> None:
        self._base = base
        self._wire = wire
        self._api_key = api_key
        self.lock = threading.Lock()
        """Held for moments: while something is handed in, leaves, or is withdrawn."""
        self._fresh: deque[Call] = deque()
        self._is_rung_for = False
        self._thread: threading.Thread | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._exchange: Exchange | None = None
        self._commands = Lane(COMMANDS_UNDER_WAY)
        self._questions = Lane(QUESTIONS_UNDER_WAY)
        self._known: dict[Call, None] = {}
        """Everything that has no outcome yet; in the event loop only."""
        self._background: set[asyncio.Task[None]] = set()
        self._ids = itertools.count(1)
        self._is_looking = False
        self._was_reached = False
        """Whether the server has ever been connected to."""
        self._grants = True
        self._is_closing = False
        self.latest = math.inf
        """When everything has its outcome, whatever its own deadline is; by `time.monotonic()`."""
        self.requests = 0
        """How many requests were sent."""

    def send(self, call: Call) -> None:
        """Hand an item in; raise ClientClosed for what would be granted to a client that is being closed."""
        with self.lock:
            if self._is_closing or not (self._grants or call.gives_back):
                raise ClientClosed("this client was closed; connect again")
            self._fresh.append(call)
        self._ring()

    def run(self, make: Callable[[Exchange], Coroutine[Any, Any, None]]) -> None:
        """Begin something in the background that goes on until it ends, or the line is closed."""
        if not self._is_closing:
            self._started().call_soon_threadsafe(self._begin, make)

    def stop_granting(self, latest: float) -> None:
        """Take no more claims, answer those that have not left, and end everything by then."""
        with self.lock:
            self._grants = False
            self.latest = min(self.latest, latest)
            loop = self._loop
        if loop is not None:
            with suppress(RuntimeError):  # It was closed before.
                loop.call_soon_threadsafe(self._dismiss)

    def close(self) -> None:
        """Take no more items, wait for those under way, and let go of all connections."""
        with self.lock:
            self._is_closing = True
            thread, loop, deadline = self._thread, self._loop, self.latest
        if thread is None or loop is None:
            return
        with suppress(RuntimeError):  # It was closed before.
            loop.call_soon_threadsafe(self._finish)
        if thread is not threading.current_thread():
            thread.join(max(deadline - time.monotonic(), 0) + 2 * _LOOK_SECONDS + 1.0)

    def abandon(self) -> tuple[object, ...]:
        """In a forked child: close our copies of the parent's connections, and return what must not be freed.

        The loop, and what hangs on it, would take itself for one that was left open.
        """
        for one in () if self._exchange is None else self._exchange.sockets:
            one.close()
        return (self._loop, self._exchange, self._thread, self._commands, self._questions, self._background)

    def _started(self) -> asyncio.AbstractEventLoop:
        """Return the event loop, which runs from the first use on."""
        with self.lock:
            if self._loop is None:
                loop = asyncio.new_event_loop()
                thread = threading.Thread(target=self._work, args=(loop,), name="leasehold-line", daemon=True)
                thread.start()
                self._loop, self._thread = loop, thread
            return self._loop

    def _work(self, loop: asyncio.AbstractEventLoop) -> None:
        exchange = loop.run_until_complete(self._open())
        try:
            loop.run_forever()
        finally:
            loop.run_until_complete(exchange.close())
            loop.close()

    async def _open(self) -> Exchange:
        # Without waiting for anything: what was handed in before is looked at after this.
        self._exchange = Exchange(self._base, self._api_key)
        return self._exchange

    def _ring(self) -> None:
        """Have the loop take what was handed in; once, however much that is."""
        if self._is_rung_for:
            return
        try:
            self._is_rung_for = True
            self._started().call_soon_threadsafe(self._take)
        except BaseException as error:
            self._is_rung_for = False  # Ctrl-C: the next one rings.
            # Who has closed the loop meanwhile answers everything that was handed in before.
            if not (isinstance(error, RuntimeError) and self._is_closing):
                raise

    def _take(self) -> None:
        self._is_rung_for = False  # First: who comes now rings again.
        while self._fresh:
            call = self._fresh.popleft()
            self._known[call] = None
            if isinstance(call.item, FindJob):
                self._depart(Lane(1), [call])  # It waits at the server, and must hold up nobody.
            else:
                lane = self._commands if isinstance(call.item, Command) else self._questions
                lane.waiting.append(call)
        self._pump(self._commands)
        self._pump(self._questions)
        if self._known and not self._is_looking:
            self._look()

    def _pump(self, lane: Lane) -> None:
        """Let leave what can."""
        while lane.waiting and len(lane.under_way) < lane.limit:
            calls = lane.board()
            if not calls:
                return
            self._depart(lane, calls)

    def _depart(self, lane: Lane, calls: list[Call]) -> None:
        task = asyncio.ensure_future(self._carry(calls))
        lane.under_way.add(task)

        def arrived(task: asyncio.Task[None]) -> None:
            lane.under_way.discard(task)
            lane.arrive(calls)
            for call in calls:
                self._known.pop(call, None)
            if not task.cancelled() and (defect := task.exception()) is not None:
                for call in calls:
                    call.resolve(Failure.of(RuntimeError(f"{type(defect).__name__}: {defect}")))
            self._pump(lane)

        task.add_done_callback(arrived)

    async def _carry(self, calls: list[Call]) -> None:
        """Bring items to the server, until all have their outcomes."""
        assert self._exchange is not None
        pause, began = _PAUSE_SECONDS, time.monotonic()
        while boarded := [call for call in calls if call.leave()]:
            try:
                await self._ask(self._exchange, boarded)
                self._was_reached = True
                return
            except NotAnswered as trouble:
                self._was_reached |= not isinstance(trouble.error, ServerUnreachable)
                may_have_run = trouble.may_have_run
                for call in boarded:
                    call.come_back(may_have_run=may_have_run)
                delay = pause * random.uniform(0.5, 1.5)
                if trouble.error.retry_after is not None:
                    delay = trouble.error.retry_after * random.uniform(1.0, 1.25)
                next_try = time.monotonic() + delay
                is_over = not trouble.is_passing or (
                    not self._was_reached and next_try >= began + _FIRST_CONTACT_SECONDS
                )
                for call in boarded:
                    if is_over or next_try >= self._deadline_of(call):
                        call.fail(trouble.error)
                pause = min(pause * 2, _PAUSE_MAXIMUM_SECONDS)
                if not all(call.is_answered for call in boarded):
                    await asyncio.sleep(delay)

    async def _ask(self, exchange: Exchange, calls: list[Call]) -> None:
        """Send items once, and deliver what is answered; raise NotAnswered if nothing is."""
        request_id = f"{next(self._ids)}"
        body = spell_request(request_id, [call.spelled for call in calls])
        patience = max(map(self._deadline_of, calls)) - time.monotonic()
        if isinstance(calls[0].item, Command):
            patience = min(patience, _ATTEMPT_SECONDS)
        self.requests += 1
        reply = await exchange.post("/v1/desk", body, timeout=max(patience, _LOOK_SECONDS))
        try:
            outcomes = read_reply(reply, request_id, len(calls))
        except Garbled as error:
            raise NotAnswered(
                ReplyLost(f"{self._base} did not answer as a leasehold server: {error}"), is_passing=False
            ) from error
        for call, outcome in zip(calls, outcomes, strict=True):
            try:
                call.resolve(self._wire.read_outcome(call.item, outcome))
            except Garbled as error:
                call.come_back(may_have_run=True)
                call.fail(ReplyLost(f"{self._base} sent what cannot be read: {error}"))

    def _look(self) -> None:
        """Tell those whose time is up; look again while anybody waits."""
        now = time.monotonic()
        for call in [call for call in self._known if self._deadline_of(call) <= now]:
            if call.has_left:
                call.come_back(may_have_run=True)
                call.fail(ReplyLost(f"{self._base} has not answered in time; ask again to find out"))
            else:
                call.fail(ServerUnreachable(f"{self._base} was not reached in time; nothing was changed"))
        for call in [call for call in self._known if call.is_answered]:
            del self._known[call]
        self._is_looking = bool(self._known) or self._is_closing
        if self._is_looking:
            asyncio.get_running_loop().call_later(_LOOK_SECONDS, self._look)

    def _deadline_of(self, call: Call) -> float:
        return min(call.deadline, self.latest)

    def _begin(self, make: Callable[[Exchange], Coroutine[Any, Any, None]]) -> None:
        if self._exchange is not None and not self._is_closing:
            task = asyncio.ensure_future(make(self._exchange))
            self._background.add(task)
            task.add_done_callback(self._background.discard)

    def _dismiss(self) -> None:
        """Answer claims that nothing can have come of; the others have to hear, or be given back."""
        self._take()
        for call in [call for call in self._known if not call.gives_back and call.withdraw()]:
            call.deliver(Failure.of(ClientClosed("this client was closed before the command was run")))

    def _finish(self) -> None:
        """End the loop once everything has its outcome, or at the latest."""
        for task in self._background:
            task.cancel()
        self._take()
        if any(not call.is_answered for call in self._known) and time.monotonic() < self.latest:
            asyncio.get_running_loop().call_later(_LOOK_SECONDS / 10, self._finish)
            return
        for call in list(self._known):
            call.come_back(may_have_run=call.has_left)
            call.fail(ClientClosed("this client was closed before the server answered"))
        for lane in (self._commands, self._questions):
            for task in lane.under_way:
                task.cancel()
        asyncio.get_running_loop().call_soon(asyncio.get_running_loop().stop)
