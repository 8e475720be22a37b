"""What every event says, and the events of the registrar itself.

Events are the only truth; every table is a projection of them. An event is written once and kept for ever, so
its fields only ever grow. `schema` is the version of the event's shape; decoding accepts every version that
was ever written.

Events state facts about themselves: whom they concern, whether a retry finds them, what number they drew, and
under what they are filed. So nothing has to know the list of all events; that of one ledger is put together
from its families (`family.Families`).
"""

from collections.abc import Callable
from operator import attrgetter
from typing import Any, ClassVar, TypedDict

import msgspec

from leasehold.kernel.ledger.tick import Now, Tick

Token = int
"""A fencing token: a whole number below 2**53 that only ever rises, store-wide."""

Filing = tuple[str | None, str | None, str | None, str | None, Token | None]
"""Under what an event is found: its tenant, lease, resource, holder and token, as far as it has them."""

SCHEMA = 1
"""The newest shape of events that this version writes, and reads."""

REGISTRAR = "registrar"
"""The actor of everything that nobody asked for: expiry, reboots, new epochs."""

_NOWHERE: Filing = (None, None, None, None, None)


def read_from(*fields: str) -> Any:
    """Make a property that gives fields as they are, and costs no more than to read them."""
    return property(attrgetter(*fields))


class IllegalTransition(ValueError):
    """A ledger says that something happened which the law does not allow."""


class DecodeError(ValueError):
    """A ledger entry is not an event this version understands."""


class Event(msgspec.Struct, frozen=True, kw_only=True, gc=False, omit_defaults=True, tag_field="type"):
    """Something that happened, with what is true of every event unless its kind says otherwise."""

    is_own: ClassVar[bool] = False
    """Whether it happened to the registrar itself, and to no record of any family."""
    is_remembered: ClassVar[bool] = False
    """Whether a retry finds it: then `request` is the key of the request that caused it."""
    draws: ClassVar[bool] = False
    """Whether it has a `number` from the store's counter."""

    tick: Tick
    at_ns: int
    """Wall time, for people and audit only."""
    actor: str
    request: str | None = None
    """The request that caused this: its key, if a retry has to find it (`is_remembered`); else its id.

    None for a grant whose request has the id of the lease, by which a retry finds it.
    """
    schema: int = SCHEMA

    @property
    def type(self) -> str:
        """Return the event's name as the ledger spells it; up to the dot it is that of its family."""
        return str(self.__struct_config__.tag)

    @property
    def keys(self) -> tuple[str, ...]:
        """Return the records of its family that this event changes."""
        return ()

    @property
    def filing(self) -> Filing:
        """Return under what this event is found."""
        return _NOWHERE

    @property
    def story(self) -> str:
        """Return what else people want to know of it, in a few words."""
        return ""

    @property
    def number(self) -> int:
        """Return the number that this event drew from the store's counter, now or earlier."""
        return 0

    @property
    def is_number_new(self) -> bool:
        """Say whether the number was drawn by this very event, so that it is above all others."""
        return True


class Stamp(TypedDict):
    """What nearly every event of a family says of itself."""

    tick: Tick
    at_ns: int
    actor: str
    tenant: str


def stamp(now: Now, tenant: str, actor: str = REGISTRAR) -> Stamp:
    """Return when, where and by whom something happens."""
    return {"tick": now.tick, "at_ns": now.wall_ns, "actor": actor, "tenant": tenant}


class _OwnEvent(Event, frozen=True, kw_only=True, omit_defaults=True):
    is_own = True


class _StoreEvent(_OwnEvent, frozen=True, kw_only=True, omit_defaults=True):
    epoch: int
    boot_id: str
    identity: str
    """Names the store; a copy, or one that lost files, gets another name."""
    counter: int = 0
    """Where the counter of tokens begins in this epoch."""


class StoreOpened(_StoreEvent, frozen=True, kw_only=True, omit_defaults=True, tag="store.opened"):
    """The store's first event: the first epoch and the first era begin, and the first key is pinned."""

    public_key: bytes = b""
    """What this commit is sealed with; empty in stores from before there were seals."""
    families: dict[str, int] = {}
    """The version of each family that the ledger begins with."""


class EpochRaised(_StoreEvent, frozen=True, kw_only=True, omit_defaults=True, tag="store.epoch_raised"):
    """The store may have forgotten grants, or its clock restarted: no token from before can come again."""

    reason: str


class FamiliesAdmitted(_OwnEvent, frozen=True, kw_only=True, omit_defaults=True, tag="store.families"):
    """From here on the ledger may have events of these families: who lacks one must not write any more."""

    families: dict[str, int]
    """The version of each family that is new to the ledger, or newer than it knew."""


class RegistrarResumed(_OwnEvent, frozen=True, kw_only=True, omit_defaults=True, tag="store.resumed"):
    """A registrar was down, and holders could not renew: they come back first for what lapsed meanwhile."""

    down_since: int
    """The tick value at which the registrar was last known to be up."""
    settles_until: int
    """The tick value until which newcomers get nothing that lapsed between then and this event."""


class StoreCheckpointed(_OwnEvent, frozen=True, kw_only=True, omit_defaults=True, tag="store.checkpointed"):
    """The first entries of the ledger were removed; a state that is kept beside it stands for them."""

    covers: int
    """The position of the last entry that was removed."""
    covers_hash: bytes
    """The hash of that entry, which the first one that is left goes on from."""
    state_digest: bytes
    """Of the state after that entry, as it is kept."""
    ended_before_ns: int
    """Records whose own end was before this wall time left the tables, with few exceptions (`forgotten`)."""
    token_below: Token
    """Only those with a lower number were: those that the removed entries had made."""


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


StoreEvent = StoreOpened | EpochRaised
KeyEvent = KeyEnrolled | KeyVouched | KeyRetired
OwnEvent = StoreEvent | FamiliesAdmitted | RegistrarResumed | StoreCheckpointed | KeyEvent
"""What happens to the registrar itself, and to no record of any family."""

encode_event: Callable[[Event], bytes] = msgspec.json.Encoder().encode
"""Gives an event as the ledger keeps it. The same event always gives the same bytes."""
