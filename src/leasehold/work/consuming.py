"""What a consumer knows, whatever it waits with: messages, their order, and how far it has come.

A *line* is what a consumer has of one domain. It is with one worker at a time, or ready for one, or rests:
until another attempt is due, or until somebody else is done with the domain. Nothing here waits or speaks to
a registrar. All of it may be called from any thread.
"""

import heapq
import itertools
import threading
import time
from collections import deque
from collections.abc import AsyncIterable, Callable, Iterable
from random import Random
from typing import Any, Literal

import msgspec

from leasehold.client.inputs import text, whole_number
from leasehold.client.session import AnySession
from leasehold.errors import InvalidInput, LimitExceeded, error_of
from leasehold.kernel.ledger.limits import REASON_BYTES
from leasehold.work.law.answers import Acquired
from leasehold.work.law.check import check_domain, check_offset

CONCURRENCY_MAXIMUM = 1_000
"""Of one consumer. Each worker of a blocking one is a thread, from the beginning."""
Item = tuple[str, int, Any]
Source = Iterable[Item] | AsyncIterable[Item]
"""Yields a domain, an offset and a payload. Asynchronous iterables are for the asynchronous client."""
Handler = Callable[["Message"], Any]
"""Processes a message; returns if that has worked, raises if not. With asyncio, a coroutine function."""


class Message:
    """An offset that this consumer has acquired."""

    __slots__ = ("_held", "acquired_at_millis", "attempt", "domain", "fence", "offset", "payload", "token")

    def __init__(self, held: "Held") -> None:
        self._held = held
        self.domain = held.domain
        self.offset = held.offset
        self.payload = held.payload
        self.token = held.token
        self.fence = int(held.token)
        """The fencing token: pass it along with every write."""
        self.attempt = held.retry_count + 1
        """1 for the first attempt, by whomever."""
        self.acquired_at_millis = held.acquired_at_millis

    @property
    def is_lost(self) -> bool:
        """Say whether the offset was lost, or may be: somebody else may work on it by now, so stop."""
        return self._held.is_lost


class Backoff(msgspec.Struct, frozen=True, kw_only=True):
    """How long to wait before the next attempt: twice as long each time, with some chance in it."""

    first: float = 1.0
    """Seconds before the second attempt, at most."""
    factor: float = 2.0
    most: float = 60.0
    jitter: float = 0.5
    """How much of the time may be taken off by chance: 0 is none, 1 is all of it."""

    def __post_init__(self) -> None:
        if self.first < 0 or self.most < 0 or self.factor < 1 or not 0 <= self.jitter <= 1:
            raise InvalidInput(
                "backoff needs first and most from 0 on, factor from 1 on, and jitter from 0 to 1",
                field="backoff",
            )

    def delay(self, acquired_at_millis: int, retry_count: int) -> float:
        """Return how many seconds to wait after a failure, the nth of an offset; the same whoever asks."""
        if retry_count == 0:
            return 0.0
        try:
            longest = min(self.most, self.first * self.factor ** (retry_count - 1))
        except OverflowError:
            longest = self.most
        return longest * (1 - self.jitter * Random(f"{acquired_at_millis} {retry_count}").random())

    def remaining(self, acquired_at_millis: int, retry_count: int, now_millis: int) -> float:
        """Return how many seconds to wait with an offset that somebody else has failed at, or left.

        Nobody knows when that was: at the latest, each attempt had failed as soon as it was made.
        """
        due = acquired_at_millis / 1e3 + sum(
            self.delay(acquired_at_millis, number) for number in range(1, min(retry_count, 100) + 1)
        )
        return min(max(0.0, due - now_millis / 1e3), self.delay(acquired_at_millis, retry_count))


class Progress(msgspec.Struct, frozen=True, kw_only=True):
    """How far a consumer has come."""

    received: int = 0
    processed: int = 0
    failed: int = 0
    """How many it has given up."""
    retried: int = 0
    """How many attempts have failed, and were to be repeated."""
    skipped: int = 0
    """How many were terminal already."""
    lost: int = 0
    """How often an offset was lost while it was being worked on."""
    in_flight: int = 0
    """How many offsets it holds now."""
    pending: int = 0
    """How many it has received and not yet brought to an end: its lag."""
    domains: int = 0
    """How many domains those are of."""
    oldest_seconds: float = 0.0
    """How long the one that has waited longest is pending."""


