"""What stays closed after a holder was lost.

Lock-delay: a resource that cannot check tokens is kept closed for a while. And what lapsed while the
registrar was down is kept for its holder, who could not renew it.

What keeps it closed is a lease of the registrar's own, so that nothing else in the law has to know of it. The
holder that was lost may come back in spite of it.
"""

from leasehold.kernel.lease.events import (
    REBOOT,
    LeaseIssued,
)
from leasehold.kernel.lease.model import Lease, LeaseState
from leasehold.kernel.ledger.authority import Authority
from leasehold.kernel.ledger.events import REGISTRAR
from leasehold.kernel.ledger.tick import Now, Tick

_MARK = ".delay-"


def delay_id(ended: Lease) -> str:
    """Return the id of the lease that keeps a resource closed after the end of another.

    The token tells it from that of an earlier lease of the same id, which was pruned.
    """
    return f"{ended.lease_id}{_MARK}{ended.token}"


def ended_id(delay: Lease) -> str:
    """Return the id of the lease after whose end another keeps the resource closed."""
    return delay.lease_id.rpartition(_MARK)[0]


def is_delayed_for(lease: Lease, holder: str) -> bool:
    """Say whether a lease only keeps a resource closed, and to others than this holder."""
    return lease.delayed_for == holder


def is_kept_for(lease: Lease, holder: str, authority: Authority) -> bool:
    """Say whether a lease only keeps for this holder what lapsed while the registrar was down.

    Then it comes before everybody who waits: it could not renew, and they can.
    """
    outage, expires = authority.outage, lease.expires_tick
    return (
        outage is not None
        and expires is not None
        and lease.delayed_for == holder
        and (expires.era, expires.value) == (authority.era, outage.settles_until)
    )


def may_leave_delay(lease: Lease, authority: Authority) -> bool:
    """Say whether the end of a lease can keep its resource closed for a while."""
    return lease.lock_delay_ns > 0 or authority.outage is not None


def delay_after(ended: Lease, now: Now, token: int, authority: Authority) -> LeaseIssued | None:
    """Return what keeps a resource closed for as long as its last holder asked for, if there is time left.

    What lapsed while the registrar was down is kept closed until the outage has settled, because its holder
    could not renew it and has to be able to come back first.

    A reboot has ended the process that held it, so nothing of that is still on its way. And whoever asks
    for a delay confirms what it has won before it acts: what was never confirmed was never acted on.
    """
    unconfirmed = ended.ticket is not None and not ended.ticket.upgrade
    # An operator may call a reason of its own the same, about a holder that is still at work.
    rebooted = ended.end_reason == REBOOT and ended.ended_by == REGISTRAR
    if rebooted or unconfirmed or ended.delayed_for:
        return None
    ttl_ns = ended.lock_delay_ns
    if ended.state is LeaseState.EXPIRED and ended.expires_tick is not None:
        ttl_ns += now.tick.until(ended.expires_tick) or 0
        ttl_ns = max(ttl_ns, _settling_ns(ended.expires_tick, now, authority))
    return _closed(ended, now, ttl_ns, token) if ttl_ns > 0 else None


def _settling_ns(expired: Tick, now: Now, authority: Authority) -> int:
    """Return how long what lapsed in the last outage is still kept for its holder; 0: not any more."""
    outage = authority.outage
    if outage is None or expired.era != now.tick.era or not outage.since < expired.value <= outage.until:
        return 0
    return outage.settles_until - now.tick.value


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
        delayed_for=ended.holder,
    )
