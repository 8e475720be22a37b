"""What one event does to one lease.

`evolve` is the only place where a lease changes. Stores, replays and checks all go through it, so a
history has exactly one meaning. It refuses an event that the law could not have produced: such an event
means a damaged ledger or a defect, never a caller's mistake.
"""

from typing import Any

from msgspec.structs import replace

from leasehold.kernel.lease.budget import DIMENSIONS, Amounts
from leasehold.kernel.lease.delegation import Delegation
from leasehold.kernel.lease.events import (
    EndEvent,
    LeaseConfirmed,
    LeaseDelegated,
    LeaseDoubted,
    LeaseEvent,
    LeaseExpired,
    LeaseIssued,
    LeaseLeft,
    LeaseModeChanged,
    LeaseQueued,
    LeaseRearmed,
    LeaseReclaimed,
    LeaseReleased,
    LeaseRenewed,
    LeaseRevoked,
    LeaseSpent,
    LeaseUpgradeLeft,
    LeaseUpgradeQueued,
    terms_of,
)
from leasehold.kernel.lease.model import Lease, LeaseState, Mode
from leasehold.kernel.lease.ticket import Ticket
from leasehold.kernel.ledger.events import IllegalTransition


def evolve(lease: Lease | None, event: LeaseEvent, lease_id: str | None = None) -> Lease:
    """Return the lease after `event`; which one it is, both know (`lease_id` is for other families' sake)."""
    del lease_id
    if isinstance(event, LeaseIssued):
        return _issue(lease, event)
    if isinstance(event, LeaseQueued):
        return _queue(lease, event)
    if lease is None:
        raise IllegalTransition(f"{event.type} for a lease that was never issued")
    if event.holder != lease.holder or event.tenant != lease.tenant:
        raise IllegalTransition(f"{event.type} of {event.holder} for a lease of {lease.holder}")
    if lease.state is not LeaseState.ACTIVE:
        return _while_pending(lease, event)
    match event:
        case LeaseRenewed():
            return _renew(lease, event)
        case LeaseReleased(reason=reason):
            return _end(lease, event, LeaseState.RELEASED, release_reason=reason)
        case LeaseExpired():
            return _expire(lease, event)
        case LeaseRevoked(reason=text):
            return _end(lease, event, LeaseState.REVOKED, end_reason=text)
        case LeaseDelegated() | LeaseReclaimed() | LeaseSpent():
            return replace(lease, delegation=_account(lease, event), version=lease.version + 1)
        case _:
            return _while_active(lease, event)


def _while_active(lease: Lease, event: LeaseEvent) -> Lease:
    """Return a standing lease after one of the rarer events."""
    match event:
        case LeaseRearmed():
            return _rearm(lease, event)
        case LeaseConfirmed():
            return _confirm(lease, event)
        case LeaseModeChanged():
            return _change_mode(lease, event)
        case LeaseUpgradeQueued() | LeaseUpgradeLeft():
            return _await_upgrade(lease, event)
        case LeaseDoubted():
            return _doubt(lease, event)
        case _:
            raise IllegalTransition(f"{event.type} after lease {lease.lease_id} was {lease.state}")


def _while_pending(lease: Lease, event: LeaseEvent) -> Lease:
    """Return a waiting lease after `event`: few things can happen to it, and none to one that has ended."""
    if lease.state is LeaseState.PENDING:
        if isinstance(event, LeaseLeft):
            return _end(lease, event, LeaseState.FAILED, end_reason=event.reason)
        if isinstance(event, LeaseRenewed):
            return _keep_place(lease, event)
        if isinstance(event, LeaseRearmed):
            return _rearm(lease, event)
        if isinstance(event, LeaseDoubted):
            return _doubt(lease, event)
    raise IllegalTransition(f"{event.type} after lease {lease.lease_id} was {lease.state}")


