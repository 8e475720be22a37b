"""Events about one lease: what they all say, said once.

Grants and claims spell their events out: they are about leases that are not there yet.
"""

from typing import TypedDict

from leasehold.kernel.events import REGISTRAR
from leasehold.kernel.lease import Lease, Token
from leasehold.kernel.tick import Now, Tick


class _Befalling(TypedDict):
    tick: Tick
    at_ns: int
    actor: str
    tenant: str
    lease_id: str
    resource: str
    holder: str
    token: Token


def befalling(lease: Lease, now: Now, *, actor: str = REGISTRAR, token: Token | None = None) -> _Befalling:
    """Return what every event says of something that happens to a lease now; `token` is one it gets by it."""
    return {
        "tick": now.tick,
        "at_ns": now.wall_ns,
        "actor": actor,
        "tenant": lease.tenant,
        "lease_id": lease.lease_id,
        "resource": lease.resource,
        "holder": lease.holder,
        "token": lease.token if token is None else token,
    }
