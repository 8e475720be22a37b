"""A consumer processes everything once, in order within each domain, whatever fails on the way."""

import asyncio
import os
import signal
import threading
import time
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest

import leasehold
from leasehold.errors import InvalidInput, LeaseholdError, LimitExceeded, NotPermitted, RateLimited, StoreBusy
from leasehold.work.aio import consumer as aio_consumer
from leasehold.work.aio.pool import AsyncPool
from leasehold.work.blocking import consumer as blocking_consumer
from leasehold.work.blocking.pool import Pool
from leasehold.work.consuming import Backoff, Message, Progress, Schedule, reason_of
from leasehold.work.law.commands import GiveBack, KeepAlive, Succeed, TryAcquire
from tests.client.worlds import SIGNAL_SECONDS, World


@pytest.fixture(autouse=True)
def nobody_asks_again_by_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    """Who waits for somebody else is woken, or the test never ends."""
    for module in (aio_consumer, blocking_consumer):
        monkeypatch.setattr(module, "_ASK_AGAIN_SECONDS", 1_000.0)


AT_ONCE = Backoff(first=0.001, most=0.002)


class Handler:
    """Notes what it is called with, and fails where it is told to."""

    def __init__(self, failing: dict[tuple[str, int], int] | None = None) -> None:
        self.seen: list[tuple[str, int, int]] = []
        self.payloads: list[Any] = []
        self._failing = failing or {}
        self._lock = threading.Lock()

    def note(self, message: Message) -> None:
        with self._lock:
            self.seen.append((message.domain, message.offset, message.attempt))
            self.payloads.append(message.payload)
        if message.attempt <= self._failing.get((message.domain, message.offset), 0):
            raise RuntimeError("told to fail")

    async def note_async(self, message: Message) -> None:
        await asyncio.sleep(0)
        self.note(message)

    def of(self, world: World) -> Any:
        return self.note if world.blocking else self.note_async


def messages(domains: str, count: int) -> list[tuple[str, int, str]]:
    return [(domain, offset, f"{domain}{offset}") for offset in range(count) for domain in domains]


async def test_everything_is_processed_once_and_in_order(real_world: World) -> None:
    client, handler = real_world.connect(), Handler()
    progress = await client.work.consume(handler.of(real_world), source=messages("abc", 8), concurrency=3)
    assert (progress.received, progress.processed, progress.pending) == (24, 24, 0)
    for domain in "abc":
        assert [one[1] for one in handler.seen if one[0] == domain] == list(range(8))
        assert await client.work.watermark(domain) == 8
    assert sorted(handler.payloads) == sorted(payload for _, _, payload in messages("abc", 8))


async def test_what_fails_is_tried_again_and_then_given_up(real_world: World) -> None:
    client = real_world.connect()
    handler = Handler({("a", 1): 2, ("b", 0): 99})
    progress = await client.work.consume(
        handler.of(real_world), source=messages("ab", 3), backoff=AT_ONCE, max_retries=2
    )
    assert (progress.processed, progress.failed, progress.retried) == (5, 1, 4)
    assert [one for one in handler.seen if one[0] == "a"] == [
        ("a", 0, 1),
        ("a", 1, 1),
        ("a", 1, 2),
        ("a", 1, 3),
        ("a", 2, 1),
    ]
    (failed,) = await client.work.failed("b")
    assert (failed.offset, failed.reason) == (0, "RuntimeError: told to fail")


async def test_what_is_terminal_already_is_skipped(real_world: World) -> None:
    client, handler = real_world.connect(), Handler()
    await client.work.consume(handler.of(real_world), source=messages("a", 3))
    again = await client.work.consume(handler.of(real_world), source=messages("a", 4))
    assert (again.skipped, again.processed) == (3, 1)
    assert len(handler.seen) == 4


async def test_an_offset_that_somebody_else_has_is_never_started(real_world: World) -> None:
    # It is waited for: the consumer is woken when the other one is done.
    client, other, handler = real_world.connect(), real_world.connect(), Handler()
    held = await other.work.try_acquire("a", 0)

    async def finish() -> None:
        async for entry in other.watch(after=0):
            if entry.event.type == "work.awaited":
                assert handler.seen == []
                await other.work.succeed("a", held.token)
                return

    progress, _ = await asyncio.gather(_aside(real_world, client, handler, messages("a", 2)), finish())
    assert (progress.skipped, progress.processed) == (1, 1)
    assert handler.seen == [("a", 1, 1)]


