"""Work as it is in truth: what becomes of each domain, told a second time from the ledger's events alone.

With plain sets and lists, and without a look at the records: what is in flight until when, what is queued in
which order, what is terminal, and under which token.
"""

from collections.abc import Callable, Mapping
from typing import Any

from leasehold.kernel.ledger.chain import Entry
from leasehold.kernel.ledger.commands import Command
from leasehold.kernel.ledger.events import REGISTRAR, EpochRaised, Event
from leasehold.kernel.ledger.state import State
from leasehold.kernel.ledger.tick import Tick
from leasehold.work.law.events import (
    WorkAcquired,
    WorkAwaited,
    WorkCarried,
    WorkEnqueued,
    WorkFailed,
    WorkKept,
    WorkRetried,
    WorkReturned,
    WorkStarted,
    WorkSucceeded,
)
from leasehold.work.law.model import WORK, Domain, Flight, Queued, Range
from simulator.troupe import Commit
from simulator.truth import Truth

Name = tuple[str, str]
"""A tenant, and a domain of its own."""


class TrueFlight:
    """An offset in flight."""

    def __init__(self, event: WorkAcquired) -> None:
        self.offset = event.offset
        self.fence = event.fence
        self.retries = event.retry_count
        self.max_retries = event.max_retries
        self.end_tick = event.due
        """From this tick of the present era on it is over, recorded or not."""

    def is_over(self, tick: int) -> bool:
        """Say whether its time is over."""
        return self.end_tick is not None and self.end_tick <= tick


class TrueDomain:
    """One domain."""

    def __init__(self) -> None:
        self.flight: TrueFlight | None = None
        self.backlog: list[int] = []
        self.processed: set[int] = set()
        self.failed: set[int] = set()
        self.first_acquired: dict[int, int] = {}
        self.retries: dict[int, int] = {}
        """Of offsets that went back."""
        self.start = 0

    def is_terminal(self, offset: int) -> bool:
        """Say whether an offset has come to its end, or never has to begin."""
        return offset in self.processed or offset in self.failed or offset < self.start


