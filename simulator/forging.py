"""Certificates that nobody should take: made of a right one, in all the ways that have worked elsewhere."""

from base64 import urlsafe_b64decode
from typing import Any

import msgspec

from leasehold.certificates.signing import encoded
from leasehold.engine.signing import SEED_BYTES, SigningKey

_STRANGER = bytes(SEED_BYTES)


def forgeries_of(text: str) -> list[tuple[str, str]]:
    """Return forged certificates, each with what was done to it."""
    header, body, signature = text.split(".")
    claims = _read(body)
    stranger = SigningKey(_STRANGER)

    def signed(new_header: dict[str, Any], new_claims: dict[str, Any]) -> str:
        message = f"{_written(new_header)}.{_written(new_claims)}"
        return f"{message}.{encoded(stranger.sign(message.encode()))}"

    longer = _written(claims | {"exp": claims["exp"] + 3600})
    higher = _written(claims | {"token": claims["token"] + 1})
    unsigned = _written(_read(header) | {"alg": "none"})
    return [
        ("more time", f"{header}.{longer}.{signature}"),
        ("a higher token", f"{header}.{higher}.{signature}"),
        ("another's signature under its key's name", signed(_read(header), claims)),
        ("another's signature", signed(_read(header) | {"kid": stranger.key_id}, claims)),
        ("no signature", f"{header}.{body}."),
        ("no algorithm", f"{unsigned}.{body}."),
        ("a shared secret", signed(_read(header) | {"alg": "HS256"}, claims)),
    ]


def _read(part: str) -> dict[str, Any]:
    found: dict[str, Any] = msgspec.json.decode(urlsafe_b64decode(part + "=" * (-len(part) % 4)))
    return found


def _written(members: dict[str, Any]) -> str:
    return encoded(msgspec.json.encode(members))
