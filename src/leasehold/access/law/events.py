"""What happens to access keys. Nothing here, or anywhere in a ledger, holds a secret."""

from leasehold.access.law.model import Role, Until, record_key
from leasehold.kernel.ledger.events import Event, Filing


class _AccessEvent(Event, frozen=True, kw_only=True, omit_defaults=True):
    is_remembered = True

    key_id: str
    """The access key."""
    tenant: str
    """What the key is bound to; empty: all tenants."""
    by: str = ""
    """The access key that it was asked with; empty: by a program that has the store at hand."""

    @property
    def keys(self) -> tuple[str, ...]:
        return (record_key(self.key_id),)

    @property
    def filing(self) -> Filing:
        return (self.tenant or None, None, f"access:{self.key_id}", self.actor, None)

    def _told(self, what: str) -> str:
        return f"{what}, with key {self.by}" if self.by else what


class AccessKeyCreated(_AccessEvent, frozen=True, kw_only=True, omit_defaults=True, tag="access.created"):
    """A key opens the registrar from now on."""

    digest: str
    """SHA-256 of its secret, in hexadecimal digits."""
    role: Role
    """What it allows."""
    holders: tuple[str, ...] = ()
    """The holders that it may act as; empty: any."""
    description: str = ""
    """What it is for."""
    expires: Until | None = None
    """When it ends by itself; None: never."""

    @property
    def story(self) -> str:
        where = f"tenant {self.tenant}" if self.tenant else "all tenants"
        return self._told(f"{self.role} of {where}")


class AccessKeyRotated(_AccessEvent, frozen=True, kw_only=True, omit_defaults=True, tag="access.rotated"):
    """A key has another secret from now on."""

    digest: str
    """SHA-256 of the new secret, in hexadecimal digits."""
    overlap: Until | None = None
    """How long the secret before is good; None: it is not any more."""

    @property
    def story(self) -> str:
        return self._told("new secret" if self.overlap is None else "new secret beside the old one")


class AccessKeyRevoked(_AccessEvent, frozen=True, kw_only=True, omit_defaults=True, tag="access.revoked"):
    """A key opens nothing any more."""

    reason: str = ""

    @property
    def story(self) -> str:
        return self._told(self.reason or "revoked")


EVENTS = (AccessKeyCreated, AccessKeyRotated, AccessKeyRevoked)
