"""What the ledger says about those who waited: worked out anew from the events, without the kernel's rules.

A waiter waits for everybody else who holds something that conflicts with what it wants, and for everybody
ahead of it who wants something that does. The order is since when somebody waits, less ten seconds for each
level of priority; then the ticket. Time is the authority's.
"""

import itertools
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from leasehold.kernel.lease.events import (
    LeaseConfirmed,
    LeaseDoubted,
    LeaseEvent,
    LeaseExpired,
    LeaseIssued,
    LeaseLeft,
    LeaseQueued,
    LeaseReleased,
    LeaseRenewed,
    LeaseRevoked,
)
from leasehold.kernel.ledger.chain import Entry
from simulator.patterns import touching

SECOND = 1_000_000_000
LEVEL_NS = 10 * SECOND
WINDOW_NS = 2 * SECOND
"""How long a waiter of which nothing is heard may keep what it was granted."""


@dataclass
class Claimed:
    """What one lease is about, waited for or held."""

    lease_id: str
    holder: str
    resource: str
    mode: str
    until: int
    """Up to which tick it counts."""
    ttl_ns: int
    ticket: int = 0
    place: tuple[int, int] = (0, 0)
    doubted: bool = False
    """It waits in a circle, and has not asked since that was closed."""

    def conflicts_with(self, other: "Claimed") -> bool:
        return (
            self.holder != other.holder
            and "exclusive" in (self.mode, other.mode)
            and touching(self.resource, other.resource)
        )


@dataclass
class Crowd:
    """Who holds and who waits, after some of the ledger."""

    held: dict[str, Claimed] = field(default_factory=dict)
    waiting: dict[str, Claimed] = field(default_factory=dict)

    def take_in(self, event: LeaseEvent) -> None:
        """Note what an event changes."""
        now = event.tick.value
        match event:
            case LeaseQueued():
                claimed = _claimed(event, now + event.kept_ns)
                claimed.ticket, claimed.place = event.token, (now - event.priority * LEVEL_NS, event.token)
                self.waiting[event.lease_id] = claimed
            case LeaseIssued():
                self.waiting.pop(event.lease_id, None)
                self.held[event.lease_id] = _claimed(event, now + (event.claim_window_ns or event.ttl_ns))
            case LeaseConfirmed():
                self.held[event.lease_id].until = now + self.held[event.lease_id].ttl_ns
            case LeaseRenewed():
                for lease_id, until in event.renewals.items():
                    renewed = self.held.get(lease_id) or self.waiting[lease_id]
                    renewed.until, renewed.doubted = until, False
            case LeaseDoubted():
                self.waiting[event.lease_id].doubted = True
            case LeaseReleased() | LeaseExpired() | LeaseRevoked():
                del self.held[event.lease_id]
            case LeaseLeft():
                del self.waiting[event.lease_id]
            case _:
                raise AssertionError(f"nobody should have caused {event}")

    def holding(self, now: int) -> list[Claimed]:
        return [one for one in self.held.values() if one.until > now]

    def in_line(self, now: int) -> list[Claimed]:
        return [one for one in self.waiting.values() if one.until > now]

    def in_the_way(self, wanted: Claimed, now: int) -> Iterator[Claimed]:
        """Yield everybody whom somebody waits for."""
        for one in self.holding(now):
            if one.conflicts_with(wanted):
                yield one
        for one in self.in_line(now):
            if one.place < wanted.place and one.conflicts_with(wanted):
                yield one

    def entitled(self, now: int) -> set[int]:
        """Return the tickets of those whom nobody is in the way of."""
        tickets = {one.ticket for one in self.in_line(now)}
        return tickets - {
            one.ticket for one in self.in_line(now) if next(self.in_the_way(one, now), None) is not None
        }

    def circle(self, now: int) -> list[str]:
        """Return holders each of whom waits for the next, and the last for the first; or nothing.

        Whoever has not shown since that it lives may be dead, and the circle end by itself.
        """
        follows: dict[str, set[str]] = {}
        for one in self.in_line(now):
            if one.doubted:
                continue
            follows.setdefault(one.holder, set()).update(other.holder for other in self.in_the_way(one, now))
        while True:  # Who waits for nobody that waits is in no circle.
            free = [name for name, blockers in follows.items() if not blockers & follows.keys()]
            if not free:
                return sorted(follows)
            for name in free:
                del follows[name]


