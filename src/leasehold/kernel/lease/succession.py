"""What an adopted lease inherits from the one it replaces.

Adopting goes on where a lost incarnation stopped. The new lease has the scope and the parent of the old
one, and what is left of its budget: a restart must neither lose a budget nor fill it up again. A claim that
names a scope or a budget of its own gets those instead, but not under a parent, who gave what there is.

The children of the old lease are over with it. What they did not use goes to the lease above it. Where there
is none, the new lease takes over what was set aside for them, and has it as soon as each of them is recorded
as ended, in this commit or in a later one: the end of the old lease says who its successor is.
"""

import msgspec
from msgspec.structs import replace

from leasehold.kernel.lease.commands import Acquire
from leasehold.kernel.lease.decision import about
from leasehold.kernel.lease.delegation import Delegation
from leasehold.kernel.lease.events import LeaseEvent, LeaseReleased, released
from leasehold.kernel.lease.lineage import ceiling, delegated
from leasehold.kernel.lease.model import Lease, ReleaseReason
from leasehold.kernel.lease.view import LeaseView
from leasehold.kernel.ledger.limits import invalid
from leasehold.kernel.ledger.refusals import Refusal, RefusalCode
from leasehold.kernel.ledger.tick import Now


class Succession(msgspec.Struct, frozen=True, kw_only=True):
    """What the new lease carries, how long it lasts, and what the parent sets aside for it."""

    delegation: Delegation
    ttl_ns: int
    events: list[LeaseEvent] = []


def handed_on(
    old: Lease, now: Now, successor: str, *, named: Delegation | None = None, request: str | None = None
) -> LeaseReleased:
    """Return the end of a lease that another one replaces; `named` is what that one asks for itself."""
    ended = released(old, now, ReleaseReason.TRANSFERRED, request)
    inherits = named is None and old.delegation is not None and not old.delegation.ancestors
    return replace(ended, successor=successor) if inherits else ended


def taken_over(account: Delegation) -> Delegation:
    """Return what the successor of a first lease begins with: all that was not spent."""
    return Delegation(
        scope=account.scope, budget=account.budget.minus(account.spent), delegated=account.delegated
    )


def refuse_line(own: list[Lease]) -> Refusal | None:
    """Refuse to replace a lease together with one that was derived from it, and that ends with it."""
    names = {lease.lease_id: lease.resource for lease in own}
    for lease in own:
        for ancestor_id in () if lease.delegation is None else lease.delegation.ancestors:
            if ancestor_id in names:
                detail = (
                    f"{lease.resource} was derived from {names[ancestor_id]}, and ends with it; adopt one"
                )
                return invalid("resource", detail)
    return None


def succeed(
    command: Acquire, old: Lease, view: LeaseView, now: Now, *, named: Delegation | None
) -> Succession | Refusal | None:
    """Return what a lease that replaces `old` inherits (None: nothing), or why it cannot on these terms.

    `named` is what the claim asks for itself.
    """
    account = old.delegation
    if account is None:
        return None
    if not account.ancestors:
        return Succession(delegation=named or taken_over(account), ttl_ns=command.ttl_ns)
    if named is not None:
        return invalid("scope", "and budget of a derived lease come from its parent; leave them out")
    highest = ceiling(old, view, now)
    parent = view.ancestors_of(old)[account.ancestors[-1]]
    if highest is None or parent is None:
        return about(RefusalCode.UNKNOWN_TIME, old, now)
    return Succession(
        delegation=Delegation(
            scope=account.scope, budget=account.remaining, ancestors=account.ancestors, ttl_ns=command.ttl_ns
        ),
        ttl_ns=min(command.ttl_ns, highest - now.tick.value),
        events=[delegated(parent, command.lease_id, account.remaining.counted(), now)],
    )
