"""Shared to exclusive, and back.

An upgrade waits for the other sharers only, and goes before the queue; nobody new may share meanwhile. Two
upgrades on one resource would wait for each other, so the second is refused as the deadlock it is. A
downgrade always works.
"""

from leasehold.kernel.lease.answers import Granted
from leasehold.kernel.lease.commands import ChangeMode
from leasehold.kernel.lease.deadlock import doubt, find_cycle, refuse_cycle, refuse_last
from leasehold.kernel.lease.decision import Decision, about, last_to_expire, not_found, remembered
from leasehold.kernel.lease.events import (
    CANCELLED,
    LeaseModeChanged,
    LeaseUpgradeQueued,
    befalling,
)
from leasehold.kernel.lease.model import Lease, LeaseState, Mode
from leasehold.kernel.lease.place import place_behind, waiting
from leasehold.kernel.lease.plan import Plan, upgrade_left
from leasehold.kernel.lease.queue import end_delays, mode_changed, others_beside, promote
from leasehold.kernel.lease.ticket import KEPT_NS
from leasehold.kernel.lease.view import LeaseView
from leasehold.kernel.ledger.refusals import Refusal, RefusalCode
from leasehold.kernel.ledger.tick import Now


def change_mode(command: ChangeMode, view: LeaseView, now: Now) -> Decision | Refusal:
    """Make a lease exclusive, or let it be shared."""
    plan = Plan(view, now)
    lease = own_lease(plan, command.lease_id, command.tenant, command.holder)
    if isinstance(lease, Refusal):
        return lease
    if isinstance(remembered(command.request_key, view, now), LeaseModeChanged):
        return granted_as_it_is(plan, lease.lease_id, repeated=True)
    plan.standing(lease.tenant, lease.resource)
    promote(plan)
    lease = plan.known(lease.lease_id)
    if command.mode is Mode.SHARED:
        return _downgrade(command, plan, lease)
    if lease.mode is Mode.EXCLUSIVE:
        return granted_as_it_is(plan, lease.lease_id)
    return _upgrade(command, plan, lease)


def own_lease(plan: Plan, lease_id: str, tenant: str, holder: str) -> Lease | Refusal:
    """Return a lease that its holder may change, or why not."""
    lease = plan.lease(lease_id)
    if lease is None or lease.tenant != tenant:
        return not_found(lease_id)
    if lease.is_terminal:
        return about(RefusalCode.LEASE_TERMINAL, lease, plan.now)
    if lease.holder != holder:
        return about(RefusalCode.NOT_HOLDER, lease, plan.now)
    lease = plan.aged(lease)
    if lease.is_terminal:
        expired = lease.state is LeaseState.EXPIRED
        code = RefusalCode.LEASE_EXPIRED if expired else RefusalCode.LEASE_TERMINAL
        return about(code, lease, plan.now)
    if lease.state is LeaseState.PENDING or lease.is_unconfirmed:
        return about(RefusalCode.LEASE_PENDING, lease, plan.now)
    if lease.ticks_remaining(plan.now.tick) == 0:
        return about(RefusalCode.UNKNOWN_TIME, lease, plan.now)
    return lease


def _downgrade(command: ChangeMode, plan: Plan, lease: Lease) -> Decision:
    if lease.mode is Mode.EXCLUSIVE:
        plan.add(mode_changed(lease, plan.now, Mode.SHARED, lease.token, command.request_key))
    elif lease.is_upgrading:
        plan.add(upgrade_left(lease, plan.now, CANCELLED, command.holder))
    return granted_as_it_is(plan, lease.lease_id)


def _upgrade(command: ChangeMode, plan: Plan, lease: Lease) -> Decision | Refusal:
    others = others_beside(plan, lease)
    if not others:
        end_delays(plan, lease.holder, lease, Mode.EXCLUSIVE)
        changed = mode_changed(lease, plan.now, Mode.EXCLUSIVE, plan.next_token(), command.request_key)
        plan.add(changed)
        # Sharers that wait here did not wait for it.
        cycle = find_cycle(plan, lease.tenant, lease.holder, certain=True)
        if cycle:
            return refuse_cycle(cycle)
        doubt(plan, lease.tenant, lease.holder)
        return granted_as_it_is(plan, lease.lease_id)
    if not command.wait:
        return about(RefusalCode.HELD, last_to_expire(others, plan.now), plan.now)
    ticket = lease.ticket
    if ticket is None or ticket.doubted or ticket.kept_until - plan.now.tick.value <= KEPT_NS // 2:
        plan.add(_upgrade_queued(command, plan, lease))
    lease = plan.known(lease.lease_id)
    refusal = _in_a_circle(plan, lease, begins=ticket is None)
    if refusal is not None:
        return refusal
    promote(plan)  # The search may have found others to be gone.
    place = place_behind(lease, 1, last_to_expire(others, plan.now), plan.now)
    answer = waiting(plan.now, [lease], (place,))
    return plan.decision(answer)


def _in_a_circle(plan: Plan, lease: Lease, *, begins: bool) -> Refusal | None:
    """Refuse a sharer that waits to be alone where that could never end.

    Whoever has begun to wait goes on while others in its circle may be dead.
    """
    if not begins:
        return refuse_last(plan, lease.tenant, lease.holder, (lease.lease_id,))
    cycle = find_cycle(plan, lease.tenant, lease.holder)
    return refuse_cycle(cycle) if cycle else None


def _upgrade_queued(command: ChangeMode, plan: Plan, lease: Lease) -> LeaseUpgradeQueued:
    return LeaseUpgradeQueued(
        **befalling(lease, plan.now, actor=command.holder),
        request=command.request_key,
        ticket=plan.next_token() if lease.ticket is None else lease.ticket.number,
        kept_ns=KEPT_NS,
        wake=command.wake,
    )


def granted_as_it_is(plan: Plan, lease_id: str, *, repeated: bool = False) -> Decision:
    """Answer with a lease as it stands, once those who wait have what has become free."""
    promote(plan)
    lease = plan.known(lease_id)
    left = lease.ticks_remaining(plan.now.tick)
    answer = Granted(lease=lease, expires_in_ns=left, repeated=repeated, ended=left == 0)
    return plan.decision(answer)
