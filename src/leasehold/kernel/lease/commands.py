"""What can be asked of the registrar.

Every command that changes something carries a request id. A repeat of the same request (same tenant,
holder, id and content) is recognised for an hour and answered from what happened the first time, so a
caller whose reply was lost can simply ask again.

A claim may give its request the id that it proposes for the lease. Then the lease is found by that id, and
no key has to be remembered; this is what clients do unless their caller names the request. Such a claim has
to be repeated as it was: with another lease id it would be another request, and another claim under the same
id is refused (`rules.repeat`).
"""

from functools import cached_property
from hashlib import blake2b
from typing import Any, ClassVar

import msgspec
from msgspec.structs import replace

from leasehold.kernel.lease.budget import Amounts, Budget
from leasehold.kernel.lease.model import Mode, ReleaseReason
from leasehold.kernel.lease.scope import Scope
from leasehold.kernel.lease.ticket import PRIORITY_USUAL

REQUEST_MEMORY_NS = 3600 * 1_000_000_000

_encoder = msgspec.json.Encoder()


class _Command(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, dict=True, tag_field="command"):
    not_content: ClassVar[dict[str, str]] = {"request_id": ""}
    """Fields, blanked, that do not make a request another one; all other fields do."""

    tenant: str = "default"
    request_id: str

    @cached_property
    def request_key(self) -> str:
        """Return the key under which the ledger remembers this request.

        The id comes first, so that time-ordered ids keep the index compact; the digest makes the same id
        with another holder or other content another request. Defaults are left out of it, so that a
        release that adds a field still knows the requests of the one before.
        """
        content = _encoder.encode(replace(self, **self.not_content))
        return f"{self.request_id}:{blake2b(content, digest_size=8).hexdigest()}"


class Wanted(msgspec.Struct, frozen=True, kw_only=True, gc=False, omit_defaults=True):
    """One resource of a claim on several, and how it is to be owned."""

    resource: str
    mode: Mode = Mode.EXCLUSIVE


class Acquire(_Command, frozen=True, kw_only=True, omit_defaults=True, tag="acquire"):
    """Ask to own a resource. `lease_id` is the id the new lease gets if the claim is granted.

    With `wait`, a claim that cannot be granted now joins the queue, and is answered `Waiting`. The same
    request, sent again, asks how things stand: it keeps the place, and confirms what was granted meanwhile.
    Releasing the lease id leaves the queue, or gives back what was won, whichever it is by then.
    """

    # The retry of a named request may propose another lease id, and wait somewhere else.
    not_content = {"request_id": "", "lease_id": "", "wake": ""}

    lease_id: str
    resource: str
    holder: str
    ttl_ns: int
    mode: Mode = Mode.EXCLUSIVE
    adopt: bool = False
    """Replace the holder's own live lease on the resource instead of refusing to hold it twice."""
    max_renewals: int = -1
    bound_to_boot: bool = True
    metadata: dict[str, Any] = {}
    config_version: str = ""
    zone_version: str = ""
    scope: Scope | None = None
    """What the lease allows; with neither scope nor budget it allows nothing, and cannot be derived from."""
    budget: Budget | None = None
    also: tuple[Wanted, ...] = ()
    """Further resources: the claim is granted whole or not at all. See `lease_ids`."""
    wait: bool = False
    priority: int = PRIORITY_USUAL
    """From 1 to 10, the most urgent."""
    wake: str = ""
    """Where the waiter wants to be woken; whoever changes its situation is told, after the commit."""
    lock_delay_ns: int = 0
    """How long the resource stays closed to others after the lease has expired or was revoked."""

    @property
    def lease_ids(self) -> tuple[str, ...]:
        """Return the ids that the leases of this claim get: the proposed one, and `.1`, `.2` … behind it."""
        return (self.lease_id, *(f"{self.lease_id}.{number}" for number in range(1, len(self.also) + 1)))

    @property
    def targets(self) -> list[tuple[str, Mode]]:
        """Return what is claimed, and how it is to be owned, in the order of `lease_ids`."""
        return [(self.resource, self.mode), *((one.resource, one.mode) for one in self.also)]

    @property
    def is_its_own_request(self) -> bool:
        """Say whether the lease itself, once granted, is the memory of this request: it bears its id."""
        return self.request_id == self.lease_id


