"""Deriving a child from a lease.

A child is a lease of its own, on a resource of its own, granted under the same law as any other; and it
never outlives, out-scopes or outspends its parent. Asking for more than the parent has is refused, never cut
down to what fits: who derives has to know what it hands on. What the child may spend is set aside in the
parent's budget in the same commit.
"""

from msgspec.structs import replace

from leasehold.kernel.lease.commands import Acquire, Derive
from leasehold.kernel.lease.decision import Decision, about, usable
from leasehold.kernel.lease.delegation import ANCESTORS_MAXIMUM, Delegation
from leasehold.kernel.lease.events import LeaseEvent
from leasehold.kernel.lease.evolve import evolve
from leasehold.kernel.lease.lineage import delegated
from leasehold.kernel.lease.model import Lease
from leasehold.kernel.lease.rules.acquire import grant, granted_before, taken
from leasehold.kernel.lease.rules.spend import available, shortage
from leasehold.kernel.lease.view import LeaseView
from leasehold.kernel.ledger.limits import over_limit
from leasehold.kernel.ledger.refusals import Refusal, RefusalCode
from leasehold.kernel.ledger.tick import Now


def derive(command: Derive, view: LeaseView, now: Now) -> Decision | Refusal:
    """Grant a child of a lease, or say what of it the parent cannot give."""
    earlier = granted_before(command, view, now)
    if earlier is not None:
        return earlier
    found = usable(command.parent_id, command.tenant, command.holder, view, now)
    if isinstance(found, Refusal):
        return found
    parent = found.lease
    account = parent.delegation
    if account is None:
        return about(RefusalCode.NOTHING_GRANTED, parent, now)
    freed, now_account = available(parent, account, command.budget, view, now)
    left_ns = parent.ticks_remaining(now.tick)
    refusal = (
        _check_line(command, parent, account, left_ns, now)
        or shortage(parent, now_account, command.budget, now)
    )  # fmt: skip
    if refusal is not None:
        return refusal
    ttl_ns = left_ns if command.ttl_ns is None else command.ttl_ns
    child = Delegation(
        scope=command.scope.canonical(),
        budget=command.budget,
        ancestors=(*account.ancestors, parent.lease_id),
        ttl_ns=ttl_ns,
    )
    if view.proposed(command.lease_id) is not None:
        return taken(command.lease_id)
    granted = grant(_claim(command, ttl_ns), view, now, child, command.request_key)
    if isinstance(granted, Refusal):
        return granted
    setting_aside = delegated(parent, command.lease_id, command.budget.counted(), now)
    parent_now = evolve(replace(parent, delegation=now_account), setting_aside)
    return _behind([*found.aged, *freed], setting_aside, parent_now, granted)


def _behind(noted: list[LeaseEvent], setting_aside: LeaseEvent, parent: Lease, granted: Decision) -> Decision:
    """Put a grant behind what was noted before it, and what the parent has set aside for it.

    The parent, or a child that is over, may be on the very resource that is claimed: what time did to it is
    noted once.
    """
    following = [event for event in granted.events if event not in noted]
    for event in following:
        if parent.lease_id in event.keys:
            parent = evolve(parent, event)
    others = [lease for lease in granted.leases if lease.lease_id != parent.lease_id]
    return Decision(
        events=[*noted, setting_aside, *following],
        leases=[parent, *others],
        answer=granted.answer,
        wakes=granted.wakes,
    )


def _check_line(
    command: Derive, parent: Lease, account: Delegation, left_ns: int, now: Now
) -> Refusal | None:
    if len(account.ancestors) >= ANCESTORS_MAXIMUM:
        detail = f"has {ANCESTORS_MAXIMUM} leases above it; derive from one higher up"
        return over_limit("parent", ANCESTORS_MAXIMUM, detail)
    excess = command.scope.exceeds(account.scope)
    if excess is not None:
        return about(RefusalCode.SCOPE_EXCEEDED, parent, now, field="scope", detail=excess)
    if command.ttl_ns is not None and command.ttl_ns > left_ns:
        return about(RefusalCode.OUTLIVES_PARENT, parent, now, field="ttl")
    return None


def _claim(command: Derive, ttl_ns: int) -> Acquire:
    return Acquire(
        tenant=command.tenant,
        request_id=command.request_id,
        lease_id=command.lease_id,
        resource=command.resource,
        holder=command.child_holder,
        ttl_ns=ttl_ns,
        mode=command.mode,
        max_renewals=command.max_renewals,
        bound_to_boot=command.bound_to_boot,
        metadata=command.metadata,
    )
