"""Claims where it is crowded: waiting, several resources at once, paths, lock-delay.

What `granting` does for a claim on one plain name that nobody waits for, this does for all others. A claim
is granted whole, or joins the queue of each of its resources under one ticket. Sent again, it asks how things
stand: it keeps its place that way, and confirms what it was granted meanwhile.

Before a claim is looked at, those who wait already get what time has made free: nobody overtakes.
"""

from leasehold.kernel.answers import Granted
from leasehold.kernel.commands import Acquire
from leasehold.kernel.deadlock import DEADLOCK, find_cycle, may_be_waited_for, refuse_cycle
from leasehold.kernel.decision import Decision, about, last_to_expire
from leasehold.kernel.delegation import Delegation
from leasehold.kernel.draft import Draft
from leasehold.kernel.events import LeaseConfirmed, LeaseIssued, LeaseQueued, LeaseRenewed
from leasehold.kernel.lease import Lease, LeaseState
from leasehold.kernel.limits import WAITERS_PER_RESOURCE, check_quotas, over_limit
from leasehold.kernel.paths import is_path
from leasehold.kernel.placing import place_of, waiting
from leasehold.kernel.queueing import (
    end_delays,
    holders_in_the_way,
    promote,
    waiters_in_the_way,
)
from leasehold.kernel.refusals import Refusal, RefusalCode
from leasehold.kernel.succession import handed_on, refuse_line, succeed
from leasehold.kernel.tick import Now
from leasehold.kernel.ticket import CLAIM_WINDOW_NS, KEPT_NS, LAST_PLACE, Ticket
from leasehold.kernel.view import View

_KEPT_TOGETHER_NS = CLAIM_WINDOW_NS
"""A claim on several resources keeps closed what nobody holds. If its waiter has died, that must end soon."""


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
    return _granted(draft, [draft.known(one.lease_id) for one in wanted])


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
    kept_ns = _KEPT_TOGETHER_NS if command.also else KEPT_NS
    for one in wanted:
        draft.add(_queued(command, one, draft, kept_ns))
    claimed = [draft.known(one.lease_id) for one in wanted]
    if may_be_waited_for(draft, tenant, holder, claimed):
        cycle = find_cycle(draft, tenant, holder)
        if cycle:
            return refuse_cycle(cycle)
    return _waiting(draft, claimed)


def _queued(command: Acquire, one: Lease, draft: Draft, kept_ns: int) -> LeaseQueued:
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
        kept_ns=kept_ns,
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


def ask_again(lease_ids: tuple[str, ...], view: View, now: Now) -> Decision | Refusal:
    """Answer a claim that was made before: it waits, or was granted meanwhile, or is over.

    Leases that have just been granted to it are confirmed.
    """
    draft = Draft(view, now)
    claimed = [draft.aged(draft.known(lease_id)) for lease_id in lease_ids]
    if claimed[0].state is LeaseState.PENDING:
        for one in claimed:
            draft.standing(one.tenant, one.resource)
            draft.freed.append((one.tenant, one.resource))
    promote(draft)  # Also if it was found to be over: others may wait for it.
    claimed = [draft.known(one.lease_id) for one in claimed]
    first = claimed[0]
    if first.state is LeaseState.FAILED:
        return _left(first, draft.now)
    if first.state is LeaseState.PENDING:
        _keep_places(draft, claimed)
        return _waiting(draft, claimed)
    unconfirmed = [one for one in claimed if one.is_unconfirmed]
    if all(one.ticks_remaining(draft.now.tick) > 0 for one in claimed):
        for one in unconfirmed:
            draft.add(_confirmed(one, draft.now))
    return _granted(draft, [draft.known(one.lease_id) for one in claimed], repeated=not unconfirmed)


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


def _keep_places(draft: Draft, claimed: list[Lease]) -> None:
    """Extend the time after which a silent waiter leaves, unless most of it is left."""
    kept_ns = _KEPT_TOGETHER_NS if len(claimed) > 1 else KEPT_NS
    now = draft.now.tick
    late = [one for one in claimed if 0 < one.ticks_remaining(now) <= kept_ns // 2]
    if late:
        alone = late[0] if len(late) == 1 else None
        draft.add(
            LeaseRenewed(
                tick=now,
                at_ns=draft.now.wall_ns,
                actor=late[0].holder,
                tenant=late[0].tenant,
                holder=late[0].holder,
                renewals={one.lease_id: now.value + kept_ns for one in late},
                resource=None if alone is None else alone.resource,
                token=None if alone is None else alone.token,
            )
        )


def _confirmed(lease: Lease, now: Now) -> LeaseConfirmed:
    return LeaseConfirmed(
        tick=now.tick,
        at_ns=now.wall_ns,
        actor=lease.holder,
        tenant=lease.tenant,
        lease_id=lease.lease_id,
        resource=lease.resource,
        holder=lease.holder,
        token=lease.token,
    )


def _granted(draft: Draft, leases: list[Lease], *, repeated: bool = False) -> Decision:
    left = min(lease.ticks_remaining(draft.now.tick) for lease in leases)
    answer = Granted(
        lease=leases[0],
        expires_in_ns=left,
        repeated=repeated,
        ended=left == 0,
        also=tuple(leases[1:]),
    )
    return draft.decision(answer)


def _waiting(draft: Draft, claimed: list[Lease]) -> Decision:
    places = tuple(place_of(draft, one) for one in claimed)
    while draft.freed:  # Looking has shown that somebody is gone.
        promote(draft)
        places = tuple(place_of(draft, one) for one in claimed)
    answer = waiting(draft.now, claimed, places)
    return draft.decision(answer)
