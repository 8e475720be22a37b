"""A consumer: takes messages from a source, and has each processed once, in order within its domain.

Promised: a handler is started only for an offset that was acquired just then, or is held for another attempt;
never for one that somebody else has in flight. That is judged by our own clock, from before each question was
sent, so that neither a slow answer nor a stop of this process starts one. An offset is kept alive from its
acquisition to its end, also while it waits for another attempt. A handler whose offset was lost is not
believed: the registrar is asked again what became of the offset.

Not promised: that a handler is never run twice for one offset. One that is stopped for longer than the TTL
loses it, and a successor begins while it may go on; the fencing token tells them apart.
"""

import logging
import time
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING

from leasehold.client.aio.session import AsyncSession
from leasehold.errors import LeaseholdError, LeaseLost, LeaseTerminal, StoreError
from leasehold.work.aio.pool import AsyncPool, checked_handler, checked_source
from leasehold.work.consuming import (
    Backoff,
    Handler,
    Held,
    Line,
    Message,
    Progress,
    Schedule,
    Source,
    checked_item,
    reason_of,
)
from leasehold.work.errors import BacklogOrderingException
from leasehold.work.hearing import Hearing
from leasehold.work.law.answers import AcquireOutcome, FailOutcome

if TYPE_CHECKING:
    from leasehold.work.aio.face import AsyncWork

_PENDING_PER_WORKER = 64
_ASK_AGAIN_SECONDS = 10.0
"""How long to rely on being woken: a ring may be lost."""
_AFTER_ERROR_SECONDS = 1.0
_TELL_EVERY_SECONDS = 1.0

_logger = logging.getLogger(__name__)


