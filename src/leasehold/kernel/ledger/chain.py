"""How one ledger entry vouches for all before it.

Each entry's hash covers its position, its body and the hash of the entry before. Whoever changes, drops,
inserts or reorders an entry has to change every hash after it. The chain alone does not notice a ledger
that was cut off at its end, or rewritten from some entry on; a head kept elsewhere does.
"""

import msgspec

from leasehold.kernel.ledger.events import Event

GENESIS_HASH = bytes(32)
"""What the first entry names as the hash before it."""

_DOMAIN = b"leasehold ledger entry 1"
_SEAL_DOMAIN = b"leasehold ledger seal 1"


class Entry(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """An event in its place in the ledger."""

    position: int
    event: Event
    body: bytes
    """The event as it was written; the hash covers these very bytes."""
    hash: bytes
    seal: bytes | None = None
    """A signature over this entry and the others of its commit; only the last of them has it."""


class BrokenChain(ValueError):
    """A ledger entry is not what its hash, or the entry before it, says."""

    def __init__(self, position: int, problem: str) -> None:
        super().__init__(f"ledger entry {position}: {problem}")
        self.position = position
        self.problem = problem


def link(previous_hash: bytes, position: int, body: bytes) -> bytes:
    """Return the hash of the entry that holds `body` at `position`; only the last part varies in length."""
    from hashlib import sha256  # Only here: it loads OpenSSL, which nobody needs for a look.

    return sha256(_DOMAIN + previous_hash + position.to_bytes(8, "big") + body).digest()


def seal_message(first: int, last: int, last_hash: bytes) -> bytes:
    """Return what is signed for a commit: which entries it has, and through the last hash, all before."""
    return _SEAL_DOMAIN + first.to_bytes(8, "big") + last.to_bytes(8, "big") + last_hash


def check_entry(previous: Entry | None, entry: Entry) -> None:
    """Raise BrokenChain unless `entry` rightly follows `previous` (None: is the first)."""
    expected = 1 if previous is None else previous.position + 1
    if entry.position != expected:
        raise BrokenChain(entry.position, f"follows entry {expected - 1}")
    before = GENESIS_HASH if previous is None else previous.hash
    if link(before, entry.position, entry.body) != entry.hash:
        raise BrokenChain(entry.position, "its hash does not match its content")
