"""What can be asked about access keys, and whether it can be right at all.

Who creates or rotates a key draws its secret, and sends only the digest: a secret reaches no registrar before
it is first shown, and no ledger ever.
"""

import string

from leasehold.access.law.model import ALL, AccessKey, Role, mark_of
from leasehold.kernel.ledger.commands import Command, Right
from leasehold.kernel.ledger.limits import REASON_BYTES, check_text, invalid, over_limit
from leasehold.kernel.ledger.refusals import Refusal

DIGEST_DIGITS = 64
HOLDERS_MAXIMUM = 64
LIFETIME_MAXIMUM_NS = 100 * 366 * 86_400 * 1_000_000_000
"""What a key can be given; without an expiry it is good until it is revoked."""
OVERLAP_MAXIMUM_NS = 30 * 86_400 * 1_000_000_000
WILDCARD = "*"

_DIGITS = frozenset(string.digits + "abcdef")


class _AccessCommand(Command, frozen=True, kw_only=True, omit_defaults=True):
    holder: str
    """Who asks, for history."""
    key_id: str


class CreateAccessKey(_AccessCommand, frozen=True, kw_only=True, omit_defaults=True, tag="create_access_key"):
    """Let whoever shows a secret with this digest do what a role allows."""

    answer = AccessKey
    right = Right.ADMINISTER

    digest: str
    role: Role
    for_all: bool = False
    """For all tenants, and not only for `tenant`."""
    holders: tuple[str, ...] = ()
    description: str = ""
    lifetime_ns: int = 0
    """0: until it is revoked."""
    only_first: bool = False
    """Only if there is no live admin key for all tenants."""

    @property
    def bound_to(self) -> str:
        """Return what the key is bound to."""
        return ALL if self.for_all else self.tenant


class RotateAccessKey(_AccessCommand, frozen=True, kw_only=True, omit_defaults=True, tag="rotate_access_key"):
    """Give a key another secret. The one before stays good for `overlap_ns`."""

    answer = AccessKey
    right = Right.ADMINISTER

    digest: str
    overlap_ns: int = 0


class RevokeAccessKey(_AccessCommand, frozen=True, kw_only=True, omit_defaults=True, tag="revoke_access_key"):
    """Let a key open nothing any more, from this moment on."""

    answer = AccessKey
    right = Right.ADMINISTER

    reason: str = ""


AccessCommand = CreateAccessKey | RotateAccessKey | RevokeAccessKey


def check(command: AccessCommand) -> Refusal | None:
    """Refuse what is malformed, too long, or at odds with itself."""
    refusal = (
        check_text("tenant", command.tenant)
        or check_text("request_id", command.request_id)
        or check_text("holder", command.holder)
        or check_text("key_id", command.key_id)
    )
    if refusal is not None:
        return refusal
    match command:
        case CreateAccessKey():
            return _check_digest(command.digest) or _check_created(command)
        case RotateAccessKey():
            return _check_digest(command.digest) or _check_overlap(command.overlap_ns)
        case _:
            return check_text("reason", command.reason, REASON_BYTES) if command.reason else None


def _check_created(command: CreateAccessKey) -> Refusal | None:
    if not (command.key_id.startswith(mark_of(command.bound_to)) and _DIGITS.issuperset(command.key_id)):
        return invalid("key_id", "must be hexadecimal digits that begin with the mark of its tenant")
    if command.only_first and not (command.role is Role.ADMIN and command.for_all):
        return invalid("only_first", "is for admin keys for all tenants")
    if not 0 <= command.lifetime_ns <= LIFETIME_MAXIMUM_NS:
        return invalid("expires", "must be between now and a hundred years from now")
    if command.description:
        refusal = check_text("description", command.description, REASON_BYTES)
        if refusal is not None:
            return refusal
    return _check_holders(command)


def _check_holders(command: CreateAccessKey) -> Refusal | None:
    if command.holders and command.role is not Role.HOLDER:
        return invalid("holders", f"bind holder keys only, and this is one for a {command.role}")
    if len(command.holders) > HOLDERS_MAXIMUM:
        return over_limit("holders", HOLDERS_MAXIMUM, f"must be at most {HOLDERS_MAXIMUM}")
    for name in command.holders:
        refusal = check_text("holders", name)
        if refusal is not None:
            return refusal
        if name == WILDCARD or WILDCARD in name[:-1]:
            return invalid("holders", f"must be names, or beginnings with one {WILDCARD} behind them")
    return None


def _check_digest(digest: str) -> Refusal | None:
    if len(digest) == DIGEST_DIGITS and _DIGITS.issuperset(digest):
        return None
    return invalid("digest", "must be the SHA-256 of the secret, in hexadecimal digits")


def _check_overlap(overlap_ns: int) -> Refusal | None:
    if 0 <= overlap_ns <= OVERLAP_MAXIMUM_NS:
        return None
    return invalid("overlap", "must be between nothing and 30 days")
