"""What must always hold of work, said once, for `verify`, `doctor`, every test and every simulation."""

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable
from operator import attrgetter
from typing import Any

from leasehold.kernel.ledger.key import read_number, split_key
from leasehold.kernel.ledger.state import State
from leasehold.work.law.model import WORK, Domain, Flight, Place, Queued, Reach


class _Seen:
    """All records of one domain."""

    def __init__(self) -> None:
        self.domain: Domain | None = None
        self.flight: Flight | None = None
        self.queued: dict[int, int] = {}
        """Offsets by place."""
        self.places: dict[int, int] = {}
        """Places by offset."""
        self.done: list[Reach] = []
        self.failed: list[Reach] = []


def invariants(state: State) -> Iterable[str]:
    """Yield a sentence for everything that must hold and does not."""
    seen: dict[tuple[str, str], _Seen] = defaultdict(_Seen)
    for key, record in sorted(state.of(WORK).items()):
        tenant, kind, domain, *rest = split_key(key)
        _see(seen[(tenant, domain)], kind, record, read_number(rest[0]) if rest else 0)
    for (_, name), one in seen.items():
        yield from (f"{name}: {problem}" for problem in _problems(one))


def _see(seen: _Seen, kind: str, record: Any, number: int) -> None:
    match record:
        case Domain():
            seen.domain = record
        case Flight():
            seen.flight = record
        case Queued():
            seen.queued[number] = record.offset
        case Place():
            seen.places[number] = record.place
        case _:
            reaches = seen.failed if kind == "failed" else seen.done
            reaches.append(Reach(first=number, last=record.last))


def _problems(seen: _Seen) -> Iterable[str]:
    domain, flight = seen.domain, seen.flight
    if domain is None:
        yield "there are records of it, and none of the domain itself"
        return
    if list(seen.queued) != list(range(domain.first, domain.next)):
        yield f"its {len(seen.queued)} places are not those from {domain.first} to before {domain.next}"
    if {offset: place for place, offset in seen.queued.items()} != seen.places:
        yield "the backlog by place and the backlog by offset differ"
    open_offsets = list(seen.queued.values())
    if flight is not None:
        open_offsets.append(flight.offset)
        if flight.retry_count < 0 or flight.fence < 1:
            yield f"{flight.offset} is in flight as no offset can be: {flight}"
    if len(set(open_offsets)) != len(open_offsets):
        yield "an offset is queued twice, or in flight and queued"
    for offset in open_offsets:
        if offset < domain.start or _covered(seen.done, offset, offset):
            yield f"{offset} is terminal, and in flight or queued"
    yield from _problems_of_ranges(domain, seen)


def _problems_of_ranges(domain: Domain, seen: _Seen) -> Iterable[str]:
    for reaches in (seen.done, seen.failed):
        ends = -1
        for one in reaches:
            if one.first <= ends or one.last < one.first:
                yield f"range {one.first} to {one.last} is not behind {ends} and apart from it"
            ends = one.last + 1
    for one in seen.failed:
        if not _covered(seen.done, one.first, one.last):
            yield f"{one.first} to {one.last} have failed, and are not terminal"
    counts = (sum(one.last - one.first + 1 for one in reaches) for reaches in (seen.done, seen.failed))
    if tuple(counts) != (domain.processed + domain.failed, domain.failed):
        yield f"{domain.processed} processed and {domain.failed} failed offsets are not what its ranges say"


def _covered(reaches: list[Reach], first: int, last: int) -> bool:
    """Say whether one of the ranges, which are in order, contains all of these offsets."""
    place = bisect_right(reaches, first, key=attrgetter("first")) - 1
    return place >= 0 and last <= reaches[place].last
