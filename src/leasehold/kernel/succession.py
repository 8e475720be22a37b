"""What an adopted lease inherits from the one it replaces.

Adopting goes on where a lost incarnation stopped. The new lease has the scope and the parent of the old
one, and what is left of its budget: a restart must neither lose a budget nor fill it up again. A claim that
names a scope or a budget of its own gets those instead, but not under a parent, who gave what there is.
"""

import msgspec

from leasehold.kernel.commands import Acquire
from leasehold.kernel.decision import about
from leasehold.kernel.delegation import Delegation
from leasehold.kernel.events import LeaseEvent
from leasehold.kernel.lease import Lease
from leasehold.kernel.limits import invalid
from leasehold.kernel.lineage import ceiling, delegated
from leasehold.kernel.refusals import Refusal, RefusalCode
from leasehold.kernel.tick import Now
from leasehold.kernel.view import View


class Succession(msgspec.Struct, frozen=True, kw_only=True):
    """What the new lease carries, how long it lasts, and what the parent sets aside for it."""

    delegation: Delegation
    ttl_ns: int
    events: list[LeaseEvent] = []


def succeed(
    command: Acquire, old: Lease, view: View, now: Now, *, named: Delegation | None
) -> Succession | Refusal | None:
    """Return what a lease that replaces `old` inherits (None: nothing), or why it cannot on these terms.

    `named` is what the claim asks for itself.
    """
    account = old.delegation
    if account is None:
        return None
    inherited = Delegation(
        scope=account.scope, budget=account.remaining, ancestors=account.ancestors, ttl_ns=command.ttl_ns
    )
    if not account.ancestors:
        return Succession(
            delegation=named or msgspec.structs.replace(inherited, ttl_ns=0), ttl_ns=command.ttl_ns
        )
    if named is not None:
        return invalid("scope", "and budget of a derived lease come from its parent; leave them out")
    highest = ceiling(old, view, now)
    parent = view.ancestors_of(old)[account.ancestors[-1]]
    if highest is None or parent is None:
        return about(RefusalCode.UNKNOWN_TIME, old, now)
    return Succession(
        delegation=inherited,
        ttl_ns=min(command.ttl_ns, highest - now.tick.value),
        events=[delegated(parent, command.lease_id, account.remaining.counted(), now)],
    )
