"""What a lease is.

A lease is a granted claim: this holder owns this resource, in this mode, under this token, until this
tick. Ticks decide; the wall times beside them are for people. A lease never comes back from a terminal
state.
"""

from enum import StrEnum
from typing import Any, Self

import msgspec

from leasehold.kernel.lease.delegation import Delegation
from leasehold.kernel.lease.ticket import LAST_PLACE, Ticket
from leasehold.kernel.ledger.events import Token
from leasehold.kernel.ledger.tick import Tick

REASON = "reason"
"""Under which name the metadata of a lease says what it is for."""


class UnknownWord(ValueError):
    """A text names no state, mode or reason that exists."""


class _Word(StrEnum):
    """An enumeration that is read in any case and always written the same way."""

    @classmethod
    def parse(cls, text: str) -> Self:
        """Return the member that `text` names, in any case; raise UnknownWord for anything else."""
        if isinstance(text, cls):
            return text
        for member in cls:
            if member.value == text.lower():
                return member
        known = ", ".join(member.value for member in cls)
        raise UnknownWord(f"{text!r} is not one of: {known}")


class Mode(_Word):
    """How a resource is owned: alone, or together with others who only share it."""

    EXCLUSIVE = "exclusive"
    SHARED = "shared"

    def conflicts_with(self, other: "Mode") -> bool:
        """Say whether the two modes can not stand on one resource at the same time."""
        return self is Mode.EXCLUSIVE or other is Mode.EXCLUSIVE


class LeaseState(_Word):
    """Where a lease is in its life. There is no way back from a terminal state."""

    PENDING = "pending"
    ACTIVE = "active"
    RELEASED = "released"
    EXPIRED = "expired"
    REVOKED = "revoked"
    FAILED = "failed"

    @property
    def is_terminal(self) -> bool:
        """Say whether nothing can happen to a lease in this state any more."""
        return self is not _ACTIVE and self is not _PENDING


_PENDING, _ACTIVE = LeaseState.PENDING, LeaseState.ACTIVE


class ReleaseReason(_Word):
    """Why a holder gave a lease back. For the audit; it changes no behaviour."""

    COMPLETED = "completed"
    ABORTED = "aborted"
    VOLUNTARY = "voluntary"
    TRANSFERRED = "transferred"


class Lease(msgspec.Struct, frozen=True, kw_only=True, gc=False, omit_defaults=True):
    """A granted claim, with everything the ledger says about it.

    `resource` is what other vocabularies call a work id, file path, workflow id or camera uuid; `holder`
    is their actor, agent, orchestrator or runner.
    """

    lease_id: str
    resource: str
    holder: str
    token: Token
    ttl_ns: int
    issued_tick: Tick | None
    """When it was granted; None once the clock it was granted on has ended."""
    expires_tick: Tick | None
    """The lease has expired at this tick and after. None: time unknown, so it is of no use to its holder."""
    issued_at_ns: int
    """Wall time of the grant."""
    expires_at_ns: int
    """Wall time at which the lease would expire, as foreseen at the last grant or renewal."""
    tenant: str = "default"
    mode: Mode = Mode.EXCLUSIVE
    state: LeaseState = LeaseState.ACTIVE
    renewal_count: int = 0
    max_renewals: int = -1
    """How often the lease may be renewed; any negative number means without limit."""
    last_renewed_at_ns: int | None = None
    terminated_at_ns: int | None = None
    """Wall time of the end. For an expired lease this is `expires_at_ns`, whoever noticed it whenever."""
    release_reason: ReleaseReason | None = None
    ended_by: str | None = None
    """Who ended it: the holder, an operator, or `registrar` for time and reboots."""
    end_reason: str | None = None
    """What an operator, or the registrar, gave as the reason for a revocation."""
    end_request: str | None = None
    """The request that released or revoked it, so that a retry is told what the first try was."""
    adopted_from: str | None = None
    """The lease this one replaced, when its holder adopted its own lost lease."""
    bound_to_boot: bool = True
    """Whether the holder is a process that cannot survive a reboot of the authority's machine."""
    signature: bytes = b""
    """The registrar's signature over the grant; empty while the ledger's seals vouch for it."""
    metadata: dict[str, Any] = {}
    config_version: str = ""
    zone_version: str = ""
    delegation: Delegation | None = None
    """Scope, budget and descent. None: a plain lease, which allows nothing and has nothing to hand on."""
    lock_delay_ns: int = 0
    """How long the resource stays closed to others after an expiry or a revocation."""
    delayed_for: str = ""
    """Set in a lease of the registrar's that only keeps a resource closed: who may come back nevertheless."""
    ticket: Ticket | None = None
    """Its place in the queue while it is pending, and until its holder has confirmed the grant; or while
    the holder of a shared lease waits to have it exclusively."""
    version: int = 1
    """Counts the changes to this record."""

    @property
    def reason(self) -> str:
        """Return what the lease is for, if its holder said so; whoever is refused because of it is told."""
        reason = self.metadata.get(REASON, "")
        return reason if isinstance(reason, str) else ""

    @property
    def is_terminal(self) -> bool:
        """Say whether the lease has ended for good."""
        return self.state is not _ACTIVE and self.state is not _PENDING

    def was_held_at(self, wall_ns: int) -> bool:
        """Say whether the lease stood at a wall time, as far as is known now; for audit only.

        A lease is held without a gap from its grant to its end: what has expired is never renewed.
        """
        if self.state in (LeaseState.PENDING, LeaseState.FAILED):
            return False
        end_ns = self.expires_at_ns
        if self.terminated_at_ns is not None:
            end_ns = min(end_ns, self.terminated_at_ns)
        return self.issued_at_ns <= wall_ns < end_ns

    @property
    def place(self) -> str:
        """Return where in the queue a waiting lease stands."""
        return LAST_PLACE if self.ticket is None else self.ticket.place

    @property
    def is_waiting(self) -> bool:
        """Say whether somebody waits with this lease: to be granted it, or to be alone on it."""
        return self.ticket is not None and (self.state is _PENDING or self.is_upgrading)

    @property
    def is_upgrading(self) -> bool:
        """Say whether the holder of this shared lease waits to have it exclusively."""
        return self.state is _ACTIVE and self.ticket is not None and self.ticket.upgrade

    @property
    def is_unconfirmed(self) -> bool:
        """Say whether the lease was granted to a waiter that has not been heard of since."""
        return self.state is _ACTIVE and self.ticket is not None and not self.ticket.upgrade

    def ticks_remaining(self, now: Tick) -> int:
        """Return how much authority time is left; 0 when it is over, ended, or unknown."""
        if self.expires_tick is None or self.state.is_terminal:
            return 0
        return max(0, now.until(self.expires_tick) or 0)

    def is_expired_at(self, now: Tick) -> bool:
        """Say whether the holder must regard an unended lease as expired; unknown time counts as expired."""
        return not self.state.is_terminal and self.ticks_remaining(now) == 0
