"""What the ledger and the contenders say, held against each other."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from leasehold.engine.audit import Audit, audit
from leasehold.engine.port import EntryQuery
from leasehold.kernel.lease.events import (
    LeaseConfirmed,
    LeaseExpired,
    LeaseIssued,
    LeaseReleased,
    LeaseRenewed,
    LeaseRevoked,
)
from leasehold.kernel.ledger.chain import Entry
from leasehold.stores.sqlite import SqliteStore


@dataclass(frozen=True)
class Line:
    """Something a contender wrote down."""

    what: str
    lease_id: str
    token: int
    resource: str
    mode: str
    one: int
    two: int


@dataclass
class Span:
    """A time in which somebody held, or believed to hold, a resource."""

    token: int
    resource: str
    mode: str
    start: int
    end: int
    ttl_ns: int = 0


def read_log(path: Path) -> list[Line]:
    """What the contenders wrote, in the order in which they did."""
    lines = []
    for text in path.read_text().splitlines():
        what, lease_id, token, resource, mode, one, two = text.split()
        lines.append(Line(what, lease_id, int(token), resource, mode, int(one), int(two)))
    return lines


def read_ledger(path: Path) -> tuple[list[Entry], Audit]:
    """The whole ledger, and what an audit says about it."""
    store = SqliteStore(path, create=False)
    entries: list[Entry] = []
    with store.snapshot() as snapshot:
        while page := snapshot.entries(EntryQuery(after=len(entries))):
            entries += page
    found = audit(store)
    store.close()
    return entries, found


def held_spans(entries: Iterable[Entry]) -> dict[int, Span]:
    """By token, from when to when each lease stood by the authority's clock."""
    spans: dict[int, Span] = {}
    tokens: dict[str, int] = {}
    for entry in entries:
        event = entry.event
        match event:
            case LeaseIssued():
                tokens[event.lease_id] = event.token
                start = event.tick.value
                end = start + (event.claim_window_ns or event.ttl_ns)
                spans[event.token] = Span(event.token, event.resource, event.mode, start, end, event.ttl_ns)
            case LeaseConfirmed():
                spans[event.token].end = event.tick.value + spans[event.token].ttl_ns
            case LeaseRenewed():
                for lease_id in event.renewals.keys() & tokens.keys():  # Others keep their place in line.
                    spans[tokens[lease_id]].end = event.renewals[lease_id]
            case LeaseReleased() | LeaseRevoked():
                spans[event.token].end = event.tick.value
            case LeaseExpired():
                assert event.tick.value >= spans[event.token].end, "recorded as expired before its time"
            case _:
                pass
    return spans


def believed_spans(log: Iterable[Line]) -> dict[int, Span]:
    """By token, from when to when its holder trusted in it."""
    spans: dict[int, Span] = {}
    for line in log:
        if line.what != "act":
            continue
        span = spans.setdefault(line.token, Span(line.token, line.resource, line.mode, line.one, line.two))
        span.start, span.end = min(span.start, line.one), max(span.end, line.two)
    return spans


def tokens_that_do_not_rise(entries: Iterable[Entry]) -> Iterator[str]:
    highest = 0
    for entry in entries:
        if isinstance(entry.event, LeaseIssued):
            if entry.event.token <= highest:
                yield f"entry {entry.position} grants token {entry.event.token} after {highest}"
            highest = max(highest, entry.event.token)


def overlaps(spans: Iterable[Span], kind: str) -> Iterator[str]:
    """Spans of one resource that conflict at some moment; touching is not overlapping."""
    by_resource: dict[str, list[Span]] = defaultdict(list)
    for span in spans:
        by_resource[span.resource].append(span)
    for resource, here in by_resource.items():
        last: dict[str, Span] = {}
        for span in sorted(here, key=lambda one: (one.start, one.token)):
            rivals = [one for mode, one in last.items() if "exclusive" in (mode, span.mode)]
            for rival in rivals:
                if span.start < rival.end:
                    by_ms = (min(rival.end, span.end) - span.start) / 1e6
                    yield f"{kind} of {resource} by {rival.token} and {span.token} overlap by {by_ms:.3f} ms"
            if span.mode not in last or span.end > last[span.mode].end:
                last[span.mode] = span


def beliefs_beyond_the_lease(believed: dict[int, Span], held: dict[int, Span]) -> Iterator[str]:
    for token, belief in believed.items():
        lease = held.get(token)
        if lease is None:
            yield f"somebody acted under token {token}, which was never granted"
        elif not lease.start <= belief.start <= belief.end <= lease.end:
            yield f"token {token} was trusted from {belief.start} to {belief.end}, and stood {lease}"


def missing_acknowledgements(log: Iterable[Line], entries: Iterable[Entry]) -> Iterator[str]:
    """What a contender was told, and the ledger does not know of."""
    issued: dict[str, int] = {}
    released: set[str] = set()
    renewals: Counter[str] = Counter()
    for entry in entries:
        match entry.event:
            case LeaseIssued(lease_id=lease_id, token=token):
                issued[lease_id] = token
            case LeaseReleased(lease_id=lease_id):
                released.add(lease_id)
            case LeaseRenewed() as event:
                renewals.update(event.renewals.keys())
            case _:
                pass
    for line in log:
        if issued.get(line.lease_id) != line.token:
            yield f"{line} was acknowledged, but the ledger grants {issued.get(line.lease_id)}"
        if line.what == "released" and line.lease_id not in released:
            yield f"{line} was acknowledged, but is not in the ledger"
        if line.what == "renewed" and renewals[line.lease_id] < line.one:
            yield f"{line} was acknowledged, but the ledger has {renewals[line.lease_id]} renewals"


def problems(folder: Path) -> list[str]:
    """Everything that must not be, as sentences; an empty list is good news."""
    log = read_log(folder / "log")
    entries, found = read_ledger(folder / "leases")
    held, believed = held_spans(entries), believed_spans(log)
    return [
        *found.problems,
        *tokens_that_do_not_rise(entries),
        *overlaps(held.values(), "leases"),
        *overlaps(believed.values(), "beliefs"),
        *beliefs_beyond_the_lease(believed, held),
        *missing_acknowledgements(log, entries),
    ]
