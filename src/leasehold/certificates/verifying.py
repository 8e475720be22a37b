"""Checking a certificate, without asking anybody.

Promised: a certificate that passes was signed by a trusted key, for this resource and tenant, is not from
the future, and its foreseen expiry has not come. Not promised: that the lease still stands. It may have
been released or revoked since. Whoever needs more keeps the highest token seen (`leasehold.enforcing`), or
asks the registrar.

Wall clocks of two machines differ. `leeway` is how far the checking machine may be behind the registrar's:
a certificate is taken from so long before its own time on. Nothing is ever taken after its expiry: leeway
makes no lease longer.
"""

import time

from leasehold.certificates.certificate import Certificate, certificate_of
from leasehold.certificates.errors import (
    CertificateExpired,
    CertificateIssuer,
    CertificateNotYetValid,
    CertificateResource,
    CertificateTenant,
    StaleToken,
)
from leasehold.certificates.keys import Keys, TrustedKeys
from leasehold.certificates.signing import open_signed, read_signed
from leasehold.errors import InvalidInput
from leasehold.kernel.ledger.tick import NANOSECONDS_PER_SECOND

DEFAULT_LEEWAY = 1.0


def verify_certificate(
    text: str,
    *,
    keys: Keys,
    resource: str | None,
    tenant: str | None = "default",
    minimum_token: int = 0,
    issuer: str | None = None,
    leeway: float = DEFAULT_LEEWAY,
    now: float | None = None,
) -> Certificate:
    """Return what a certificate states, if it proves that; raise NotProven if it does not.

    `resource` is the one that is to be used, `minimum_token` the highest token it has seen. None for
    `resource`, `tenant` or `issuer` accepts any. `now` is the wall time in seconds since 1970, by default
    that of the moment.
    """
    trusted = TrustedKeys.of(keys)
    wall_ns = time.time_ns() if now is None else _nanoseconds("now", now)
    leeway_ns = _nanoseconds("leeway", leeway)
    if not isinstance(minimum_token, int):
        raise InvalidInput(
            f"minimum_token must be a whole number, not {minimum_token!r:.80}", field="minimum_token"
        )
    certificate = certificate_of(open_signed(text, trusted.public_key))
    _check_time(certificate, wall_ns, leeway_ns)
    _check_subject(certificate, issuer, tenant, resource)
    check_token(certificate.resource, certificate.token, minimum_token)
    return certificate


def _nanoseconds(field: str, seconds: float) -> int:
    try:
        if seconds >= 0:
            return round(seconds * NANOSECONDS_PER_SECOND)
    except (TypeError, ArithmeticError):
        pass
    raise InvalidInput(f"{field} must be a number of seconds from 0 on, not {seconds!r:.80}", field=field)


def read_certificate(text: str) -> Certificate:
    """Return what a certificate says, whoever says so: to be looked at, never to be relied on."""
    return certificate_of(read_signed(text))


def check_token(resource: str, token: int, minimum_token: int) -> None:
    """Refuse a token that is older than one that has been seen."""
    if token < minimum_token:
        raise StaleToken(
            f"token {token} for {resource} is older than {minimum_token}, which has been here since; "
            "acquire the resource again",
            resource=resource,
            token=token,
        )


def _check_time(certificate: Certificate, wall_ns: int, leeway_ns: int) -> None:
    if wall_ns >= certificate.expires_at_ns:
        raise CertificateExpired(
            "the certificate's time is over; if the lease was renewed since, ask the holder for a new one",
            lease_id=certificate.lease_id,
        )
    if certificate.issued_at_ns > wall_ns + leeway_ns:
        ahead = (certificate.issued_at_ns - wall_ns) / NANOSECONDS_PER_SECOND
        raise CertificateNotYetValid(
            f"the certificate was made {ahead:.1f} s from now; compare the clocks of the two machines",
            lease_id=certificate.lease_id,
        )


def _check_subject(
    certificate: Certificate, issuer: str | None, tenant: str | None, resource: str | None
) -> None:
    if issuer is not None and certificate.issuer != issuer:
        raise CertificateIssuer(f"the certificate is of registrar {certificate.issuer}, not of {issuer}")
    if tenant is not None and certificate.tenant != tenant:
        raise CertificateTenant(f"the certificate is for tenant {certificate.tenant}, not for {tenant}")
    if resource is not None and certificate.resource != resource:
        raise CertificateResource(
            f"the certificate is for {certificate.resource}, not for {resource}",
            resource=certificate.resource,
        )
