"""Names of records, and the records found for them: what passes between a decision and a store."""

from collections.abc import Iterator
from contextlib import contextmanager

import msgspec
from msgspec.structs import astuple

from leasehold.kernel.lease.events import Event
from leasehold.kernel.lease.model import Lease, Mode
from leasehold.kernel.ledger.authority import Era

ResourceKey = tuple[str, str]
"""Tenant and resource."""
HolderKey = tuple[str, str]
"""Tenant and holder."""
QueueKey = tuple[str, str, int]
"""Tenant, resource, and how many of the first waiters in each mode; for a path, of all in its reach."""
TreeKey = tuple[str, str, int]
"""Tenant, path, and how many of the leases that are held in each mode above it, on it and below it."""
TangleKey = tuple[str, str, str]
"""Tenant, path, and a holder; no holder (""): all who wait for something themselves."""
PlaceKey = tuple[str, str, str]
"""Tenant, resource, and a place in its queue."""


FIRST_IN_LINE = 2
"""How many waiters to read at first: who gets what has become free, and who comes next."""
FIRST_AROUND = 16
"""How many leases of a mode around a path to read at first: mostly, one in the way is all that matters."""
EVERYTHING = 1 << 31
"""More than there can be of anything."""
CHILDREN_PAGE = 100
"""How many unended children of one lease a store returns at most; any of them, if there are more."""


class Keys(msgspec.Struct, kw_only=True, gc=False):
    """Names of records: what to read before deciding."""

    leases: set[str] = msgspec.field(default_factory=set)
    resources: set[ResourceKey] = msgspec.field(default_factory=set)
    requests: set[str] = msgspec.field(default_factory=set)
    grants: set[str] = msgspec.field(default_factory=set)
    """Leases of which the event is wanted that granted them."""
    holders: set[HolderKey] = msgspec.field(default_factory=set)
    """Holders, and tenants, whose unended leases are to be counted."""
    tenants: set[str] = msgspec.field(default_factory=set)
    eras: set[int] = msgspec.field(default_factory=set)
    children: set[str] = msgspec.field(default_factory=set)
    """Leases whose unended children are wanted, up to `CHILDREN_PAGE` of each."""
    queues: set[QueueKey] = msgspec.field(default_factory=set)
    trees: set[TreeKey] = msgspec.field(default_factory=set)
    """Paths around which leases are to be read: the first by name of those held above or on it, and of those
    below; all whose holders wait to be alone; and the first waiters, `FIRST_IN_LINE` in each mode."""
    tangles: set[TangleKey] = msgspec.field(default_factory=set)
    """Paths, and holders of whom everything is to be read that they hold above, on and below them."""
    places: set[PlaceKey] = msgspec.field(default_factory=set)
    """Places to count how many waiters are ahead of."""
    waits: set[HolderKey] = msgspec.field(default_factory=set)
    """Holders of whom everything is to be read that they wait for."""
    owners: set[HolderKey] = msgspec.field(default_factory=set)
    """Holders of whom every lease is to be read that they hold."""

    def add(self, more: "Keys") -> None:
        """Ask for what `more` asks for, too."""
        for name in self.__struct_fields__:
            mine: set[object] = getattr(self, name)
            mine |= getattr(more, name)

    def __bool__(self) -> bool:
        return any(astuple(self))


class Records(msgspec.Struct, kw_only=True, gc=False):
    """What a store found for `Keys`. A name that was asked for and is not here has no record."""

    leases: list[Lease] = msgspec.field(default_factory=list)
    """Every lease asked for by id, every one that stands on a resource that was asked for, and so on."""
    awaited: set[ResourceKey] = msgspec.field(default_factory=set)
    """Which of the resources of these leases, and of those asked for, somebody waits for."""
    requests: dict[str, Event] = msgspec.field(default_factory=dict)
    grants: dict[str, Event] = msgspec.field(default_factory=dict)
    holders: dict[HolderKey, int] = msgspec.field(default_factory=dict)
    tenants: dict[str, int] = msgspec.field(default_factory=dict)
    eras: dict[int, Era] = msgspec.field(default_factory=dict)
    children: dict[str, list[Lease]] = msgspec.field(default_factory=dict)
    cut: dict[TreeKey, frozenset[Mode]] = msgspec.field(default_factory=dict)
    """Of each of the `trees`, the modes in which more may be held than was read."""
    tangles: dict[TangleKey, list[str]] = msgspec.field(default_factory=dict)
    """Leases by id; they are among the `leases`."""
    queues: dict[QueueKey, tuple[str, str]] = msgspec.field(default_factory=dict)
    """The places up to which the exclusive and the shared waiters of a resource were read."""
    places: dict[PlaceKey, int] = msgspec.field(default_factory=dict)
    ends: dict[ResourceKey, str] = msgspec.field(default_factory=dict)
    """The last place that is taken, of each queue of which all waiters were to be counted; "" if none is."""


class Missing(LookupError):
    """A decision needs records that are not in the view."""

    def __init__(self, keys: Keys) -> None:
        super().__init__(keys)
        self.keys = keys


class Gathering:
    """Steps of which each may lack records, so that what all of them lack is read at once.

    What is decided on the way counts only if nothing was lacking.
    """

    def __init__(self) -> None:
        self._keys = Keys()

    @contextmanager
    def step(self) -> Iterator[None]:
        """Go on with the next step if this one lacks something."""
        try:
            yield
        except Missing as missing:
            self._keys.add(missing.keys)

    def end(self) -> None:
        """Say what was lacking, if anything was."""
        if self._keys:
            raise Missing(self._keys)
