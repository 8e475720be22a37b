"""What an adopted lease inherits from the one it replaces.

Adopting goes on where a lost incarnation stopped. The new lease has the scope and the parent of the old
one, and what is left of its budget: a restart must neither lose a budget nor fill it up again. A claim that
names a scope or a budget of its own gets those instead, but not under a parent, who gave what there is.

The children of the old lease are over with it. What they did not use goes to the lease above it; where there
is none, the new lease has it.
"""

import msgspec

from leasehold.kernel.budget import Amounts, Budget
from leasehold.kernel.commands import Acquire
from leasehold.kernel.decision import about
from leasehold.kernel.delegation import Delegation
from leasehold.kernel.events import LeaseEvent
from leasehold.kernel.lease import Lease
from leasehold.kernel.limits import invalid
from leasehold.kernel.lineage import ceiling, delegated
from leasehold.kernel.records import CHILDREN_PAGE
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
    if not account.ancestors:
        inherited = named or Delegation(scope=account.scope, budget=_left_of(old, account, view))
        return Succession(delegation=inherited, ttl_ns=command.ttl_ns)
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


def _left_of(first: Lease, account: Delegation, view: View) -> Budget:
    """Return what is left of a first lease's budget once all below it are over.

    What they have is counted for as many of them as one read gives. Of more it is lost: to count them all
    could take for ever.
    """
    line = [first.lease_id]
    accounts = {first.lease_id: account}
    for lease_id in line:
        if accounts[lease_id].delegated == Amounts():
            continue
        for child in view.children_of(lease_id)[0][: CHILDREN_PAGE + 1 - len(line)]:
            assert child.delegation is not None, "a child names its parent there"
            line.append(child.lease_id)
            accounts[child.lease_id] = child.delegation
    # From the last on: who is below a lease stands behind it, so its account is settled when its turn comes.
    for child_id in reversed(line[1:]):
        own = accounts[child_id]
        above = own.ancestors[-1]
        accounts[above] = accounts[above].reclaimed(own.budget.counted(), own.spent, own.delegated)
    return accounts[first.lease_id].remaining
