"""Handing a lease to another holder: the old one ends and another is issued, in one commit."""

from msgspec.structs import replace

from leasehold.kernel.lease.commands import Acquire, Transfer
from leasehold.kernel.lease.deadlock import break_cycles, doubt
from leasehold.kernel.lease.decision import Decision, about, last_to_expire, remembered
from leasehold.kernel.lease.events import LeaseIssued, terms_of
from leasehold.kernel.lease.model import Lease
from leasehold.kernel.lease.plan import Plan
from leasehold.kernel.lease.queue import holders_in_the_way
from leasehold.kernel.lease.quotas import check_quotas
from leasehold.kernel.lease.rules.acquire import as_it_stands
from leasehold.kernel.lease.rules.change_mode import granted_as_it_is, own_lease
from leasehold.kernel.lease.rules.contend import already_waiting
from leasehold.kernel.lease.succession import handed_on, succeed
from leasehold.kernel.lease.view import LeaseView
from leasehold.kernel.ledger.refusals import Refusal, RefusalCode
from leasehold.kernel.ledger.tick import Now

_RELEASE_INSTEAD = (
    "release your lease instead, and it is granted to them when they are first in line; "
    "to hand it over before others, let them stop waiting first"
)


def transfer(command: Transfer, view: LeaseView, now: Now) -> Decision | Refusal:
    """Hand a lease to another holder, under a new id and a higher token."""
    earlier = remembered(command.request_key, view, now)
    if isinstance(earlier, LeaseIssued):
        return as_it_stands(earlier.keys, view, now)
    if view.lease(command.new_lease_id) is not None:
        return Refusal(code=RefusalCode.LEASE_EXISTS, lease_id=command.new_lease_id)
    plan = Plan(view, now)
    lease = own_lease(plan, command.lease_id, command.tenant, command.holder)
    if isinstance(lease, Refusal):
        return lease
    plan.add(handed_on(lease, now, command.new_lease_id, request=command.request_id))
    refusal = _cannot_receive(command, plan, lease)
    if refusal is not None:
        return refusal
    refusal = _hand_over(command, plan, lease)
    if refusal is not None:
        return refusal
    break_cycles(plan, command.tenant, command.to)
    doubt(plan, command.tenant, command.to)
    return granted_as_it_is(plan, command.new_lease_id)


def _cannot_receive(command: Transfer, plan: Plan, lease: Lease) -> Refusal | None:
    """Refuse to give a lease to somebody who could not have acquired it in its holder's place."""
    tenant, to = command.tenant, command.to
    for other in plan.standing_on(tenant, lease.resource):
        if other.holder == to:
            return about(RefusalCode.ALREADY_HELD, other, plan.now)
    blockers = holders_in_the_way(plan, to, lease)
    if blockers:
        return about(RefusalCode.HELD, last_to_expire(blockers, plan.now), plan.now)
    refusal = already_waiting(plan, tenant, to, [lease])
    if refusal is not None:
        return replace(refusal, detail=_RELEASE_INSTEAD)
    return check_quotas(plan.view.quotas, tenant, to, plan.counts(tenant, to), 1)


def _hand_over(command: Transfer, plan: Plan, lease: Lease) -> Refusal | None:
    """Issue the new lease; it inherits scope, the rest of the budget, and the parent of the old one."""
    claim = Acquire(
        tenant=command.tenant,
        request_id=command.request_id,
        lease_id=command.new_lease_id,
        resource=lease.resource,
        holder=command.to,
        ttl_ns=lease.ttl_ns if command.ttl_ns is None else command.ttl_ns,
    )
    succession = succeed(claim, lease, plan.view, plan.now, named=None)
    if isinstance(succession, Refusal):
        return succession
    for event in () if succession is None else succession.events:
        plan.set_aside(event)
    terms = terms_of(lease)
    terms["bound_to_boot"] = False  # Nobody here knows on which machine its new holder is.
    plan.add(
        LeaseIssued(
            tick=plan.now.tick,
            at_ns=plan.now.wall_ns,
            actor=command.holder,
            request=command.request_key,
            tenant=lease.tenant,
            lease_id=command.new_lease_id,
            resource=lease.resource,
            holder=command.to,
            token=plan.next_token(),
            mode=lease.mode,
            ttl_ns=claim.ttl_ns if succession is None else succession.ttl_ns,
            adopted_from=lease.lease_id,
            **terms,
            delegation=None if succession is None else succession.delegation,
        )
    )
    return None