async def _aside(world: World, client: Any, handler: Handler, source: Any, **more: Any) -> Progress:
    """Consume beside the scenario: a blocking consumer needs a thread for that."""
    if not world.blocking:
        result: Progress = await client.work.consume(handler.note_async, source=source, **more)
        return result
    return await asyncio.to_thread(client.target.work.consume, handler.note, source=source, **more)


async def test_a_backlog_that_others_have_begun_is_respected(real_world: World) -> None:
    client, handler = real_world.connect(), Handler()
    await client.work.enqueue("a", [2, 0])
    progress = await client.work.consume(handler.of(real_world), source=messages("a", 3))
    assert progress.processed == 3
    assert [one[1] for one in handler.seen] == [2, 0, 1], "the head of the backlog first"


async def test_two_consumers_share_a_domain_and_wake_each_other(real_world: World) -> None:
    first, second = real_world.connect(), real_world.connect()
    handler = Handler()
    everything = messages("ab", 20)
    results = await asyncio.gather(
        _aside(real_world, first, handler, everything[::2]),
        _aside(real_world, second, handler, everything[1::2]),
    )
    assert sum(one.processed for one in results) == 40
    assert len({(domain, offset) for domain, offset, _ in handler.seen}) == len(handler.seen) == 40


async def test_two_consumers_with_parts_of_one_domain_keep_its_order(real_world: World) -> None:
    first, second, handler = real_world.connect(), real_world.connect(), Handler()
    await first.work.enqueue("a", range(12))
    everything = messages("a", 12)
    results = await asyncio.gather(
        _aside(real_world, first, handler, everything[::2]),
        _aside(real_world, second, handler, everything[1::2]),
    )
    assert [one.processed for one in results] == [6, 6]
    assert [one[1] for one in handler.seen] == list(range(12))


async def test_it_stops_when_told_to_and_gives_back_what_waits_for_another_attempt(
    real_world: World,
) -> None:
    client, handler = real_world.connect(), Handler({("a", 0): 99})
    progress = await client.work.consume(
        handler.of(real_world),
        source=messages("a", 5),
        backoff=Backoff(first=100, jitter=0),
        stop=lambda: bool(handler.seen),
    )
    assert (progress.retried, progress.processed) == (1, 0)
    state = await client.work.state("a")
    assert (state.state, state.head) == ("IDLE", 0)
    again = await client.work.try_acquire("a", 0)
    assert again.retry_count == 1, "giving it back is no failure"


async def test_an_offset_is_kept_alive_for_as_long_as_its_handler_takes(real_world: World) -> None:
    client = real_world.connect()
    seen: list[bool] = []

    def slow(message: Message) -> None:
        kept = (entry for entry in client.target.watch(after=0) if entry.event.type == "work.kept")
        for _ in range(2):
            next(kept)
        seen.append(message.is_lost)

    async def slow_async(message: Message) -> None:
        count = 0
        async for entry in client.watch(after=0):
            count += entry.event.type == "work.kept"
            if count == 2:
                break
        seen.append(message.is_lost)

    handler = slow if real_world.blocking else slow_async
    progress = await client.work.consume(handler, source=messages("a", 1), ttl=0.3)
    assert (progress.processed, progress.lost, seen) == (1, 0, [False])


@pytest.mark.parametrize("refusal", [RateLimited("too often"), NotPermitted("not now")])
async def test_an_offset_whose_keeping_was_refused_is_kept_alive_later(
    real_world: World, monkeypatch: pytest.MonkeyPatch, refusal: LeaseholdError
) -> None:
    client = real_world.connect()
    kind = type(client.target.work if real_world.blocking else client.work)
    keep_alive, refused = kind.keep_alive, list[LeaseholdError]()
    kept: Any = threading.Event() if real_world.blocking else asyncio.Event()

    def refuse_first() -> None:
        if not refused:
            refused.append(refusal)
            raise refusal
        kept.set()

    def keep(self: Any, *given: Any) -> Any:
        refuse_first()
        return keep_alive(self, *given)

    def slow(message: Message) -> Any:
        del message
        return kept.wait()

    monkeypatch.setattr(kind, "keep_alive", keep)
    progress = await client.work.consume(slow, source=messages("a", 1), ttl=3)
    assert (progress.processed, progress.lost, refused) == (1, 0, [refusal])


