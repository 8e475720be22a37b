"""What can happen. Events are the only truth; every table is a projection of them.

An event is written once and kept for ever, so its fields only ever grow. `schema` is the version of the
event's shape; decoding accepts every version that was ever written.
"""

from typing import Any, TypedDict, get_args

import msgspec

from leasehold.kernel.lease.budget import Amounts
from leasehold.kernel.lease.delegation import Delegation
from leasehold.kernel.lease.model import Lease, Mode, ReleaseReason, Token
from leasehold.kernel.lease.ticket import PRIORITY_USUAL
from leasehold.kernel.ledger.tick import Now, Tick

SCHEMA = 1
"""The newest shape of events that this version writes, and reads."""

REGISTRAR = "registrar"
"""The actor of everything that nobody asked for: expiry, reboots, new epochs."""

REBOOT = "reboot"
"""The reason given when a lease ends because its holder cannot have survived a restart."""

STOPPED_ASKING = "stopped asking"
"""The reason given when a waiter leaves the queue because nothing was heard of it."""

CANCELLED = "cancelled"
"""The reason given when a waiter leaves the queue of its own accord."""


class IllegalTransition(ValueError):
    """A ledger says that something happened which the law does not allow."""


class _Event(msgspec.Struct, frozen=True, kw_only=True, gc=False, omit_defaults=True, tag_field="type"):
    tick: Tick
    at_ns: int
    """Wall time, for people and audit only."""
    actor: str
    request: str | None = None
    """The request that caused this: its key, if a retry has to find it (see `Remembered`); else its id.

    None for a grant whose request has the id of the lease, by which a retry finds it.
    """
    schema: int = SCHEMA

    @property
    def type(self) -> str:
        """Return the event's name as the ledger spells it."""
        tag: str = self.__struct_config__.tag  # type: ignore[assignment]
        return tag


class _LeaseEvent(_Event, frozen=True, kw_only=True, omit_defaults=True):
    tenant: str = "default"
    lease_id: str
    resource: str
    holder: str
    token: Token

    @property
    def lease_ids(self) -> tuple[str, ...]:
        """Return the leases this event changes."""
        return (self.lease_id,)


class LeaseIssued(_LeaseEvent, frozen=True, kw_only=True, omit_defaults=True, tag="lease.issued"):
    """A claim was granted."""

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
    claim_window_ns: int = 0
    """For a waiter: how long the lease lasts unless its holder confirms it. 0: it is confirmed as it is."""


class LeaseQueued(_LeaseEvent, frozen=True, kw_only=True, omit_defaults=True, tag="lease.queued"):
    """A claim could not be granted at once and waits. `token` is its ticket; a grant gives it a token."""

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


class LeaseLeft(_LeaseEvent, frozen=True, kw_only=True, omit_defaults=True, tag="lease.left"):
    """A waiter left the queue without the lease: it gave up, fell silent, or would have waited for ever."""

    reason: str


class LeaseConfirmed(_LeaseEvent, frozen=True, kw_only=True, omit_defaults=True, tag="lease.confirmed"):
    """A waiter took what it had been granted, and has it for its whole TTL from now on."""


class LeaseUpgradeQueued(
    _LeaseEvent, frozen=True, kw_only=True, omit_defaults=True, tag="lease.upgrade_queued"
):
    """A sharer waits to be alone. The other sharers may stay, and nobody new is let in."""

    ticket: int
    kept_ns: int
    wake: str = ""


class LeaseUpgradeLeft(_LeaseEvent, frozen=True, kw_only=True, omit_defaults=True, tag="lease.upgrade_left"):
    """A sharer stopped waiting to be alone, and goes on sharing."""

    reason: str


class LeaseModeChanged(_LeaseEvent, frozen=True, kw_only=True, omit_defaults=True, tag="lease.mode_changed"):
    """A lease became exclusive, with a new token, or became shared and kept its token."""

    mode: Mode


class LeaseRenewed(_Event, frozen=True, kw_only=True, omit_defaults=True, tag="lease.renewed"):
    """Leases of one holder got more time: one entry for the whole batch, because renewals are the flood."""

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
    def lease_ids(self) -> tuple[str, ...]:
        """Return the leases this event changes."""
        return tuple(self.renewals)


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
    """`actor` ended a lease over its holder's head."""

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

    amounts: Amounts


class _OwnEvent(_Event, frozen=True, kw_only=True, omit_defaults=True):
    @property
    def lease_ids(self) -> tuple[str, ...]:
        """Return the leases this event is about: none."""
        return ()


