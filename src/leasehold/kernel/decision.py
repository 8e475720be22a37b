"""What every rule of the law shares: its result, its memory of requests, its view of time."""

import msgspec

from leasehold.kernel import aging
from leasehold.kernel.answers import Answer
from leasehold.kernel.commands import REQUEST_MEMORY_NS
from leasehold.kernel.events import Event, LeaseEvent
from leasehold.kernel.lease import Lease
from leasehold.kernel.refusals import Refusal, RefusalCode
from leasehold.kernel.tick import Now
from leasehold.kernel.view import View


class Decision(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """What follows from a command: events to commit, and the answer to give once they are committed."""

    events: list[LeaseEvent]
    leases: list[Lease]
    """The leases that the events changed, in order; the last of each is as it is after all of them."""
    answer: Answer


def remembered(request: str, view: View, now: Now) -> Event | None:
    """Return what a request caused within the last hour.

    An event of another era is remembered whatever its age: taking a retry for a second request would
    grant twice, taking a second request for a retry only asks the caller for a new id.
    """
    event = view.remembered(request)
    if event is None:
        return None
    elapsed = event.tick.until(now.tick)
    return event if elapsed is None or elapsed < REQUEST_MEMORY_NS else None


def age(lease: Lease, view: View, now: Now) -> tuple[list[LeaseEvent], Lease]:
    """Return what time has done to a lease, and the lease afterwards."""
    expires = lease.expires_tick
    if expires is not None and expires.comparable(now.tick) and expires.value > now.tick.value:
        return [], lease
    if lease.is_terminal:
        return [], lease
    return aging.age(lease, now, view.authority, view.eras_for(lease))


def not_found(lease_id: str) -> Refusal:
    """Refuse a command on a lease that does not exist."""
    return Refusal(code=RefusalCode.LEASE_NOT_FOUND, lease_id=lease_id)


def about(code: RefusalCode, lease: Lease, now: Now) -> Refusal:
    """Refuse, with the facts of the lease that is the reason."""
    known = lease.expires_tick is not None and lease.expires_tick.comparable(now.tick)
    return Refusal(
        code=code,
        lease_id=lease.lease_id,
        resource=lease.resource,
        holder=lease.holder,
        mode=lease.mode,
        state=lease.state,
        token=lease.token,
        since_ns=lease.issued_at_ns,
        expires_in_ns=lease.ticks_remaining(now.tick) if known else None,
    )
