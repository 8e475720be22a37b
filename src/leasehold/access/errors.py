"""What can go wrong with access keys. What a key does not allow is `leasehold.errors.NotPermitted`."""

from leasehold.errors import NotAuthenticated, Refused

__all__ = ["AccessKeyEnded", "AccessKeyExists", "AccessKeyNotFound", "LastAdminKey", "NotAuthenticated"]


class AccessKeyNotFound(Refused, code="ACCESS_KEY_NOT_FOUND", http_status=404):
    """There is no such access key."""


class AccessKeyExists(Refused, code="ACCESS_KEY_EXISTS"):
    """There is such an access key already."""


class AccessKeyEnded(Refused, code="ACCESS_KEY_ENDED"):
    """The access key was revoked, or has expired."""


class LastAdminKey(Refused, code="LAST_ADMIN_KEY"):
    """Nobody could create keys any more from afar without this one."""
