"""Events about one lease: what they all say, said once.

Grants and claims spell their events out: they are about leases that are not there yet.
"""

from typing import Any, TypeVar

from leasehold.kernel.events import REGISTRAR, LeaseEvent
from leasehold.kernel.lease import Lease
from leasehold.kernel.tick import Now

_Kind = TypeVar("_Kind", bound=LeaseEvent)


def happened(kind: type[_Kind], lease: Lease, now: Now, *, actor: str = REGISTRAR, **facts: Any) -> _Kind:
    """Return the event of something that happens to a lease now; `facts` are what its kind says besides."""
    said: dict[str, Any] = {
        "tick": now.tick,
        "at_ns": now.wall_ns,
        "actor": actor,
        "tenant": lease.tenant,
        "lease_id": lease.lease_id,
        "resource": lease.resource,
        "holder": lease.holder,
        "token": lease.token,
    }
    return kind(**(said | facts))
