"""What all of a lease's transitions share."""

from leasehold.kernel.events import LeaseRenewed
from leasehold.kernel.lease import Lease


class IllegalTransition(ValueError):
    """A ledger says that something happened to a lease which the law does not allow."""


def extended(lease: Lease, event: LeaseRenewed) -> int:
    """Return the tick value to which a renewal extends a lease that could be extended."""
    expires_value = event.renewals.get(lease.lease_id)
    if expires_value is None:
        raise IllegalTransition(f"a renewal does not name lease {lease.lease_id}")
    expires = lease.expires_tick
    if expires is None or not expires.comparable(event.tick):
        raise IllegalTransition(f"lease {lease.lease_id} was renewed on another clock")
    if expires.value <= event.tick.value:
        raise IllegalTransition(f"lease {lease.lease_id} was renewed after it had expired")
    if expires_value < expires.value:
        raise IllegalTransition(f"lease {lease.lease_id} was renewed to an earlier time")
    return expires_value
