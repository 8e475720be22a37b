"""The questions about those who wait, for the store in memory."""

from collections import defaultdict

from leasehold.kernel.lease.model import Lease, LeaseState, Mode
from leasehold.kernel.lease.paths import covers, related
from leasehold.kernel.lease.records import FIRST_IN_LINE, Keys, QueueKey, Records, ResourceKey, TreeKey
from leasehold.kernel.lease.ticket import LAST_PLACE


class Unended:
    """All leases, and by resource those that stand and those that wait."""

    def __init__(self) -> None:
        self.leases: dict[str, Lease] = {}
        self.standing: dict[ResourceKey, dict[str, None]] = {}
        self.waiting: dict[ResourceKey, dict[str, None]] = {}

    def unended(self) -> list[Lease]:
        """Return every lease that stands or waits."""
        indexes = (*self.standing.values(), *self.waiting.values())
        return [self.leases[lease_id] for here in indexes for lease_id in here]

    def is_awaited(self, key: ResourceKey) -> bool:
        """Say whether anybody waits for a resource, or for being alone on it."""
        upgrading = (self.leases[lease_id].is_upgrading for lease_id in self.standing.get(key, {}))
        return key in self.waiting or any(upgrading)


def read_queues(unended: list[Lease], keys: Keys, records: Records) -> None:
    """Read what `keys` asks about those who wait, and about paths."""
    for tenant, resource, limit in keys.queues:
        _read_queue(_reach(unended, tenant, resource), (tenant, resource, limit), records)
    for tenant, resource, place in keys.places:
        queue = [one.place for one in _reach(unended, tenant, resource) if one.state is LeaseState.PENDING]
        records.places[(tenant, resource, place)] = sum(theirs < place for theirs in queue)
        if place == LAST_PLACE:
            records.ends[(tenant, resource)] = max(queue, default="")
    for tree in keys.trees:
        _read_tree(_reach(unended, *tree[:2]), tree, records)
    for tenant, path, holder in keys.tangles:
        waiting = {one.holder for one in unended if one.tenant == tenant and one.is_waiting}
        held = [one for one in _reach(unended, tenant, path) if one.state is LeaseState.ACTIVE]
        found = [one for one in held if one.holder in (waiting if holder == "" else {holder})]
        records.leases += found
        records.tangles[(tenant, path, holder)] = [one.lease_id for one in found]
    records.leases += [lease for lease in unended if _is_asked_for(lease, keys)]


def _reach(unended: list[Lease], tenant: str, resource: str) -> list[Lease]:
    return [one for one in unended if one.tenant == tenant and related(resource, one.resource)]


def _read_queue(reach: list[Lease], queue: QueueKey, records: Records) -> None:
    """Read the first waiters of each mode, and note the places up to which they were read."""
    horizons = []
    for mode in (Mode.EXCLUSIVE, Mode.SHARED):
        waiting = [one for one in reach if one.state is LeaseState.PENDING and one.mode is mode]
        first = sorted(waiting, key=lambda one: one.place)[: queue[-1]]
        records.leases += first
        horizons.append(first[-1].place if len(first) == queue[-1] else LAST_PLACE)
    exclusive, shared = horizons
    records.queues[queue] = (exclusive, shared)


def _read_tree(reach: list[Lease], tree: TreeKey, records: Records) -> None:
    """Read what is held around a path, up to a limit, and who waits first; note where that was not all."""
    tenant, path, limit = tree
    held: dict[tuple[Mode, bool], list[Lease]] = defaultdict(list)
    for lease in sorted(reach, key=lambda one: one.resource):
        if lease.state is LeaseState.ACTIVE:
            held[(lease.mode, covers(lease.resource, path))].append(lease)
    for part in held.values():
        records.leases += [one for number, one in enumerate(part) if number < limit or one.is_upgrading]
    records.cut[tree] = frozenset(mode for (mode, _), part in held.items() if len(part) >= limit)
    _read_queue(reach, (tenant, path, FIRST_IN_LINE), records)


def _is_asked_for(lease: Lease, keys: Keys) -> bool:
    """Say whether an unended lease is among those that are asked for by holder."""
    holder = (lease.tenant, lease.holder)
    return (holder in keys.waits and lease.is_waiting) or (
        holder in keys.owners and lease.state is LeaseState.ACTIVE
    )
