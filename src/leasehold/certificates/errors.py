"""Why somebody's word that they hold a lease was not taken.

Each has a stable code. Whoever is refused must not touch the resource; what the resource did before stands.
"""

from leasehold.errors import EXIT_LOST, LeaseholdError


class NotProven(LeaseholdError, code="NOT_PROVEN", http_status=401, exit_code=EXIT_LOST):
    """A claim to hold a lease was not proven."""


class RequestMalformed(NotProven, code="REQUEST_MALFORMED", http_status=400):
    """The request names nothing that a lease could be on."""


class CertificateMissing(NotProven, code="CERTIFICATE_MISSING"):
    """No certificate came with the request."""


class CertificateMalformed(NotProven, code="CERTIFICATE_MALFORMED"):
    """The text is not a certificate."""


class CertificateAlgorithm(NotProven, code="CERTIFICATE_ALGORITHM"):
    """The certificate names another algorithm than EdDSA, the only one there is."""


class CertificateKeyUnknown(NotProven, code="CERTIFICATE_KEY_UNKNOWN"):
    """The certificate names a key that is not among the trusted ones."""


class CertificateKeyRetired(NotProven, code="CERTIFICATE_KEY_RETIRED"):
    """The certificate was signed with a key that has been retired."""


class CertificateForged(NotProven, code="CERTIFICATE_FORGED"):
    """The signature does not belong to the certificate's text."""


class CertificateExpired(NotProven, code="CERTIFICATE_EXPIRED"):
    """The lease's time was over at the moment of the check."""


class CertificateNotYetValid(NotProven, code="CERTIFICATE_NOT_YET_VALID"):
    """The certificate was made in what is the future for whoever checks it."""


class CertificateIssuer(NotProven, code="CERTIFICATE_ISSUER", http_status=403):
    """The certificate is another registrar's."""


class CertificateTenant(NotProven, code="CERTIFICATE_TENANT", http_status=403):
    """The certificate is for another tenant."""


class CertificateResource(NotProven, code="CERTIFICATE_RESOURCE", http_status=403):
    """The certificate is for another resource."""


class StaleToken(NotProven, code="STALE_TOKEN", http_status=409):
    """Somebody with a higher token has been here since."""