class _StoreEvent(_OwnEvent, frozen=True, kw_only=True, omit_defaults=True):
    epoch: int
    boot_id: str
    identity: str


class StoreOpened(_StoreEvent, frozen=True, kw_only=True, omit_defaults=True, tag="store.opened"):
    """The store's first event: the first epoch and the first era begin, and the first key is pinned."""

    public_key: bytes = b""
    """What this commit is sealed with; empty in stores from before there were seals."""


class EpochRaised(_StoreEvent, frozen=True, kw_only=True, omit_defaults=True, tag="store.epoch_raised"):
    """The store may have forgotten grants, or its clock restarted: no token from before can come again."""

    reason: str


class StoreCheckpointed(_OwnEvent, frozen=True, kw_only=True, omit_defaults=True, tag="store.checkpointed"):
    """The first entries of the ledger were removed; a state that is kept beside it stands for them."""

    covers: int
    """The position of the last entry that was removed."""
    covers_hash: bytes
    """The hash of that entry, which the first one that is left goes on from."""
    state_digest: bytes
    """Of the state after that entry, as it is kept."""
    ended_before_ns: int
    """Leases whose own end was before this wall time left the tables, with few exceptions (`forgotten`)."""
    token_below: Token
    """Only leases with a lower token were: those that the removed entries had granted."""


class _KeyEvent(_OwnEvent, frozen=True, kw_only=True, omit_defaults=True):
    public_key: bytes
    """Which key: its public half."""
    reason: str = ""


class KeyEnrolled(_KeyEvent, frozen=True, kw_only=True, omit_defaults=True, tag="key.enrolled"):
    """A key may seal the ledger from the next commit on."""

    vouched_by: bytes = b""
    """The admitted key that vouches for this one; empty for the first, and for one that enrols itself."""
    voucher: bytes = b""
    """That key's signature."""


class KeyVouched(_KeyEvent, frozen=True, kw_only=True, omit_defaults=True, tag="key.vouched"):
    """An admitted key vouches for one that had enrolled itself."""

    vouched_by: bytes
    """The admitted key that vouches for it now."""
    voucher: bytes
    """That key's signature."""


class KeyRetired(_KeyEvent, frozen=True, kw_only=True, omit_defaults=True, tag="key.retired"):
    """A key may seal nothing any more. What it has sealed stays good."""


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
)
EndEvent = LeaseReleased | LeaseExpired | LeaseRevoked
"""Events after which a lease is over. `orphaned`: more children were left standing than fitted in."""
StoreEvent = StoreOpened | EpochRaised
KeyEvent = KeyEnrolled | KeyVouched | KeyRetired
OwnEvent = StoreEvent | StoreCheckpointed | KeyEvent
"""What happens to the registrar itself, and to no lease."""
OWN_EVENTS: frozenset[type] = frozenset(get_args(OwnEvent))
"""The same, to look a type up in: a long history has millions of events to ask about."""
Event = LeaseEvent | OwnEvent

Remembered = LeaseIssued | LeaseRenewed | LeaseSpent | LeaseQueued | LeaseModeChanged
"""Events whose `request` is the key that a retry is looked up by; an id elsewhere may read like one."""

_encoder = msgspec.json.Encoder()
_decoder: msgspec.json.Decoder[Event] = msgspec.json.Decoder(Event)


class DecodeError(ValueError):
    """A ledger entry is not an event this version understands."""


def encode_event(event: Event) -> bytes:
    """Return the event as the ledger keeps it. The same event always gives the same bytes."""
    return _encoder.encode(event)


def decode_event(body: bytes | str) -> Event:
    """Return the event that `body` holds; raise DecodeError for anything else."""
    try:
        event = _decoder.decode(body)
    except (ValueError, RecursionError) as error:
        raise DecodeError(str(error)) from error
    if event.schema > SCHEMA:
        raise DecodeError(f"{event.type} has schema {event.schema}, and {SCHEMA} is the newest known here")
    return event


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


def released(lease: Lease, now: Now, reason: ReleaseReason, request: str | None = None) -> LeaseReleased:
    """Return the event of a holder giving its lease back."""
    return LeaseReleased(
        tick=now.tick,
        at_ns=now.wall_ns,
        actor=lease.holder,
        request=request,
        tenant=lease.tenant,
        lease_id=lease.lease_id,
        resource=lease.resource,
        holder=lease.holder,
        token=lease.token,
        reason=reason,
    )
