"""Who waits for a resource, since when, and for how long it may be."""

import msgspec

from leasehold.engine.registrar import LeaseStatus, Registrar
from leasehold.kernel.lease import Lease
from leasehold.kernel.tick import NANOSECONDS_PER_SECOND


class Waiter(msgspec.Struct, frozen=True, kw_only=True):
    """A claim that waits, and its place in the queue."""

    lease: Lease
    position: int
    """1: next in line."""
    waited: float
    """Seconds since it joined the queue, by the wall clock of this machine."""
    estimate: float
    """Seconds until its turn comes if everybody ahead keeps its lease for its TTL, and nobody renews or
    releases."""


def waiters(registrar: Registrar, tenant: str, resource: str, wall_ns: int) -> list[Waiter]:
    """Return who waits for a resource, first in line first; for a path, also above and below it."""
    held = [status for status in registrar.standing_on(tenant, resource) if status.is_live]
    ahead = max((status.expires_in for status in held), default=0.0)
    found: list[Waiter] = []
    for position, status in enumerate(registrar.queue(tenant, resource), 1):
        found.append(_waiter(status, position, ahead, wall_ns))
        ahead += status.lease.ttl_ns / NANOSECONDS_PER_SECOND
    return found


def _waiter(status: LeaseStatus, position: int, ahead: float, wall_ns: int) -> Waiter:
    lease = status.lease
    since_ns = lease.issued_at_ns if lease.ticket is None else lease.ticket.since_ns
    return Waiter(
        lease=lease,
        position=position,
        waited=max(0, wall_ns - since_ns) / NANOSECONDS_PER_SECOND,
        estimate=ahead,
    )
