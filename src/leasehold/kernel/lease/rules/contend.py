"""Claims where it is crowded: waiting, several resources at once, paths, lock-delay.

What `acquire` does for a claim on one plain name that nobody waits for, this does for all others. A claim
is granted whole, or joins the queue of each of its resources under one ticket. Sent again, it asks how things
stand, which `repeat` answers.

Before a claim is looked at, those who wait already get what time has made free: nobody overtakes.
"""

from leasehold.kernel.lease.commands import Acquire
from leasehold.kernel.lease.deadlock import doubt, find_cycle, may_be_waited_for, refuse_cycle
from leasehold.kernel.lease.decision import Decision, about, last_to_expire
from leasehold.kernel.lease.delegation import Delegation
from leasehold.kernel.lease.events import LeaseIssued, LeaseQueued, terms_of
from leasehold.kernel.lease.lock_delay import is_kept_for
from leasehold.kernel.lease.model import Lease, LeaseState
from leasehold.kernel.lease.paths import is_path
from leasehold.kernel.lease.plan import Plan
from leasehold.kernel.lease.queue import (
    end_delays,
    holders_in_the_way,
    promote,
    waiters_in_the_way,
)
from leasehold.kernel.lease.quotas import check_quotas
from leasehold.kernel.lease.rules.repeat import granted, still_waiting
from leasehold.kernel.lease.succession import handed_on, refuse_line, succeed
from leasehold.kernel.lease.ticket import LAST_PLACE, NEXT_IN_LINE, Ticket, kept_ns
from leasehold.kernel.lease.view import LeaseView
from leasehold.kernel.ledger.limits import (
    WAITERS_PER_RESOURCE,
    over_limit,
)
from leasehold.kernel.ledger.refusals import Refusal, RefusalCode
from leasehold.kernel.ledger.tick import Now


def claim(
    command: Acquire,
    view: LeaseView,
    now: Now,
    delegation: Delegation | None,
    request: str | None,
) -> Decision | Refusal:
    """Grant a claim, let it wait, or say who is in the way.

    `delegation` is what it may do and spend; `request` the key to remember it by, if it has one.
    """
    for lease_id in command.lease_ids[1:]:
        if view.lease(lease_id) is not None:
            return Refusal(code=RefusalCode.LEASE_EXISTS, lease_id=lease_id)
    plan = Plan(view, now)
    for resource in (command.resource, *(one.resource for one in command.also)):
        plan.standing(command.tenant, resource)
    promote(plan)
    wanted = _wanted(command, plan, delegation)
    own = [
        lease
        for one in wanted
        for lease in plan.standing_on(one.tenant, one.resource)
        if lease.holder == command.holder
    ]
    if own and not command.adopt:
        return about(RefusalCode.ALREADY_HELD, own[-1], now)
    contested = any(_is_contested(plan, one) for one in wanted)
    if contested:
        refusal = already_waiting(plan, command.tenant, command.holder, wanted)
        if refusal is not None:
            return refusal
    obstacle = _obstacle(plan, command, wanted, own)
    if obstacle is None:
        return _grant(command, plan, wanted, own, request, contested=contested)
    if own or not command.wait:
        return obstacle
    return _join(command, plan, wanted)


def _wanted(command: Acquire, plan: Plan, delegation: Delegation | None) -> list[Lease]:
    """Return the leases that a claim would wait with."""
    ticket = Ticket(
        number=plan.next_token(),
        since=plan.now.tick,
        since_ns=plan.now.wall_ns,
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
            issued_at_ns=plan.now.wall_ns,
            expires_at_ns=plan.now.wall_ns,
            delegation=delegation,
            ticket=ticket,
        )
        for lease_id, (resource, mode) in zip(command.lease_ids, command.targets, strict=True)
    ]


def _is_contested(plan: Plan, wanted: Lease) -> bool:
    if is_path(wanted.resource):
        return next(plan.waiters(wanted.tenant, wanted.resource), None) is not None
    return plan.view.is_awaited(wanted.tenant, wanted.resource)


def already_waiting(plan: Plan, tenant: str, holder: str, wanted: list[Lease]) -> Refusal | None:
    """Refuse to wait twice, or to hold what one waits for: one of the two would be for ever in vain."""
    resources = {one.resource for one in wanted}
    for lease in plan.waits_of(tenant, holder):
        if lease.resource in resources and lease.state is LeaseState.PENDING:
            return about(RefusalCode.ALREADY_WAITING, lease, plan.now)
    return None


def _obstacle(plan: Plan, command: Acquire, wanted: list[Lease], own: list[Lease]) -> Refusal | None:
    """Return why a claim cannot be granted now, if there is a reason.

    Who holds a resource already and replaces its lease there goes before the queue, and so does who lost it
    while the registrar was down.
    """
    replaced = {lease.resource for lease in own}
    for one in wanted:
        holding = holders_in_the_way(plan, command.holder, one)
        if holding:
            return about(RefusalCode.HELD, last_to_expire(holding, plan.now), plan.now)
        if one.resource not in replaced and not _is_kept_for(plan, command.holder, one):
            ahead = next(waiters_in_the_way(plan, command.holder, one), None)
            if ahead is not None:
                return about(RefusalCode.HELD, ahead, plan.now)
    return None


