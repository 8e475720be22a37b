"""Why somebody's word that they hold a lease was not taken.

Each has a stable code. Whoever is refused must not touch the resource; what the resource did before stands.
"""

from leasehold.errors import EXIT_LOST, LeaseholdError


class NotProven(LeaseholdError):
    """A claim to hold a lease was not proven."""

    code = "NOT_PROVEN"
    http_status = 401
    exit_code = EXIT_LOST


class CertificateMissing(NotProven):
    """No certificate came with the request."""

    code = "CERTIFICATE_MISSING"


class CertificateMalformed(NotProven):
    """The text is not a certificate."""

    code = "CERTIFICATE_MALFORMED"


class CertificateAlgorithm(NotProven):
    """The certificate names another algorithm than EdDSA, the only one there is."""

    code = "CERTIFICATE_ALGORITHM"


class CertificateKeyUnknown(NotProven):
    """The certificate names a key that is not among the trusted ones."""

    code = "CERTIFICATE_KEY_UNKNOWN"


class CertificateKeyRetired(NotProven):
    """The certificate was signed with a key that has been retired."""

    code = "CERTIFICATE_KEY_RETIRED"


class CertificateForged(NotProven):
    """The signature does not belong to the certificate's text."""

    code = "CERTIFICATE_FORGED"


class CertificateExpired(NotProven):
    """The lease's time was over at the moment of the check."""

    code = "CERTIFICATE_EXPIRED"


class CertificateNotYetValid(NotProven):
    """The certificate was made in what is the future for whoever checks it."""

    code = "CERTIFICATE_NOT_YET_VALID"


class CertificateIssuer(NotProven):
    """The certificate is another registrar's."""

    code = "CERTIFICATE_ISSUER"
    http_status = 403


class CertificateTenant(NotProven):
    """The certificate is for another tenant."""

    code = "CERTIFICATE_TENANT"
    http_status = 403


class CertificateResource(NotProven):
    """The certificate is for another resource."""

    code = "CERTIFICATE_RESOURCE"
    http_status = 403


class StaleToken(NotProven):
    """Somebody with a higher token has been here since."""

    code = "STALE_TOKEN"
    http_status = 409