def _claimed(event: LeaseIssued | LeaseQueued, until: int) -> Claimed:
    return Claimed(event.lease_id, event.holder, event.resource, event.mode.value, until, event.ttl_ns)


def commits(entries: Iterable[Entry]) -> Iterator[tuple[int, list[LeaseEvent]]]:
    """Yield the events of leases, commit by commit; all of one have the same tick."""
    events = (entry.event for entry in entries if entry.event.type.startswith("lease."))
    for tick, together in itertools.groupby(events, key=lambda event: event.tick.value):
        yield tick, list(together)  # type: ignore[arg-type]  # Only these have such a type.


def wrong_grants(entries: Sequence[Entry]) -> Iterator[str]:
    """Yield grants beside a lease that conflicts, past somebody ahead, for too long, or of a part of a claim.

    A claim that was granted without waiting came last, so nobody at all may wait for what it got.
    """
    crowd = Crowd()
    for tick, events in commits(entries):
        issued = {event.lease_id for event in events if isinstance(event, LeaseIssued)}
        for event in events:
            if isinstance(event, LeaseIssued):
                yield from _grant_problems(crowd, event, tick)
                if set(event.group) - issued:
                    yield f"of the claim {event.group} only {issued} were granted at {tick}"
            crowd.take_in(event)


def _grant_problems(crowd: Crowd, event: LeaseIssued, tick: int) -> Iterator[str]:
    granted = _claimed(event, tick)
    waited = crowd.waiting.get(event.lease_id)
    for one in crowd.holding(tick):
        if one.conflicts_with(granted):
            yield f"{event.resource} was granted to {event.holder} at {tick} beside {one}"
    if waited is not None and not 0 < event.claim_window_ns <= WINDOW_NS:
        yield f"{event.holder} was granted {event.resource} at {tick} for {event.claim_window_ns} ns at first"
    for one in crowd.in_line(tick):
        if one.conflicts_with(granted) and (waited is None or one.place < waited.place):
            yield f"{event.holder} overtook {one.holder}, who waited for {one.resource}, at {tick}"


def circles(entries: Sequence[Entry]) -> Iterator[str]:
    """Yield those who waited for each other after any commit."""
    crowd = Crowd()
    for tick, events in commits(entries):
        for event in events:
            crowd.take_in(event)
        circle = crowd.circle(tick)
        if circle:
            yield f"at {tick} these wait for each other: {', '.join(circle)}"


class Idleness:
    """Finds who was entitled to a lease for longer than `most_ns` and was not granted it.

    Not counted: what comes after `until`, and the times in which nobody could write.
    """

    def __init__(self, most_ns: int, until: int, stalls: Sequence[tuple[int, int]]) -> None:
        self._most_ns = most_ns
        self._until = until
        self._stalls = stalls
        self._crowd = Crowd()
        self._since: dict[int, int] = {}
        self.longest_ns = 0
        """How long it took at most until somebody was granted what it was entitled to."""

    def problems(self, entries: Sequence[Entry]) -> Iterator[str]:
        """Yield a sentence for each."""
        previous = 0
        for tick, events in commits(entries):
            ends = {one.until for one in (*self._crowd.held.values(), *self._crowd.waiting.values())}
            for moment in sorted(end for end in ends if previous < end < tick):
                yield from self._look(moment)
            for event in events:
                self._crowd.take_in(event)
            yield from self._look(tick)
            previous = tick

    def _look(self, now: int) -> Iterator[str]:
        entitled = self._crowd.entitled(now)
        for ticket in self._since.keys() - entitled:
            start, end = self._since.pop(ticket), min(now, self._until)
            stalled = sum(max(0, min(end, stop) - max(start, begin)) for begin, stop in self._stalls)
            idle_ns = end - start - stalled
            self.longest_ns = max(self.longest_ns, idle_ns)
            if idle_ns > self._most_ns:
                yield f"ticket {ticket} was entitled to its lease for {idle_ns / SECOND:.3f} s, from {start}"
        for ticket in entitled:
            self._since.setdefault(ticket, now)
