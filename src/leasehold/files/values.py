"""What file leases are asked for with, and what is answered: plain values.

A request that can be answered never raises: its response says whether it succeeded, and if not, why.
"""

from enum import StrEnum
from typing import Any

import msgspec

from leasehold.engine.questions import LeaseStatus as KernelStatus
from leasehold.files.names import shown
from leasehold.kernel.lease.model import LeaseState, Mode
from leasehold.kernel.lease.ticket import PRIORITY_USUAL
from leasehold.kernel.ledger.tick import NANOSECONDS_PER_SECOND


class LeaseStatus(StrEnum):
    """Where a file lease is in its life."""

    ACTIVE = "active"
    EXPIRED = "expired"
    RELEASED = "released"
    """Given back by its agent, or taken from it; then `ended_because` says why."""
    PENDING = "pending"
    FAILED = "failed"
    """It waited, and was never granted."""


_STATUSES = {state: LeaseStatus(state.value) for state in LeaseState if state is not LeaseState.REVOKED} | {
    LeaseState.REVOKED: LeaseStatus.RELEASED
}


class FileLease(msgspec.Struct, frozen=True, kw_only=True):
    """A file lease as it stood at the moment of the answer."""

    id: str
    file_path: str
    """Inside its repository, or absolute."""
    resource: str
    """Its name in the store, the same in every clone and work tree."""
    agent_id: str
    created_at: float
    """Wall time, in seconds since 1970, as are all of these."""
    expires_at: float
    updated_at: float
    ttl_seconds: float
    status: LeaseStatus
    time_remaining: float
    """Seconds left by the authority's clock; 0 once it is over."""
    renewal_count: int
    max_renewals: int
    """-1: no limit."""
    mode: Mode
    token: int
    """Pass it along with every write."""
    reason: str = ""
    """What its agent says it is for."""
    ended_because: str = ""
    """Why it was given back, or taken from its agent."""

    @property
    def is_valid(self) -> bool:
        """Say whether it stood."""
        return self.status is LeaseStatus.ACTIVE

    @property
    def can_be_renewed(self) -> bool:
        """Say whether it stood and had renewals left."""
        return self.is_valid and not 0 <= self.max_renewals <= self.renewal_count


def file_lease(status: KernelStatus) -> FileLease:
    """Return a lease of the kernel as a file lease."""
    lease = status.lease
    state = lease.state
    if state is LeaseState.ACTIVE and not status.is_live:
        state = LeaseState.EXPIRED  # Recorded or not.
    moments = (lease.issued_at_ns, lease.last_renewed_at_ns, lease.terminated_at_ns)
    return FileLease(
        id=lease.lease_id,
        file_path=shown(lease.resource),
        resource=lease.resource,
        agent_id=lease.holder,
        created_at=lease.issued_at_ns / NANOSECONDS_PER_SECOND,
        expires_at=lease.expires_at_ns / NANOSECONDS_PER_SECOND,
        updated_at=max(moment for moment in moments if moment is not None) / NANOSECONDS_PER_SECOND,
        ttl_seconds=lease.ttl_ns / NANOSECONDS_PER_SECOND,
        status=_STATUSES[state],
        time_remaining=status.expires_in,
        renewal_count=lease.renewal_count,
        max_renewals=lease.max_renewals,
        mode=lease.mode,
        token=lease.token,
        reason=lease.reason,
        ended_because=lease.end_reason or lease.release_reason or "",
    )


class LeaseAcquisitionRequest(msgspec.Struct, frozen=True):
    """Ask for a file, a folder or a pattern. What is None is as the settings say."""

    file_path: str
    agent_id: str
    ttl_seconds: float | None = None
    max_renewals: int | None = None
    timeout_ms: int | None = None
    blocking: bool = True
    mode: str = "exclusive"
    priority: int = PRIORITY_USUAL
    reason: str = ""


class LeaseAcquisitionResponse(msgspec.Struct, frozen=True, kw_only=True):
    """What became of a claim."""

    success: bool
    lease: FileLease | None = None
    error: str | None = None
    waited_ms: int = 0
    holder: str | None = None
    """Who is in the way."""
    facts: dict[str, Any] = {}
    """What else is known about a refusal: since when, until when, why, which place in the queue."""


class LeaseRenewalRequest(msgspec.Struct, frozen=True):
    """Ask for more time, from now on."""

    lease_id: str
    agent_id: str
    new_ttl_seconds: float | None = None


class LeaseRenewalResponse(msgspec.Struct, frozen=True, kw_only=True):
    """Whether there is more time."""

    success: bool
    lease: FileLease | None = None
    error: str | None = None


class LeaseReleaseRequest(msgspec.Struct, frozen=True):
    """Give a lease back."""

    lease_id: str
    agent_id: str


class LeaseReleaseResponse(msgspec.Struct, frozen=True, kw_only=True):
    """Whether it was given back by this."""

    success: bool
    error: str | None = None


class LeaseUpgradeRequest(msgspec.Struct, frozen=True):
    """Ask to have a shared lease exclusively."""

    lease_id: str
    agent_id: str
    timeout_ms: int | None = None
    blocking: bool = True


class LeaseTransferRequest(msgspec.Struct, frozen=True):
    """Hand a lease to another agent."""

    lease_id: str
    agent_id: str
    to_agent_id: str
    ttl_seconds: float | None = None


class LeaseEvent(msgspec.Struct, frozen=True, kw_only=True):
    """Something that happened to a file lease."""

    kind: str
    """acquired, renewed, released, upgraded, transferred, lost or failed."""
    lease: FileLease | None
    """None: a claim that was not granted."""
    detail: str = ""
    """Why it failed, was lost, or was taken."""
