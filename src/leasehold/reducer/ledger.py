"""The events of a leasehold ledger, folded by the reducer.

A store's events carry what the contract's do not: tokens, modes, tenants, revocations, several renewals in
one entry. They are checked in the contract's order with the contract's errors, and then go through the same
`evolve`. Where the contract asks for the registrar's signature, the seal over the event's commit is that
signature.

Shared leases may stand together on one work; every other claim on leased work is refused.
"""

from collections.abc import Iterable, Iterator

from leasehold.kernel.lease.events import (
    LeaseEvent,
)
from leasehold.kernel.lease.events import LeaseExpired as ExpiredEvent
from leasehold.kernel.lease.events import LeaseIssued as IssuedEvent
from leasehold.kernel.lease.events import LeaseModeChanged as ModeChangedEvent
from leasehold.kernel.lease.events import LeaseQueued as QueuedEvent
from leasehold.kernel.lease.events import LeaseReleased as ReleasedEvent
from leasehold.kernel.lease.events import LeaseRenewed as RenewedEvent
from leasehold.kernel.lease.evolve import evolve
from leasehold.kernel.lease.model import Mode
from leasehold.kernel.ledger.chain import Entry
from leasehold.kernel.ledger.events import IllegalTransition
from leasehold.kernel.ledger.limits import RESOURCE_BYTES
from leasehold.reducer.errors import (
    InvalidExpiration,
    InvalidInput,
    LeaseExpired,
    RenewalDoesNotExtend,
    WorkAlreadyLeased,
)
from leasehold.reducer.lease import Lease
from leasehold.reducer.payloads import EventRecord, ReducerContext
from leasehold.reducer.rules import (
    check_holder,
    check_name,
    check_new,
    check_signature_length,
    check_signed,
    standing_lease,
)
from leasehold.reducer.state import LeaseReducerState
from leasehold.reducer.words import LeaseState


def record_of(entry: Entry, *, seal: bytes) -> tuple[EventRecord, ReducerContext]:
    """Return a ledger entry as the reducer takes it. `seal` is the signature over the entry's commit."""
    record = EventRecord(
        event_type=entry.event.type,
        session_id=entry.event.request or "",
        actor_id=entry.event.actor,
        payload=entry.body,
        timestamp_ns=entry.event.at_ns,
        seal=seal,
    )
    return record, ReducerContext(entry.position)


def sealed_records(entries: Iterable[Entry]) -> Iterator[tuple[EventRecord, ReducerContext]]:
    """Yield ledger entries as the reducer takes them, each with the first seal that comes with or after it.

    A seal vouches for all entries before it. Entries that no seal follows have none, so grants and renewals
    among them are refused. To check the seals is for `leasehold verify`, before.
    """
    waiting: list[Entry] = []
    for entry in entries:
        waiting.append(entry)
        if entry.seal:
            yield from (record_of(one, seal=entry.seal) for one in waiting)
            waiting = []
    yield from (record_of(one, seal=b"") for one in waiting)


def fold_event(state: LeaseReducerState, event: LeaseEvent, record: EventRecord) -> list[Lease]:
    """Return every lease that a store's event changes, as it is afterwards."""
    match event:
        case IssuedEvent():
            waiter = _waiter(state, event.lease_id)
            _check_grant(state, event, record, waiter)
            return [_evolved(waiter, event)]
        case QueuedEvent():
            check_name("lease_id", event.lease_id)
            check_new(state, event.lease_id)
            return [_evolved(None, event)]
        case _:
            pass
    return [_after(state, standing_lease(state, lease_id), event, record) for lease_id in event.keys]


def _waiter(state: LeaseReducerState, lease_id: str) -> Lease | None:
    """Return the lease that waits under this id: its grant makes it active, instead of another."""
    lease = state.get(lease_id)
    return lease if lease is not None and lease.state is LeaseState.PENDING else None


def _check_grant(
    state: LeaseReducerState, event: IssuedEvent, record: EventRecord, waiter: Lease | None
) -> None:
    signature = event.signature or record.seal
    check_name("lease_id", event.lease_id)
    check_name("work_id", event.resource, RESOURCE_BYTES)
    check_name("actor_id", event.holder)
    check_signature_length(signature)
    if waiter is None:
        check_new(state, event.lease_id)
    _check_free(state, event, event.mode)
    check_signed(event.lease_id, signature)
    if event.ttl_ns <= 0:
        raise InvalidInput(field="expires_at", reason="must lie after issued_at")


def _check_free(state: LeaseReducerState, event: IssuedEvent | ModeChangedEvent, mode: Mode) -> None:
    for standing in state.standing_on(event.resource):
        if standing.lease_id != event.lease_id and standing.record.mode.conflicts_with(mode):
            raise WorkAlreadyLeased(work_id=event.resource, existing_lease_id=standing.lease_id)


def _after(state: LeaseReducerState, lease: Lease, event: LeaseEvent, record: EventRecord) -> Lease:
    match event:
        case RenewedEvent():
            _check_renewal(lease, event, record)
        case ReleasedEvent():
            check_holder(lease, record)
        case ExpiredEvent():
            _check_expiry(lease, event)
        case ModeChangedEvent():
            _check_free(state, event, event.mode)
        case _:
            pass
    return _evolved(lease, event)


def _check_renewal(lease: Lease, event: RenewedEvent, record: EventRecord) -> None:
    expires = lease.record.expires_tick
    if expires is not None and expires.comparable(event.tick):
        value = event.renewals[lease.lease_id]
        if value < expires.value:
            raise RenewalDoesNotExtend(
                lease_id=lease.lease_id, current_expires_at=expires.value, new_expires_at=value
            )
        if expires.value <= event.tick.value:
            raise LeaseExpired(lease_id=lease.lease_id, expired_at=lease.expires_at)
    check_signed(lease.lease_id, record.seal)


def _check_expiry(lease: Lease, event: ExpiredEvent) -> None:
    expires = lease.record.expires_tick
    if expires is not None and (event.tick.until(expires) or 0) > 0:
        raise InvalidExpiration(
            lease_id=lease.lease_id, provided=event.tick.value, lease_expires_at=expires.value
        )


def _evolved(lease: Lease | None, event: LeaseEvent) -> Lease:
    """Fold. What the law forbids and the contract has no error for means that the ledger was changed."""
    try:
        record = evolve(None if lease is None else lease.record, event)
    except IllegalTransition as error:
        raise InvalidInput(field="event", reason=f"breaks the law: {error}") from error
    return Lease(record=record, issued_at_tick=record.issued_tick, expires_at_tick=record.expires_tick)
