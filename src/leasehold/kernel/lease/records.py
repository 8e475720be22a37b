"""What can be asked of a store about leases, and what it answers.

Leases are found by id, and in four orders, each by tenant and holder, or by parent. Three questions are more
than an interval of an order: what stands on a resource, and whether somebody waits for it; who comes first
where somebody waits, which for a path means above, on and below it; and who is entangled around a path.
"""

from typing import Any

import msgspec

from leasehold.kernel.lease.model import Lease, Mode
from leasehold.kernel.ledger.events import Event
from leasehold.kernel.ledger.key import under
from leasehold.kernel.ledger.records import Count, Found, Keys, Missing, Scan, Wanted

LEASE = "lease"
"""The name of the family."""

HELD = "held"
"""Leases that stand, by tenant and holder."""
WAITING = "waiting"
"""Leases with which somebody waits, to be granted them or to be alone on them, by tenant and holder."""
UNENDED = "unended"
"""Leases that stand or are to be granted, by tenant and holder."""
CHILDREN = "children"
"""Leases that stand and were derived from another, by that one's id."""

ResourceKey = tuple[str, str]
"""Tenant and resource."""
HolderKey = tuple[str, str]
"""Tenant and holder."""
QueueKey = tuple[str, str, int]
"""Tenant, resource, and how many of the first waiters in each mode; for a path, of all in its reach."""
TreeKey = tuple[str, str, int]
"""Tenant, path, and how many of the leases that are held around it in each mode."""
TangleKey = tuple[str, str, str]
"""Tenant, path, and a holder; no holder (""): all who wait for something themselves."""
PlaceKey = tuple[str, str, str]
"""Tenant, resource, and a place in its queue."""


FIRST_IN_LINE = 2
"""How many waiters to read at first: who gets what has become free, and who comes next."""
FIRST_AROUND = 16
"""How many leases of a mode around a path to read at first: mostly, one in the way is all that matters."""
CHILDREN_PAGE = 100
"""How many unended children of one lease a store returns at most; any of them, if there are more."""


class LeaseWanted(Wanted, kw_only=True, gc=False):
    """Questions about leases; `keys` are their ids."""

    resources: set[ResourceKey] = msgspec.field(default_factory=set)
    """Resources on which everything that stands is wanted."""
    grants: set[str] = msgspec.field(default_factory=set)
    """Leases of which the event is wanted that granted them."""
    queues: set[QueueKey] = msgspec.field(default_factory=set)
    trees: set[TreeKey] = msgspec.field(default_factory=set)
    """Paths around which leases are to be read: the first by name of those held above or on it, of those
    below, and of patterns; all whose holders wait to be alone; and the first waiters, `FIRST_IN_LINE` in each
    mode."""
    tangles: set[TangleKey] = msgspec.field(default_factory=set)
    """Paths, and holders of whom everything is to be read that they hold around them."""
    places: set[PlaceKey] = msgspec.field(default_factory=set)
    """Places to count how many waiters are ahead of."""

    @property
    def is_crowded(self) -> bool:
        """Say whether anything is asked about those who wait, or about paths."""
        return bool(self.queues or self.trees or self.tangles or self.places)


class LeaseFound(Found, kw_only=True, gc=False):
    """Every lease asked for by id, every one that stands on a resource that was asked for, and so on."""

    records: dict[str, Lease] = msgspec.field(default_factory=dict)
    awaited: set[ResourceKey] = msgspec.field(default_factory=set)
    """Which of the resources of these leases, and of those asked for, somebody waits for."""
    grants: dict[str, Event] = msgspec.field(default_factory=dict)
    cut: dict[TreeKey, frozenset[Mode]] = msgspec.field(default_factory=dict)
    """Of each of the `trees`, the modes in which more may be held than was read."""
    tangles: dict[TangleKey, list[str]] = msgspec.field(default_factory=dict)
    """Leases by id; they are among the records."""
    queues: dict[QueueKey, tuple[str, str]] = msgspec.field(default_factory=dict)
    """The places up to which the exclusive and the shared waiters of a resource were read."""
    places: dict[PlaceKey, int] = msgspec.field(default_factory=dict)
    ends: dict[ResourceKey, str] = msgspec.field(default_factory=dict)
    """The last place that is taken, of each queue of which all waiters were to be counted; "" if none is."""


def lease_keys(**wanted: Any) -> Keys:
    """Return what to read of leases."""
    return Keys(families={LEASE: LeaseWanted(**wanted)})


def missing(**wanted: Any) -> Missing:
    """Return what to raise for leases that nobody has loaded."""
    return Missing(lease_keys(**wanted))


def held_by(key: HolderKey) -> Scan:
    """Ask for every lease that a holder holds."""
    return Scan(*under(*key), order=HELD)


def waits_of(key: HolderKey) -> Scan:
    """Ask for every lease with which a holder waits for something."""
    return Scan(*under(*key), order=WAITING)


def children_of(lease_id: str) -> Scan:
    """Ask for standing children of a lease, up to a page of them."""
    return Scan(*under(lease_id), CHILDREN_PAGE, order=CHILDREN)


def count_of_holder(key: HolderKey) -> Count:
    """Ask how many unended leases a holder has."""
    return Count(*under(*key), order=UNENDED)


def count_of_tenant(tenant: str) -> Count:
    """Ask how many unended leases a tenant has."""
    return Count(*under(tenant), order=UNENDED)
