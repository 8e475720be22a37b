"""What must be true of every line of leases: nobody has more than those above gave.

For every lease: what remains is what was granted less what was spent and set aside; none of that is below 0;
and what is set aside is exactly what the standing leases right below it were granted, or right below one that
it has taken over from. For every child: the same tenant, the line of its parent and its parent at the end, no
more scope, no more budget, no later expiry; and if its parent has ended, the end has said that children were
left to be ended.
"""

from collections.abc import Iterator

from leasehold.kernel.authority import carry_over
from leasehold.kernel.budget import DIMENSIONS, Amounts
from leasehold.kernel.delegation import ANCESTORS_MAXIMUM, Delegation
from leasehold.kernel.lease import Lease
from leasehold.kernel.lineage import heir_of
from leasehold.kernel.replay import State
from leasehold.kernel.tick import Tick


def lines_hold(state: State) -> Iterator[str]:
    """Yield a sentence for everything that is wrong with a lease's account, or with its place in a line."""
    set_aside: dict[str, Amounts] = {}
    for lease in state.leases.values():
        account = lease.delegation
        if account is None:
            continue
        yield from _account_is_sound(lease, account)
        parent = state.leases.get(account.parent or "")
        if parent is not None:
            yield from _fits(lease, account, parent, state)
        above = heir_of(account, state.leases.get)
        if above is not None and not lease.is_terminal:
            before = set_aside.get(above.lease_id, Amounts())
            set_aside[above.lease_id] = before.plus(account.budget.counted())
    for lease in state.leases.values():
        if lease.is_terminal:
            continue
        expected = set_aside.get(lease.lease_id, Amounts())
        found = Amounts() if lease.delegation is None else lease.delegation.delegated
        if found != expected:
            yield f"lease {lease.lease_id} has set aside {found}; those below it were granted {expected}"


def _account_is_sound(lease: Lease, account: Delegation) -> Iterator[str]:
    name = f"lease {lease.lease_id}"
    left = account.remaining
    for part in DIMENSIONS:
        remaining = getattr(left, part)
        spent, set_aside = getattr(account.spent, part), getattr(account.delegated, part)
        if spent < 0 or set_aside < 0 or (remaining is not None and remaining < 0):
            left_over = "no limit" if remaining is None else f"{remaining} remaining"
            yield f"{name} has {part} below 0: {spent} spent, {set_aside} set aside, {left_over}"
    if len(account.ancestors) > ANCESTORS_MAXIMUM:
        yield f"{name} has {len(account.ancestors)} leases above it"
    if account.orphaned and not lease.is_terminal:
        yield f"{name} has left its children, and stands"


def _fits(child: Lease, account: Delegation, parent: Lease, state: State) -> Iterator[str]:
    name = f"lease {child.lease_id}"
    given = parent.delegation
    if given is None:
        yield f"{name} was derived from {parent.lease_id}, which had nothing to give"
        return
    if child.tenant != parent.tenant or account.ancestors != (*given.ancestors, parent.lease_id):
        yield f"{name} is not in the line of its parent {parent.lease_id}"
    if account.scope.exceeds(given.scope) is not None:
        yield f"{name} is allowed {account.scope.exceeds(given.scope)}, which its parent is not"
    if given.budget.short_of(account.budget) is not None:
        yield f"{name} was granted more {given.budget.short_of(account.budget)} than its parent"
    if child.is_terminal:
        return
    if parent.is_terminal:
        if not given.orphaned:
            yield f"{name} stands, and its parent {parent.lease_id} ended without leaving it to be ended"
        return
    ends, parent_ends = _expiry(child, state), _expiry(parent, state)
    if ends is not None and parent_ends is not None and (ends.until(parent_ends) or 0) < 0:
        yield f"{name} outlives its parent {parent.lease_id}"


def _expiry(lease: Lease, state: State) -> Tick | None:
    """Return when a lease expires on the present clock, as far as anybody can tell."""
    expires, authority = lease.expires_tick, state.authority
    if expires is None or authority is None or expires.era >= authority.era:
        return expires
    return carry_over(expires, authority, state.eras)
