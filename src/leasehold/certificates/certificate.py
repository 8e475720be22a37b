"""What a certificate states.

The registrar states: at the ledger position `position`, this holder held this resource under this token,
and by the authority's clock the lease had so much time left. `expires_at_ns` is that remainder, added to
the wall clock of the registrar's machine at `issued_at_ns`. It is a foresight for whoever cannot ask: a
renewal makes the lease last longer than the certificate, a release or revocation shorter. Ticks decide;
these wall times only translate.
"""

from typing import Annotated, Any

import msgspec

from leasehold.certificates.signing import Signed, malformed, parse_json
from leasehold.kernel.lease.model import (
    Lease,
    Mode,
)
from leasehold.kernel.lease.scope import Scope
from leasehold.kernel.ledger.events import Token

_MICROSECOND_NS = 1_000


class Certificate(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A registrar's statement that somebody holds a lease."""

    certificate_id: str
    """The name of this very statement."""
    issuer: str
    """The registrar, by the name of the first key of its ledger."""
    key_id: str
    """The key that signed."""
    lease_id: str
    tenant: str
    resource: str
    mode: Mode
    holder: str
    token: Token
    position: int
    """The ledger's last entry when this was stated."""
    granted_at_ns: int
    """Wall time of the grant."""
    issued_at_ns: int
    """Wall time at which this was stated."""
    expires_at_ns: int
    """Wall time at which the lease expires unless it is renewed, as foreseen when this was stated."""
    scope: Scope | None = None
    """What the lease allows, if it was granted or derived with a scope or a budget."""


_WallSeconds = Annotated[float, msgspec.Meta(ge=0, lt=10**11)]
"""Wall time that a date can be: neither before 1970 nor beyond what anybody will live to see."""


class _Claims(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The same, by the names that the registry of JWT claims has, and our own where it has none."""

    iss: str
    sub: str
    jti: str
    iat: _WallSeconds
    exp: _WallSeconds
    lease: str
    tenant: str
    resource: str
    mode: Mode
    token: Annotated[int, msgspec.Meta(gt=0, lt=2**53)]
    position: Annotated[int, msgspec.Meta(gt=0)]
    granted: _WallSeconds
    scope: Scope | None = None


_encoder = msgspec.json.Encoder()


def body_of(lease: Lease, *, issuer: str, position: int, wall_ns: int, left_ns: int) -> bytes:
    """Return what a certificate says about a lease that has `left_ns` of authority time left."""
    return _encoder.encode(
        _Claims(
            iss=issuer,
            sub=lease.holder,
            jti=f"{lease.lease_id}.{wall_ns}",
            iat=_seconds(wall_ns),
            exp=_seconds(wall_ns + left_ns),
            lease=lease.lease_id,
            tenant=lease.tenant,
            resource=lease.resource,
            mode=lease.mode,
            token=lease.token,
            position=position,
            granted=_seconds(lease.issued_at_ns),
            scope=None if lease.delegation is None else lease.delegation.scope,
        )
    )


def certificate_of(signed: Signed) -> Certificate:
    """Return what a certificate says; raise CertificateMalformed if it says too little, or things twice."""
    found: Any = parse_json(signed.body)
    try:
        claims = msgspec.convert(found, _Claims)
    except msgspec.ValidationError as error:
        raise malformed(str(error)) from error
    return Certificate(
        certificate_id=claims.jti,
        issuer=claims.iss,
        key_id=signed.key_id,
        lease_id=claims.lease,
        tenant=claims.tenant,
        resource=claims.resource,
        mode=claims.mode,
        holder=claims.sub,
        token=claims.token,
        position=claims.position,
        granted_at_ns=_nanoseconds(claims.granted),
        issued_at_ns=_nanoseconds(claims.iat),
        expires_at_ns=_nanoseconds(claims.exp),
        scope=claims.scope,
    )


def _seconds(wall_ns: int) -> float:
    """Return seconds to the microsecond, rounded down: a float has no room for more."""
    return wall_ns // _MICROSECOND_NS / 1_000_000


def _nanoseconds(seconds: float) -> int:
    return round(seconds * 1_000_000) * _MICROSECOND_NS
