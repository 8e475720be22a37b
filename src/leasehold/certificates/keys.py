"""The public keys that whoever checks certificates trusts.

They come from the registrar once, by a way that is trusted: as 64 hexadecimal digits, as 32 bytes, or as a
JSON Web Key Set, which says of each key whether it has been retired. A retired key proves nothing any more,
not even what it signed before: whoever stole it can write any date.
"""

from base64 import urlsafe_b64decode
from collections.abc import Iterable, Mapping
from typing import Any, Self

from leasehold.certificates.errors import CertificateKeyRetired, CertificateKeyUnknown
from leasehold.certificates.signing import encoded
from leasehold.engine.signing import PUBLIC_KEY_BYTES, key_id_of
from leasehold.errors import InvalidInput

_RETIRED = "retired"


class TrustedKeys:
    """A set of public keys, by name. Making one takes longer than using it: keep it."""

    def __init__(self, admitted: Iterable[bytes | str], retired: Iterable[bytes | str] = ()) -> None:
        self._retired = {key_id_of(key): key for key in _public_keys(retired)}
        self._admitted = {key_id_of(key): key for key in _public_keys(admitted)}
        for key_id in self._retired:
            self._admitted.pop(key_id, None)

    @classmethod
    def of(cls, keys: "Keys") -> Self:
        """Return the set that a caller means."""
        match keys:
            case TrustedKeys():
                return keys if isinstance(keys, cls) else cls(keys._admitted.values(), keys._retired.values())
            case Mapping():
                return cls.from_jwks(keys)
            case bytes() | str():
                return cls([keys])
            case _:
                return cls(keys)

    @classmethod
    def from_jwks(cls, document: Mapping[str, Any]) -> Self:
        """Return the keys of a JSON Web Key Set. Keys of other kinds are left out, as its standard asks."""
        members = document.get("keys") if hasattr(document, "get") else None
        if not isinstance(members, list):
            raise InvalidInput("keys has to be a JSON Web Key Set, with a list of keys in it", field="keys")
        admitted: list[bytes] = []
        retired: list[bytes] = []
        for member in members:
            if isinstance(member, Mapping) and (member.get("kty"), member.get("crv")) == ("OKP", "Ed25519"):
                (retired if member.get(_RETIRED) else admitted).append(_key_in(member))
        return cls(admitted, retired)

    def to_jwks(self) -> dict[str, Any]:
        """Return the keys as a JSON Web Key Set, to be published."""
        return {
            "keys": [
                *(_member(key_id, key) for key_id, key in self._admitted.items()),
                *(_member(key_id, key) | {_RETIRED: True} for key_id, key in self._retired.items()),
            ]
        }

    def public_key(self, key_id: str) -> bytes:
        """Return a trusted key by its name; raise NotProven for any other."""
        found = self._admitted.get(key_id)
        if found is not None:
            return found
        if key_id in self._retired:
            raise CertificateKeyRetired(
                f"key {key_id} has been retired; ask the holder for a new certificate", key_id=key_id
            )
        raise CertificateKeyUnknown(
            f"key {key_id} is not among the trusted keys; if it is new, fetch the registrar's keys again",
            key_id=key_id,
        )


Keys = TrustedKeys | Mapping[str, Any] | Iterable[bytes | str] | bytes | str
"""A set of keys, a JSON Web Key Set, or public keys as bytes or hexadecimal digits."""


def _public_keys(keys: Iterable[bytes | str]) -> list[bytes]:
    if isinstance(keys, bytes | str) or not isinstance(keys, Iterable):
        raise InvalidInput(f"keys must be a list of public keys, not {keys!r:.80}", field="keys")
    return [_public_key(key) for key in keys]


def _public_key(key: bytes | str) -> bytes:
    try:
        found = bytes.fromhex(key) if isinstance(key, str) else bytes(key)
    except (ValueError, TypeError):
        found = b""
    if len(found) != PUBLIC_KEY_BYTES:
        raise InvalidInput(
            f"a public key has to be {PUBLIC_KEY_BYTES} bytes, or {2 * PUBLIC_KEY_BYTES} hexadecimal digits; "
            "`leasehold certificate keys` prints them",
            field="keys",
        )
    return found


def _key_in(member: Mapping[str, Any]) -> bytes:
    text = member.get("x")
    try:
        return _public_key(urlsafe_b64decode(str(text) + "=" * (-len(str(text)) % 4)))
    except ValueError as error:
        raise InvalidInput(f"the key {member.get('kid')!r} has no usable x", field="keys") from error


def _member(key_id: str, key: bytes) -> dict[str, Any]:
    return {
        "kty": "OKP",
        "crv": "Ed25519",
        "kid": key_id,
        "use": "sig",
        "alg": "EdDSA",
        "x": encoded(key),
    }
