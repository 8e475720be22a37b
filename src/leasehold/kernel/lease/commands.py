"""What can be asked about leases.

A claim may give its request the id that it proposes for the lease. Then the lease is found by that id, and
no key has to be remembered; this is what clients do unless their caller names the request. Such a claim has
to be repeated as it was: with another lease id it would be another request, and another claim under the same
id is refused (`rules.repeat`).
"""

from typing import Any, ClassVar

import msgspec

from leasehold.kernel.lease.answers import Ended, Granted, Released, Renewed, Spent, Waiting
from leasehold.kernel.lease.budget import Amounts, Budget
from leasehold.kernel.lease.model import Mode, ReleaseReason
from leasehold.kernel.lease.scope import Scope
from leasehold.kernel.lease.ticket import PRIORITY_USUAL
from leasehold.kernel.ledger.commands import Command, Right


class Wanted(msgspec.Struct, frozen=True, kw_only=True, gc=False, omit_defaults=True):
    """One resource of a claim on several, and how it is to be owned."""

    resource: str
    mode: Mode = Mode.EXCLUSIVE


class Acquire(Command, frozen=True, kw_only=True, omit_defaults=True, tag="acquire"):
    """Ask to own a resource. `lease_id` is the id the new lease gets if the claim is granted.

    With `wait`, a claim that cannot be granted now joins the queue, and is answered `Waiting`. The same
    request, sent again, asks how things stand: it keeps the place, and confirms what was granted meanwhile.
    Releasing the lease id leaves the queue, or gives back what was won, whichever it is by then.
    """

    answer = Granted | Waiting
    right = Right.HOLD

    # The retry of a named request may propose another lease id, and wait somewhere else.
    not_content: ClassVar[dict[str, Any]] = {"request_id": "", "lease_id": "", "wake": "", "gives_up": False}
    gives_back = False

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
    gives_up: bool = False
    """The waiter stops waiting by itself after a while. So it may wait where somebody who may have died would
    have to make way for it; whoever waits for as long as it takes is refused that at once."""
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


class Derive(Command, frozen=True, kw_only=True, omit_defaults=True, tag="derive"):
    """Ask for a child of one's own lease: another resource, and a part of what that lease allows."""

    answer = Granted
    right = Right.HOLD
    not_content = {"request_id": "", "lease_id": ""}
    gives_back = False

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


class _OfOneLease(Command, frozen=True, kw_only=True, omit_defaults=True):
    lease_id: str

    @property
    def lease_ids(self) -> tuple[str, ...]:
        """Return the lease, as the commands that may name several do."""
        return (self.lease_id,)


class Spend(_OfOneLease, frozen=True, kw_only=True, omit_defaults=True, tag="spend"):
    """Use up some of a lease's budget: all of `amounts`, or nothing."""

    answer = Spent
    right = Right.HOLD

    holder: str
    amounts: Amounts


class Renew(Command, frozen=True, kw_only=True, omit_defaults=True, tag="renew"):
    """Ask for more time on leases of one holder, each for `ttl_ns` from now, or for its own TTL again."""

    answer = Renewed
    right = Right.HOLD

    lease_ids: tuple[str, ...]
    holder: str
    ttl_ns: int | None = None


class Release(Command, frozen=True, kw_only=True, omit_defaults=True, tag="release"):
    """Give leases of one holder back."""

    answer = Released
    right = Right.HOLD

    lease_ids: tuple[str, ...]
    holder: str
    reason: ReleaseReason = ReleaseReason.VOLUNTARY


class Revoke(_OfOneLease, frozen=True, kw_only=True, omit_defaults=True, tag="revoke"):
    """Forcibly end a lease. History keeps who did it and why."""

    answer = Ended
    right = Right.OPERATE

    operator: str
    reason: str


class ChangeMode(_OfOneLease, frozen=True, kw_only=True, omit_defaults=True, tag="change_mode"):
    """Ask to have a shared lease exclusively, or to share an exclusive one.

    An upgrade that has to wait for other sharers is refused as held, or with `wait` answered `Waiting`; the
    same request, sent again, asks how things stand. A downgrade always works; it also takes back an upgrade
    that still waits.
    """

    answer = Granted | Waiting
    right = Right.HOLD
    not_content = {"request_id": "", "wake": ""}

    holder: str
    mode: Mode
    wait: bool = False
    wake: str = ""


class Transfer(Command, frozen=True, kw_only=True, omit_defaults=True, tag="transfer"):
    """Hand a lease to another holder: the old one ends, and the new one has a new id and a higher token."""

    answer = Granted
    right = Right.HOLD
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


LeaseCommand = Acquire | Derive | Spend | Renew | Release | Revoke | ChangeMode | Transfer
