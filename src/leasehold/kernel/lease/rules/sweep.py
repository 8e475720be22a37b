"""Recording the end of leases that time has ended, though nobody has asked for their resources."""

from leasehold.kernel.lease.answers import Swept
from leasehold.kernel.lease.commands import Sweep
from leasehold.kernel.lease.decision import Decision, age
from leasehold.kernel.lease.events import LeaseEvent
from leasehold.kernel.lease.model import Lease
from leasehold.kernel.lease.view import View
from leasehold.kernel.ledger.tick import Now


def sweep(command: Sweep, view: View, now: Now) -> Decision:
    """Record what time has done to the named leases; those it has done nothing to are left alone."""
    events: list[LeaseEvent] = []
    leases: list[Lease] = []
    for lease_id in dict.fromkeys(command.lease_ids):
        lease = view.lease(lease_id)
        if lease is None or lease.is_terminal:
            continue
        aged, lease_now = age(lease, view, now)
        if aged:
            events += aged
            leases.append(lease_now)
    swept = tuple(lease for lease in leases if lease.is_terminal)
    return Decision(events=events, leases=leases, answer=Swept(leases=swept))
