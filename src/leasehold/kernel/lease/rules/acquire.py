"""Granting a claim.

A claim is granted when no live lease of somebody else conflicts with it. Leases on the same resource that
time has ended do not count, whether anybody recorded their end or not; their end and the grant are
committed together. Asking for what one already holds is refused, unless one adopts it: then the old lease
ends as transferred and the new one has a higher token, so whoever still uses the old one is fenced off.
An adopted lease goes on with the scope, the rest of the budget and the parent of the old one; its children
end with the old one.

Here is what happens to a claim on one plain name that nobody waits for. `contend` has the rest.
"""

from msgspec.structs import replace

from leasehold.kernel.lease.answers import Granted
from leasehold.kernel.lease.budget import Budget
from leasehold.kernel.lease.commands import Acquire, Derive
from leasehold.kernel.lease.decision import Decision, about, age, last_to_expire, not_found, remembered
from leasehold.kernel.lease.delegation import Delegation
from leasehold.kernel.lease.events import LeaseEvent, LeaseIssued, LeaseQueued, terms_of
from leasehold.kernel.lease.evolve import evolve
from leasehold.kernel.lease.lock_delay import may_leave_delay
from leasehold.kernel.lease.model import Lease
from leasehold.kernel.lease.paths import is_path
from leasehold.kernel.lease.quotas import check_quotas
from leasehold.kernel.lease.rules.contend import claim
from leasehold.kernel.lease.rules.repeat import ask_again, was_asked_before
from leasehold.kernel.lease.scope import Scope
from leasehold.kernel.lease.succession import handed_on, succeed
from leasehold.kernel.lease.view import LeaseView
from leasehold.kernel.ledger.events import REGISTRAR
from leasehold.kernel.ledger.refusals import Refusal, RefusalCode
from leasehold.kernel.ledger.tick import Now


def acquire(command: Acquire, view: LeaseView, now: Now) -> Decision | Refusal:
    """Grant a claim, or say who is in the way."""
    named = not command.is_its_own_request
    exists = view.proposed(command.lease_id) is not None
    if exists or named:
        earlier = granted_before(command, view, now)
        if earlier is not None:
            return earlier
        if exists:
            return taken(command.lease_id)
    delegation = None
    if command.scope is not None or command.budget is not None:
        delegation = Delegation(
            scope=(command.scope or Scope()).canonical(), budget=command.budget or Budget()
        )
    return grant(command, view, now, delegation, command.request_key if named else None)


def taken(lease_id: str) -> Refusal:
    """Refuse a claim that proposes an id which another lease has."""
    return Refusal(code=RefusalCode.LEASE_EXISTS, lease_id=lease_id)


def grant(
    command: Acquire, view: LeaseView, now: Now, delegation: Delegation | None, request: str | None
) -> Decision | Refusal:
    """Grant a claim that is no retry, with what it may do and spend, or say who is in the way.

    `request` is the key to remember the grant by; None: it is found by the lease's own id.
    """
    if command.also or is_path(command.resource) or view.is_awaited(command.tenant, command.resource):
        return claim(command, view, now, delegation, request)

    events, changed, own, blockers = _found_there(command, view, now)
    if own and not command.adopt:
        return about(RefusalCode.ALREADY_HELD, own[-1], now)
    leaves_delay = changed and any(may_leave_delay(lease, view.authority) for lease in changed)
    if leaves_delay or (blockers and (command.wait or any(one.holder == REGISTRAR for one in blockers))):
        return claim(command, view, now, delegation, request)
    if blockers:
        return about(RefusalCode.HELD, last_to_expire(blockers, now), now)
    if view.has_quotas:
        freed = [lease for lease in changed if lease.is_terminal]
        refusal = _check_quotas(command, view, [*freed, *own])
        if refusal is not None:
            return refusal

    for lease in own:
        transferred = handed_on(lease, now, command.lease_id, named=delegation)
        events.append(transferred)
        changed.append(evolve(lease, transferred))
    succession = succeed(command, own[-1], view, now, named=delegation) if own else None
    if isinstance(succession, Refusal):
        return succession
    issued = _issued(command, view, now, request, own[-1].lease_id if own else None)
    if succession is not None:
        events += succession.events
        issued = replace(issued, delegation=succession.delegation, ttl_ns=succession.ttl_ns)
    elif delegation is not None:
        issued = replace(issued, delegation=delegation)
    events.append(issued)
    granted = evolve(None, issued)
    answer = Granted(lease=granted, expires_in_ns=issued.ttl_ns)
    return Decision(events=events, leases=[*changed, granted], answer=answer)


