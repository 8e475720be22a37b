"""The text that a bearer shows: `lh_<key id>_<secret>`.

The secret has 256 random bits, so a plain digest of it cannot be turned round, and needs no slow hash.
"""

import secrets
from hashlib import sha256
from typing import NamedTuple

import msgspec

from leasehold.access.law.model import AccessKey, mark_of

_PREFIX = "lh"
_ID_BYTES = 8
_SECRET_BYTES = 32
_LONGEST = 256
"""No text of a key comes near this; longer ones are not even looked at."""


class KeyText(NamedTuple):
    """An access key as its bearer has it."""

    key_id: str
    secret: str

    def __repr__(self) -> str:
        return f"KeyText(key_id={self.key_id!r})"

    @property
    def text(self) -> str:
        """Return what is shown once, and kept by nobody but the bearer."""
        return f"{_PREFIX}_{self.key_id}_{self.secret}"

    @property
    def digest(self) -> str:
        """Return what the registrar knows the secret by."""
        return sha256(self.secret.encode()).hexdigest()


class IssuedKey(msgspec.Struct, frozen=True, kw_only=True):
    """A key, with the text that its bearer shows: kept by nobody else, and never told again."""

    key: AccessKey
    text: str

    def __repr__(self) -> str:
        return f"IssuedKey(key={self.key!r})"


def drawn(bound_to: str) -> KeyText:
    """Draw a new key that is bound to a tenant, or to all of them (empty)."""
    return KeyText(mark_of(bound_to) + secrets.token_hex(_ID_BYTES), secrets.token_hex(_SECRET_BYTES))


def redrawn(key_id: str) -> KeyText:
    """Draw another secret for a key."""
    return KeyText(key_id, secrets.token_hex(_SECRET_BYTES))


def read(text: str) -> KeyText | None:
    """Return the key that a text says; None if it is no such text."""
    parts = text.split("_") if len(text) <= _LONGEST and text.isascii() else []
    if len(parts) != 3 or parts[0] != _PREFIX or not parts[1].isalnum():
        return None
    return KeyText(parts[1], parts[2])
