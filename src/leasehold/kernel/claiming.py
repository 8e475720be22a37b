"""Claims where it is crowded: waiting, several resources at once, paths, lock-delay.

What `granting` does for a claim on one plain name that nobody waits for, this does for all others. A claim
is granted whole, or joins the queue of each of its resources under one ticket. Sent again, it asks how things
stand, which `asking` answers.

Before a claim is looked at, those who wait already get what time has made free: nobody overtakes.
"""

from leasehold.kernel.asking import granted, still_waiting
from leasehold.kernel.commands import Acquire
from leasehold.kernel.deadlock import find_cycle, may_be_waited_for, refuse_cycle
from leasehold.kernel.decision import Decision, about, last_to_expire
from leasehold.kernel.delegation import Delegation
from leasehold.kernel.draft import Draft
from leasehold.kernel.events import LeaseIssued, LeaseQueued
from leasehold.kernel.lease import Lease, LeaseState
from leasehold.kernel.limits import WAITERS_PER_RESOURCE, check_quotas, over_limit
from leasehold.kernel.paths import is_path
from leasehold.kernel.queueing import (
    end_delays,
    holders_in_the_way,
    promote,
    waiters_in_the_way,
)
from leasehold.kernel.refusals import Refusal, RefusalCode
from leasehold.kernel.succession import handed_on, refuse_line, succeed
from leasehold.kernel.tick import Now
from leasehold.kernel.ticket import LAST_PLACE, Ticket, kept_ns
from leasehold.kernel.view import View


def claim(
    command: Acquire,
    view: View,
    now: Now,
    delegation: Delegation | None = None,
    request: str | None = None,
) -> Decision | Refusal:
    """Grant a claim, let it wait, or say who is in the way.

    `delegation` is what it may do and spend; `request` the key to remember it by, if not the claim's own.
    """
    for lease_id in command.lease_ids[1:]:
        if view.lease(lease_id) is not None:
            return Refusal(code=RefusalCode.LEASE_EXISTS, lease_id=lease_id)
    draft = Draft(view, now)
    for resource in (command.resource, *(one.resource for one in command.also)):
        draft.standing(command.tenant, resource)
    promote(draft)
    wanted = _wanted(command, draft, delegation)
    own = [
        lease
        for one in wanted
        for lease in draft.standing_on(one.tenant, one.resource)
        if lease.holder == command.holder
    ]
    if own and not command.adopt:
        return about(RefusalCode.ALREADY_HELD, own[-1], now)
    contested = any(_is_contested(draft, one) for one in wanted)
    if contested:
        refusal = already_waiting(draft, command.tenant, command.holder, wanted)
        if refusal is not None:
            return refusal
    obstacle = _obstacle(draft, command, wanted, own)
    if obstacle is None:
        return _grant(command, draft, wanted, own, request, contested=contested)
    if own or not command.wait:
        return obstacle
    return _join(command, draft, wanted)


def _wanted(command: Acquire, draft: Draft, delegation: Delegation | None) -> list[Lease]:
    """Return the leases that a claim would wait with."""
    ticket = Ticket(
        number=draft.next_token(),
        since=draft.now.tick,
        since_ns=draft.now.wall_ns,
        priority=command.priority,
    )
    return [
        Lease(
            lease_id=lease_id,
            tenant=command.tenant,
            resource=resource,
            holder=command.holder,
            mode=mode,
            state=LeaseState.PENDING,
            token=ticket.number,
            ttl_ns=command.ttl_ns,
            issued_tick=None,
            expires_tick=None,
            issued_at_ns=draft.now.wall_ns,
            expires_at_ns=draft.now.wall_ns,
            delegation=delegation,
            ticket=ticket,
        )
        for lease_id, (resource, mode) in zip(command.lease_ids, command.targets, strict=True)
    ]


def _is_contested(draft: Draft, wanted: Lease) -> bool:
    if is_path(wanted.resource):
        return next(draft.waiters(wanted.tenant, wanted.resource), None) is not None
    return draft.view.is_awaited(wanted.tenant, wanted.resource)


def already_waiting(draft: Draft, tenant: str, holder: str, wanted: list[Lease]) -> Refusal | None:
    """Refuse to wait twice, or to hold what one waits for: one of the two would be for ever in vain."""
    resources = {one.resource for one in wanted}
    for lease in draft.waits_of(tenant, holder):
        if lease.resource in resources and lease.state is LeaseState.PENDING:
            return about(RefusalCode.ALREADY_WAITING, lease, draft.now)
    return None


def _obstacle(draft: Draft, command: Acquire, wanted: list[Lease], own: list[Lease]) -> Refusal | None:
    """Return why a claim cannot be granted now, if there is a reason.

    Who holds a resource already and replaces its lease there goes before the queue.
    """
    replaced = {lease.resource for lease in own}
    for one in wanted:
        holding = holders_in_the_way(draft, command.holder, one)
        if holding:
            return about(RefusalCode.HELD, last_to_expire(holding, draft.now), draft.now)
        if one.resource not in replaced:
            ahead = next(waiters_in_the_way(draft, command.holder, one), None)
            if ahead is not None:
                return about(RefusalCode.HELD, ahead, draft.now)
    return None


