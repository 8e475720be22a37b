"""Counters as they are in truth: what becomes of them, told a second time from the ledger's events alone."""

from collections.abc import Callable, Mapping

from leasehold.kernel.lease.events import LeaseReleased
from leasehold.kernel.ledger.chain import Entry
from leasehold.kernel.ledger.commands import Command
from leasehold.kernel.ledger.events import EpochRaised
from leasehold.kernel.ledger.state import State
from leasehold.kernel.ledger.tick import Tick
from simulator.troupe import Commit
from simulator.true_lease import request_id_of
from simulator.truth import Truth
from tests.families.toy import (
    ASKED,
    COUNTER,
    OVER,
    Close,
    CounterBumped,
    CounterCarried,
    CounterClosed,
    Finish,
    bound_key,
    busy_key,
    own_key,
)


class TrueCounter:
    """One counter, with the end it has in truth."""

    def __init__(self, tenant: str, name: str) -> None:
        self.tenant = tenant
        self.name = name
        self.value = 0
        self.fence = 0
        self.bound = ""
        self.counts = True
        self.end_tick: int | None = None
        """From this tick of the present era on it is over, recorded or not."""
        self.bumped_position = 0

    @property
    def place(self) -> tuple[int, str]:
        """How far it has come; of two that have come equally far, the names decide."""
        return (self.value, self.name)

    def is_over(self, tick: int) -> bool:
        return self.end_tick is not None and self.end_tick <= tick


