"""Spending from a lease's budget, and how much of it there is.

All of the amounts are spent, or nothing is. Only the holder spends, and only while the lease and everything
above it stands. A retry spends nothing more.
"""

from msgspec.structs import replace

from leasehold.kernel.lease.answers import Spent
from leasehold.kernel.lease.budget import Amounts, Budget
from leasehold.kernel.lease.commands import Spend
from leasehold.kernel.lease.decision import Decision, about, age, not_found, remembered, usable
from leasehold.kernel.lease.delegation import Delegation
from leasehold.kernel.lease.events import LeaseEvent, LeaseSpent, befalling
from leasehold.kernel.lease.evolve import evolve
from leasehold.kernel.lease.model import Lease
from leasehold.kernel.lease.view import LeaseView
from leasehold.kernel.ledger.refusals import Refusal, RefusalCode
from leasehold.kernel.ledger.tick import Now

_ENDS_LOOKED_FOR = 100
"""How many ends that nobody noticed are recorded to find out what a budget has left, give or take a page."""


def spend(command: Spend, view: LeaseView, now: Now) -> Decision | Refusal:
    """Use up all of the amounts, or say of what there is too little."""
    request = command.request_key
    if isinstance(remembered(request, view, now), LeaseSpent):
        return _spent_before(command, view, now)
    found = usable(command.lease_id, command.tenant, command.holder, view, now)
    if isinstance(found, Refusal):
        return found
    lease = found.lease
    if lease.delegation is None:
        return about(RefusalCode.NOTHING_GRANTED, lease, now)
    freed, account = available(lease, lease.delegation, command.amounts, view, now)
    refusal = shortage(lease, account, command.amounts, now)
    if refusal is not None:
        return refusal
    spent = LeaseSpent(
        **befalling(lease, now, actor=command.holder), request=request, amounts=command.amounts
    )
    lease_now = evolve(replace(lease, delegation=account), spent)
    answer = Spent(lease=lease_now, remaining=account.remaining.minus(command.amounts))
    return Decision(events=[*found.aged, *freed, spent], leases=[lease_now], answer=answer)


def _spent_before(command: Spend, view: LeaseView, now: Now) -> Decision | Refusal:
    lease = view.lease(command.lease_id)
    if lease is None or lease.delegation is None:
        return not_found(command.lease_id)
    events, lease = age(lease, view, now)
    answer = Spent(lease=lease, remaining=remaining_of(lease), repeated=True)
    return Decision(events=events, leases=[lease] if events else [], answer=answer)


def available(
    lease: Lease, account: Delegation, asked: Amounts | Budget, view: LeaseView, now: Now
) -> tuple[list[LeaseEvent], Delegation]:
    """Return the lease's account, if need be with what children have left that expired unnoticed.

    Their ends are returned with it, to be recorded together with what the budget is wanted for.
    """
    left = account.remaining
    if account.delegated == Amounts() or (left.short_of(asked) is None and left.used_up() is None):
        return [], account
    events: list[LeaseEvent] = []
    above = [lease.lease_id]
    while above and len(events) < _ENDS_LOOKED_FOR:
        for child in view.children_of(above.pop())[0]:
            aged, child_now = age(child, view, now)
            if child_now.is_terminal and child.delegation is not None:
                events += aged
                ended = child.delegation
                account = account.reclaimed(ended.budget.counted(), ended.spent, ended.delegated)
                above.append(child.lease_id)  # Its children had no more time than it: they are over, too.
    return events, account


def shortage(lease: Lease, account: Delegation, asked: Amounts | Budget, now: Now) -> Refusal | None:
    """Refuse if the budget is exhausted, or if there is less of anything than asked for."""
    left = account.remaining
    used_up, short = left.used_up(), left.short_of(asked)
    if used_up is not None:
        code = RefusalCode.BUDGET_EXHAUSTED
        return about(code, lease, now, field=used_up, limit=0, detail="nothing is left")
    if short is None:
        return None
    rest, wanted = getattr(left, short), getattr(asked, short)
    detail = f"{rest} left, {'no limit' if wanted is None else wanted} asked for"
    return about(RefusalCode.BUDGET_EXCEEDED, lease, now, field=short, limit=rest, detail=detail)


def remaining_of(lease: Lease) -> Budget:
    """Return what a lease's budget still has, by its own record; a plain lease has nothing of anything."""
    if lease.delegation is None:
        return Budget(episodes=0, tool_calls=0, tokens=0, duration_ms=0)
    return lease.delegation.remaining
