"""What the events of a queue do to one lease: it is waited for, won and confirmed; its mode is changed."""

from msgspec.structs import replace

from leasehold.kernel.events import (
    LeaseConfirmed,
    LeaseIssued,
    LeaseModeChanged,
    LeaseQueued,
    LeaseRenewed,
    LeaseUpgradeLeft,
    LeaseUpgradeQueued,
)
from leasehold.kernel.lease import Lease, LeaseState, Mode
from leasehold.kernel.tick import Tick
from leasehold.kernel.ticket import Ticket
from leasehold.kernel.transition import IllegalTransition, extended


def queue(lease: Lease | None, event: LeaseQueued) -> Lease:
    """Put a claim in line: a lease that is not granted yet."""
    if lease is not None:
        raise IllegalTransition(f"lease {event.lease_id} was queued, but exists already")
    return Lease(
        lease_id=event.lease_id,
        tenant=event.tenant,
        resource=event.resource,
        holder=event.holder,
        token=event.token,
        mode=event.mode,
        state=LeaseState.PENDING,
        ttl_ns=event.ttl_ns,
        issued_tick=event.tick,
        expires_tick=event.tick.after(event.kept_ns),
        issued_at_ns=event.at_ns,
        expires_at_ns=event.at_ns + event.kept_ns,
        max_renewals=event.max_renewals,
        bound_to_boot=event.bound_to_boot,
        metadata=event.metadata,
        config_version=event.config_version,
        zone_version=event.zone_version,
        lock_delay_ns=event.lock_delay_ns,
        delegation=event.delegation,
        ticket=Ticket(
            number=event.token,
            since=event.tick,
            since_ns=event.at_ns,
            priority=event.priority,
            group=event.group,
            request=event.request or "",
            wake=event.wake,
        ),
    )


def grant(lease: Lease, event: LeaseIssued) -> Lease:
    """Give a waiter what it waits for, for as long as it takes to hear from it."""
    if lease.state is not LeaseState.PENDING:
        raise IllegalTransition(f"lease {event.lease_id} was issued twice")
    asked = (lease.tenant, lease.resource, lease.holder, lease.mode, lease.ttl_ns)
    if asked != (event.tenant, event.resource, event.holder, event.mode, event.ttl_ns):
        raise IllegalTransition(f"lease {event.lease_id} was granted as something that nobody asked for")
    if event.claim_window_ns <= 0 or event.token <= lease.token:
        raise IllegalTransition(
            f"lease {event.lease_id} was granted without a claim window or a higher token"
        )
    return replace(
        lease,
        state=LeaseState.ACTIVE,
        token=event.token,
        issued_tick=event.tick,
        expires_tick=event.tick.after(event.claim_window_ns),
        issued_at_ns=event.at_ns,
        expires_at_ns=event.at_ns + event.claim_window_ns,
        version=lease.version + 1,
    )


def keep_place(lease: Lease, event: LeaseRenewed) -> Lease:
    """Let a waiter that has asked again keep its place; that is no renewal, for there is nothing to renew."""
    expires_value = extended(lease, event)
    return replace(
        lease,
        expires_tick=Tick(value=expires_value, era=event.tick.era, rate=event.tick.rate),
        expires_at_ns=event.at_ns + expires_value - event.tick.value,
        version=lease.version + 1,
    )


def confirm(lease: Lease, event: LeaseConfirmed) -> Lease:
    """Give a waiter that was heard of what it has won, for the whole of its TTL."""
    expires = lease.expires_tick
    if not lease.is_unconfirmed or expires is None or (event.tick.until(expires) or 0) <= 0:
        raise IllegalTransition(f"lease {lease.lease_id} was confirmed, and could not be")
    return replace(
        lease,
        expires_tick=event.tick.after(lease.ttl_ns),
        expires_at_ns=event.at_ns + lease.ttl_ns,
        ticket=None,
        version=lease.version + 1,
    )


def change_mode(lease: Lease, event: LeaseModeChanged) -> Lease:
    """Exclusive takes a new token: whoever shared it meanwhile may have shown a higher one."""
    raised = event.token > lease.token
    if event.mode is lease.mode or raised != (event.mode is Mode.EXCLUSIVE) or lease.is_unconfirmed:
        raise IllegalTransition(f"lease {lease.lease_id} became {event.mode} under token {event.token}")
    return replace(lease, mode=event.mode, token=event.token, ticket=None, version=lease.version + 1)


def await_upgrade(lease: Lease, event: LeaseUpgradeQueued | LeaseUpgradeLeft) -> Lease:
    """Let the holder of a shared lease wait to be alone, or wait no more."""
    if isinstance(event, LeaseUpgradeLeft):
        if not lease.is_upgrading:
            raise IllegalTransition(f"lease {lease.lease_id} had no upgrade to give up")
        return replace(lease, ticket=None, version=lease.version + 1)
    if lease.mode is not Mode.SHARED or lease.is_unconfirmed:
        raise IllegalTransition(f"lease {lease.lease_id} cannot be upgraded")
    earlier = lease.ticket
    ticket = Ticket(
        number=event.ticket,
        since=event.tick if earlier is None else earlier.since,
        since_ns=event.at_ns if earlier is None else earlier.since_ns,
        request=event.request or "",
        wake=event.wake,
        upgrade=True,
        kept_until=event.tick.value + event.kept_ns,
    )
    return replace(lease, ticket=ticket, version=lease.version + 1)
