"""What an event does to each record that it names. It raises IllegalTransition where the law was broken."""

from typing import Any

from msgspec.structs import replace

from leasehold.kernel.ledger.events import IllegalTransition
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
from leasehold.work.law.model import Domain, Flight, Place, Queued, Range


def evolve(record: Any, event: Any, key: str) -> Any:
    """Return the record with a key after an event; None: it is gone."""
    if key == event.domain_key:
        return _domain(record, event)
    if key == event.flight_key:
        return _flight(record, event)
    match event:
        case WorkSucceeded() | WorkFailed():
            return _range(record, event, key)
        case WorkAwaited():
            _ensure(isinstance(record, Queued) and record.offset == event.offset, event)
            return replace(record, wake=event.wake)
        case WorkAcquired():
            _ensure(_is_place_of(record, event), event)
            return None
        case _:
            _ensure(record is None, event)
            return _placed(event, key)


def _ensure(holds: bool, event: Any) -> None:
    if not holds:
        raise IllegalTransition(f"{event.type} in {event.domain}, where that could not happen")


def _domain(record: Any, event: Any) -> Any:
    if record is None:
        _ensure(isinstance(event, WorkEnqueued | WorkAcquired | WorkStarted), event)
        record = Domain(name=event.domain, created_at_ns=event.at_ns)
    match event:
        case WorkEnqueued():
            _ensure(event.place == record.next, event)
            return replace(record, next=record.next + 1)
        case WorkReturned():
            _ensure(event.place == record.first - 1, event)
            return replace(record, first=event.place)
        case WorkAcquired():
            if event.place is None:
                _ensure(record.backlog == 0, event)
                return record
            _ensure(event.place == record.first and record.backlog > 0, event)
            return replace(record, first=record.first + 1)
        case WorkSucceeded():
            return replace(record, processed=record.processed + 1)
        case WorkFailed():
            return replace(record, failed=record.failed + 1)
        case _:
            _ensure(event.start > record.start, event)
            return replace(record, start=event.start)


def _flight(record: Any, event: Any) -> Any:
    if isinstance(event, WorkAcquired):
        _ensure(record is None, event)
        return Flight(
            offset=event.offset,
            fence=event.fence,
            holder=event.actor,
            acquired_at_ns=event.acquired_at_ns,
            retry_count=event.retry_count,
            max_retries=event.max_retries,
            ttl_ns=event.ttl_ns,
            due=None if event.due is None else event.tick.at(event.due),
            wake=event.wake,
        )
    _ensure(isinstance(record, Flight) and _names(record, event), event)
    match event:
        case WorkSucceeded() | WorkFailed() | WorkReturned():
            return None
        case WorkRetried():
            _ensure(event.retry_count == record.retry_count + 1, event)
            return replace(record, retry_count=event.retry_count)
        case WorkKept():
            return replace(record, ttl_ns=event.ttl_ns, due=event.tick.at(event.due))
        case WorkCarried():
            return replace(record, due=event.tick.at(event.due))
        case _:
            return replace(record, wake=event.wake)


def _names(flight: Flight, event: Any) -> bool:
    return (flight.offset, flight.fence) == (event.offset, event.fence)


def _is_place_of(record: Any, event: WorkAcquired) -> bool:
    """Say whether a record is one of the two that have the offset in the backlog."""
    if isinstance(record, Queued):
        return record.offset == event.offset
    return isinstance(record, Place) and record.place == event.place


def _placed(event: WorkEnqueued | WorkReturned, key: str) -> Queued | Place:
    if key != event.place_keys(event.place)[0]:
        return Place(place=event.place)
    if isinstance(event, WorkReturned):
        return Queued(offset=event.offset, before=event.before)
    return Queued(offset=event.offset, wake=event.wake)


def _range(record: Any, event: WorkSucceeded | WorkFailed, key: str) -> Range | None:
    """Put the offset into its range: one that begins with it, or the one that it is right behind."""
    reach, first = event.done, event.range_keys(event.done)[0]
    if isinstance(event, WorkFailed) and key in event.range_keys(event.failed, failed=True):
        reach, first = event.failed, event.range_keys(event.failed, failed=True)[0]
    if key != first:
        _ensure(record == Range(last=reach.last), event)
        return None  # It is a part of the range before it now.
    _ensure(record == (None if reach.first == event.offset else Range(last=event.offset - 1)), event)
    return Range(last=reach.last)
