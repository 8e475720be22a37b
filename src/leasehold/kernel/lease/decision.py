"""What every rule of the law shares: its result, its memory of requests, its view of time."""

import msgspec

from leasehold.kernel.lease import age as aging
from leasehold.kernel.lease.answers import Answer
from leasehold.kernel.lease.events import LeaseEvent
from leasehold.kernel.lease.lineage import age_in_line, ceiling
from leasehold.kernel.lease.model import Lease, LeaseState
from leasehold.kernel.lease.view import LeaseView
from leasehold.kernel.ledger.events import Event
from leasehold.kernel.ledger.refusals import Refusal, RefusalCode
from leasehold.kernel.ledger.tick import Now


class Decision(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """What follows from a command: events to commit, and the answer to give once they are committed."""

    events: list[LeaseEvent]
    leases: list[Lease]
    """The leases that the events changed, in order; the last of each is as it is after all of them."""
    answer: Answer | None = None
    """None: nobody has asked."""
    wakes: list[str] = []
    """Where waiters are to be woken, once it is committed, because their situation has changed."""


def remembered(request: str, view: LeaseView, now: Now) -> Event | None:
    """Return what a request caused, as long as requests are remembered."""
    return view.ledger.recalled(request, now)


def age(lease: Lease, view: LeaseView, now: Now) -> tuple[list[LeaseEvent], Lease]:
    """Return what time has done to a lease, and the lease afterwards."""
    expires = lease.expires_tick
    delegation = lease.delegation
    if (
        expires is not None
        and expires.comparable(now.tick)
        and expires.value > now.tick.value
        and (delegation is None or not delegation.ancestors)
    ):
        return [], lease
    if lease.is_terminal:
        return [], lease
    if delegation is not None:
        return age_in_line(lease, view, now)
    return aging.age(lease, now, view.authority, view.eras_for(lease))


class Usable(msgspec.Struct, frozen=True, gc=False):
    """A lease that its holder can use now, what time did to it first, and what it cannot live beyond."""

    lease: Lease
    aged: list[LeaseEvent]
    highest: int | None = None
    """The tick value at which its parent expires, if it has one."""


def usable(
    lease_id: str,
    tenant: str,
    holder: str,
    view: LeaseView,
    now: Now,
    *,
    extended: dict[str, int] | None = None,
) -> Usable | Refusal:
    """Return a lease that this holder can use now, or refuse; `extended` is for `lineage.ceiling`."""
    lease = view.lease(lease_id)
    if lease is None or lease.tenant != tenant:
        return not_found(lease_id)
    if lease.is_terminal:
        return about(RefusalCode.LEASE_TERMINAL, lease, now)
    if lease.holder != holder:
        return about(RefusalCode.NOT_HOLDER, lease, now)
    aged, lease = age(lease, view, now)
    if aged and lease.is_terminal:
        if lease.state is LeaseState.EXPIRED:
            return about(RefusalCode.LEASE_EXPIRED, lease, now)
        return about(RefusalCode.LEASE_TERMINAL, lease, now)
    if lease.state is LeaseState.PENDING:
        return about(RefusalCode.LEASE_PENDING, lease, now)
    expires = lease.expires_tick
    if expires is None or not expires.comparable(now.tick):
        return about(RefusalCode.UNKNOWN_TIME, lease, now)
    if lease.delegation is None or not lease.delegation.ancestors:
        return Usable(lease, aged)
    highest = ceiling(lease, view, now, extended)
    if highest is None:
        return about(RefusalCode.UNKNOWN_TIME, lease, now)
    return Usable(lease, aged, highest)


def not_found(lease_id: str) -> Refusal:
    """Refuse a command on a lease that does not exist."""
    return Refusal(code=RefusalCode.LEASE_NOT_FOUND, lease_id=lease_id)


def about(
    code: RefusalCode,
    lease: Lease,
    now: Now,
    *,
    field: str | None = None,
    limit: int | None = None,
    detail: str | None = None,
) -> Refusal:
    """Refuse, with the facts of the lease that is the reason."""
    pending = lease.state is LeaseState.PENDING
    ended = {"ended_by": lease.ended_by, "end_reason": lease.end_reason} if lease.is_terminal else {}
    known = not pending and lease.expires_tick is not None and lease.expires_tick.comparable(now.tick)
    return Refusal(
        code=code,
        lease_id=lease.lease_id,
        resource=lease.resource,
        holder=lease.holder,
        reason=lease.reason or None if code is RefusalCode.HELD else None,
        mode=lease.mode,
        state=lease.state,
        token=lease.token,
        since_ns=lease.issued_at_ns,
        expires_in_ns=lease.ticks_remaining(now.tick) if known else None,
        field=field,
        limit=limit,
        detail=detail,
        facts={name: fact for name, fact in ended.items() if fact is not None},
    )


def last_to_expire(leases: list[Lease], now: Now) -> Lease:
    """Return the lease that stands in the way longest; one with unknown time stands for ever."""

    def left(lease: Lease) -> float:
        expires = lease.expires_tick
        until = None if expires is None else now.tick.until(expires)
        return float("inf") if until is None else until

    return max(leases, key=left)
