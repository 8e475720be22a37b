"""What the contract asks of each event before it counts, in the contract's order; the first that fails is
the answer.

Each rule ends in the kernel's `evolve`: the payload becomes a kernel event, and what that does to the lease
is decided there, for the reducer as for every store. The kernel asks for a clock that every event has read.
These events share only wall time, so that is the clock (in an era that no other clock has); the ticks a
registrar signs stand beside the lease, and they alone say whether a holder may rely on it.
"""

from leasehold.kernel.lease import model as kernel
from leasehold.kernel.lease.events import LeaseExpired as ExpiredEvent
from leasehold.kernel.lease.events import LeaseIssued as IssuedEvent
from leasehold.kernel.lease.events import LeaseReleased as ReleasedEvent
from leasehold.kernel.lease.events import LeaseRenewed as RenewedEvent
from leasehold.kernel.lease.evolve import evolve
from leasehold.kernel.ledger.limits import SIGNATURE_BYTES, check_text
from leasehold.kernel.ledger.tick import Tick
from leasehold.reducer.errors import (
    InvalidExpiration,
    InvalidInput,
    LeaseAlreadyExists,
    LeaseAlreadyTerminal,
    LeaseExpired,
    LeaseNotFound,
    MissingSignature,
    RenewalDoesNotExtend,
    Unauthorized,
    WorkAlreadyLeased,
)
from leasehold.reducer.lease import Lease
from leasehold.reducer.payloads import EventRecord, Expired, Issued, Released, Renewed
from leasehold.reducer.state import LeaseReducerState
from leasehold.reducer.words import ReleaseReason

WALL_ERA = 0
"""Eras of real clocks begin at 1, so a tick of wall time compares with none of theirs."""


def issue(
    state: LeaseReducerState, payload: Issued, record: EventRecord, *, tenant: str, position: int
) -> Lease:
    """Return the lease that a grant makes."""
    check_name("lease_id", payload.lease_id)
    check_name("work_id", payload.work_id)
    check_name("actor_id", payload.actor_id)
    check_signature_length(payload.registrar_signature)
    check_new(state, payload.lease_id)
    standing = state.get_active_lease_for_work(payload.work_id)
    if standing is not None:
        raise WorkAlreadyLeased(work_id=payload.work_id, existing_lease_id=standing.lease_id)
    check_signed(payload.lease_id, payload.registrar_signature)
    if payload.expires_at <= payload.issued_at:
        raise InvalidInput(
            field="expires_at", reason=f"must lie after issued_at, {payload.issued_at}: {payload.expires_at}"
        )
    _check_ticks_of_grant(payload)
    event = IssuedEvent(
        tick=_wall_tick(payload.issued_at),
        at_ns=payload.issued_at,
        actor=record.actor_id,
        tenant=tenant,
        lease_id=payload.lease_id,
        resource=payload.work_id,
        holder=payload.actor_id,
        token=position,
        ttl_ns=payload.expires_at - payload.issued_at,
        signature=payload.registrar_signature,
    )
    return Lease(
        record=evolve(None, event),
        issued_at_tick=payload.issued_at_tick,
        expires_at_tick=payload.expires_at_tick,
    )


def renew(state: LeaseReducerState, payload: Renewed, record: EventRecord) -> Lease:
    """Return the lease with more time."""
    lease = standing_lease(state, payload.lease_id)
    _check_extends(lease, payload)
    check_signed(payload.lease_id, payload.registrar_signature)
    check_signature_length(payload.registrar_signature)
    _check_in_time(lease, payload, record)
    # Beyond the expiry, the record's wall clock has jumped: the ticks say that the renewal came in time.
    at_ns = min(_moment(lease, record), lease.expires_at - 1)
    event = RenewedEvent(
        tick=_wall_tick(at_ns),
        at_ns=at_ns,
        actor=record.actor_id,
        tenant=lease.record.tenant,
        holder=lease.actor_id,
        renewals={lease.lease_id: payload.new_expires_at},
    )
    return Lease(
        record=evolve(lease.record, event),
        issued_at_tick=lease.issued_at_tick,
        # A renewal that names no tick is one for people to read; the holder's time stays what it was.
        expires_at_tick=payload.new_expires_at_tick or lease.expires_at_tick,
    )


def release(state: LeaseReducerState, payload: Released, record: EventRecord) -> Lease:
    """Return the lease as its holder gave it back."""
    lease = standing_lease(state, payload.lease_id)
    check_holder(lease, record)
    reason = ReleaseReason.parse(payload.release_reason)
    at_ns = _moment(lease, record)
    event = ReleasedEvent(
        tick=_wall_tick(at_ns),
        at_ns=at_ns,
        actor=record.actor_id,
        tenant=lease.record.tenant,
        lease_id=lease.lease_id,
        resource=lease.work_id,
        holder=lease.actor_id,
        token=lease.token,
        reason=kernel.ReleaseReason[reason.name],
    )
    return _ended(lease, event)


def expire(state: LeaseReducerState, payload: Expired, record: EventRecord) -> Lease:
    """Return the lease as it ended by time: at its own expiry, whatever the event says."""
    lease = standing_lease(state, payload.lease_id)
    if payload.expired_at < lease.expires_at:
        raise InvalidExpiration(
            lease_id=lease.lease_id, provided=payload.expired_at, lease_expires_at=lease.expires_at
        )
    _check_tick_of_expiry(lease, payload)
    event = ExpiredEvent(
        tick=_wall_tick(payload.expired_at),
        at_ns=payload.expired_at,
        actor=record.actor_id,
        tenant=lease.record.tenant,
        lease_id=lease.lease_id,
        resource=lease.work_id,
        holder=lease.actor_id,
        token=lease.token,
    )
    return _ended(lease, event)


