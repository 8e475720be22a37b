"""The part of a view that knows what stands where, and who waits.

Most of it is filled only where somebody waits, and for paths. What a store counted, or read of a queue, is as
of the beginning of the transaction; what events have changed since is kept beside it.

A view may know thousands of leases from batches before. So nothing here is searched from end to end: what is
held, and who waits, is kept by resource, by holder and by directory.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator

from leasehold.kernel.lease.model import Lease, LeaseState, Mode
from leasehold.kernel.lease.path_index import PathIndex
from leasehold.kernel.lease.paths import ancestors, contains, is_path, related
from leasehold.kernel.lease.records import (
    HELD,
    WAITING,
    HolderKey,
    LeaseFound,
    LeaseWanted,
    PlaceKey,
    ResourceKey,
    TangleKey,
    held_by,
    missing,
    waits_of,
)
from leasehold.kernel.lease.ticket import LAST_PLACE
from leasehold.kernel.lease.waiting_line import WaitingLine
from leasehold.kernel.ledger.journal import Journal
from leasehold.kernel.ledger.records import Scan

_NOTHING: dict[str, Lease] = {}
_NOBODY = WaitingLine()
_NOT_CUT: frozenset[Mode] = frozenset()
_ALL_CUT = frozenset(Mode)


class QueueView:
    """Leases, and what is known of the queues they stand in."""

    def __init__(self, journal: Journal) -> None:
        self.records: dict[str, Lease | None] = {}
        """Leases by id; None: there is none."""
        self.delegating = False
        """Whether any lease here has a delegation, so that ends may concern others."""
        self.scanned: set[Scan] = set()
        """What was asked about single holders: all of it is here."""
        self._journal = journal
        self._children: dict[str, dict[str, Lease]] = defaultdict(dict)
        self._held: dict[ResourceKey, dict[str, Lease]] = defaultdict(dict)
        self._lines: dict[ResourceKey, WaitingLine] = {}
        self._paths = PathIndex()
        """Those on which something is held, or waited for."""
        self._by_holder: dict[HolderKey, dict[str, Lease]] | None = None
        """What is held, and waited for, by whom; None as long as nobody has asked."""
        self._awaited: set[ResourceKey] = set()
        self._whole_trees: set[ResourceKey] = set()
        """Paths of which everything is known that is held around them."""
        self._cut_trees: dict[ResourceKey, tuple[int, frozenset[Mode]]] = {}
        """Others: how many of each mode were read, and the modes in which there may be more."""
        self._tangles: dict[TangleKey, list[str]] = {}
        self._newly_waiting: set[HolderKey] = set()
        """Who waits for something with which events have had to do: a store does not know of it yet."""
        self._whole_queues: set[ResourceKey] = set()
        """Resources of which everybody is known who waits for them, or around them."""
        self._queues: dict[ResourceKey, tuple[int, str, str]] = {}
        """Others: how many of each mode were read, and up to which places."""
        self._places: dict[PlaceKey, int] = {}
        self._ends: dict[ResourceKey, str] = {}
        self._queue_changes: dict[ResourceKey, list[tuple[str, int]]] = {}

    def _load_queues(self, wanted: LeaseWanted, found: LeaseFound) -> None:
        for tenant, path, limit in wanted.trees:
            cut = found.cut.get((tenant, path, limit), _NOT_CUT)
            if cut:
                self._cut_trees[(tenant, path)] = (limit, cut)
            else:
                self._whole_trees.add((tenant, path))
        self._tangles.update(found.tangles)
        self._places.update(found.places)
        self._ends.update(found.ends)
        for (tenant, resource, limit), (exclusive, shared) in found.queues.items():
            if exclusive == shared == LAST_PLACE:
                self._whole_queues.add((tenant, resource))
                continue
            known = self._queues.get((tenant, resource), (0, "", ""))
            self._queues[(tenant, resource)] = max(known, (limit, exclusive, shared))

    def _load_scan(self, scan: Scan) -> None:
        """Take note that everything is here that a holder holds, or waits with."""
        if scan.order in (HELD, WAITING):
            self.scanned.add(scan)
            if self._by_holder is None:
                self._file_by_holder()

    @property
    def is_crowded(self) -> bool:
        """Say whether anybody is known to wait for anything here."""
        return bool(self._awaited)

    def is_awaited(self, tenant: str, resource: str) -> bool:
        """Say whether anybody may wait for a resource on which a lease was loaded, or that was asked for."""
        return (tenant, resource) in self._awaited

    def tree_of(self, tenant: str, path: str, limit: int) -> tuple[list[Lease], frozenset[Mode]]:
        """Return unended leases held on whatever relates to a path: `limit` or more in each mode, or all.

        With them, the modes in which there may be more. All that wait to be exclusive are among them.
        """
        cut = _NOT_CUT
        if not self._is_whole(tenant, path, self._whole_trees):
            read, cut = self._cut_trees.get((tenant, path), (0, _ALL_CUT))
            if read < limit:
                raise missing(trees={(tenant, path, limit)})
        found: list[Lease] = []
        for resource in self._around(tenant, path):
            found += self._held.get((tenant, resource), _NOTHING).values()
        return found, cut

    def _around(self, tenant: str, resource: str) -> Iterator[str]:
        """Yield a resource and, for a path, all that relate to it of which anything is known."""
        if is_path(resource):
            yield from self._paths.around((tenant, resource))
        else:
            yield resource

    def _is_whole(self, tenant: str, resource: str, whole: set[ResourceKey]) -> bool:
        """Say whether a resource is among those of which all is known, or a path that contains it is."""
        if (tenant, resource) in whole:
            return True
        return is_path(resource) and any(
            (tenant, above) in whole and contains(above, resource) for above in ancestors(resource)
        )

    def tangle_of(self, tenant: str, path: str, holders: Collection[str]) -> list[str]:
        """Return leases held around a path by those who wait for something, or by these holders, by id.

        The rest of them are held by others. Those that events have changed are not all among them.
        """
        new = (name for in_tenant, name in self._newly_waiting if in_tenant == tenant)
        keys = {(tenant, path, holder) for holder in ("", *holders, *new)}
        unknown = keys - self._tangles.keys()
        if unknown:
            raise missing(tangles=unknown)
        return [lease_id for key in keys for lease_id in self._tangles[key]]

    def queue_of(self, tenant: str, resource: str, mode: Mode | None, limit: int) -> tuple[list[Lease], str]:
        """Return the first waiters for a resource, about `limit` of them, and up to which place they are all.

        For a path, those who wait above and below it are among them. `mode`: only those who wait in this one.
        """
        lines = [self._lines.get((tenant, one), _NOBODY) for one in self._around(tenant, resource)]
        if self._is_whole(tenant, resource, self._whole_queues):
            horizon = min((line.end_of(limit) for line in lines), default=LAST_PLACE)
        else:
            read, exclusive, shared = self._queues.get((tenant, resource), (0, "", ""))
            both = min(exclusive, shared)
            horizon = both if mode is None else (shared if mode is Mode.SHARED else exclusive)
            if read < limit and horizon != LAST_PLACE:
                raise missing(queues={(tenant, resource, limit)})
        waiters = [lease for line in lines for lease in line.up_to(horizon)]
        if mode is not None:
            waiters = [lease for lease in waiters if lease.mode is mode]
        return waiters, horizon

    def count_ahead(self, tenant: str, resource: str, place: str) -> int:
        """Return how many waiters for a resource, for a path also around it, are ahead of a place."""
        if self._is_whole(tenant, resource, self._whole_queues):
            around = self._around(tenant, resource)
            return sum(self._lines.get((tenant, one), _NOBODY).count_ahead(place) for one in around)
        key = (tenant, resource)
        count = self._places.get((*key, place))
        if count is None and place > self._ends.get(key, LAST_PLACE):
            count = self._places[(*key, LAST_PLACE)]  # It is behind all that the store knows of.
        if count is None:
            raise missing(places={(*key, place)})
        changed = [key] if not is_path(resource) else [one for one in self._queue_changes if _meet(key, one)]
        for one in changed:
            count += sum(change for theirs, change in self._queue_changes.get(one, ()) if theirs < place)
        return count

    def knows_queue(self, key: ResourceKey) -> bool:
        """Say whether it is known who comes first in line for a resource."""
        return key in self._queues or key in self._whole_queues

    def knows_places(self, key: ResourceKey) -> bool:
        """Say whether it is known how many wait for a resource."""
        return (*key, LAST_PLACE) in self._places or key in self._whole_queues

    def waits_of(self, tenant: str, holder: str) -> list[Lease]:
        """Return every lease of a holder with which it waits for something."""
        asked = waits_of((tenant, holder))
        if asked not in self.scanned:
            raise missing(scans={asked})
        return [lease for lease in self._of_holder((tenant, holder)) if lease.is_waiting]

    def owned_by(self, tenant: str, holder: str) -> list[Lease]:
        """Return every lease that a holder holds."""
        asked = held_by((tenant, holder))
        if asked not in self.scanned:
            raise missing(scans={asked})
        return [lease for lease in self._of_holder((tenant, holder)) if lease.state is LeaseState.ACTIVE]

    def _of_holder(self, key: HolderKey) -> Iterable[Lease]:
        return () if self._by_holder is None else self._by_holder.get(key, _NOTHING).values()

    def _file_by_holder(self) -> None:
        """Begin to keep leases by holder, which is needed only where somebody waits."""
        self._by_holder = defaultdict(dict)
        for here in self._held.values():
            for lease in here.values():
                self._by_holder[(lease.tenant, lease.holder)][lease.lease_id] = lease
        for line in self._lines.values():
            for lease in line.up_to(LAST_PLACE):
                self._by_holder[(lease.tenant, lease.holder)][lease.lease_id] = lease

    def _file(self, lease: Lease) -> None:
        """Keep a lease where its id and, until it has ended, its resource, holder and parent lead to it."""
        lease_id, key, state = lease.lease_id, (lease.tenant, lease.resource), lease.state
        here = self._held[key]
        self.records[lease_id] = lease
        if state is LeaseState.ACTIVE:
            here[lease_id] = lease
        else:
            here.pop(lease_id, None)
        if self._lines or state is LeaseState.PENDING:
            self._file_in_line(key, lease, waits=state is LeaseState.PENDING)
        if is_path(lease.resource):
            if here or self._lines.get(key):
                self._paths.add(key)
            else:
                self._paths.discard(key)
        if self._by_holder is not None:
            _keep(self._by_holder[(lease.tenant, lease.holder)], lease, ended=state.is_terminal)
        if lease.delegation is not None:
            self.delegating = True
            if lease.delegation.parent is not None:
                _keep(self._children[lease.delegation.parent], lease, ended=state.is_terminal)

    def _file_in_line(self, key: ResourceKey, lease: Lease, *, waits: bool) -> None:
        line = self._lines.get(key)
        if waits:
            if line is None:
                line = self._lines[key] = WaitingLine()
            line.put(lease)
        elif line is not None:
            line.drop(lease.lease_id)

    def _requeue(self, before: Lease | None, after: Lease) -> None:
        """Keep apart what events change in the queues."""
        journal = self._journal
        key = (after.tenant, after.resource)
        if after.is_waiting:
            journal.add(self._awaited, key)
            journal.add(self._newly_waiting, (after.tenant, after.holder))
        change = (after.state is LeaseState.PENDING) - (
            before is not None and before.state is LeaseState.PENDING
        )
        if change:
            waiter = after if change > 0 or before is None else before
            changes = self._queue_changes.setdefault(key, [])
            changes.append((waiter.place, change))
            journal.note(changes.pop)

    def _forget_queues(self) -> None:
        """Have queues read anew by the next batch; what is known whole stays so: nobody else has written."""
        self._cut_trees = {}
        self._tangles = {}
        self._newly_waiting = set()
        self._queues = {}
        self._places = {}
        self._ends = {}
        self._queue_changes = {}


def _keep(leases: dict[str, Lease], lease: Lease, *, ended: bool) -> None:
    if ended:
        leases.pop(lease.lease_id, None)
    else:
        leases[lease.lease_id] = lease


def _meet(one: ResourceKey, other: ResourceKey) -> bool:
    return one[0] == other[0] and related(one[1], other[1])