async def _wait_for_ever() -> None:
    await asyncio.Event().wait()


async def test_a_keeper_that_fails_stops_an_asynchronous_pool_and_is_heard_of() -> None:
    async with leasehold.connect_async("memory:") as client:
        pool = AsyncPool(client._session.desk.bells, None)
        pool.schedule = Schedule(4, pool.address)

        async def work() -> None:
            assert await pool.next_line() is None

        async def keep() -> None:
            raise RuntimeError("told to fail")

        with pytest.raises(RuntimeError, match="told to fail"):
            await pool.run(_wait_for_ever, work, keep, concurrency=2, handle_signals=False)


async def test_an_offset_that_was_lost_is_asked_for_again(real_world: World) -> None:
    # Somebody takes it away in the middle, as a stop past the TTL would.
    client = real_world.connect()
    tokens: list[str] = []

    def losing(message: Message) -> None:
        tokens.append(message.token)
        if len(tokens) == 1:
            client.target.work.give_back(message.domain, message.token)

    async def losing_async(message: Message) -> None:
        tokens.append(message.token)
        if len(tokens) == 1:
            await client.work.give_back(message.domain, message.token)

    progress = await client.work.consume(
        losing if real_world.blocking else losing_async, source=messages("a", 2)
    )
    assert (progress.lost, progress.processed) == (1, 2)
    assert len(set(tokens)) == 3