class TrueCounters:
    """All counters of a ledger."""

    def __init__(self, truth: Callable[[], Truth], sent: Mapping[str, Command], note: Callable[[str], None]):
        self._truth = truth
        self._sent = sent
        """Everything that was asked of counters, by request id; who closes goes by that name."""
        self._note = note
        self.counters: dict[str, TrueCounter] = {}
        self.bumps: dict[str, int] = {}
        """The position of the last bump for each request."""
        self.asked: list[tuple[int, str, str]] = []
        """Who has closed what, with the position of that."""
        self.unasked_position = 0
        """Of the last counter that was closed by its time, or with its lease."""
        self._last_tick = Tick(value=0)

    def find(self, tenant: str, name: str) -> TrueCounter | None:
        return self.counters.get(own_key(tenant, name))

    def counting(self, tenant: str) -> list[TrueCounter]:
        return [one for one in self.counters.values() if one.counts and one.tenant == tenant]

    def bound_to(self, tenant: str, lease_id: str) -> TrueCounter | None:
        return next((one for one in self.counting(tenant) if one.bound == lease_id), None)

    def take_in(self, commit: Commit) -> str | None:
        """Take in what was committed together; return what is wrong with it, if anything is."""
        problem = None
        for entry in commit.entries:
            problem = problem or self._take_in(entry)
            self._last_tick = entry.event.tick
        for key in commit.let_go.get(COUNTER, ()):
            problem = problem or self._let_go(key)
        standing = self._truth().standing
        for counter in self.counters.values():
            if counter.counts and counter.bound and counter.bound not in standing:
                problem = problem or f"{counter.name} counts after its lease, {counter.bound}"
        return problem

    def _take_in(self, entry: Entry) -> str | None:
        event = entry.event
        match event:
            case EpochRaised():
                self._carry(event)
            case CounterBumped():
                return self._bump(event, entry.position)
            case CounterCarried():
                return self._check_carried(event)
            case CounterClosed():
                return self._close(event, entry.position)
            case LeaseReleased():
                return self._check_released(event)
            case _:
                pass  # It happens to others.
        return None

    def _carry(self, event: EpochRaised) -> None:
        if event.tick.era != self._last_tick.era:
            for counter in self.counters.values():
                if counter.end_tick is not None:
                    counter.end_tick = event.tick.value + max(0, counter.end_tick - self._last_tick.value)

    def _bump(self, event: CounterBumped, position: int) -> str | None:
        key = own_key(event.tenant, event.name)
        counter = self.counters.get(key)
        if counter is None or not counter.counts:
            counter = self.counters[key] = TrueCounter(event.tenant, event.name)
        over, before = counter.is_over(event.tick.value), counter.value
        counter.value += event.by
        counter.fence, counter.bumped_position = event.fence, position
        counter.bound = counter.bound or event.bound
        if event.due is not None:
            counter.end_tick = event.due
        request_id = request_id_of(event)
        first = self.bumps.get(request_id)
        self.bumps[request_id] = position
        self._note("bumped")
        if first is not None and self._truth().is_known(first, event.tick):
            return f"{request_id} was counted twice"
        if over:
            return f"{event.name} was bumped after its time"
        if before != event.value:
            return f"{event.name} was bumped from {event.value}, and had come to {before}"
        return None

    def _check_carried(self, event: CounterCarried) -> str | None:
        counter, now = self.counters[own_key(event.tenant, event.name)], event.tick.value
        self._note("carried over")
        if counter.end_tick is None or max(event.due, now) != max(counter.end_tick, now):
            return f"{event.name} was given until {event.due}, and ends at {counter.end_tick}"
        return None

    def _close(self, event: CounterClosed, position: int) -> str | None:
        counter = self.counters[own_key(event.tenant, event.name)]
        if not counter.counts:
            return f"{event.name} was closed a second time"
        counter.counts = False
        if event.reason == ASKED:
            self.asked.append((position, event.actor, event.name))
            return self._check_asked(event, counter)
        self.unasked_position = position
        if event.reason == OVER:
            self._note("closed by time")
            return None if counter.is_over(event.tick.value) else f"{event.name} was closed before its time"
        self._note("closed with its lease")
        if counter.bound in self._truth().standing or event.reason != f"{counter.bound} ended":
            return f"{event.name} was closed, and {counter.bound} stands: {event.reason}"
        return None

    def _check_asked(self, event: CounterClosed, counter: TrueCounter) -> str | None:
        """Those that were to be closed before it are closed: also what the same batch has made or raised."""
        command = self._sent.get(event.actor)
        if not isinstance(command, Close) or command.tenant != event.tenant:
            return f"{event.name} was closed by {event.actor}, who did not ask for it"
        self._note("closed as asked")
        for other in self.counting(event.tenant):
            if (other.place > counter.place) == command.furthest:
                return f"{event.name} was closed at {counter.value} before {other.name} at {other.value}"
        return None

    def _check_released(self, event: LeaseReleased) -> str | None:
        command = self._sent.get(request_id_of(event))
        if not isinstance(command, Finish):
            return None
        self._note("finished")
        counter = self.find(command.tenant, command.name)
        if counter is None or not counter.counts or counter.bound != event.lease_id:
            return f"{event.lease_id} was released with {command.name}, which is not its counter"
        return None

    def _let_go(self, key: str) -> str | None:
        counter = self.counters.pop(key, None)
        self._note("let go of")
        if counter is None or counter.counts:
            return f"{key} was let go of, and is in use"
        if counter.bumped_position > self._truth().pruned:
            return f"{counter.name} was let go of, and what had raised it was not pruned"
        return None

    def problem_of(self, state: State) -> str | None:
        """Return what is wrong with the records that a ledger has come to."""
        said: dict[str, object] = {}
        for key, record in state.of(COUNTER).items():
            is_counter = key in self.counters
            said[key] = (record.value, record.fence, record.bound, record.closed_at_ns is None) * is_counter
        expected: dict[str, object] = {}
        for key, one in self.counters.items():
            expected[key] = (one.value, one.fence, one.bound, one.counts)
            if one.counts:
                expected[busy_key(one.tenant, one.value, one.name)] = ()
                if one.bound:
                    expected[bound_key(one.tenant, one.bound)] = ()
        return None if said == expected else f"counters are {said}, and should be {expected}"