class Held:
    """An offset in the hands of this consumer."""

    def __init__(self, domain: str, payload: object, acquired: Acquired, session: AnySession) -> None:
        self.domain = domain
        self.offset = acquired.offset
        self.payload: Any = payload
        self.token = str(acquired.token)
        self.retry_count = acquired.retry_count
        self.acquired_at_millis = acquired.acquired_at_millis or 0
        self._session = session
        self._sent_ns = 0
        self._expires_in_ns: int | None = None
        self._was_lost = False
        self.verdict: Literal["succeed", "fail"] | None = None
        """What became of the last attempt, as long as the registrar has not heard of it."""
        self.reason = ""
        self.error: Exception | None = None
        """What the last attempt has raised."""
        self.request_id = ""

    def believe(self, sent_ns: int, expires_in_ns: int | None) -> None:
        """Rely on the offset for so long, by the answer to what was sent then."""
        if sent_ns >= self._sent_ns:  # Else we have heard something newer meanwhile.
            self._sent_ns, self._expires_in_ns = sent_ns, expires_in_ns

    def lose(self) -> None:
        """Take note that somebody else may have the offset by now."""
        self._was_lost = True

    @property
    def is_lost(self) -> bool:
        """Say whether the offset was lost, or was not kept alive for so long that it may be."""
        return self._was_lost or self._session.is_over(self._sent_ns, self._expires_in_ns)

    @property
    def unheard_ns(self) -> int:
        """Return for how long nobody has heard that it is still ours."""
        return self._session.clock.tick_ns() - self._sent_ns


class Line:
    """What a consumer has of one domain."""

    def __init__(self, domain: str, number: int, address: str) -> None:
        self.domain = domain
        self.number = number
        self.address = address
        """Where to ring for it."""
        self.pending: deque[tuple[int, Any, float]] = deque()
        """Offsets, payloads, and since when they are here; the first is the next, or in our hands."""
        self.held: Held | None = None
        self.request_id = ""
        """Of the question for the first offset, as long as there is no answer to it."""
        self.is_out = False
        """Whether a worker has it."""
        self.is_rung_for = False
        self.rests_until: float | None = None
        self.ends_on_ring = False


