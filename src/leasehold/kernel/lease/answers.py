"""What is answered when the answer is yes."""

import msgspec

from leasehold.kernel.lease.budget import Budget
from leasehold.kernel.lease.model import Lease, Mode
from leasehold.kernel.ledger.refusals import Refusal


class Granted(msgspec.Struct, frozen=True, kw_only=True, gc=False, tag=True):
    """The claim stands, for `expires_in_ns` from the moment of this answer."""

    lease: Lease
    expires_in_ns: int
    repeated: bool = False
    """This answers a retry; the lease is the one granted the first time."""
    ended: bool = False
    """The lease of the first time has ended since, so it must not be used."""
    also: tuple[Lease, ...] = ()
    """The other leases of a claim on several resources; `expires_in_ns` holds for all of them."""


class Place(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """Where a waiter stands on one of its resources, and who is in the way."""

    resource: str
    mode: Mode
    position: int
    """1: next in line. 0: nobody is ahead and nobody holds it, so it is kept for this waiter."""
    holder: str | None = None
    """Who holds it, or if nobody does, who is ahead."""
    reason: str = ""
    """What they say that it is for."""
    lease_id: str | None = None
    since_ns: int | None = None
    """Wall time since when the holder holds it."""
    expires_in_ns: int | None = None
    """How long the holder's lease lasts if nobody renews it; None if nobody holds it, or nobody can tell."""


class Waiting(msgspec.Struct, frozen=True, kw_only=True, gc=False, tag=True):
    """The claim has a place in the queue. Ask again, as before, when woken or after `ask_again_ns`."""

    lease_id: str
    """The claim; releasing it leaves the queue, or gives back what was won meanwhile."""
    ticket: int
    places: tuple[Place, ...]
    """One for each resource, in the order asked."""
    waited_ns: int
    ask_again_ns: int


class Spent(msgspec.Struct, frozen=True, kw_only=True, gc=False, tag=True):
    """The amounts are used up, and so much remains as of this answer."""

    lease: Lease
    remaining: Budget
    repeated: bool = False
    """This answers a retry; the amounts were used up the first time, and once."""


class Renewal(msgspec.Struct, frozen=True, kw_only=True, gc=False, tag=True):
    """One lease that has more time now."""

    lease: Lease
    expires_in_ns: int


class Renewed(msgspec.Struct, frozen=True, kw_only=True, gc=False, tag=True):
    """What became of each lease of a renewal, in the order asked; one refusal does not touch the others."""

    outcomes: tuple[Renewal | Refusal, ...]


class Ended(msgspec.Struct, frozen=True, kw_only=True, gc=False, tag=True):
    """The lease is over. `already`: it was before this command came, which therefore changed nothing."""

    lease: Lease
    already: bool = False


class Released(msgspec.Struct, frozen=True, kw_only=True, gc=False, tag=True):
    """What became of each lease of a release, in the order asked."""

    outcomes: tuple[Ended | Refusal, ...]


Answer = Granted | Waiting | Spent | Renewed | Released | Ended