class TrueWork:
    """All domains of a ledger."""

    def __init__(self, truth: Callable[[], Truth], sent: Mapping[str, Command], note: Callable[[str], None]):
        self._truth = truth
        self._sent = sent
        self._note = note
        self.domains: dict[Name, TrueDomain] = {}
        self.caused: dict[str, tuple[int, Event]] = {}
        """What each request has caused last, with its position."""
        self.unasked_position = 0
        """Of the last thing that time has done."""
        self._last_tick = Tick(value=0)

    def find(self, tenant: str, domain: str) -> TrueDomain:
        """Return a domain, as it is before anybody has used it, too."""
        return self.domains.get((tenant, domain)) or TrueDomain()

    def take_in(self, commit: Commit) -> str | None:
        """Take in what was committed together; return what is wrong with it, if anything is."""
        problem = None
        for entry in commit.entries:
            problem = problem or self._take_in(entry)
            self._last_tick = entry.event.tick
        if commit.let_go.get(WORK):
            problem = problem or f"work was let go of: {commit.let_go[WORK]}"
        return problem

    def _take_in(self, entry: Entry) -> str | None:
        event: Any = entry.event
        if isinstance(event, EpochRaised):
            self._carry(event)
        if not event.type.startswith(f"{WORK}."):
            return None
        domain = self.domains.setdefault((event.tenant, event.domain), TrueDomain())
        problem = self._check_request(event, entry.position) or self._happen(domain, event)
        if event.actor == REGISTRAR:
            self.unasked_position = entry.position
        return None if problem is None else f"{event.domain} {event.type}: {problem}"

    def _carry(self, event: EpochRaised) -> None:
        if event.tick.era != self._last_tick.era:
            for domain in self.domains.values():
                flight = domain.flight
                if flight is not None and flight.end_tick is not None:
                    flight.end_tick = event.tick.value + max(0, flight.end_tick - self._last_tick.value)

    def _check_request(self, event: Any, position: int) -> str | None:
        if not event.is_remembered or event.request is None:
            return None
        request_id = event.request.partition(":")[0]
        earlier = self.caused.get(request_id)
        self.caused[request_id] = (position, event)
        self._note(event.type)
        if earlier is not None and self._truth().is_known(earlier[0], event.tick):
            return f"{request_id} was carried out twice"
        if request_id not in self._sent:
            return f"nobody has sent {request_id}"
        return None

    def _happen(self, domain: TrueDomain, event: Any) -> str | None:
        match event:
            case WorkAcquired():
                return self._acquire(domain, event)
            case WorkEnqueued():
                return self._enqueue(domain, event)
            case WorkStarted():
                return self._start(domain, event)
            case WorkAwaited() if event.place is not None:
                return None if event.offset in domain.backlog else f"{event.offset} is not queued"
        flight = domain.flight
        if flight is None or (flight.offset, flight.fence) != (event.offset, event.fence):
            return f"{event.offset} is not in flight under {event.fence}"
        over, by_time = flight.is_over(event.tick.value), event.actor == REGISTRAR
        if over and not by_time and not isinstance(event, WorkCarried):
            return f"{event.offset} was ended, or kept, after its time"
        return self._go_on(domain, flight, event, over=over, by_time=by_time)

    def _go_on(
        self, domain: TrueDomain, flight: TrueFlight, event: Any, *, over: bool, by_time: bool
    ) -> str | None:
        """Let something happen to what is in flight."""
        match event:
            case WorkSucceeded():
                domain.processed.add(event.offset)
                domain.flight = None
                return self._check_hint(domain, event)
            case WorkRetried():
                flight.retries += 1
                return None if event.retry_count == flight.retries else f"failed {flight.retries} times"
            case WorkFailed():
                domain.failed.add(event.offset)
                domain.flight = None
                if by_time and not (over and flight.retries >= flight.max_retries):
                    return f"{event.offset} was given up before its time, or its last retry"
                return self._check_hint(domain, event)
            case WorkReturned():
                domain.flight = None
                domain.backlog.insert(0, event.offset)
                domain.retries[event.offset] = flight.retries + by_time
                if by_time and not (over and flight.retries < flight.max_retries):
                    return f"{event.offset} came back before its time, or after its last retry"
                right = (domain.first_acquired[event.offset], flight.retries + by_time)
                return None if (event.before.acquired_at_ns, event.before.retry_count) == right else "changed"
            case WorkKept():
                shorter = flight.end_tick is not None and event.due < flight.end_tick
                flight.end_tick = event.due
                return "it has less time than before" if shorter else None
            case WorkCarried():
                self._note("carried over")
                now = event.tick.value
                right_end = flight.end_tick is not None and max(event.due, now) == max(flight.end_tick, now)
                return None if right_end else f"given until {event.due}, and ends at {flight.end_tick}"
            case _:
                return None

    def _acquire(self, domain: TrueDomain, event: WorkAcquired) -> str | None:
        if domain.flight is not None:
            return f"{event.offset} was acquired, and {domain.flight.offset} is in flight"
        if domain.is_terminal(event.offset):
            return f"{event.offset} was acquired, and is terminal"
        if domain.backlog and domain.backlog.pop(0) != event.offset:
            return f"{event.offset} was acquired, and is not the head of the backlog"
        first = domain.first_acquired.setdefault(event.offset, event.at_ns)
        retries = domain.retries.pop(event.offset, 0)
        domain.flight = TrueFlight(event)
        right = (event.acquired_at_ns, event.retry_count) == (first, retries)
        return None if right else f"{event.offset} forgot what it has behind it"

    def _enqueue(self, domain: TrueDomain, event: WorkEnqueued) -> str | None:
        flying = domain.flight is not None and domain.flight.offset == event.offset
        if flying or event.offset in domain.backlog or domain.is_terminal(event.offset):
            return f"{event.offset} was queued, and is in flight, queued or terminal"
        domain.backlog.append(event.offset)
        return None

    def _start(self, domain: TrueDomain, event: WorkStarted) -> str | None:
        domain.start = event.start
        to_do = [*domain.backlog, *([domain.flight.offset] if domain.flight is not None else [])]
        return "it starts above what is to be done" if min(to_do, default=event.start) < event.start else None

    def _check_hint(self, domain: TrueDomain, event: Any) -> str | None:
        head = domain.backlog[0] if domain.backlog else None
        return None if event.next_offset == head else f"hinted at {event.next_offset}, and {head} is next"

    def problem_of(self, state: State) -> str | None:
        """Return what is wrong with the records that a ledger has come to."""
        said: dict[Name, tuple[Any, ...]] = {}
        flights: dict[Name, Any] = {}
        backlogs: dict[Name, list[int]] = {}
        ended: dict[tuple[Name, str], set[int]] = {}
        for key, record in sorted(state.of(WORK).items()):
            tenant, kind, domain, *rest = key.split("\x01")
            name = (tenant, domain)
            match record:
                case Flight():
                    flights[name] = (record.offset, record.fence, record.retry_count)
                case Queued():
                    backlogs.setdefault(name, []).append(record.offset)
                case Range():
                    first = int(rest[0], 16) - (1 << 63)
                    ended.setdefault((name, kind), set()).update(range(first, record.last + 1))
                case Domain():
                    said[name] = (record.start,)
                case _:
                    pass  # The backlog a second time, by offset.
        expected: dict[Name, tuple[Any, ...]] = {}
        for name, one in self.domains.items():
            flight = one.flight
            flying = None if flight is None else (flight.offset, flight.fence, flight.retries)
            expected[name] = (one.start, flying, one.backlog, one.processed | one.failed, one.failed)
            said[name] = (
                *said.get(name, ()),
                flights.get(name),
                backlogs.get(name, []),
                ended.get((name, "done"), set()),
                ended.get((name, "failed"), set()),
            )
        return None if said == expected else f"domains are {said}, and should be {expected}"
