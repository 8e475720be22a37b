"""What follows from asking for an offset, from queueing some, from keeping one alive, and from a start.

The checks of `try_acquire` come in the contract's order: what is terminal first, then what is in flight, then
the backlog's head. Everything is decided on a draft, as one step.
"""

from typing import Any

from leasehold.kernel.ledger.draft import Draft
from leasehold.kernel.ledger.limits import over_limit
from leasehold.kernel.ledger.refusals import Refusal, RefusalCode
from leasehold.work.law.answers import Acquired, AcquireOutcome, Kept, Queueing, Started
from leasehold.work.law.commands import BACKLOG_MAXIMUM, Enqueue, KeepAlive, StartAt, TryAcquire
from leasehold.work.law.events import (
    WorkAcquired,
    WorkAwaited,
    WorkEnqueued,
    WorkKept,
    WorkStarted,
    happening,
)
from leasehold.work.law.model import (
    WORK,
    Domain,
    Flight,
    Place,
    Queued,
    domain_key,
    flight_key,
    place_key,
    places_of,
    queued_key,
)
from leasehold.work.law.ranges import is_in

BACKLOG_ORDERING, TOKEN_MISMATCH, NO_LEASE = "BACKLOG_ORDERING", "TOKEN_MISMATCH", "NO_LEASE"
WORK_BELOW_START = "WORK_BELOW_START"
"""The codes of what only this family refuses."""


def try_acquire(command: TryAcquire, draft: Draft) -> Refusal | Acquired:
    """Let an offset be worked on, or queue it, or say what has become of it."""
    tenant, domain, offset = command.tenant, command.domain, command.offset
    earlier = draft.remembered(command)
    if isinstance(earlier, WorkAcquired):
        return acquired_again(earlier, draft)
    if isinstance(earlier, WorkEnqueued):
        return _enqueued(command, draft)
    flight = flight_of(draft, tenant, domain)  # First: to look may show that its time is over.
    terminal = _terminal(draft, tenant, domain, offset)
    if terminal is not None:
        return Acquired(outcome=terminal, offset=offset)
    if flight is not None:
        if flight.offset == offset:
            _await(command, draft, flight)
            return answered(flight, draft, AcquireOutcome.ALREADY_ACQUIRED)
        return _queue_up(command, draft)
    head = head_of(draft, tenant, domain)
    if head is not None and head[1].offset != offset:
        return _out_of_order(domain, expected=head[1].offset, got=offset)
    return acquire(
        draft,
        command,
        offset,
        head,
        max_retries=command.max_retries,
        ttl_ns=command.ttl_ns,
        waits=command.wake,
    )


def flight_of(draft: Draft, tenant: str, domain: str) -> Flight | None:
    """Return what is in flight now."""
    flight: Flight | None = draft.get(WORK, flight_key(tenant, domain))
    return flight


def head_of(draft: Draft, tenant: str, domain: str) -> tuple[int, Queued] | None:
    """Return the head of the backlog, with its place."""
    record: Domain | None = draft.get(WORK, domain_key(tenant, domain))
    if record is None or record.backlog == 0:
        return None
    return record.first, draft.get(WORK, queued_key(tenant, domain, record.first))


def _is_terminal(draft: Draft, tenant: str, domain: str, offset: int) -> bool:
    record: Domain | None = draft.get(WORK, domain_key(tenant, domain))
    return record is not None and (offset < record.start or is_in(draft, tenant, domain, offset))


def _terminal(draft: Draft, tenant: str, domain: str, offset: int) -> AcquireOutcome | None:
    """Say how an offset has ended; None: it has not."""
    if not _is_terminal(draft, tenant, domain, offset):
        return None
    has_failed = is_in(draft, tenant, domain, offset, failed=True)
    return AcquireOutcome.ALREADY_FAILED if has_failed else AcquireOutcome.ALREADY_PROCESSED


def answered(flight: Flight, draft: Draft, outcome: AcquireOutcome) -> Acquired:
    """Say what is in flight."""
    return Acquired(
        outcome=outcome,
        offset=flight.offset,
        token=flight.token,
        fence=flight.fence,
        acquired_at_millis=flight.acquired_at_ns // 1_000_000,
        retry_count=flight.retry_count,
        expires_in_ns=_left_ns(flight, draft),
    )


def _left_ns(flight: Flight, draft: Draft) -> int | None:
    left = None if flight.due is None else draft.now.tick.until(flight.due)
    return None if left is None else max(0, left)


