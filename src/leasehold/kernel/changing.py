"""Changing leases that stand: shared to exclusive and back, and from one holder to another.

An upgrade waits for the other sharers only, and goes before the queue; nobody new may share meanwhile. Two
upgrades on one resource would wait for each other, so the second is refused as the deadlock it is. A
downgrade always works. A transfer ends the lease and issues another one in one commit.
"""

from leasehold.kernel.answers import Granted
from leasehold.kernel.claiming import already_waiting
from leasehold.kernel.commands import Acquire, ChangeMode, Transfer
from leasehold.kernel.deadlock import break_cycles, find_cycle, refuse_cycle
from leasehold.kernel.decision import Decision, about, last_to_expire, not_found, remembered
from leasehold.kernel.draft import Draft, upgrade_left
from leasehold.kernel.events import CANCELLED, LeaseIssued, LeaseModeChanged, LeaseUpgradeQueued
from leasehold.kernel.granting import as_it_stands
from leasehold.kernel.happening import befalling
from leasehold.kernel.lease import Lease, LeaseState, Mode
from leasehold.kernel.limits import check_quotas
from leasehold.kernel.placing import place_behind, waiting
from leasehold.kernel.queueing import end_delays, holders_in_the_way, mode_changed, others_beside, promote
from leasehold.kernel.refusals import Refusal, RefusalCode
from leasehold.kernel.succession import handed_on, succeed
from leasehold.kernel.tick import Now
from leasehold.kernel.ticket import KEPT_NS
from leasehold.kernel.view import View


def change_mode(command: ChangeMode, view: View, now: Now) -> Decision | Refusal:
    """Make a lease exclusive, or let it be shared."""
    draft = Draft(view, now)
    lease = _own_lease(draft, command.lease_id, command.tenant, command.holder)
    if isinstance(lease, Refusal):
        return lease
    if isinstance(remembered(command.request_key, view, now), LeaseModeChanged):
        return _granted(draft, lease.lease_id, repeated=True)
    draft.standing(lease.tenant, lease.resource)
    promote(draft)
    lease = draft.known(lease.lease_id)
    if command.mode is Mode.SHARED:
        return _downgrade(command, draft, lease)
    if lease.mode is Mode.EXCLUSIVE:
        return _granted(draft, lease.lease_id)
    return _upgrade(command, draft, lease)


def _own_lease(draft: Draft, lease_id: str, tenant: str, holder: str) -> Lease | Refusal:
    """Return a lease that its holder may change, or why not."""
    lease = draft.lease(lease_id)
    if lease is None or lease.tenant != tenant:
        return not_found(lease_id)
    if lease.is_terminal:
        return about(RefusalCode.LEASE_TERMINAL, lease, draft.now)
    if lease.holder != holder:
        return about(RefusalCode.NOT_HOLDER, lease, draft.now)
    lease = draft.aged(lease)
    if lease.is_terminal:
        expired = lease.state is LeaseState.EXPIRED
        code = RefusalCode.LEASE_EXPIRED if expired else RefusalCode.LEASE_TERMINAL
        return about(code, lease, draft.now)
    if lease.state is LeaseState.PENDING or lease.is_unconfirmed:
        return about(RefusalCode.LEASE_PENDING, lease, draft.now)
    if lease.ticks_remaining(draft.now.tick) == 0:
        return about(RefusalCode.UNKNOWN_TIME, lease, draft.now)
    return lease


def _downgrade(command: ChangeMode, draft: Draft, lease: Lease) -> Decision:
    if lease.mode is Mode.EXCLUSIVE:
        draft.add(mode_changed(lease, draft.now, Mode.SHARED, lease.token, command.request_key))
    elif lease.is_upgrading:
        draft.add(upgrade_left(lease, draft.now, CANCELLED, command.holder))
    return _granted(draft, lease.lease_id)


def _upgrade(command: ChangeMode, draft: Draft, lease: Lease) -> Decision | Refusal:
    others = others_beside(draft, lease)
    if not others:
        end_delays(draft, lease.holder, lease, Mode.EXCLUSIVE)
        changed = mode_changed(lease, draft.now, Mode.EXCLUSIVE, draft.next_token(), command.request_key)
        draft.add(changed)
        cycle = find_cycle(draft, lease.tenant, lease.holder)  # Sharers that wait here did not wait for it.
        return refuse_cycle(cycle) if cycle else _granted(draft, lease.lease_id)
    if not command.wait:
        return about(RefusalCode.HELD, last_to_expire(others, draft.now), draft.now)
    ticket = lease.ticket
    if ticket is None or ticket.kept_until - draft.now.tick.value <= KEPT_NS // 2:
        draft.add(_upgrade_queued(command, draft, lease))
    lease = draft.known(lease.lease_id)
    cycle = find_cycle(draft, lease.tenant, lease.holder)
    if cycle:
        return refuse_cycle(cycle)
    promote(draft)  # The search may have found others to be gone.
    place = place_behind(lease, 1, last_to_expire(others, draft.now), draft.now)
    answer = waiting(draft.now, [lease], (place,))
    return draft.decision(answer)


