"""A claim that is sent again: whether it is the same one, and how it stands.

Asking again keeps a waiter's place, and confirms what it was granted meanwhile: a lease that was granted to a
waiter lasts only for the claim window until it is asked for again.

A claim that bears the id of its lease is its own request: no key is kept of it, so what was asked the first
time is read from what came of it. While the lease waits, or was won and not confirmed, the lease itself still
says it. Later it may have been renewed or upgraded, so the event of the grant is asked. If that was pruned,
the request is forgotten, and its id is taken.

What is compared is what the claim asked to have. Whether it would have waited, how urgently, and what it
would have adopted is compared as far as anything came of it; of the rest nothing is known.
"""

from leasehold.kernel.lease.answers import Granted
from leasehold.kernel.lease.budget import Budget
from leasehold.kernel.lease.commands import Acquire
from leasehold.kernel.lease.deadlock import DEADLOCK, refuse_last
from leasehold.kernel.lease.decision import Decision, about
from leasehold.kernel.lease.delegation import Delegation
from leasehold.kernel.lease.events import LeaseConfirmed, LeaseIssued, LeaseRenewed, befalling
from leasehold.kernel.lease.model import Lease, LeaseState, Mode
from leasehold.kernel.lease.place import place_of, waiting
from leasehold.kernel.lease.plan import Plan
from leasehold.kernel.lease.queue import promote
from leasehold.kernel.lease.scope import Scope
from leasehold.kernel.lease.ticket import kept_ns
from leasehold.kernel.lease.view import LeaseView
from leasehold.kernel.ledger.refusals import Refusal, RefusalCode
from leasehold.kernel.ledger.tick import Now


def was_asked_before(command: Acquire, view: LeaseView) -> bool:
    """Say whether all leases of a claim that is its own request are there, and were made for it."""
    for lease_id, (resource, mode) in zip(command.lease_ids, command.targets, strict=True):
        lease = view.lease(lease_id)
        terms = None if lease is None else _terms_of(lease, command, view)
        if terms is None or not _asks_for(command, resource, mode, terms):
            return False
    return True


def _terms_of(lease: Lease, command: Acquire, view: LeaseView) -> Lease | LeaseIssued | None:
    """Return where the terms of a lease are as they were asked for; None if another kind of claim made it."""
    group = command.lease_ids if command.also else ()
    ticket = lease.ticket
    if ticket is not None and not ticket.upgrade:
        waited = (ticket.request, ticket.group, ticket.priority)
        return lease if command.wait and waited == ("", group, command.priority) else None
    grant = view.grant_of(lease.lease_id)
    if not isinstance(grant, LeaseIssued) or grant.request is not None or grant.group != group:
        return None
    return grant if command.wait or not grant.claim_window_ns else None


def _asks_for(command: Acquire, resource: str, mode: Mode, terms: Lease | LeaseIssued) -> bool:
    delegation = terms.delegation
    # What replaced a derived lease may have got less time than it had asked for, and remembers that.
    ttl_ns = (0 if delegation is None else delegation.ttl_ns) or terms.ttl_ns
    return (
        terms.tenant == command.tenant
        and terms.resource == resource
        and terms.holder == command.holder
        and terms.mode is mode
        and ttl_ns == command.ttl_ns
        and terms.max_renewals == max(-1, command.max_renewals)
        and terms.bound_to_boot == command.bound_to_boot
        and terms.metadata == command.metadata
        and terms.config_version == command.config_version
        and terms.zone_version == command.zone_version
        and terms.lock_delay_ns == command.lock_delay_ns
        and (command.adopt or terms.adopted_from is None)
        and _is_delegated_by(delegation, command, adopted=terms.adopted_from is not None)
    )


def _is_delegated_by(delegation: Delegation | None, command: Acquire, *, adopted: bool) -> bool:
    """Say whether a claim asks for this scope and budget; one that names none may have inherited them."""
    if delegation is None:
        return command.scope is None and command.budget is None
    if command.scope is None and command.budget is None:
        return adopted
    return delegation.scope == (command.scope or Scope()).canonical() and delegation.budget == (
        command.budget or Budget()
    )