def _grant(
    command: Acquire,
    draft: Draft,
    wanted: list[Lease],
    own: list[Lease],
    request: str | None,
    *,
    contested: bool,
) -> Decision | Refusal:
    for one in wanted:
        end_delays(draft, command.holder, one, one.mode)
    successors = {one.resource: one for one in wanted}
    for lease in own:
        new = successors[lease.resource]
        draft.add(handed_on(lease, draft.now, new.lease_id, named=new.delegation))
    refusal = refuse_line(own) or check_quotas(
        draft.view.quotas,
        command.tenant,
        command.holder,
        draft.counts(command.tenant, command.holder),
        len(wanted),
    )
    if refusal is not None:
        return refusal
    adopted = {lease.resource: lease for lease in own}
    for one in wanted:
        refusal = _issue(command, draft, one, adopted.get(one.resource), request)
        if refusal is not None:
            return refusal
    cycle = find_cycle(draft, command.tenant, command.holder) if contested else []
    if cycle:
        return refuse_cycle(cycle)
    promote(draft)
    return granted(draft, [draft.known(one.lease_id) for one in wanted])


def _issue(
    command: Acquire, draft: Draft, one: Lease, old: Lease | None, request: str | None
) -> Refusal | None:
    """Grant one lease of a claim; one that replaces an own lease inherits its scope, budget and parent."""
    succession = None if old is None else succeed(command, old, draft.view, draft.now, named=one.delegation)
    if isinstance(succession, Refusal):
        return succession
    for event in () if succession is None else succession.events:
        draft.set_aside(event)
    own_key = None if command.is_its_own_request else command.request_key
    draft.add(
        LeaseIssued(
            tick=draft.now.tick,
            at_ns=draft.now.wall_ns,
            actor=command.holder,
            request=request or own_key,
            tenant=command.tenant,
            lease_id=one.lease_id,
            resource=one.resource,
            holder=command.holder,
            token=draft.next_token(),
            mode=one.mode,
            ttl_ns=command.ttl_ns if succession is None else succession.ttl_ns,
            max_renewals=max(-1, command.max_renewals),
            adopted_from=None if old is None else old.lease_id,
            bound_to_boot=command.bound_to_boot,
            metadata=command.metadata,
            config_version=command.config_version,
            zone_version=command.zone_version,
            lock_delay_ns=command.lock_delay_ns,
            delegation=one.delegation if succession is None else succession.delegation,
            group=_group(command),
        )
    )
    return None


def _group(command: Acquire) -> tuple[str, ...]:
    return command.lease_ids if command.also else ()


def _join(command: Acquire, draft: Draft, wanted: list[Lease]) -> Decision | Refusal:
    """Give a claim its place in every queue, unless there are too many, or it would wait for ever."""
    tenant, holder = command.tenant, command.holder
    refusal = check_quotas(draft.view.quotas, tenant, holder, draft.counts(tenant, holder), len(wanted))
    if refusal is not None:
        return refusal
    for one in wanted:
        if draft.count_ahead(tenant, one.resource, LAST_PLACE) >= WAITERS_PER_RESOURCE:
            detail = f"has {WAITERS_PER_RESOURCE} waiters already; no more are allowed"
            return over_limit(one.resource, WAITERS_PER_RESOURCE, detail)
    for one in wanted:
        draft.add(_queued(command, one, draft))
    claimed = [draft.known(one.lease_id) for one in wanted]
    if may_be_waited_for(draft, tenant, holder, claimed):
        cycle = find_cycle(draft, tenant, holder)
        if cycle:
            return refuse_cycle(cycle)
    return still_waiting(draft, claimed)


def _queued(command: Acquire, one: Lease, draft: Draft) -> LeaseQueued:
    return LeaseQueued(
        tick=draft.now.tick,
        at_ns=draft.now.wall_ns,
        actor=command.holder,
        request=None if command.is_its_own_request else command.request_key,
        tenant=command.tenant,
        lease_id=one.lease_id,
        resource=one.resource,
        holder=command.holder,
        token=one.token,
        mode=one.mode,
        ttl_ns=command.ttl_ns,
        kept_ns=kept_ns(1 + len(command.also)),
        priority=command.priority,
        group=_group(command),
        wake=command.wake,
        max_renewals=max(-1, command.max_renewals),
        bound_to_boot=command.bound_to_boot,
        metadata=command.metadata,
        config_version=command.config_version,
        zone_version=command.zone_version,
        lock_delay_ns=command.lock_delay_ns,
        delegation=one.delegation,
    )
