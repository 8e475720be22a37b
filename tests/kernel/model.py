"""Who may hold what, said again as simply as possible, and without any of the kernel's code.

Time is one number. `seen` is the moment of the last event: after a reboot nothing later is known, so time
goes on from there. A process that cannot survive a reboot takes its leases with it, unless they had run
out by then.
"""

from dataclasses import dataclass, field, replace

GRANTED, HELD, ALREADY_HELD = "granted", "HELD", "ALREADY_HELD"
NOT_FOUND, NOT_HOLDER, LOST = "LEASE_NOT_FOUND", "NOT_HOLDER", "lost"
RENEWED, EXHAUSTED, TOO_SHORT = "renewed", "RENEWALS_EXHAUSTED", "RENEWAL_DOES_NOT_EXTEND"


@dataclass(frozen=True)
class Holding:
    """One grant, and what became of it."""

    lease_id: str
    tenant: str
    resource: str
    holder: str
    shared: bool
    expires: int
    ttl: int
    bound: bool
    renewals_left: int | None
    over: bool = False


@dataclass
class Model:
    """All grants, and the time."""

    now: int = 0
    seen: int = 0
    grants: dict[str, Holding] = field(default_factory=dict)

    def copy(self) -> "Model":
        return Model(self.now, self.seen, dict(self.grants))

    def happened(self) -> None:
        """Note that the registrar has written down this moment."""
        self.seen = self.now

    def new_clock(self, *, rebooted: bool) -> None:
        """Go on from the last moment that was written down, without the processes that a reboot ended."""
        self.now = self.seen
        for lease_id, one in self.grants.items():
            if rebooted and one.bound and self.is_live(lease_id):
                self.end(lease_id)

    def is_live(self, lease_id: str) -> bool:
        one = self.grants[lease_id]
        return not one.over and one.expires > self.now

    def live_on(self, tenant: str, resource: str) -> list[Holding]:
        return [
            one
            for lease_id, one in self.grants.items()
            if (one.tenant, one.resource) == (tenant, resource) and self.is_live(lease_id)
        ]

    def left(self, lease_id: str) -> int:
        return self.grants[lease_id].expires - self.now if self.is_live(lease_id) else 0

    def acquire(self, wanted: Holding, *, adopt: bool) -> str:
        """Grant, or say why not; `wanted.expires` does not matter."""
        live = self.live_on(wanted.tenant, wanted.resource)
        own = [one for one in live if one.holder == wanted.holder]
        if own and not adopt:
            return ALREADY_HELD
        if any(one.holder != wanted.holder and not (one.shared and wanted.shared) for one in live):
            return HELD
        for one in own:
            self.end(one.lease_id)
        self.grants[wanted.lease_id] = replace(wanted, expires=self.now + wanted.ttl)
        return GRANTED

    def end(self, lease_id: str) -> None:
        self.grants[lease_id] = replace(self.grants[lease_id], over=True)

    def renew(self, tenant: str, holder: str, lease_id: str, ttl: int | None = None) -> str:
        one = self.grants.get(lease_id)
        if one is None or one.tenant != tenant:
            return NOT_FOUND
        if one.holder != holder:
            return NOT_HOLDER if self.is_live(lease_id) else LOST
        if not self.is_live(lease_id):
            return LOST
        if one.renewals_left == 0:
            return EXHAUSTED
        ttl = one.ttl if ttl is None else ttl
        expires = self.now + ttl
        if expires < one.expires:
            return TOO_SHORT
        if expires > one.expires:
            left = None if one.renewals_left is None else one.renewals_left - 1
            self.grants[lease_id] = replace(one, expires=expires, ttl=ttl, renewals_left=left)
        return RENEWED
