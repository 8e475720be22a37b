"""What the items of a desk's request were about, for the log: bounded, however many there are."""

from collections import Counter
from typing import Any

from leasehold.enforcing.asgi import Scope
from leasehold.engine.desk import Failure
from leasehold.engine.wire import Item
from leasehold.kernel.ledger.commands import Caller
from leasehold.server.front import LEASE, OPERATIONS
from leasehold.server.sessions import TENANT

_UNREADABLE = "unreadable"


class Carried:
    """Which kinds of items there were, and the tenant and the lease, where all are about the same one."""

    def __init__(self, caller: Caller) -> None:
        self._operations: Counter[str] = Counter()
        self._tenants = set[str]() if caller.tenant is None else {caller.tenant}
        self._lease_ids: set[str] = set()

    def take_in(self, item: Item | Failure) -> None:
        """Count an item."""
        if isinstance(item, Failure):
            self._operations[_UNREADABLE] += 1
            return
        self._operations[str(item.__struct_config__.tag)] += 1
        tenant: str | None = getattr(item, "tenant", None)
        if tenant is not None:
            self._tenants.add(tenant)
        self._lease_ids.update(_leases_of(item))

    def note(self, scope: Scope) -> None:
        """Let the log of a request tell of its items."""
        scope[OPERATIONS] = dict(self._operations)
        for key, found in ((TENANT, self._tenants), (LEASE, self._lease_ids)):
            if len(found) == 1:
                (scope[key],) = found


def _leases_of(item: Any) -> tuple[str, ...]:
    lease_id = getattr(item, "lease_id", None)
    return getattr(item, "lease_ids", ()) if lease_id is None else (lease_id,)