class AsyncConsumer:
    """Works on the domains that a source names, several at a time."""

    def __init__(
        self,
        session: AsyncSession,
        work: "AsyncWork",
        handler: Handler,
        source: Source,
        *,
        backoff: Backoff,
        ttl_ns: int,
        concurrency: int,
        stop: Callable[[], bool] | None,
        tell: Callable[[Progress], None] | None,
    ) -> None:
        self._ids = session.ids
        self._work = work
        self._handler = checked_handler(handler)
        self._source = checked_source(source)
        self._backoff = backoff
        self._keep_every_ns = ttl_ns // 3
        self._session = session
        self._concurrency = concurrency
        self._tell = tell
        self._told_at = 0.0
        self._pool = AsyncPool(session.desk.bells, stop)
        self._schedule = Schedule(concurrency * _PENDING_PER_WORKER, self._pool.address)
        self._pool.schedule = self._schedule

    async def run(self, *, handle_signals: bool) -> Progress:
        """Consume everything that the source yields, or until somebody says to stop; return the figures."""
        try:
            await self._pool.run(
                self._feed,
                self._work_on,
                self._keep,
                concurrency=self._concurrency,
                handle_signals=handle_signals,
            )
        finally:
            await self._let_go_of_all()
        return self._schedule.progress()

    async def _let_go_of_all(self) -> None:
        """Leave all offsets to others; who is interrupted in that, too, does not wait for it."""
        left = self._schedule.held()
        try:
            while left:
                with suppress(LeaseholdError):  # Then it goes back by itself, when its time is over.
                    await self._let_go(left[-1])
                left.pop()
        finally:
            for held in left:
                self._let_go_blindly(held)

    async def _let_go(self, held: Held) -> None:
        """Leave an offset to others; what is done, and the registrar has not heard of, is told first."""
        if held.verdict == "succeed":
            await self._work.succeed(held.domain, held.token, request_id=held.request_id)
            return
        if held.verdict == "fail":
            failed = await self._work.fail(
                held.domain, held.token, reason=held.reason, request_id=held.request_id
            )
            if failed.outcome is not FailOutcome.RETRY_SCHEDULED:
                return
        await self._work.give_back(held.domain, held.token)

    def _let_go_blindly(self, held: Held) -> None:
        hearing = Hearing(self._session)
        if held.verdict == "succeed":  # Given back, it would be processed a second time.
            hearing.tell_success(held.domain, held.token, held.request_id)
        else:
            hearing.leave(held.domain, held.token)

    async def _feed(self) -> None:
        async for item in self._pool.items(self._source):
            domain, offset, payload = checked_item(item)
            if not await self._pool.has_room():
                return
            self._schedule.add(domain, offset, payload)
            self._pool.notify()

    async def _work_on(self) -> None:
        while (line := await self._pool.next_line()) is not None:
            try:
                await self._step(line)
            except StoreError as error:
                _logger.warning("work on %s goes on later: %s", line.domain, error)
                self._schedule.rest(line, _AFTER_ERROR_SECONDS)
            self._pool.notify()
            self._tell_progress()

    async def _step(self, line: Line) -> None:
        held = line.held
        if held is None:
            held = await self._acquire(line)
        elif held.verdict is None:
            held = await self._resume(line, held)
        if held is None:
            return
        if held.verdict is None:
            if held.is_lost:  # This process may have been stopped since it was answered.
                self._lose(line, held)
                self._schedule.go_on(line)
                return
            await self._attempt(held)
        await self._settle(line, held)

    async def _acquire(self, line: Line) -> Held | None:
        """Ask for the next offset of a domain; return it if it is ours to begin with now."""
        offset, payload, _ = line.pending[0]
        line.request_id = line.request_id or self._ids.name()
        sent_ns = self._session.clock.tick_ns()
        try:
            acquired = await self._work.try_acquire(
                line.domain, offset, wake=line.address, request_id=line.request_id
            )
        except BacklogOrderingException as error:
            line.request_id = ""
            await self._fall_in(line, error.expected)
            return None
        except LeaseTerminal:  # It was acquired, but we have heard of it too late.
            line.request_id = ""
            self._schedule.go_on(line)
            return None
        line.request_id = ""
        match acquired.outcome:
            case AcquireOutcome.ACQUIRED:
                line.held = Held(line.domain, payload, acquired, self._session)
                line.held.believe(sent_ns, acquired.expires_in_ns)
                return self._begin(line, line.held)
            case AcquireOutcome.ENQUEUED | AcquireOutcome.ALREADY_ACQUIRED:
                self._wait(line, acquired.expires_in)
            case _:
                self._schedule.finish(line, "skipped")
                self._schedule.go_on(line)
        return None

    async def _fall_in(self, line: Line, head: int) -> None:
        """Begin with the head of the backlog if we have it; else queue up behind it, to be woken."""
        if self._schedule.bring_forward(line, head):
            self._schedule.go_on(line)
            return
        await self._work.enqueue(line.domain, [line.pending[0][0]], wake=line.address)
        self._wait(line, None)

    def _wait(self, line: Line, expires_in: float | None) -> None:
        """Wait for somebody else to be done with a domain, or for its time to be over."""
        seconds = _ASK_AGAIN_SECONDS if expires_in is None else min(expires_in + 0.001, _ASK_AGAIN_SECONDS)
        self._schedule.rest(line, seconds, until_rung=True)

    def _begin(self, line: Line, held: Held) -> Held | None:
        """Return an offset that was acquired, unless somebody has failed at it a moment ago."""
        now_millis = time.time_ns() // 1_000_000
        seconds = self._backoff.remaining(held.acquired_at_millis, held.retry_count, now_millis)
        if seconds > 0:
            self._schedule.rest(line, seconds)
            return None
        return held

    async def _resume(self, line: Line, held: Held) -> Held | None:
        """Return an offset that has rested, if it is still ours: it may have been lost unnoticed."""
        try:
            await self._keep_alive(held)
        except LeaseLost:
            self._lose(line, held)
            self._schedule.go_on(line)
            return None
        return held

    async def _keep_alive(self, held: Held) -> None:
        sent_ns = self._session.clock.tick_ns()
        kept = await self._work.keep_alive(held.domain, held.token)
        held.believe(sent_ns, kept.expires_in_ns)

    def _lose(self, line: Line, held: Held) -> None:
        line.held = None
        held.lose()
        self._schedule.note("lost")

    async def _attempt(self, held: Held) -> None:
        """Have the message processed, and note what has become of it."""
        try:
            await self._pool.call(self._handler, Message(held))
        except Exception as error:
            _logger.info("an attempt at %s %s failed: %r", held.domain, held.offset, error)
            held.verdict, held.reason, held.error = "fail", reason_of(error), error
        else:
            held.verdict = "succeed"
        held.request_id = self._ids.name()

    async def _settle(self, line: Line, held: Held) -> None:
        """Tell the registrar what has become of an attempt; the same again if its answer was lost."""
        seconds = 0.0
        try:
            if held.verdict == "succeed":
                await self._work.succeed(held.domain, held.token, request_id=held.request_id)
                self._schedule.finish(line, "processed")
            else:
                seconds = await self._fail(line, held)
        except LeaseLost:
            self._lose(line, held)
        if seconds > 0:
            self._schedule.rest(line, seconds)
        else:
            self._schedule.go_on(line)

    async def _fail(self, line: Line, held: Held) -> float:
        """Tell the registrar that an attempt has failed; return after how long to try again."""
        failed = await self._work.fail(
            held.domain, held.token, reason=held.reason, request_id=held.request_id
        )
        if failed.outcome is not FailOutcome.RETRY_SCHEDULED:
            self._schedule.finish(line, "failed")
            _logger.warning(
                "%s %s was given up after attempt %d: %s",
                held.domain,
                held.offset,
                held.retry_count + 1,
                held.reason,
                exc_info=held.error,
            )
            return 0.0
        self._schedule.note("retried")
        held.verdict, held.retry_count = None, failed.retry_count
        return self._backoff.delay(held.acquired_at_millis, held.retry_count)

    async def _keep(self) -> None:
        """Keep all offsets alive that are in our hands, until nobody works on any."""
        while await self._pool.pause(self._keep_every_ns / 4e9):
            for held in self._schedule.held():
                if held.is_lost or held.unheard_ns < self._keep_every_ns:
                    continue
                try:
                    await self._keep_alive(held)
                except LeaseLost:
                    held.lose()
                except LeaseholdError as error:  # A refusal may pass as well, and the others are to be kept.
                    _logger.warning("%s %s is not kept alive: %s", held.domain, held.offset, error)

    def _tell_progress(self) -> None:
        now = time.monotonic()
        if self._tell is not None and now - self._told_at >= _TELL_EVERY_SECONDS:
            self._told_at = now
            self._tell(self._schedule.progress())
