"""Certificates as signed text: JWS in its compact form, with EdDSA and nothing else.

libsodium does the signatures. What comes from outside is read by PyJWT, whose instance here knows one
algorithm: none, a shared secret or another curve can not be talked into it. Its import takes tens of
milliseconds, so it waits until the first check.
"""

import json
from base64 import urlsafe_b64decode
from binascii import b2a_base64
from collections.abc import Callable
from functools import cache, lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

from leasehold.certificates.errors import CertificateAlgorithm, CertificateForged, CertificateMalformed
from leasehold.engine.signing import SigningKey, is_signed

if TYPE_CHECKING:
    from jwt import PyJWS

ALGORITHM = "EdDSA"
TYPE = "lease+jwt"
"""Names our kind of certificate, so that no other token of the same key is taken for one."""

TEXT_BYTES = 512 * 1024
"""Room for the longest names and the widest scope that there can be."""
_MEMBERS = {"alg", "kid", "typ"}
_URL_SAFE = bytes.maketrans(b"+/", b"-_")


class Signed(NamedTuple):
    """What a certificate says, and which key it says has signed that."""

    key_id: str
    body: bytes


def sign(body: bytes, key: SigningKey) -> str:
    """Return the certificate that says `body`."""
    signing_input = _header_for(key.key_id) + _base64(body)
    return (signing_input + b"." + _base64(key.sign(signing_input))).decode()


@lru_cache(maxsize=16)
def _header_for(key_id: str) -> bytes:
    """Return the header and the dot behind it, which are the same for all certificates of a key."""
    members = {"alg": ALGORITHM, "kid": key_id, "typ": TYPE}
    return _base64(json.dumps(members, separators=(",", ":")).encode()) + b"."


def open_signed(text: str, public_key_of: Callable[[str], bytes]) -> Signed:
    """Return what a certificate says, if the key that it names has signed it.

    `public_key_of` returns the trusted key of that name, or raises.
    """
    import jwt

    key_id = read_signed(text).key_id
    public_key = public_key_of(key_id)
    try:
        body = _jws().decode(text, public_key, [ALGORITHM])
    except jwt.InvalidSignatureError as error:
        raise CertificateForged(
            f"the certificate was not signed, as it is, with key {key_id}; ask the holder for a new one"
        ) from error
    except jwt.PyJWTError as error:
        raise malformed(str(error)) from error
    return Signed(key_id, body)


def read_signed(text: str) -> Signed:
    """Return what a certificate says, whoever signed it."""
    header, body, _ = _parts_of(text)
    return Signed(_key_id_of(header), body)


def parse_json(text: bytes) -> dict[str, Any]:
    """Return a JSON object in which no name comes twice: readers disagree about which one counts."""
    try:
        found = _json.decode(text.decode())
    except (ValueError, RecursionError) as error:
        raise malformed(str(error)) from error
    if not isinstance(found, dict):
        raise malformed("it holds no JSON object")
    return found


def malformed(problem: str) -> CertificateMalformed:
    """Return the error for a text that is not a certificate."""
    return CertificateMalformed(f"this is not a certificate: {problem}; pass the text as it was issued")


def encoded(data: bytes) -> str:
    """Return bytes as the format writes them."""
    return _base64(data).decode()


def _base64(data: bytes) -> bytes:
    """Spell bytes as base64url without padding; half the work of `urlsafe_b64encode`."""
    return b2a_base64(data, newline=False).translate(_URL_SAFE).rstrip(b"=")


def _key_id_of(header_text: bytes) -> str:
    header = parse_json(header_text)
    if header.get("alg") != ALGORITHM:
        raise CertificateAlgorithm(
            f"the certificate names the algorithm {header.get('alg')!r}; only {ALGORITHM} is ever used"
        )
    key_id = header.get("kid")
    if header.keys() != _MEMBERS or header["typ"] != TYPE or not isinstance(key_id, str):
        raise malformed(f"its header has to be of type {TYPE}, and to name a key and nothing else")
    return key_id


def _parts_of(text: object) -> tuple[bytes, bytes, bytes]:
    """Return header, body and signature, if they are written in the one way that there is."""
    if not isinstance(text, str) or not text.isascii() or len(text) > TEXT_BYTES:
        raise malformed(f"it has to be text of at most {TEXT_BYTES} characters")
    parts = text.split(".")
    if len(parts) != 3:
        raise malformed("it has to have three parts, with dots between them")
    header, body, signature = map(_decoded, parts)
    return header, body, signature


def _decoded(part: str) -> bytes:
    try:
        data = urlsafe_b64decode(part + "=" * (-len(part) % 4))
    except ValueError as error:
        raise malformed(str(error)) from error
    if encoded(data) != part:
        raise malformed("a part of it has characters that do not belong there")
    return data


def _without_repeats(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a name comes twice")
    return found


_json = json.JSONDecoder(object_pairs_hook=_without_repeats)


@cache
def _jws() -> "PyJWS":
    from jwt import PyJWS
    from jwt.algorithms import Algorithm

    class _LibsodiumEd25519(Algorithm):
        """EdDSA without a second library for cryptography."""

        def prepare_key(self, key: Any) -> Any:
            return key

        def sign(self, msg: bytes, key: Any) -> bytes:
            raise TypeError("certificates are written by leasehold.certificates.signing")

        def verify(self, msg: bytes, key: bytes, sig: bytes) -> bool:
            return is_signed(key, msg, sig)

        @staticmethod
        def to_jwk(key_obj: Any, as_dict: bool = False) -> Any:
            raise TypeError("keys are written by leasehold.certificates.keys")

        @staticmethod
        def from_jwk(jwk: Any) -> Any:
            raise TypeError("keys are read by leasehold.certificates.keys")

    jws = PyJWS(algorithms=[])
    jws.register_algorithm(ALGORITHM, _LibsodiumEd25519())
    return jws