def _issue(lease: Lease | None, event: LeaseIssued) -> Lease:
    if lease is not None:
        return _grant(lease, event)
    account = event.delegation
    if account is not None:
        taken_over = Amounts() if event.adopted_from is None else account.delegated
        if (account.spent, account.delegated) != (Amounts(), taken_over):
            raise IllegalTransition(f"lease {event.lease_id} had spent before it was issued")
    if event.claim_window_ns:
        raise IllegalTransition(f"lease {event.lease_id} was granted to a waiter that never waited")
    return _begin(
        event,
        event.ttl_ns,
        adopted_from=event.adopted_from,
        signature=event.signature,
        delayed_for=event.delayed_for,
    )


def _begin(event: LeaseIssued | LeaseQueued, lasts_ns: int, **more: Any) -> Lease:
    """Return the lease that begins with an event, and is over after a while if nothing more happens."""
    return Lease(
        lease_id=event.lease_id,
        tenant=event.tenant,
        resource=event.resource,
        holder=event.holder,
        token=event.token,
        mode=event.mode,
        ttl_ns=event.ttl_ns,
        issued_tick=event.tick,
        expires_tick=event.tick.after(lasts_ns),
        issued_at_ns=event.at_ns,
        expires_at_ns=event.at_ns + lasts_ns,
        delegation=event.delegation,
        **terms_of(event),
        **more,
    )


def _renew(lease: Lease, event: LeaseRenewed) -> Lease:
    expires_value = _extended(lease, event)
    confirms = lease.ticket is not None and lease.is_unconfirmed
    if 0 <= lease.max_renewals <= lease.renewal_count and not confirms:
        raise IllegalTransition(f"lease {lease.lease_id} was renewed more often than it may be")
    ttl_ns = expires_value - event.tick.value
    return replace(
        lease,
        ttl_ns=ttl_ns,
        expires_tick=event.tick.at(expires_value),
        expires_at_ns=event.at_ns + ttl_ns,
        renewal_count=lease.renewal_count + (not confirms),
        last_renewed_at_ns=lease.last_renewed_at_ns if confirms else event.at_ns,
        ticket=None if confirms else lease.ticket,
        version=lease.version + 1,
    )


def _end(
    lease: Lease,
    event: LeaseReleased | LeaseRevoked | LeaseLeft,
    state: LeaseState,
    **why: object,
) -> Lease:
    if not isinstance(event, LeaseLeft) and event.orphaned:
        why["delegation"] = _orphaned(lease, event)
    if isinstance(event, LeaseReleased) and event.successor:
        account = _delegation(lease, event)
        why["delegation"] = replace(account, orphaned=event.orphaned, successor=event.successor)
    return replace(
        lease,
        state=state,
        terminated_at_ns=event.at_ns,
        ended_by=event.actor,
        end_request=event.request,
        version=lease.version + 1,
        **why,
    )


def _expire(lease: Lease, event: LeaseExpired) -> Lease:
    """End at the lease's own expiry, not at what the event claims: a late notice must not evade pruning."""
    left = None if lease.expires_tick is None else event.tick.until(lease.expires_tick)
    if left is None or left > 0:
        raise IllegalTransition(f"lease {lease.lease_id} was expired too early")
    return replace(
        lease,
        state=LeaseState.EXPIRED,
        terminated_at_ns=lease.expires_at_ns,
        ended_by=event.actor,
        delegation=_orphaned(lease, event) if event.orphaned else lease.delegation,
        version=lease.version + 1,
    )


def _orphaned(lease: Lease, event: EndEvent) -> Delegation:
    return replace(_delegation(lease, event), orphaned=True)


def _delegation(lease: Lease, event: LeaseEvent) -> Delegation:
    if lease.delegation is None:
        raise IllegalTransition(f"{event.type} for lease {lease.lease_id}, which has no budget")
    return lease.delegation


