"""A registrar's key and leases to make certificates of, right and wrong ones."""

import json
from base64 import urlsafe_b64decode
from typing import Any

from leasehold.certificates.certificate import Certificate, body_of
from leasehold.certificates.signing import encoded, sign
from leasehold.certificates.verifying import verify_certificate
from leasehold.engine.signing import SigningKey
from leasehold.kernel.lease.model import Lease
from leasehold.kernel.ledger.tick import NANOSECONDS_PER_SECOND
from tests.kernel.records import a_lease

KEY = SigningKey(bytes(range(32)))
OTHER_KEY = SigningKey(bytes(range(1, 33)))
ISSUER = f"leasehold:{KEY.key_id}"
NOW = 1_700_000_000
"""Wall time of the certificate, in seconds."""


def a_certificate(
    *, key: SigningKey = KEY, at: float = NOW, left: float = 60, lease: Lease | None = None, **fields: Any
) -> str:
    """The certificate of ann's lease on the door, or of one that differs in `fields`."""
    return sign(
        body_of(
            a_lease(**fields) if lease is None else lease,
            issuer=ISSUER,
            position=17,
            wall_ns=round(at * NANOSECONDS_PER_SECOND),
            left_ns=round(left * NANOSECONDS_PER_SECOND),
        ),
        key,
    )


def claims_of(text: str) -> dict[str, Any]:
    body = text.split(".")[1]
    found: dict[str, Any] = json.loads(urlsafe_b64decode(body + "=" * (-len(body) % 4)))
    return found


def header_of(text: str) -> dict[str, Any]:
    header = text.split(".", maxsplit=1)[0]
    found: dict[str, Any] = json.loads(urlsafe_b64decode(header + "=" * (-len(header) % 4)))
    return found


def signed_by_hand(header: dict[str, Any] | str, claims: dict[str, Any] | str, key: SigningKey = KEY) -> str:
    """A token with any header and claims, rightly signed: what a broken or evil signer could make."""
    written = [part if isinstance(part, str) else json.dumps(part) for part in (header, claims)]
    signing_input = ".".join(encoded(part.encode()) for part in written)
    return f"{signing_input}.{encoded(key.sign(signing_input.encode()))}"


def verify(text: Any, **choices: Any) -> Certificate:
    """Check as the door would, a second after the certificate was made."""
    defaults: dict[str, Any] = {"keys": [KEY.public_key], "resource": "door", "now": NOW + 1}
    return verify_certificate(text, **(defaults | choices))
