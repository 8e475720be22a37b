"""Which ended leases leave the tables when old history is pruned.

A lease goes by its own end, never by what an event claims, and only if its grant is among what is pruned: a
retry of a claim that may still come finds what it was granted. Nothing that stands goes, and neither does any
lease above one that stands, nor who took over from that: who falls with whom, and who gets what is left, has
to be known.
"""

from collections.abc import Mapping

from leasehold.kernel.lease.model import Lease
from leasehold.kernel.ledger.events import StoreCheckpointed


def forgotten(leases: Mapping[str, Lease], checkpoint: StoreCheckpointed) -> list[str]:
    """Return the leases that are gone after a checkpoint."""
    needed = {
        ancestor
        for lease in leases.values()
        if lease.delegation is not None and not lease.is_terminal
        for ancestor in lease.delegation.ancestors
    }
    line = list(needed)
    for lease_id in line:
        above = leases.get(lease_id)
        successor = "" if above is None or above.delegation is None else above.delegation.successor
        if successor and successor not in needed:
            needed.add(successor)
            line.append(successor)
    return [
        lease_id
        for lease_id, lease in leases.items()
        if lease.terminated_at_ns is not None
        and lease.terminated_at_ns < checkpoint.ended_before_ns
        and lease.token < checkpoint.token_below
        and lease_id not in needed
    ]
