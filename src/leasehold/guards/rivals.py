"""Whose lease is in whose way. Pure."""

from collections.abc import Iterable

from leasehold.engine.questions import LeaseStatus
from leasehold.kernel.lease.model import Mode
from leasehold.kernel.lease.paths import includes
from leasehold.kernel.ledger.tick import NANOSECONDS_PER_SECOND


def speaks_for(agent: str, holder: str) -> bool:
    """Say whether what a holder has is an agent's: its own, or that of one of its subagents."""
    return holder == agent or holder.startswith(f"{agent}/")


def in_the_way(around: Iterable[LeaseStatus], agent: str) -> LeaseStatus | None:
    """Return the lease of somebody else that keeps an agent from a path the longest; None: nothing does."""
    others = [status for status in around if not speaks_for(agent, status.lease.holder)]
    return max(others, key=lambda status: status.expires_in, default=None)


def has_long(around: Iterable[LeaseStatus], agent: str, resource: str, part: float) -> bool:
    """Say whether an agent's own lease covers a resource, and has more than a part of its TTL left."""
    return any(
        status.lease.holder == agent
        and status.lease.mode is Mode.EXCLUSIVE
        and includes(status.lease.resource, resource)
        and status.expires_in * NANOSECONDS_PER_SECOND > part * status.lease.ttl_ns
        for status in around
    )