def acquired_again(earlier: WorkAcquired, draft: Draft) -> Acquired:
    """Answer a retry: the same offset and token, with what is left of it now."""
    flight = flight_of(draft, earlier.tenant, earlier.domain)
    if flight is not None and flight.fence == earlier.fence:
        return answered(flight, draft, AcquireOutcome.ACQUIRED)
    return Acquired(
        outcome=AcquireOutcome.ACQUIRED,
        offset=earlier.offset,
        token=str(earlier.fence),
        fence=earlier.fence,
        acquired_at_millis=earlier.acquired_at_ns // 1_000_000,
        retry_count=earlier.retry_count,
        expires_in_ns=0,
        ended=True,
    )


def acquire(
    draft: Draft,
    command: Any,
    offset: int,
    head: tuple[int, Queued] | None,
    *,
    max_retries: int,
    ttl_ns: int,
    waits: str = "",
    gave_up_after: int = 0,
) -> Acquired:
    """Put an offset in flight: the head of the backlog, or one that has no backlog before it.

    Who waited for it and acquires it now, at `waits`, waits no longer; anybody else still does.
    """
    before = None if head is None else head[1].before
    draft.append(
        WorkAcquired(
            **happening(draft.now, command.tenant, command.domain, command.holder),
            request=command.request_key,
            offset=offset,
            fence=draft.next_number(),
            acquired_at_ns=draft.now.wall_ns if before is None else before.acquired_at_ns,
            retry_count=0 if before is None else before.retry_count,
            max_retries=max_retries,
            ttl_ns=ttl_ns,
            due=draft.now.tick.value + ttl_ns if ttl_ns else None,
            place=None if head is None else head[0],
            wake="" if head is None or head[1].wake == waits else head[1].wake,
            gave_up_after=gave_up_after,
        )
    )
    flight = flight_of(draft, command.tenant, command.domain)
    assert flight is not None, "it was acquired just now"
    return answered(flight, draft, AcquireOutcome.ACQUIRED)


def _await(command: TryAcquire, draft: Draft, flight: Flight) -> None:
    """Note who wants to be woken when the offset in flight comes free."""
    if command.wake and command.wake != flight.wake:
        said = happening(draft.now, command.tenant, command.domain, command.holder)
        draft.append(WorkAwaited(**said, offset=flight.offset, fence=flight.fence, wake=command.wake))


def _queue_up(command: TryAcquire, draft: Draft) -> Refusal | Acquired:
    if not _is_queued(command, draft, command.offset):
        refusal = _append_to_backlog(command, draft, [command.offset])
        if refusal is not None:
            return refusal
    return _enqueued(command, draft)


def _is_queued(command: TryAcquire | Enqueue, draft: Draft, offset: int) -> bool:
    """Say whether an offset is in the backlog; if so, note who wants to be woken for it now."""
    tenant, domain = command.tenant, command.domain
    place: Place | None = draft.get(WORK, place_key(tenant, domain, offset))
    if place is None:
        return False
    if command.wake and draft.get(WORK, queued_key(tenant, domain, place.place)).wake != command.wake:
        said = happening(draft.now, tenant, domain, command.holder)
        draft.append(WorkAwaited(**said, offset=offset, place=place.place, wake=command.wake))
    return True


def _enqueued(command: TryAcquire, draft: Draft) -> Acquired:
    """Say that the offset is in the backlog, and how long what is in flight may stay so."""
    flight = flight_of(draft, command.tenant, command.domain)
    left_ns = None if flight is None else _left_ns(flight, draft)
    return Acquired(outcome=AcquireOutcome.ENQUEUED, offset=command.offset, expires_in_ns=left_ns)


def _append_to_backlog(command: TryAcquire | Enqueue, draft: Draft, offsets: list[int]) -> Refusal | None:
    """Put offsets, which are not there, at the end of the backlog: all of them, or none."""
    record: Domain | None = draft.get(WORK, domain_key(command.tenant, command.domain))
    place, length = (0, 0) if record is None else (record.next, record.backlog)
    if length + len(offsets) > BACKLOG_MAXIMUM:
        detail = f"of {command.domain} is full: it has {length} offsets, and at most {BACKLOG_MAXIMUM} fit"
        return over_limit("backlog", BACKLOG_MAXIMUM, detail)
    for number, offset in enumerate(offsets):
        is_last = number == len(offsets) - 1
        draft.append(
            WorkEnqueued(
                **happening(draft.now, command.tenant, command.domain, command.holder),
                request=command.request_key if is_last else None,
                offset=offset,
                place=place + number,
                wake=command.wake,
                added=len(offsets) if is_last else 1,
            )
        )
    return None