def ask_again(lease_ids: tuple[str, ...], view: LeaseView, now: Now) -> Decision | Refusal:
    """Answer a claim that was made before: it waits, or was granted meanwhile, or is over.

    Leases that have just been granted to it are confirmed.
    """
    plan = Plan(view, now)
    claimed = [plan.aged(plan.known(lease_id)) for lease_id in lease_ids]
    if claimed[0].state is LeaseState.PENDING:
        for one in claimed:
            plan.standing(one.tenant, one.resource)
            plan.freed.append((one.tenant, one.resource))
    promote(plan)  # Also if it was found to be over: others may wait for it.
    claimed = [plan.known(one.lease_id) for one in claimed]
    first = claimed[0]
    if first.state is LeaseState.FAILED:
        return _left(first, plan.now)
    if first.state is LeaseState.PENDING:
        if _keep_places(plan, claimed):
            refusal = refuse_last(plan, first.tenant, first.holder, lease_ids)
            if refusal is not None:
                return refusal
        return still_waiting(plan, claimed)
    unconfirmed = [one for one in claimed if one.is_unconfirmed]
    if all(one.ticks_remaining(plan.now.tick) > 0 for one in claimed):
        for one in unconfirmed:
            plan.add(LeaseConfirmed(**befalling(one, plan.now, actor=one.holder)))
    return granted(plan, [plan.known(one.lease_id) for one in claimed], repeated=not unconfirmed)


def _left(lease: Lease, now: Now) -> Refusal:
    """Tell a waiter that has left the queue why, if it had to; it may ask again with a new request."""
    reason = lease.end_reason or ""
    if reason.startswith(DEADLOCK):
        return Refusal(
            code=RefusalCode.DEADLOCK,
            lease_id=lease.lease_id,
            resource=lease.resource,
            detail=reason.removeprefix(DEADLOCK),
        )
    return about(RefusalCode.LEASE_TERMINAL, lease, now)


def _keep_places(plan: Plan, claimed: list[Lease]) -> bool:
    """Extend the time after which a silent waiter leaves, unless most of it is left.

    Return whether it was in doubt, which it is not any more.
    """
    more_ns = kept_ns(len(claimed))
    now = plan.now.tick
    doubted = any(one.ticket is not None and one.ticket.doubted for one in claimed)
    latest_ns = more_ns if doubted else more_ns // 2
    late = [one for one in claimed if 0 < one.ticks_remaining(now) <= latest_ns]
    if late:
        alone = late[0] if len(late) == 1 else None
        plan.add(
            LeaseRenewed(
                tick=now,
                at_ns=plan.now.wall_ns,
                actor=late[0].holder,
                tenant=late[0].tenant,
                holder=late[0].holder,
                renewals={one.lease_id: now.value + more_ns for one in late},
                resource=None if alone is None else alone.resource,
                token=None if alone is None else alone.token,
            )
        )
    return doubted


def granted(plan: Plan, leases: list[Lease], *, repeated: bool = False) -> Decision:
    """Answer a claim with its leases, for as long as the first of them to end."""
    left = min(lease.ticks_remaining(plan.now.tick) for lease in leases)
    answer = Granted(
        lease=leases[0],
        expires_in_ns=left,
        repeated=repeated,
        ended=left == 0,
        also=tuple(leases[1:]),
    )
    return plan.decision(answer)


def still_waiting(plan: Plan, claimed: list[Lease]) -> Decision:
    """Answer a claim with its places, once those who are found to be gone have made way."""
    places = tuple(place_of(plan, one) for one in claimed)
    while plan.freed:  # Looking has shown that somebody is gone.
        promote(plan)
        places = tuple(place_of(plan, one) for one in claimed)
    answer = waiting(plan.now, claimed, places)
    return plan.decision(answer)
