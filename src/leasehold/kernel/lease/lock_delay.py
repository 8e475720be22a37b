"""Lock-delay: a resource that cannot check tokens is kept closed for a while after a holder was lost.

What keeps it closed is a lease of the registrar's own, so that nothing else in the law has to know of it. The
holder that was lost may come back in spite of it.
"""

from leasehold.kernel.lease.events import REBOOT, REGISTRAR, LeaseIssued
from leasehold.kernel.lease.model import Lease, LeaseState
from leasehold.kernel.ledger.tick import Now

_DELAYED_FOR = "lock_delay_for"
"""In the metadata of a lease that only keeps a resource closed: who may come back nevertheless."""


def delay_id(ended: Lease) -> str:
    """Return the id of the lease that keeps a resource closed after the end of another.

    The token tells it from that of an earlier lease of the same id, which was pruned.
    """
    return f"{ended.lease_id}.delay-{ended.token}"


def is_delayed_for(lease: Lease, holder: str) -> bool:
    """Say whether a lease only keeps a resource closed, and to others than this holder."""
    return lease.holder == REGISTRAR and lease.metadata.get(_DELAYED_FOR) == holder


def delay_after(ended: Lease, now: Now, token: int) -> LeaseIssued | None:
    """Return what keeps a resource closed for as long as its last holder asked for, if there is time left.

    A reboot has ended the process that held it, so nothing of that is still on its way. And whoever asks
    for a delay confirms what it has won before it acts: what was never confirmed was never acted on.
    """
    unconfirmed = ended.ticket is not None and not ended.ticket.upgrade
    if not ended.lock_delay_ns or ended.end_reason == REBOOT or unconfirmed:
        return None
    ttl_ns = ended.lock_delay_ns
    if ended.state is LeaseState.EXPIRED and ended.expires_tick is not None:
        ttl_ns += now.tick.until(ended.expires_tick) or 0
    return _closed(ended, now, ttl_ns, token) if ttl_ns > 0 else None


def _closed(ended: Lease, now: Now, ttl_ns: int, token: int) -> LeaseIssued:
    return LeaseIssued(
        tick=now.tick,
        at_ns=now.wall_ns,
        actor=REGISTRAR,
        tenant=ended.tenant,
        lease_id=delay_id(ended),
        resource=ended.resource,
        holder=REGISTRAR,
        token=token,
        mode=ended.mode,
        ttl_ns=ttl_ns,
        bound_to_boot=False,
        metadata={_DELAYED_FOR: ended.holder},
    )