def _upgrade_queued(command: ChangeMode, draft: Draft, lease: Lease) -> LeaseUpgradeQueued:
    return LeaseUpgradeQueued(
        **befalling(lease, draft.now, actor=command.holder),
        request=command.request_key,
        ticket=draft.next_token() if lease.ticket is None else lease.ticket.number,
        kept_ns=KEPT_NS,
        wake=command.wake,
    )


def _granted(draft: Draft, lease_id: str, *, repeated: bool = False) -> Decision:
    promote(draft)
    lease = draft.known(lease_id)
    left = lease.ticks_remaining(draft.now.tick)
    answer = Granted(lease=lease, expires_in_ns=left, repeated=repeated, ended=left == 0)
    return draft.decision(answer)


def transfer(command: Transfer, view: View, now: Now) -> Decision | Refusal:
    """Hand a lease to another holder, under a new id and a higher token."""
    earlier = remembered(command.request_key, view, now)
    if isinstance(earlier, LeaseIssued):
        return as_it_stands(earlier.lease_ids, view, now)
    if view.lease(command.new_lease_id) is not None:
        return Refusal(code=RefusalCode.LEASE_EXISTS, lease_id=command.new_lease_id)
    draft = Draft(view, now)
    lease = _own_lease(draft, command.lease_id, command.tenant, command.holder)
    if isinstance(lease, Refusal):
        return lease
    draft.add(handed_on(lease, now, command.new_lease_id, request=command.request_id))
    refusal = _cannot_receive(command, draft, lease)
    if refusal is not None:
        return refusal
    refusal = _hand_over(command, draft, lease)
    if refusal is not None:
        return refusal
    break_cycles(draft, command.tenant, command.to)
    return _granted(draft, command.new_lease_id)


def _cannot_receive(command: Transfer, draft: Draft, lease: Lease) -> Refusal | None:
    """Refuse to give a lease to somebody who could not have acquired it in its holder's place."""
    tenant, to = command.tenant, command.to
    for other in draft.standing_on(tenant, lease.resource):
        if other.holder == to:
            return about(RefusalCode.ALREADY_HELD, other, draft.now)
    blockers = holders_in_the_way(draft, to, lease)
    if blockers:
        return about(RefusalCode.HELD, last_to_expire(blockers, draft.now), draft.now)
    refusal = already_waiting(draft, tenant, to, [lease])
    return refusal or check_quotas(draft.view.quotas, tenant, to, draft.counts(tenant, to), 1)


def _hand_over(command: Transfer, draft: Draft, lease: Lease) -> Refusal | None:
    """Issue the new lease; it inherits scope, the rest of the budget, and the parent of the old one."""
    claim = Acquire(
        tenant=command.tenant,
        request_id=command.request_id,
        lease_id=command.new_lease_id,
        resource=lease.resource,
        holder=command.to,
        ttl_ns=lease.ttl_ns if command.ttl_ns is None else command.ttl_ns,
    )
    succession = succeed(claim, lease, draft.view, draft.now, named=None)
    if isinstance(succession, Refusal):
        return succession
    for event in () if succession is None else succession.events:
        draft.set_aside(event)
    draft.add(
        LeaseIssued(
            tick=draft.now.tick,
            at_ns=draft.now.wall_ns,
            actor=command.holder,
            request=command.request_key,
            tenant=lease.tenant,
            lease_id=command.new_lease_id,
            resource=lease.resource,
            holder=command.to,
            token=draft.next_token(),
            mode=lease.mode,
            ttl_ns=claim.ttl_ns if succession is None else succession.ttl_ns,
            max_renewals=lease.max_renewals,
            adopted_from=lease.lease_id,
            bound_to_boot=False,  # Nobody here knows on which machine its new holder is.
            metadata=lease.metadata,
            config_version=lease.config_version,
            zone_version=lease.zone_version,
            lock_delay_ns=lease.lock_delay_ns,
            delegation=None if succession is None else succession.delegation,
        )
    )
    return None