def enqueue(command: Enqueue, draft: Draft) -> Refusal | Queueing:
    """Put those offsets at the end of the backlog that are nowhere yet, in the order given."""
    earlier = draft.remembered(command)
    if isinstance(earlier, WorkEnqueued):
        return Queueing(added=earlier.added)
    flight = flight_of(draft, command.tenant, command.domain)
    new = [
        offset
        for offset in dict.fromkeys(command.offsets)
        if (flight is None or flight.offset != offset)
        and not _is_terminal(draft, command.tenant, command.domain, offset)
        and not _is_queued(command, draft, offset)
    ]
    refusal = _append_to_backlog(command, draft, new)
    if refusal is not None:
        return refusal
    head = head_of(draft, command.tenant, command.domain) if flight is None and command.wake else None
    if head is not None and head[1].wake == command.wake:
        draft.wakes.append(command.wake)  # Nobody will end anything first: its turn has come already.
    return Queueing(added=len(new))


def _out_of_order(domain: str, *, expected: int, got: int) -> Refusal:
    return Refusal(
        code=RefusalCode.REFUSED,
        rule=BACKLOG_ORDERING,
        detail=f"out of order: {expected} is at the head of the backlog of {domain}, not {got}; "
        f"acquire {expected} first",
        facts={"domain": domain, "expected": expected, "got": got},
    )


def bearer_of(draft: Draft, command: Any) -> Flight | Refusal:
    """Return what is in flight, if the command has its token."""
    flight = flight_of(draft, command.tenant, command.domain)
    facts = {"domain": command.domain}
    if flight is None:
        detail = f"No lease in {command.domain}: nothing is in flight there; acquire an offset first"
        return Refusal(code=RefusalCode.REFUSED, rule=NO_LEASE, detail=detail, facts=facts)
    if flight.token != command.token:
        detail = (
            f"Token mismatch in {command.domain}: {command.token!r} is not the token of offset "
            f"{flight.offset}, which is in flight; stop working under it"
        )
        return Refusal(code=RefusalCode.REFUSED, rule=TOKEN_MISMATCH, detail=detail, facts=facts)
    return flight


def keep_alive(command: KeepAlive, draft: Draft) -> Refusal | Kept:
    """Give the offset in flight more time, never less. Without a time to live it has all the time."""
    flight = bearer_of(draft, command)
    if isinstance(flight, Refusal):
        return flight
    ttl_ns = command.ttl_ns or flight.ttl_ns
    if not ttl_ns:
        return Kept()
    left_ns = max(ttl_ns, _left_ns(flight, draft) or 0)
    draft.append(
        WorkKept(
            **happening(draft.now, command.tenant, command.domain, command.holder),
            request=command.request_id,
            offset=flight.offset,
            fence=flight.fence,
            ttl_ns=ttl_ns,
            due=draft.now.tick.value + left_ns,
        )
    )
    return Kept(expires_in_ns=left_ns)


def start_at(command: StartAt, draft: Draft) -> Refusal | Started:
    """Let everything below an offset count as processed, unless some of it is still to be done."""
    tenant, domain, start = command.tenant, command.domain, command.offset
    flight = flight_of(draft, tenant, domain)
    record: Domain | None = draft.get(WORK, domain_key(tenant, domain))
    known = 0 if record is None else record.start
    if start <= known:
        return Started(start=known)
    lowest = flight.offset if flight is not None else start
    if record is not None and record.backlog:
        place: Place = draft.scan(WORK, *places_of(tenant, domain), 1)[0]
        lowest = min(lowest, draft.get(WORK, queued_key(tenant, domain, place.place)).offset)
    if lowest < start:
        return Refusal(
            code=RefusalCode.REFUSED,
            rule=WORK_BELOW_START,
            detail=f"offset {lowest} of {domain} is still to be done; finish it, then start at {start}",
            facts={"domain": domain, "expected": lowest, "got": start},
        )
    draft.append(WorkStarted(**happening(draft.now, tenant, domain, command.holder), start=start))
    return Started(start=start)