def _account(lease: Lease, event: LeaseDelegated | LeaseReclaimed | LeaseSpent) -> Delegation:
    """Return the budget's account after an event; no part of it may be overdrawn, or set aside below 0."""
    account = _delegation(lease, event)
    match event:
        case LeaseSpent(amounts=amounts):
            after = replace(account, spent=account.spent.plus(amounts))
        case LeaseDelegated(amounts=amounts):
            after = replace(account, delegated=account.delegated.plus(amounts))
        case _:
            after = account.reclaimed(event.granted, event.spent, event.delegated)
    if after.remaining.short_of(Amounts()) is not None:
        raise IllegalTransition(f"{event.type} takes more from lease {lease.lease_id} than it has")
    if any(getattr(after.delegated, name) < 0 for name in DIMENSIONS):
        raise IllegalTransition(f"{event.type} gives lease {lease.lease_id} back what it never set aside")
    return after


def _rearm(lease: Lease, event: LeaseRearmed) -> Lease:
    expires = lease.expires_tick
    if expires is None or expires.rate != event.tick.rate or expires.era >= event.tick.era:
        raise IllegalTransition(f"lease {lease.lease_id} was rearmed, but not for a later era")
    return replace(
        lease,
        issued_tick=None,
        expires_tick=event.tick.at(event.expires_tick),
        expires_at_ns=event.at_ns + max(0, event.expires_tick - event.tick.value),
        version=lease.version + 1,
    )


def _queue(lease: Lease | None, event: LeaseQueued) -> Lease:
    """Put a claim in line: a lease that is not granted yet."""
    if lease is not None:
        raise IllegalTransition(f"lease {event.lease_id} was queued, but exists already")
    ticket = Ticket(
        number=event.token,
        since=event.tick,
        since_ns=event.at_ns,
        priority=event.priority,
        group=event.group,
        request=event.request or "",
        wake=event.wake,
    )
    return _begin(event, event.kept_ns, state=LeaseState.PENDING, ticket=ticket)


def _grant(lease: Lease, event: LeaseIssued) -> Lease:
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
        ticket=_out_of_doubt(lease.ticket),
        version=lease.version + 1,
    )


def _doubt(lease: Lease, event: LeaseDoubted) -> Lease:
    """Wait for a sign of life from somebody who waits in a circle."""
    ticket = lease.ticket
    if ticket is None or ticket.doubted or not lease.is_waiting:
        raise IllegalTransition(f"{event.type} for lease {lease.lease_id}, which does not wait undoubted")
    return replace(lease, ticket=replace(ticket, doubted=True), version=lease.version + 1)


def _out_of_doubt(ticket: Ticket | None) -> Ticket | None:
    return replace(ticket, doubted=False) if ticket is not None and ticket.doubted else ticket


def _keep_place(lease: Lease, event: LeaseRenewed) -> Lease:
    """Let a waiter that has asked again keep its place; that is no renewal, for there is nothing to renew."""
    expires_value = _extended(lease, event)
    return replace(
        lease,
        expires_tick=event.tick.at(expires_value),
        expires_at_ns=event.at_ns + expires_value - event.tick.value,
        ticket=_out_of_doubt(lease.ticket),
        version=lease.version + 1,
    )


def _confirm(lease: Lease, event: LeaseConfirmed) -> Lease:
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


def _change_mode(lease: Lease, event: LeaseModeChanged) -> Lease:
    """Exclusive takes a new token: whoever shared it meanwhile may have shown a higher one."""
    raised = event.token > lease.token
    if event.mode is lease.mode or raised != (event.mode is Mode.EXCLUSIVE) or lease.is_unconfirmed:
        raise IllegalTransition(f"lease {lease.lease_id} became {event.mode} under token {event.token}")
    return replace(lease, mode=event.mode, token=event.token, ticket=None, version=lease.version + 1)


def _await_upgrade(lease: Lease, event: LeaseUpgradeQueued | LeaseUpgradeLeft) -> Lease:
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


def _extended(lease: Lease, event: LeaseRenewed) -> int:
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
