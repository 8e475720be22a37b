"""Recording the end of a lease that time has ended, though nobody has asked for its resource."""

from leasehold.kernel.lease.decision import Decision, age
from leasehold.kernel.lease.model import Lease
from leasehold.kernel.lease.view import LeaseView
from leasehold.kernel.ledger.tick import Now


def sweep(lease: Lease, view: LeaseView, now: Now) -> Decision | None:
    """Record what time, or the end of an ancestor, has done to a lease; None: nothing."""
    events, lease_now = age(lease, view, now)
    return Decision(events=events, leases=[lease_now]) if events else None
