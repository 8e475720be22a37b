"""What an access key is.

A key opens the registrar to whoever shows its secret, for what its role allows. The registrar knows a digest
of the secret, never the secret itself.

A key's id begins with a mark of what it is bound to, so that the keys of one tenant are one range of records,
and a key is found by its id alone. Marks of two tenants may be the same, so the record decides whose it is.
"""

from enum import StrEnum
from hashlib import blake2b

import msgspec

from leasehold.kernel.ledger.commands import Right
from leasehold.kernel.ledger.key import spell_key
from leasehold.kernel.ledger.tick import Now, Tick

ACCESS = "access"
"""The name of the family."""

ALL = ""
"""What a key for all tenants is bound to; no tenant can have that name."""

_MARK_BYTES = 4
_AFTER_IDS = "~"
"""Sorts behind every character that an id can have."""


class Role(StrEnum):
    """What the bearer of a key may do."""

    VIEWER = "viewer"
    HOLDER = "holder"
    OPERATOR = "operator"
    ADMIN = "admin"

    @property
    def right(self) -> Right:
        """Return the highest right that comes with the role."""
        return _RIGHTS[self]


_RIGHTS = {
    Role.VIEWER: Right.LOOK,
    Role.HOLDER: Right.HOLD,
    Role.OPERATOR: Right.OPERATE,
    Role.ADMIN: Right.ADMINISTER,
}


class Until(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """When something ends: in wall time, and by the authority's clock.

    It is over when either says so. A machine that was switched off has another clock afterwards, and only
    wall time tells how long that was; a wall clock that is set back brings nothing back to life before that.
    """

    at_ns: int
    tick: Tick

    def is_over(self, now: Now) -> bool:
        """Say whether that moment has come."""
        left = now.tick.until(self.tick)
        return self.at_ns <= now.wall_ns or (left is not None and left <= 0)


class AccessRecord(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A key as it stands."""

    key_id: str
    tenant: str
    """What it is bound to; empty: all tenants."""
    role: Role
    holders: tuple[str, ...] = ()
    """The holders that it may act as, by name, or by how the name begins (`ci-*`); empty: any."""
    description: str = ""
    digest: str
    """SHA-256 of its secret, in hexadecimal digits."""
    generation: int = 1
    """How many secrets it has had."""
    earlier_digest: str = ""
    """Of the secret before, which is still good for a while."""
    earlier_until: Until | None = None
    created_at_ns: int
    created_by: str
    expires: Until | None = None
    revoked_at_ns: int | None = None

    def is_live(self, now: Now) -> bool:
        """Say whether it opens anything at all."""
        return self.revoked_at_ns is None and (self.expires is None or not self.expires.is_over(now))

    def takes(self, generation: int, now: Now) -> bool:
        """Say whether a secret of that generation is good at this moment."""
        if not self.is_live(now):
            return False
        if generation == self.generation:
            return True
        overlaps = self.earlier_until is not None and not self.earlier_until.is_over(now)
        return overlaps and generation == self.generation - 1


class AccessKey(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """A key, for people: everything but the digest of its secret."""

    key_id: str
    tenant: str | None
    """What it is bound to; None: all tenants."""
    role: Role
    holders: tuple[str, ...]
    description: str
    created_at_ns: int
    created_by: str
    expires_at_ns: int | None
    revoked_at_ns: int | None
    rotations: int
    earlier_until_ns: int | None
    """Until when the secret before the last rotation is still good; None: it is not."""
    is_live: bool


def shown(record: AccessRecord, now: Now) -> AccessKey:
    """Return a key as it is shown at this moment."""
    earlier = record.earlier_until
    return AccessKey(
        key_id=record.key_id,
        tenant=record.tenant or None,
        role=record.role,
        holders=record.holders,
        description=record.description,
        created_at_ns=record.created_at_ns,
        created_by=record.created_by,
        expires_at_ns=None if record.expires is None else record.expires.at_ns,
        revoked_at_ns=record.revoked_at_ns,
        rotations=record.generation - 1,
        earlier_until_ns=None if earlier is None or earlier.is_over(now) else earlier.at_ns,
        is_live=record.is_live(now),
    )


def mark_of(tenant: str) -> str:
    """Return what the ids of all keys begin with that are bound to a tenant, or to all."""
    return blake2b(tenant.encode(), digest_size=_MARK_BYTES).hexdigest()


def record_key(key_id: str) -> str:
    """Return the key of the record of an access key."""
    return spell_key(ALL, key_id)


def keys_of(tenant: str, after: str = "") -> tuple[str, str]:
    """Return the range of the keys of a tenant, or of those for all, behind an id."""
    mark = mark_of(tenant)
    return _behind(max(after, mark)), record_key(mark + _AFTER_IDS)


def every_key(after: str = "") -> tuple[str, str]:
    """Return the range of all keys behind an id."""
    return _behind(after), record_key(_AFTER_IDS)


def _behind(key_id: str) -> str:
    return record_key(key_id) + "\x00"