def granted_before(command: Acquire | Derive, view: LeaseView, now: Now) -> Decision | Refusal | None:
    """Answer a claim that was granted before, or waits, with how it stands now."""
    if isinstance(command, Acquire) and command.is_its_own_request:
        return as_it_stands(command.lease_ids, view, now) if was_asked_before(command, view) else None
    event = remembered(command.request_key, view, now)
    if isinstance(event, LeaseIssued | LeaseQueued):
        return as_it_stands(event.group or event.keys, view, now)
    lease = view.lease(command.lease_id)
    if lease is not None and lease.ticket is not None and lease.ticket.request == command.request_key:
        # A wait can be longer than requests are remembered.
        return as_it_stands(lease.ticket.group or (lease.lease_id,), view, now)
    return None


def as_it_stands(lease_ids: tuple[str, ...], view: LeaseView, now: Now) -> Decision | Refusal:
    """Answer a retry of a granted claim with the leases of the first time, as they stand now."""
    lease = view.lease(lease_ids[0])
    if lease is None:
        return not_found(lease_ids[0])
    if lease.ticket is not None or len(lease_ids) > 1:
        return ask_again(lease_ids, view, now)
    events, lease = age(lease, view, now)
    if events and lease.is_terminal:
        return ask_again(lease_ids, view, now)  # Others may wait for its end, or for what follows it.
    left = lease.ticks_remaining(now.tick)
    answer = Granted(lease=lease, expires_in_ns=left, repeated=True, ended=left == 0)
    return Decision(events=events, leases=[lease] if events else [], answer=answer)


def _found_there(
    command: Acquire, view: LeaseView, now: Now
) -> tuple[list[LeaseEvent], list[Lease], list[Lease], list[Lease]]:
    """Return what time did to the leases on the resource, and those it changed; of those that still stand,
    the claimant's own, and those of others that are in the way.
    """
    events: list[LeaseEvent] = []
    changed: list[Lease] = []
    own: list[Lease] = []
    blockers: list[Lease] = []
    for lease in view.unended_on(command.tenant, command.resource):
        aged, lease_now = age(lease, view, now)
        if aged:
            events += aged
            changed.append(lease_now)
        if lease_now.is_terminal:
            continue
        if lease_now.holder == command.holder:
            own.append(lease_now)
        elif lease_now.mode.conflicts_with(command.mode):
            blockers.append(lease_now)
    return events, changed, own, blockers


def _check_quotas(command: Acquire, view: LeaseView, freed: list[Lease]) -> Refusal | None:
    quotas = view.quotas
    held = all_held = 0
    if quotas.leases_per_holder is not None:
        held = view.count_of_holder(command.tenant, command.holder)
        held -= sum(lease.holder == command.holder for lease in freed)
    if quotas.leases_per_tenant is not None:
        all_held = view.count_of_tenant(command.tenant) - len(freed)
    return check_quotas(quotas, command.tenant, command.holder, (held, all_held), 1)


def _issued(
    command: Acquire, view: LeaseView, now: Now, request: str | None, adopted_from: str | None
) -> LeaseIssued:
    return LeaseIssued(
        tick=now.tick,
        at_ns=now.wall_ns,
        actor=command.holder,
        request=request,
        tenant=command.tenant,
        lease_id=command.lease_id,
        resource=command.resource,
        holder=command.holder,
        token=view.ledger.authority.next_token(),
        mode=command.mode,
        ttl_ns=command.ttl_ns,
        adopted_from=adopted_from,
        **terms_of(command),
    )
