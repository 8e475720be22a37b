"""What can happen to leases."""

from typing import Any, TypedDict, get_args

from leasehold.kernel.lease.budget import Amounts
from leasehold.kernel.lease.commands import Acquire
from leasehold.kernel.lease.delegation import Delegation
from leasehold.kernel.lease.model import Lease, Mode, ReleaseReason
from leasehold.kernel.lease.ticket import PRIORITY_USUAL
from leasehold.kernel.ledger.events import REGISTRAR, Event, Stamp, Token, read_from
from leasehold.kernel.ledger.tick import Now

REBOOT = "reboot"
"""The reason given when a lease ends because its holder cannot have survived a restart."""

STOPPED_ASKING = "stopped asking"
"""The reason given when a waiter leaves the queue because nothing was heard of it."""

CANCELLED = "cancelled"
"""The reason given when a waiter leaves the queue of its own accord."""

_FILING = read_from("tenant", "lease_id", "resource", "holder", "token")
"""Under what an event about leases is found."""


class _LeaseEvent(Event, frozen=True, kw_only=True, omit_defaults=True):
    tenant: str = "default"
    lease_id: str
    resource: str
    holder: str
    token: Token

    @property
    def keys(self) -> tuple[str, ...]:
        """Return the lease this event changes."""
        return (self.lease_id,)

    filing = _FILING
    number = read_from("token")
    """The token, or ticket, of the lease."""


class LeaseIssued(_LeaseEvent, frozen=True, kw_only=True, omit_defaults=True, tag="lease.issued"):
    """A claim was granted."""

    is_remembered = True
    draws = True

    mode: Mode = Mode.EXCLUSIVE
    ttl_ns: int
    max_renewals: int = -1
    adopted_from: str | None = None
    bound_to_boot: bool = True
    signature: bytes = b""
    metadata: dict[str, Any] = {}
    config_version: str = ""
    zone_version: str = ""
    delegation: Delegation | None = None
    """Scope, budget and descent of the lease; None for a plain one."""
    lock_delay_ns: int = 0
    group: tuple[str, ...] = ()
    """All leases of a claim on several resources, which were granted together."""
    delayed_for: str = ""
    """For a lease of the registrar's that only keeps a resource closed: who may come back nevertheless."""
    claim_window_ns: int = 0
    """For a waiter: how long the lease lasts unless its holder confirms it. 0: it is confirmed as it is."""


class LeaseQueued(_LeaseEvent, frozen=True, kw_only=True, omit_defaults=True, tag="lease.queued"):
    """A claim could not be granted at once and waits. `token` is its ticket; a grant gives it a token."""

    is_remembered = True
    draws = True

    mode: Mode = Mode.EXCLUSIVE
    ttl_ns: int
    kept_ns: int
    """How long the waiter keeps its place without asking again."""
    priority: int = PRIORITY_USUAL
    group: tuple[str, ...] = ()
    """All leases of a claim on several resources; they are granted together. Empty: just this one."""
    wake: str = ""
    max_renewals: int = -1
    bound_to_boot: bool = True
    metadata: dict[str, Any] = {}
    config_version: str = ""
    zone_version: str = ""
    lock_delay_ns: int = 0
    delegation: Delegation | None = None
    """Scope and budget that the lease is to have; None for a plain one."""

    @property
    def is_number_new(self) -> bool:
        """Say no: a claim on several resources has one ticket on all of them."""
        return False


class LeaseLeft(_LeaseEvent, frozen=True, kw_only=True, omit_defaults=True, tag="lease.left"):
    """A waiter left the queue without the lease: it gave up, fell silent, or would have waited for ever."""

    reason: str


class LeaseDoubted(_LeaseEvent, frozen=True, kw_only=True, omit_defaults=True, tag="lease.doubted"):
    """This waiter is in a circle of waiters that never ends, unless one has died. It has to ask again."""


class LeaseConfirmed(_LeaseEvent, frozen=True, kw_only=True, omit_defaults=True, tag="lease.confirmed"):
    """A waiter took what it had been granted, and has it for its whole TTL from now on."""


class LeaseUpgradeQueued(
    _LeaseEvent, frozen=True, kw_only=True, omit_defaults=True, tag="lease.upgrade_queued"
):
    """A sharer waits to be alone. The other sharers may stay, and nobody new is let in."""

    draws = True

    ticket: int
    kept_ns: int
    wake: str = ""

    number = read_from("ticket")

    @property
    def is_number_new(self) -> bool:
        """Say no: an upgrade that is asked for again keeps its ticket."""
        return False


class LeaseUpgradeLeft(_LeaseEvent, frozen=True, kw_only=True, omit_defaults=True, tag="lease.upgrade_left"):
    """A sharer stopped waiting to be alone, and goes on sharing."""

    reason: str


