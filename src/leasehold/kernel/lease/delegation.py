"""What a lease carries beyond its resource: a scope, a budget, and a place in a line of leases.

A lease that was acquired with a scope or a budget can be derived from. A child has its own resource, its own
holder and its own time, and never more of anything than its parent. Its ancestors are named in it, so that
whoever meets it can ask at once whether they still stand.
"""

import msgspec
from msgspec.structs import replace

from leasehold.kernel.lease.budget import Amounts, Budget
from leasehold.kernel.lease.scope import Scope

ANCESTORS_MAXIMUM = 16
"""How many leases may stand above one."""

_NOTHING = Amounts()


class Delegation(msgspec.Struct, frozen=True, kw_only=True, gc=False, omit_defaults=True):
    """Scope, budget and descent of a lease. `scope` and `budget` are what was granted, and never change."""

    scope: Scope = Scope()
    budget: Budget = Budget()
    ancestors: tuple[str, ...] = ()
    """The leases above this one, from the first to its parent. Empty: it was acquired, not derived."""
    ttl_ns: int = 0
    """What a derived lease asks for when it is renewed; it may get less, because its parent has less left."""
    spent: Amounts = _NOTHING
    """What was used up under this lease, also by children that have ended."""
    delegated: Amounts = _NOTHING
    """What was set aside for children that have not ended yet."""
    orphaned: bool = False
    """The lease has ended, and more children were left standing than fitted into that commit."""
    successor: str = ""
    """The lease that took over this one's budget when it ended: what those below give back goes there."""

    @property
    def parent(self) -> str | None:
        """Return the lease that this one was derived from."""
        return self.ancestors[-1] if self.ancestors else None

    @property
    def remaining(self) -> Budget:
        """Return what can still be spent or handed on."""
        return self.budget.minus(self.spent).minus(self.delegated)

    def reclaimed(self, granted: Amounts, spent: Amounts, delegated: Amounts) -> "Delegation":
        """Return the account after a child ended that was granted, has spent and has handed on so much.

        What it handed on stays set aside, now for its children; the rest of its grant is free again.
        """
        return replace(
            self,
            spent=self.spent.plus(spent),
            delegated=self.delegated.plus(delegated).minus(granted),
        )