async def test_an_offset_that_was_lost_while_it_rested_is_not_begun_again(
    real_world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Somebody else has it before the second attempt is due, and the keeper has not looked since.
    client, other, handler = real_world.connect(), real_world.connect(), Handler({("a", 0): 1})
    theirs: list[Any] = []
    kind = type(client.target.work if real_world.blocking else client.work)
    fail = kind.fail

    def lose(self: Any, domain: str, token: str, **named: Any) -> Any:
        failed = fail(self, domain, token, **named)
        self.give_back(domain, token)
        theirs.append(other.target.work.try_acquire(domain, 0))
        return failed

    async def lose_async(self: Any, domain: str, token: str, **named: Any) -> Any:
        failed = await fail(self, domain, token, **named)
        await self.give_back(domain, token)
        theirs.append(await other.work.try_acquire(domain, 0))
        return failed

    async def finish() -> None:
        async for entry in other.watch(after=0):
            if entry.event.type == "work.awaited":
                await other.work.succeed("a", theirs[0].token)
                return

    monkeypatch.setattr(kind, "fail", lose if real_world.blocking else lose_async)
    consuming = _aside(real_world, client, handler, messages("a", 1), backoff=AT_ONCE)
    progress, _ = await asyncio.gather(consuming, finish())
    assert (progress.lost, progress.skipped) == (1, 1)
    assert handler.seen == [("a", 0, 1)], "the second attempt is another's"


@pytest.mark.parametrize(("late", "attempts"), [(TryAcquire, 0), (KeepAlive, 1)])
async def test_an_answer_that_comes_after_the_ttl_starts_no_handler(
    world: World, late: type, attempts: int
) -> None:
    # Somebody else has the offset by then: it was to be begun, or its second attempt was.
    client, other, handler = world.connect(), world.connect(), Handler({("a", 0): 1})
    session = client.target._session if world.blocking else client._session
    send, theirs = session.send, list[Any]()

    def slow(command: Any) -> Any:
        outcome = send(command)
        if isinstance(command, late) and not theirs:
            world.clock.advance(60)  # type: ignore[attr-defined]
            theirs.append(other.target.work.try_acquire("a", 0))
        return outcome

    async def slow_async(command: Any) -> Any:
        outcome = await send(command)
        if isinstance(command, late) and not theirs:
            world.clock.advance(60)  # type: ignore[attr-defined]
            theirs.append(await other.work.try_acquire("a", 0))
        return outcome

    async def finish() -> None:
        async for entry in other.watch(after=0):
            if entry.event.type == "work.awaited":
                await other.work.succeed("a", theirs[0].token)
                return

    session.send = slow if world.blocking else slow_async
    consuming = _aside(world, client, handler, messages("a", 1), backoff=AT_ONCE)
    progress, _ = await asyncio.gather(consuming, finish())
    assert theirs[0].outcome == "ACQUIRED"
    assert (progress.skipped, len(handler.seen)) == (1, attempts)


async def test_a_consumer_that_was_stopped_past_the_ttl_starts_no_handler(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    # It was answered in time, and has not begun yet.
    client, handler = world.connect(), Handler()
    kind = type(client.target.work if world.blocking else client.work)
    try_acquire, tokens = kind.try_acquire, list[str]()

    def note(acquired: Any) -> Any:
        if not tokens:
            world.clock.advance(60)  # type: ignore[attr-defined]
        tokens.append(acquired.token)
        return acquired

    def stopped(self: Any, *given: Any, **named: Any) -> Any:
        return note(try_acquire(self, *given, **named))

    async def stopped_async(self: Any, *given: Any, **named: Any) -> Any:
        return note(await try_acquire(self, *given, **named))

    monkeypatch.setattr(kind, "try_acquire", stopped if world.blocking else stopped_async)
    progress = await client.work.consume(handler.of(world), source=messages("a", 1), backoff=AT_ONCE)
    assert (progress.lost, progress.processed, len(tokens)) == (1, 1, 2)
    assert handler.seen == [("a", 0, 2)], "the first attempt was never begun"


@pytest.mark.parametrize("kind", [TryAcquire, GiveBack])
async def test_a_consumer_that_is_interrupted_leaves_nothing_in_flight(real_world: World, kind: type) -> None:
    # While it acquires something; or later, and while it gives back what it has.
    client, other, handler = real_world.connect(), real_world.connect(), Handler({("a", 0): 99, ("b", 0): 99})
    session = client.target._session if real_world.blocking else client._session
    send = session.send

    def interrupted(command: Any) -> Any:
        outcome = send(command)
        if isinstance(command, kind):
            raise KeyboardInterrupt
        return outcome

    async def cancelled(command: Any) -> Any:
        outcome = await send(command)
        if isinstance(command, kind):
            consuming.cancel()
            await asyncio.Event().wait()
        return outcome

    async def consume() -> None:
        await client.work.consume(
            handler.of(real_world),
            source=messages("ab", 1),
            backoff=Backoff(first=100, jitter=0),
            stop=lambda: len(handler.seen) == 2,
        )

    session.send = interrupted if real_world.blocking else cancelled
    consuming: Any = consume() if real_world.blocking else asyncio.ensure_future(consume())
    with pytest.raises((KeyboardInterrupt, asyncio.CancelledError)):
        await consuming
    await client.close()
    assert {one.state for one in await other.work.domains()} == {"IDLE"}
    assert len(handler.seen) == (0 if kind is TryAcquire else 2)


async def test_what_is_done_is_told_by_a_consumer_that_is_interrupted_in_telling_it_twice(
    real_world: World,
) -> None:
    # While it works, and again while it stops; nothing has been sent by then.
    client, other, handler = real_world.connect(), real_world.connect(), Handler()
    session = client.target._session if real_world.blocking else client._session
    send, interruptions = session.send, list[Succeed]()

    def interrupted(command: Any) -> Any:
        if isinstance(command, Succeed):
            interruptions.append(command)
            raise KeyboardInterrupt
        return send(command)

    async def cancelled(command: Any) -> Any:
        if isinstance(command, Succeed):
            interruptions.append(command)
            consuming.cancel()
            await asyncio.Event().wait()
        return await send(command)

    session.send = interrupted if real_world.blocking else cancelled
    consume = client.work.consume(handler.of(real_world), source=messages("a", 1))
    consuming: Any = consume if real_world.blocking else asyncio.ensure_future(consume)
    with pytest.raises((KeyboardInterrupt, asyncio.CancelledError)):
        await consuming
    await client.close()
    state = await other.work.state("a")
    assert (len(interruptions), state.processed_count, state.state) == (2, 1, "IDLE")


async def test_a_handler_can_see_that_its_offset_was_not_kept_alive_in_time(world: World) -> None:
    client, seen = world.connect(), list[bool]()

    def slow(message: Message) -> None:
        seen.append(message.is_lost)
        if len(seen) == 1:
            world.clock.advance(60)  # type: ignore[attr-defined]
            seen.append(message.is_lost)

    progress = await client.work.consume(slow, source=messages("a", 1), backoff=AT_ONCE)
    assert (seen, progress.lost, progress.processed) == ([False, True, False], 1, 1)


@pytest.mark.parametrize("fails", [False, True])
async def test_who_stops_tells_first_what_the_registrar_has_not_heard_of(
    real_world: World, monkeypatch: pytest.MonkeyPatch, fails: bool
) -> None:
    client, handler = real_world.connect(), Handler({("a", 0): 99} if fails else {})
    kind = type(client.target.work if real_world.blocking else client.work)
    verdict, unheard = "fail" if fails else "succeed", list[Any]()
    tell = getattr(kind, verdict)

    def busy(self: Any, *given: Any, **named: Any) -> Any:
        if not unheard:
            unheard.append(given)
            raise StoreBusy("not now")
        return tell(self, *given, **named)

    monkeypatch.setattr(kind, verdict, busy)
    await client.work.consume(
        handler.of(real_world), source=messages("a", 1), max_retries=0, stop=lambda: bool(unheard)
    )
    state = await client.work.state("a")
    assert (state.processed_count, state.failed_count) == ((0, 1) if fails else (1, 0))
    assert len(handler.seen) == 1


async def test_what_a_source_raises_is_raised_when_what_came_before_is_done(real_world: World) -> None:
    client, handler = real_world.connect(), Handler({("a", 1): 1})

    def broken() -> Iterator[tuple[str, int, str]]:
        yield from messages("a", 3)
        raise OSError("the source is gone")

    with pytest.raises(OSError, match="the source is gone"):
        await client.work.consume(handler.of(real_world), source=broken(), backoff=AT_ONCE)
    assert await client.work.watermark("a") == 3
    assert (await client.work.state("a")).state == "IDLE"


async def test_an_offset_that_is_given_up_is_logged_with_the_traceback(
    real_world: World, caplog: pytest.LogCaptureFixture
) -> None:
    client, handler = real_world.connect(), Handler({("a", 0): 99})
    await client.work.consume(handler.of(real_world), source=messages("a", 1), backoff=AT_ONCE, max_retries=1)
    (record,) = [one for one in caplog.records if one.name.startswith("leasehold.work")]
    assert record.levelname == "WARNING"
    assert record.getMessage() == "a 0 was given up after attempt 2: RuntimeError: told to fail"
    assert record.exc_info is not None
    assert record.exc_info[2] is not None


async def test_a_message_that_can_never_be_right_ends_the_consumer(real_world: World) -> None:
    client, handler = real_world.connect(), Handler()
    with pytest.raises(InvalidInput):
        await client.work.consume(handler.of(real_world), source=[("a", 0, ""), ("a", -1, "")])
    assert await client.work.watermark("a") == 1, "what came before was processed"
    for wrong in ({"concurrency": 0}, {"ttl": -1}, {"max_retries": "x"}, {"source": None}, {"source": 7}):
        with pytest.raises(InvalidInput) as error:
            await client.work.consume(handler.of(real_world), **({"source": []} | wrong))
        assert error.value.field in wrong
    with pytest.raises(LimitExceeded) as limit:
        await client.work.consume(handler.of(real_world), source=[], concurrency=1_001)
    assert (limit.value.field, limit.value.limit) == ("concurrency", 1_000)


def test_a_blocking_consumer_refuses_an_asynchronous_source(tmp_path: Path) -> None:
    async def source() -> AsyncIterator[tuple[str, int, str]]:
        yield ("a", 0, "")

    with (
        leasehold.connect(tmp_path / "leases") as client,
        pytest.raises(InvalidInput, match="connect_async"),
    ):
        client.work.consume(print, source=source())


async def test_progress_is_told(real_world: World) -> None:
    client, handler, told = real_world.connect(), Handler(), list[Progress]()
    await client.work.consume(handler.of(real_world), source=messages("ab", 3), progress=told.append)
    assert told
    assert told[0].received >= 1


async def test_a_store_that_is_busy_for_a_while_is_asked_again(
    real_world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in (aio_consumer, blocking_consumer):
        monkeypatch.setattr(module, "_AFTER_ERROR_SECONDS", 0.01)
    client, handler = real_world.connect(), Handler()
    face = client.target.work if real_world.blocking else client.work
    kind, failures = type(face), iter([True, False, True])
    succeed = kind.succeed

    def busy(self: Any, *given: Any, **named: Any) -> Any:
        if next(failures, False):
            raise StoreBusy("not now")
        return succeed(self, *given, **named)

    monkeypatch.setattr(kind, "succeed", busy)
    progress = await client.work.consume(handler.of(real_world), source=messages("a", 3))
    assert progress.processed == 3
    assert len(handler.seen) == 3, "what was handled is not handled again because its end was not heard of"


async def test_an_asynchronous_source(tmp_path: Path) -> None:
    async def source() -> AsyncIterator[tuple[str, int, str]]:
        for offset in range(5):
            await asyncio.sleep(0)
            yield ("a", offset, "")

    handler = Handler()
    async with leasehold.connect_async("memory:") as client:
        progress = await client.work.consume(handler.note_async, source=source())
    assert progress.processed == 5


def heard(pool: Any, stopping: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let it be known when a consumer has heard that it should stop."""
    stop = pool.stop

    def stop_and_tell(self: Any) -> None:
        stop(self)
        stopping.set()

    monkeypatch.setattr(pool, "stop", stop_and_tell)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_lets_running_handlers_finish_and_starts_no_more(
    number: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    handler, ended, stopping = Handler(), list[int](), threading.Event()
    heard(Pool, stopping, monkeypatch)

    def slow(message: Message) -> None:
        handler.note(message)
        os.kill(os.getpid(), number)
        assert stopping.wait(SIGNAL_SECONDS)
        ended.append(message.offset)

    before = signal.getsignal(number)
    with leasehold.connect("memory:") as client:
        progress = client.work.consume(slow, source=messages("a", 5))
        assert (progress.processed, progress.pending, ended) == (1, 4, [0])
        assert client.work.state("a").state == "IDLE"
    assert signal.getsignal(number) is before


def test_a_signal_stops_an_asynchronous_consumer_as_well(monkeypatch: pytest.MonkeyPatch) -> None:
    async def main() -> Progress:
        stopping = asyncio.Event()
        heard(AsyncPool, stopping, monkeypatch)

        async def slow(message: Message) -> None:
            del message
            os.kill(os.getpid(), signal.SIGTERM)
            await stopping.wait()

        async with leasehold.connect_async("memory:") as client:
            result: Progress = await client.work.consume(slow, source=messages("a", 5))
            return result

    progress = asyncio.run(main())
    assert (progress.processed, progress.pending) == (1, 4)


def test_backoff_grows_has_some_chance_in_it_and_is_the_same_for_everybody() -> None:
    exact = Backoff(first=1, factor=2, most=10, jitter=0)
    assert [exact.delay(7, count) for count in range(6)] == [0, 1, 2, 4, 8, 10]
    assert exact.delay(7, 10_000) == 10
    chance = Backoff(first=1, jitter=0.5)
    delays = {chance.delay(millis, 1) for millis in range(100)}
    assert len(delays) > 50
    assert all(0.5 <= delay <= 1 for delay in delays)
    assert chance.delay(42, 3) == chance.delay(42, 3)


def test_a_successor_waits_only_for_what_is_left_of_the_backoff() -> None:
    exact = Backoff(first=1, factor=2, most=10, jitter=0)
    assert exact.remaining(10_000, 2, now_millis=11_500) == 1.5
    assert exact.remaining(10_000, 2, now_millis=99_000) == 0
    assert exact.remaining(10_000, 2, now_millis=0) == 2, "a clock that is wrong costs no more than one step"


@pytest.mark.parametrize("wrong", [{"first": -1}, {"factor": 0.5}, {"jitter": 2}, {"most": -1}])
def test_a_backoff_that_makes_no_sense_is_refused(wrong: dict[str, float]) -> None:
    with pytest.raises(InvalidInput):
        Backoff(**wrong)


def test_a_schedule_takes_domains_in_turn_and_rests_them() -> None:
    schedule = Schedule(4, lambda number: f"bell.{number}")
    for domain, offset in (("a", 1), ("b", 1), ("a", 2)):
        schedule.add(domain, offset, None)
    was_full = schedule.is_full
    schedule.add("c", 1, None)
    assert (was_full, schedule.is_full) == (False, True)
    a, b, c = (schedule.take(0.0) for _ in range(3))
    assert a is not None
    assert b is not None
    assert c is not None
    assert [line.domain for line in (a, b, c)] == ["a", "b", "c"]
    assert schedule.take(0.0) is None
    schedule.rest(a, 100, until_rung=True)
    schedule.ring([2])  # While b is out.
    schedule.rest(b, 100, until_rung=True)
    assert schedule.take(0.0) is b, "it was rung for while it was with a worker"
    schedule.ring([1, 99])
    assert schedule.take(0.0) is a
    schedule.rest(c, 100)
    schedule.ring(None)
    assert schedule.take(time.monotonic()) is None, "what waits for another attempt does not end on a ring"
    assert schedule.take(time.monotonic() + 101) is c


class _Meddling(int):
    """An offset that has a source add to the schedule while it is compared."""

    schedule: Schedule
    feeder: threading.Thread | None = None

    def __eq__(self, other: object) -> bool:
        if self.feeder is None:
            self.feeder = threading.Thread(target=self.schedule.add, args=("a", 9, None))
            has_to_wait = self.schedule._lock.locked()
            self.feeder.start()
            if not has_to_wait:
                self.feeder.join()
        return int(self) == other

    __hash__ = int.__hash__


def test_a_source_may_add_to_a_domain_while_an_offset_of_it_is_brought_forward() -> None:
    schedule, meddling = Schedule(9, lambda number: f"bell.{number}"), _Meddling(1)
    meddling.schedule = schedule
    for offset in (meddling, 2, 3):
        schedule.add("a", offset, None)
    line = schedule.take(0.0)
    assert line is not None
    assert schedule.bring_forward(line, 3)
    assert meddling.feeder is not None
    meddling.feeder.join()
    assert [one[0] for one in line.pending] == [3, 1, 2, 9]
    assert not schedule.bring_forward(line, 7)


def test_a_schedule_forgets_a_domain_that_nothing_is_left_of() -> None:
    schedule = Schedule(4, lambda number: f"bell.{number}")
    for offset in range(3):
        schedule.add("a", offset, None)
        line = schedule.take(0.0)
        assert line is not None
        assert line.address == f"bell.{offset + 1}"
        schedule.finish(line, "processed")
        schedule.go_on(line)
        schedule.ring([offset + 1])
        assert (schedule.take(0.0), schedule.is_empty, schedule.progress().domains) == (None, True, 0)


def test_a_reason_is_one_printable_line() -> None:
    assert reason_of(ValueError("a\nb\x00c")) == "ValueError: a b?c"
    assert len(reason_of(ValueError("é" * 5_000)).encode()) <= 1024


def test_a_blocking_consumer_refuses_a_coroutine_function_before_it_takes_anything(tmp_path: Path) -> None:
    class Awaited:
        async def __call__(self, message: Message) -> None: ...

    async def awaited(message: Message) -> None: ...

    with leasehold.connect(tmp_path / "leases") as client:
        for handler in (awaited, Awaited()):
            with pytest.raises(InvalidInput, match="connect_async"):
                client.work.consume(handler, source=[("a", 0, "")])
        assert client.work.domains() == []


def test_what_only_made_a_coroutine_is_not_processed(tmp_path: Path) -> None:
    async def awaited(message: Message) -> None: ...

    def handle(message: Message) -> object:
        return awaited(message)

    with leasehold.connect(tmp_path / "leases") as client:
        source = [("a", 0, "")]
        progress = client.work.consume(handle, source=source, backoff=AT_ONCE, max_retries=0)
        assert (progress.processed, progress.failed) == (0, 1)
        assert "connect_async" in str(client.work.failed("a")[0].reason)


@pytest.mark.parametrize("item", [("a", 0), "a 0", 7])
async def test_a_source_that_does_not_yield_messages_is_refused(real_world: World, item: object) -> None:
    client, handler = real_world.connect(), Handler()
    with pytest.raises(InvalidInput, match=r"must yield \(domain, offset, payload\)"):
        await client.work.consume(handler.of(real_world), source=[item])
    with pytest.raises(InvalidInput, match="handler must be a function"):
        await client.work.consume("print", source=[])