def check_name(field: str, text: str, limit: int | None = None) -> None:
    """Refuse an empty name, or one that is longer than its limit in bytes."""
    refusal = check_text(field, text) if limit is None else check_text(field, text, limit)
    if refusal is not None:
        raise InvalidInput(field=field, reason=refusal.detail)


def check_signature_length(signature: bytes) -> None:
    """Refuse a signature that is longer than any real one."""
    if len(signature) > SIGNATURE_BYTES:
        raise InvalidInput(
            field="registrar_signature",
            reason=f"is {len(signature)} bytes long; at most {SIGNATURE_BYTES} are allowed",
        )


def check_signed(lease_id: str, signature: bytes) -> None:
    """Refuse what the registrar did not sign. Whether it signed *this* is checked before events get here."""
    if not signature:
        raise MissingSignature(lease_id=lease_id)


def check_new(state: LeaseReducerState, lease_id: str) -> None:
    """Refuse an id that was used before."""
    if state.get(lease_id) is not None:
        raise LeaseAlreadyExists(lease_id=lease_id)


def check_holder(lease: Lease, record: EventRecord) -> None:
    """Refuse a release by anybody but the holder."""
    if record.actor_id != lease.actor_id:
        raise Unauthorized(lease_id=lease.lease_id, actor_id=record.actor_id)


def standing_lease(state: LeaseReducerState, lease_id: str) -> Lease:
    """Return a lease to which something can happen."""
    check_name("lease_id", lease_id)
    lease = state.get(lease_id)
    if lease is None:
        raise LeaseNotFound(lease_id=lease_id)
    if lease.state.is_terminal:
        raise LeaseAlreadyTerminal(lease_id=lease_id, current_state=lease.state.as_str())
    return lease


def _check_ticks_of_grant(payload: Issued) -> None:
    issued, expires = payload.issued_at_tick, payload.expires_at_tick
    if issued is None and expires is None:
        return
    if issued is None or expires is None or not issued.comparable(expires):
        raise InvalidInput(
            field="expires_at_tick", reason="must come with an issued_at_tick of the same clock"
        )
    if expires.value <= issued.value:
        raise InvalidInput(
            field="expires_at_tick", reason=f"must lie after issued_at_tick, {issued.value}: {expires.value}"
        )


def _check_extends(lease: Lease, payload: Renewed) -> None:
    if payload.new_expires_at <= lease.expires_at:
        raise RenewalDoesNotExtend(
            lease_id=lease.lease_id,
            current_expires_at=lease.expires_at,
            new_expires_at=payload.new_expires_at,
        )
    tick = payload.new_expires_at_tick
    if tick is None:
        return
    current = _same_clock(lease, "new_expires_at_tick", tick)
    if tick.value <= current.value:
        raise RenewalDoesNotExtend(
            lease_id=lease.lease_id, current_expires_at=current.value, new_expires_at=tick.value
        )


def _check_in_time(lease: Lease, payload: Renewed, record: EventRecord) -> None:
    """Refuse a renewal after expiry: by ticks where the lease has them, else by the record's wall time."""
    if payload.renewed_at_tick is not None:
        expires = _same_clock(lease, "renewed_at_tick", payload.renewed_at_tick)
        late = payload.renewed_at_tick.value >= expires.value
    elif lease.expires_at_tick is None:
        late = _moment(lease, record) >= lease.expires_at
    else:
        late = False
    if late:
        raise LeaseExpired(lease_id=lease.lease_id, expired_at=lease.expires_at)


def _check_tick_of_expiry(lease: Lease, payload: Expired) -> None:
    tick = payload.expired_at_tick
    if tick is None:
        if lease.expires_at_tick is not None:
            # Whoever turns the wall clock on must not be able to end a lease with it.
            reason = "is missing: the lease has ticks, and wall time alone does not end it"
            raise InvalidInput(field="expired_at_tick", reason=reason)
        return
    expires = _same_clock(lease, "expired_at_tick", tick)
    if tick.value < expires.value:
        raise InvalidExpiration(lease_id=lease.lease_id, provided=tick.value, lease_expires_at=expires.value)


def _same_clock(lease: Lease, field: str, tick: Tick) -> Tick:
    expires = lease.expires_at_tick
    if expires is None or not expires.comparable(tick):
        raise InvalidInput(field=field, reason="comes from a clock that the lease does not count on")
    return expires


def _moment(lease: Lease, record: EventRecord) -> int:
    if record.timestamp_ns is not None:
        return record.timestamp_ns
    return lease.issued_at if lease.last_renewed_at is None else lease.last_renewed_at


def _wall_tick(at_ns: int) -> Tick:
    return Tick(value=at_ns, era=WALL_ERA)


def _ended(lease: Lease, event: ReleasedEvent | ExpiredEvent) -> Lease:
    return Lease(
        record=evolve(lease.record, event),
        issued_at_tick=lease.issued_at_tick,
        expires_at_tick=lease.expires_at_tick,
    )
