"""Which key seals the next commit, and what a seal looks like.

Every commit is sealed: the last of its entries carries the name of a key, and that key's signature over which
entries the commit has and the hash that vouches for them and all before. Stores carry the bytes, and know
nothing of keys.

A process that has none of the keys which the ledger admits enrols one of its own before its first change:
another user of a shared store does, and whoever lost the key files or moved the store without them. Nobody is
kept from working by that, and nobody can do it unnoticed: such a key is in history as one that nobody
vouches for, and the ledger does not verify until an admitted key does, or whoever verifies it trusts it.
"""

from collections.abc import Callable

from leasehold.engine.signing import KEY_ID_BYTES, KeyRing, SigningKey, is_signed, key_id_of
from leasehold.kernel.ledger.authority import Authority
from leasehold.kernel.ledger.chain import seal_message
from leasehold.kernel.ledger.keys import Key


class NoKeyAtHand(LookupError):
    """This process has none of the keys that the ledger admits."""


class Sealer:
    """Finds the key to seal with among those that this process has."""

    def __init__(self, ring: KeyRing) -> None:
        self.ring = ring
        self._chosen: SigningKey | None = None
        self._chosen_at = ("", 0, 0)
        """The store, the epoch and the number of key changes that the choice is good for."""

    def key_for(self, authority: Authority | None, read_keys: Callable[[], list[Key]]) -> SigningKey:
        """Return the key to seal with; raise NoKeyAtHand if none of the admitted ones is here."""
        moment = ("", 0, 0)
        if authority is not None:
            moment = (authority.identity, authority.epoch, authority.key_changes)
        chosen = self._chosen
        if chosen is None or moment != self._chosen_at:
            chosen = self._choose(read_keys())
            self._chosen, self._chosen_at = chosen, moment
        return chosen

    def _choose(self, keys: list[Key]) -> SigningKey:
        """Prefer the key that was admitted last: whoever enrols a key means to use it."""
        at_hand = set(self.ring.at_hand())
        for key in reversed(keys):
            key_id = key_id_of(key.public_key)
            if key.is_admitted and key_id in at_hand:
                return self.ring.load(key_id)
        raise NoKeyAtHand

    def spare(self, keys: list[Key]) -> SigningKey:
        """Return a key that is not in the ledger yet: one that an interrupted process left, or a new one."""
        known = {key_id_of(key.public_key) for key in keys}
        left = [key_id for key_id in self.ring.at_hand() if key_id not in known]
        return self.ring.load(left[0]) if left else self.ring.create()


def seal(key: SigningKey, first: int, last: int, last_hash: bytes) -> bytes:
    """Seal the commit that has the entries from `first` to `last`."""
    return key.name + key.sign(seal_message(first, last, last_hash))


def sealed_by(seal: bytes) -> str:
    """Return the name of the key that a seal says it was made with."""
    return seal[:KEY_ID_BYTES].hex()


def is_sealed(seal: bytes, public_key: bytes, first: int, last: int, last_hash: bytes) -> bool:
    """Say whether a seal is what `public_key` gives for this commit."""
    return is_signed(public_key, seal_message(first, last, last_hash), seal[KEY_ID_BYTES:])