class Schedule:
    """Which domain is next, for many workers."""

    def __init__(self, limit: int, address: Callable[[int], str]) -> None:
        self._limit = limit
        self._address = address
        self._lock = threading.Lock()
        self._lines: dict[str, Line] = {}
        self._by_number: dict[int, Line] = {}
        self._numbers = itertools.count(1)
        self._ready: deque[Line] = deque()
        self._resting: list[tuple[float, int, Line]] = []
        self._order = itertools.count()
        self._counts: dict[str, int] = {}
        self._pending = 0

    def add(self, domain: str, offset: int, payload: object) -> None:
        """Take in a message."""
        with self._lock:
            line = self._lines.get(domain)
            if line is None:
                number = next(self._numbers)
                line = self._lines[domain] = Line(domain, number, self._address(number))
                self._by_number[number] = line
            line.pending.append((offset, payload, time.monotonic()))
            self._pending += 1
            self._count("received")
            if len(line.pending) == 1 and not line.is_out:
                self._ready.append(line)

    @property
    def is_full(self) -> bool:
        """Say whether so much is pending that nothing more should be taken in."""
        return self._pending >= self._limit

    @property
    def is_empty(self) -> bool:
        """Say whether everything that was taken in has come to its end."""
        return self._pending == 0

    def take(self, now: float) -> Line | None:
        """Return a line for a worker to go on with, if there is one."""
        with self._lock:
            while self._resting and self._resting[0][0] <= now:
                self._awake(heapq.heappop(self._resting)[2], now)
            if not self._ready:
                return None
            line = self._ready.popleft()
            line.is_out, line.is_rung_for = True, False
            return line

    def _awake(self, line: Line, now: float) -> None:
        if line.rests_until is not None and line.rests_until <= now:
            line.rests_until = None
            self._ready.append(line)

    def seconds_until_next(self, now: float) -> float | None:
        """Return when to look again if nothing else happens; None: there is no need to."""
        with self._lock:
            return max(0.0, self._resting[0][0] - now) if self._resting else None

    def rest(self, line: Line, seconds: float, *, until_rung: bool = False) -> None:
        """Put a line aside for so long, or until somebody rings for it."""
        with self._lock:
            line.is_out = False
            if until_rung and line.is_rung_for:
                self._ready.append(line)  # It was rung for while it was with a worker.
                return
            line.ends_on_ring = until_rung
            line.rests_until = time.monotonic() + seconds
            heapq.heappush(self._resting, (line.rests_until, next(self._order), line))

    def go_on(self, line: Line) -> None:
        """Put a line back: it is ready as long as anything is left of it, and else forgotten."""
        with self._lock:
            line.is_out = False
            if line.pending:
                self._ready.append(line)
            else:
                del self._lines[line.domain], self._by_number[line.number]

    def bring_forward(self, line: Line, offset: int) -> bool:
        """Let an offset be the next of a line, if it is here."""
        with self._lock:  # The source may add to the line meanwhile.
            for number, one in enumerate(line.pending):
                if one[0] == offset:
                    del line.pending[number]
                    line.pending.appendleft(one)
                    return True
        return False

    def finish(self, line: Line, outcome: str) -> None:
        """Let go of the first message of a line, which has come to its end."""
        with self._lock:
            line.pending.popleft()
            line.held, line.request_id = None, ""
            self._pending -= 1
            self._count(outcome)

    def note(self, outcome: str) -> None:
        """Count something."""
        with self._lock:
            self._count(outcome)

    def _count(self, outcome: str) -> None:
        self._counts[outcome] = self._counts.get(outcome, 0) + 1

    def ring(self, numbers: Iterable[int] | None) -> None:
        """Let lines go on that were rung for; None: perhaps all of them."""
        with self._lock:
            chosen = self._by_number.values() if numbers is None else map(self._by_number.get, numbers)
            for line in chosen:
                if line is None:
                    continue
                line.is_rung_for = True
                if line.rests_until is not None and line.ends_on_ring:
                    line.rests_until = None
                    self._ready.append(line)

    def held(self) -> list[Held]:
        """Return all offsets that are in our hands."""
        with self._lock:
            return [line.held for line in self._lines.values() if line.held is not None]

    def progress(self) -> Progress:
        """Return the figures of this moment."""
        with self._lock:
            open_lines = [line for line in self._lines.values() if line.pending]
            oldest = min((line.pending[0][2] for line in open_lines), default=None)
            return Progress(
                **self._counts,
                in_flight=sum(line.held is not None for line in open_lines),
                pending=self._pending,
                domains=len(open_lines),
                oldest_seconds=0.0 if oldest is None else time.monotonic() - oldest,
            )


def checked_concurrency(concurrency: int) -> int:
    """Return how many domains to work on at a time; refuse more than a process has threads for."""
    if concurrency > CONCURRENCY_MAXIMUM:
        raise LimitExceeded(
            f"concurrency is {concurrency}, and may be {CONCURRENCY_MAXIMUM} at most; start more processes",
            field="concurrency",
            limit=CONCURRENCY_MAXIMUM,
        )
    return concurrency


def checked_item(item: object) -> Item:
    """Return what a source has yielded; refuse what can never be a message."""
    if not (isinstance(item, tuple | list) and len(item) == 3):
        raise InvalidInput(f"source must yield (domain, offset, payload), not {item!r:.80}", field="source")
    domain, offset = text("domain", item[0]), whole_number("offset", item[1])
    refusal = check_domain(domain) or check_offset(offset)
    if refusal is not None:
        raise error_of(refusal)
    return domain, offset, item[2]


def reason_of(error: BaseException) -> str:
    """Spell why an attempt has failed, as history keeps it: one line, and not too long."""
    words = " ".join(f"{type(error).__name__}: {error}".split())
    plain = "".join(one if one.isprintable() else "?" for one in words)
    return plain.encode(errors="replace")[:REASON_BYTES].decode(errors="ignore")
