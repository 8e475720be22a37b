"""Ed25519 keys: what the registrar signs with, and how anybody checks it.

A key is named by the first bytes of the hash of its public half. The name is only a hint at which key to
try: a signature counts if it was made with a public key that the ledger admits.

Not promised: that a private key stays private. Its owner's processes, and the superuser, can read it.
libsodium is loaded when the first key is needed, because starting up must be quick.
"""

from collections.abc import Callable
from typing import Protocol

SEED_BYTES = 32
SIGNATURE_BYTES = 64
PUBLIC_KEY_BYTES = 32
KEY_ID_BYTES = 8


class SigningKey:
    """A private key and its public half."""

    __slots__ = ("_private", "_sign", "key_id", "name", "public_key", "seed")

    def __init__(self, seed: bytes) -> None:
        from nacl.bindings import crypto_sign, crypto_sign_seed_keypair

        self.seed = seed
        """The secret that the whole key follows from."""
        self.public_key, self._private = crypto_sign_seed_keypair(seed)
        self.key_id = key_id_of(self.public_key)
        self.name = bytes.fromhex(self.key_id)
        """The key id as a seal spells it."""
        self._sign = crypto_sign

    def sign(self, message: bytes) -> bytes:
        """Return the signature of a message, 64 bytes. The same message always gets the same one."""
        return self._sign(message, self._private)[:SIGNATURE_BYTES]

    def __repr__(self) -> str:
        return f"SigningKey({self.key_id})"


def new_key() -> SigningKey:
    """Return a key that nobody else has."""
    from nacl.utils import random

    return SigningKey(random(SEED_BYTES))


def key_id_of(public_key: bytes) -> str:
    """Return the name of a key: 16 hexadecimal digits."""
    from hashlib import sha256

    return sha256(b"leasehold key 1" + public_key).digest()[:KEY_ID_BYTES].hex()


def is_signed(public_key: bytes, message: bytes, signature: bytes) -> bool:
    """Say whether the private half of `public_key` has signed `message`."""
    from nacl.bindings import crypto_sign_open
    from nacl.exceptions import CryptoError

    if len(public_key) != PUBLIC_KEY_BYTES or len(signature) != SIGNATURE_BYTES:
        return False
    try:
        crypto_sign_open(signature + message, public_key)
    except CryptoError:
        return False
    return True


class KeyRing(Protocol):
    """Where the private keys of one store are that this process may use."""

    def at_hand(self) -> list[str]:
        """Return the names of the keys that this process can sign with."""
        ...

    def load(self, key_id: str) -> SigningKey:
        """Return a key that is at hand."""
        ...

    def create(self) -> SigningKey:
        """Make a key, and keep it before anybody can rely on it."""
        ...


class MemoryKeyRing:
    """Keys that are gone with the process."""

    def __init__(self, make: Callable[[], SigningKey] = new_key) -> None:
        self._make = make
        self._keys: dict[str, SigningKey] = {}

    def at_hand(self) -> list[str]:
        """Return the names of the keys that were made here."""
        return list(self._keys)

    def load(self, key_id: str) -> SigningKey:
        """Return a key that was made here."""
        return self._keys[key_id]

    def create(self) -> SigningKey:
        """Make a key."""
        key = self._make()
        self._keys[key.key_id] = key
        return key