class LeaseModeChanged(_LeaseEvent, frozen=True, kw_only=True, omit_defaults=True, tag="lease.mode_changed"):
    """A lease became exclusive, with a new token, or became shared and kept its token."""

    is_remembered = True
    draws = True

    mode: Mode

    @property
    def is_number_new(self) -> bool:
        """Say whether the lease got a new token: one that is shared from now on keeps its own."""
        return self.mode is Mode.EXCLUSIVE


class LeaseRenewed(Event, frozen=True, kw_only=True, omit_defaults=True, tag="lease.renewed"):
    """Leases of one holder got more time: one entry for the whole batch, because renewals are the flood."""

    is_remembered = True

    tenant: str = "default"
    holder: str
    renewals: dict[str, int]
    """Lease id to the tick value at which it expires now, on the clock of `tick`."""
    resource: str | None = None
    """The resource and token, when just one lease was renewed."""
    token: Token | None = None

    @property
    def lease_id(self) -> str | None:
        """Return the lease, when there is just one."""
        return next(iter(self.renewals)) if len(self.renewals) == 1 else None

    @property
    def keys(self) -> tuple[str, ...]:
        """Return the leases this event changes."""
        return tuple(self.renewals)

    filing = _FILING


class LeaseReleased(_LeaseEvent, frozen=True, kw_only=True, omit_defaults=True, tag="lease.released"):
    """A holder gave its lease back."""

    reason: ReleaseReason
    orphaned: bool = False
    successor: str = ""
    """The lease that takes over its budget, and with it what was set aside for those below."""


class LeaseExpired(_LeaseEvent, frozen=True, kw_only=True, omit_defaults=True, tag="lease.expired"):
    """Somebody noticed that a lease's time was over."""

    orphaned: bool = False


class LeaseRevoked(_LeaseEvent, frozen=True, kw_only=True, omit_defaults=True, tag="lease.revoked"):
    """`actor` ended a lease by force."""

    reason: str
    orphaned: bool = False


class LeaseRearmed(_LeaseEvent, frozen=True, kw_only=True, omit_defaults=True, tag="lease.rearmed"):
    """A lease from an earlier era of the clock was given what it had left, on the clock of now."""

    expires_tick: int


class LeaseDelegated(_LeaseEvent, frozen=True, kw_only=True, omit_defaults=True, tag="lease.delegated"):
    """A child was derived, and what it may spend was set aside from its parent's budget."""

    child_id: str
    amounts: Amounts


class LeaseReclaimed(_LeaseEvent, frozen=True, kw_only=True, omit_defaults=True, tag="lease.reclaimed"):
    """A child ended, and what it did not use came back to the nearest lease above it that stands."""

    child_id: str
    granted: Amounts
    spent: Amounts
    delegated: Amounts
    """What the child's own children still have; it comes back when they end."""


class LeaseSpent(_LeaseEvent, frozen=True, kw_only=True, omit_defaults=True, tag="lease.spent"):
    """A holder used up some of its lease's budget."""

    is_remembered = True

    amounts: Amounts


LeaseEvent = (
    LeaseIssued
    | LeaseRenewed
    | LeaseReleased
    | LeaseExpired
    | LeaseRevoked
    | LeaseRearmed
    | LeaseDelegated
    | LeaseReclaimed
    | LeaseSpent
    | LeaseQueued
    | LeaseLeft
    | LeaseConfirmed
    | LeaseUpgradeQueued
    | LeaseUpgradeLeft
    | LeaseModeChanged
    | LeaseDoubted
)
LEASE_EVENTS: tuple[type[Event], ...] = get_args(LeaseEvent)
EndEvent = LeaseReleased | LeaseExpired | LeaseRevoked
"""Events after which a lease is over. `orphaned`: more children were left standing than fitted in."""


class _Terms(TypedDict):
    max_renewals: int
    bound_to_boot: bool
    metadata: dict[str, Any]
    config_version: str
    zone_version: str
    lock_delay_ns: int


def terms_of(claim: Acquire | LeaseQueued | LeaseIssued | Lease) -> _Terms:
    """Return what a claim asks for that its lease keeps, through the queue and in other hands."""
    return {
        "max_renewals": max(-1, claim.max_renewals),
        "bound_to_boot": claim.bound_to_boot,
        "metadata": claim.metadata,
        "config_version": claim.config_version,
        "zone_version": claim.zone_version,
        "lock_delay_ns": claim.lock_delay_ns,
    }


class _Befalling(Stamp):
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


def released(lease: Lease, now: Now, reason: ReleaseReason, request: str | None = None) -> LeaseReleased:
    """Return the event of a holder giving its lease back."""
    return LeaseReleased(**befalling(lease, now, actor=lease.holder), request=request, reason=reason)