class Derive(_Command, frozen=True, kw_only=True, omit_defaults=True, tag="derive"):
    """Ask for a child of one's own lease: another resource, and a part of what that lease allows."""

    not_content = {"request_id": "", "lease_id": ""}

    parent_id: str
    holder: str
    """Who derives: the holder of the parent."""
    lease_id: str
    resource: str
    child_holder: str
    ttl_ns: int | None = None
    """None: as long as the parent stands."""
    scope: Scope = Scope()
    budget: Budget = Budget()
    mode: Mode = Mode.EXCLUSIVE
    max_renewals: int = -1
    bound_to_boot: bool = True
    metadata: dict[str, Any] = {}
    is_its_own_request: ClassVar[bool] = False
    """What a child was granted is remembered by its request alone."""


class Spend(_Command, frozen=True, kw_only=True, omit_defaults=True, tag="spend"):
    """Use up some of a lease's budget: all of `amounts`, or nothing."""

    lease_id: str
    holder: str
    amounts: Amounts

    @property
    def lease_ids(self) -> tuple[str, ...]:
        """Return the lease, as the commands that may name several do."""
        return (self.lease_id,)


class Renew(_Command, frozen=True, kw_only=True, omit_defaults=True, tag="renew"):
    """Ask for more time on leases of one holder, each for `ttl_ns` from now, or for its own TTL again."""

    lease_ids: tuple[str, ...]
    holder: str
    ttl_ns: int | None = None


class Release(_Command, frozen=True, kw_only=True, omit_defaults=True, tag="release"):
    """Give leases of one holder back."""

    lease_ids: tuple[str, ...]
    holder: str
    reason: ReleaseReason = ReleaseReason.VOLUNTARY


class Revoke(_Command, frozen=True, kw_only=True, omit_defaults=True, tag="revoke"):
    """End a lease over its holder's head. History keeps who did it and why."""

    lease_id: str
    operator: str
    reason: str

    @property
    def lease_ids(self) -> tuple[str, ...]:
        """Return the lease, as the commands that may name several do."""
        return (self.lease_id,)


class Sweep(_Command, frozen=True, kw_only=True, omit_defaults=True, tag="sweep"):
    """Record the end of those of the named leases that time has already ended."""

    lease_ids: tuple[str, ...]


class ChangeMode(_Command, frozen=True, kw_only=True, omit_defaults=True, tag="change_mode"):
    """Ask to have a shared lease exclusively, or to share an exclusive one.

    An upgrade that has to wait for other sharers is refused as held, or with `wait` answered `Waiting`; the
    same request, sent again, asks how things stand. A downgrade always works; it also takes back an upgrade
    that still waits.
    """

    not_content = {"request_id": "", "wake": ""}

    lease_id: str
    holder: str
    mode: Mode
    wait: bool = False
    wake: str = ""

    @property
    def lease_ids(self) -> tuple[str, ...]:
        """Return the leases this command is about."""
        return (self.lease_id,)


class Transfer(_Command, frozen=True, kw_only=True, omit_defaults=True, tag="transfer"):
    """Hand a lease to another holder: the old one ends, and the new one has a new id and a higher token."""

    not_content = {"request_id": "", "new_lease_id": ""}

    lease_id: str
    holder: str
    to: str
    new_lease_id: str
    ttl_ns: int | None = None
    """How long the new lease lasts; the old one's TTL if not given."""

    @property
    def lease_ids(self) -> tuple[str, ...]:
        """Return the leases this command is about: the one that ends, and the one that follows it."""
        return (self.lease_id, self.new_lease_id)


Command = Acquire | Derive | Spend | Renew | Release | Revoke | Sweep | ChangeMode | Transfer