def _is_kept_for(plan: Plan, holder: str, wanted: Lease) -> bool:
    """Say whether a resource is kept for a holder that could not renew its lease there."""
    authority = plan.view.authority
    if authority.outage is None:
        return False
    standing = plan.standing_on(wanted.tenant, wanted.resource)
    return any(is_kept_for(lease, holder, authority) for lease in standing)


def _grant(
    command: Acquire,
    plan: Plan,
    wanted: list[Lease],
    own: list[Lease],
    request: str | None,
    *,
    contested: bool,
) -> Decision | Refusal:
    for one in wanted:
        end_delays(plan, command.holder, one, one.mode)
    successors = {one.resource: one for one in wanted}
    for lease in own:
        new = successors[lease.resource]
        plan.add(handed_on(lease, plan.now, new.lease_id, named=new.delegation))
    refusal = refuse_line(own) or check_quotas(
        plan.view.quotas,
        command.tenant,
        command.holder,
        plan.counts(command.tenant, command.holder),
        len(wanted),
    )
    if refusal is not None:
        return refusal
    adopted = {lease.resource: lease for lease in own}
    for one in wanted:
        refusal = _issue(command, plan, one, adopted.get(one.resource), request)
        if refusal is not None:
            return refusal
    if contested:
        cycle = find_cycle(plan, command.tenant, command.holder, certain=True)
        if cycle:
            return refuse_cycle(cycle)
        doubt(plan, command.tenant, command.holder)
    promote(plan)
    return granted(plan, [plan.known(one.lease_id) for one in wanted])


def _issue(
    command: Acquire, plan: Plan, one: Lease, old: Lease | None, request: str | None
) -> Refusal | None:
    """Grant one lease of a claim; one that replaces an own lease inherits its scope, budget and parent."""
    succession = None if old is None else succeed(command, old, plan.view, plan.now, named=one.delegation)
    if isinstance(succession, Refusal):
        return succession
    for event in () if succession is None else succession.events:
        plan.set_aside(event)
    plan.add(
        LeaseIssued(
            tick=plan.now.tick,
            at_ns=plan.now.wall_ns,
            actor=command.holder,
            request=request,
            tenant=command.tenant,
            lease_id=one.lease_id,
            resource=one.resource,
            holder=command.holder,
            token=plan.next_token(),
            mode=one.mode,
            ttl_ns=command.ttl_ns if succession is None else succession.ttl_ns,
            adopted_from=None if old is None else old.lease_id,
            **terms_of(command),
            delegation=one.delegation if succession is None else succession.delegation,
            group=_group(command),
        )
    )
    return None


def _group(command: Acquire) -> tuple[str, ...]:
    return command.lease_ids if command.also else ()


def _join(command: Acquire, plan: Plan, wanted: list[Lease]) -> Decision | Refusal:
    """Give a claim its place in every queue, unless there are too many, or it might wait for ever."""
    tenant, holder = command.tenant, command.holder
    refusal = check_quotas(plan.view.quotas, tenant, holder, plan.counts(tenant, holder), len(wanted))
    if refusal is not None:
        return refusal
    for one in wanted:
        if plan.count_ahead(tenant, one.resource, LAST_PLACE) >= WAITERS_PER_RESOURCE:
            detail = f"has {WAITERS_PER_RESOURCE} waiters already; no more are allowed"
            return over_limit(one.resource, WAITERS_PER_RESOURCE, detail)
    for one in wanted:
        plan.add(_queued(command, one, plan))
    claimed = [plan.known(one.lease_id) for one in wanted]
    if may_be_waited_for(plan, tenant, holder, claimed):
        if command.gives_up:
            doubt(plan, tenant, holder)
        elif cycle := find_cycle(plan, tenant, holder):
            return refuse_cycle(cycle)
    for one in claimed:
        _tell_whom_it_overtook(plan, one)
    return still_waiting(plan, claimed)


def _tell_whom_it_overtook(plan: Plan, one: Lease) -> None:
    """Let whoever was first in line know that it is not any more: it has to ask more often then."""
    if plan.count_ahead(one.tenant, one.resource, one.place) == 0:
        behind = (waiter for waiter in plan.waiters(one.tenant, one.resource) if waiter.place > one.place)
        overtaken = next(behind, None)
        if overtaken is not None:
            plan.wake(overtaken, NEXT_IN_LINE)


def _queued(command: Acquire, one: Lease, plan: Plan) -> LeaseQueued:
    return LeaseQueued(
        tick=plan.now.tick,
        at_ns=plan.now.wall_ns,
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
        **terms_of(command),
        delegation=one.delegation,
    )
