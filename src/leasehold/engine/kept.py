"""A lease in the hands of its keeper: what its holder may believe about it, and how it can be lost."""

from collections.abc import Callable

from leasehold.engine.clock import Clock
from leasehold.errors import LeaseExpired, LeaseholdError, LeaseTerminal
from leasehold.kernel.lease.model import Lease
from leasehold.kernel.lease.ticket import CLAIM_WINDOW_NS
from leasehold.messages import ending


class Kept:
    """A lease that a keeper renews, and what its holder may believe about it."""

    def __init__(
        self,
        lease: Lease,
        deadline_ns: int,
        clock: Clock,
        *,
        on_lost: Callable[[LeaseholdError], None],
        renewing: bool = True,
    ) -> None:
        self.lease = lease
        self.deadline_ns = deadline_ns
        self.loss: LeaseholdError | None = None
        self.trouble: Exception | None = None
        """What kept it from being renewed the last time; None once it was renewed."""
        self.on_lost = on_lost
        self.renewing = renewing
        """False once it must not, or cannot, be renewed any more: then it stands until its window closes."""
        self.planned_ns = 0
        """When the keeper looks at this lease next; a plan for any other time is out of date."""
        self.due_ns = 0
        """When it is to be renewed; the keeper may look at it earlier, and then leaves it alone."""
        self.changed_ns = 0
        """Since when its present token is known: what is answered to later questions knows of it, too."""
        self.in_flight = False
        self.dropped = False
        self._clock = clock

    @property
    def term_ns(self) -> int:
        """Return how long the lease was last granted for: just to be confirmed, if it was won by waiting."""
        lease = self.lease
        return min(lease.ttl_ns, CLAIM_WINDOW_NS) if lease.is_unconfirmed else lease.ttl_ns

    @property
    def is_renewable(self) -> bool:
        """Say whether the next thing to do for this lease is to renew it."""
        return self.renewing and not self.in_flight

    @property
    def trusted_for_ns(self) -> int:
        """Return how long the holder may still believe in the lease."""
        return 0 if self.loss is not None else max(0, self.deadline_ns - self._clock.tick_ns())


def window_closed(kept: Kept) -> LeaseExpired:
    """Return the loss of a lease that could not be renewed in time, and what kept it from that, if known."""
    lease, trouble = kept.lease, kept.trouble
    loss = LeaseExpired(
        f"lease {lease.lease_id} on {lease.resource} could not be renewed in time"
        f"{'' if trouble is None else f' ({trouble})'}, so it must be taken for lost; stop using the "
        "resource, and acquire it again",
        lease_id=lease.lease_id,
        resource=lease.resource,
        token=lease.token,
        cause=trouble.code if isinstance(trouble, LeaseholdError) else None,
    )
    loss.__cause__ = trouble
    return loss


def is_same_grant(lease: Lease, other: Lease) -> bool:
    """Say whether two records of a lease go back to one grant.

    They do not where an older copy of the store was put in place in which it still waited: then it is granted
    anew under its old id, and others may have had the resource in between. The wall time of the grant serves
    as its name here: it is compared, and nothing is measured by it.
    """
    return lease.issued_at_ns == other.issued_at_ns


def forgotten(lease: Lease) -> LeaseTerminal:
    """Return the loss of a lease that the registrar does not know any more as its holder does."""
    return LeaseTerminal(
        f"the registrar does not know lease {lease.lease_id} on {lease.resource} any more as it was granted, "
        "or made exclusive, because another store, or an older copy, is in its place; stop using the "
        "resource, and acquire it again",
        lease_id=lease.lease_id,
        resource=lease.resource,
        token=lease.token,
    )


def ended(lease: Lease) -> LeaseTerminal:
    """Return the loss of a lease that somebody has ended."""
    how = ending(lease.state, lease.ended_by, lease.end_reason)
    return LeaseTerminal(
        f"lease {lease.lease_id} on {lease.resource} is over ({how}); acquire the resource again",
        lease_id=lease.lease_id,
        resource=lease.resource,
        holder=lease.holder,
        state=lease.state,
        token=lease.token,
        ended_by=lease.ended_by,
        end_reason=lease.end_reason,
    )


def adopted(successor: Lease) -> LeaseTerminal:
    """Return the loss of a lease that its holder has adopted under another id."""
    return LeaseTerminal(
        f"lease {successor.adopted_from} on {successor.resource} was adopted by {successor.holder} as lease "
        f"{successor.lease_id}; use that one",
        lease_id=successor.adopted_from,
        resource=successor.resource,
        holder=successor.holder,
    )
