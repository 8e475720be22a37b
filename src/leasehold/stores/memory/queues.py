"""The questions about those who wait, for the store in memory."""

from collections import Counter

from leasehold.kernel.lease import Lease, LeaseState, Mode
from leasehold.kernel.paths import covers, related
from leasehold.kernel.records import BELOW_PAGE, Keys, Records, ResourceKey
from leasehold.kernel.ticket import LAST_PLACE


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

    def queue(self, key: ResourceKey) -> list[Lease]:
        """Return those who wait for a resource, first in line first."""
        waiting = (self.leases[lease_id] for lease_id in self.waiting.get(key, {}))
        return sorted(waiting, key=lambda lease: lease.place)

    def is_awaited(self, key: ResourceKey) -> bool:
        """Say whether anybody waits for a resource, or for being alone on it."""
        upgrading = (self.leases[lease_id].is_upgrading for lease_id in self.standing.get(key, {}))
        return key in self.waiting or any(upgrading)


def read_queues(tables: Unended, keys: Keys, records: Records) -> None:
    """Read what `keys` asks about those who wait."""
    for tenant, resource, limit in keys.queues:
        waiting = tables.queue((tenant, resource))
        exclusive, shared = (
            _read_queue([one for one in waiting if one.mode is mode], limit, records)
            for mode in (Mode.EXCLUSIVE, Mode.SHARED)
        )
        records.queues[(tenant, resource, limit)] = (exclusive, shared)
    for tenant, resource, place in keys.places:
        queue = tables.queue((tenant, resource))
        records.places[(tenant, resource, place)] = sum(one.place < place for one in queue)
        if place == LAST_PLACE:
            records.ends[(tenant, resource)] = queue[-1].place if queue else ""
    for tree in keys.trees:
        read_tree(tables.unended(), tree, records)
    if keys.whole_trees or keys.waits or keys.owners:
        records.leases += [lease for lease in tables.unended() if _is_asked_for(lease, keys)]


def read_tree(unended: list[Lease], tree: ResourceKey, records: Records) -> None:
    """Read what is above a path, and the first of each kind below it."""
    tenant, path = tree
    counts: Counter[tuple[LeaseState, Mode | None]] = Counter()
    for lease in sorted(unended, key=lambda one: one.resource):
        if lease.tenant != tenant or not related(path, lease.resource):
            continue
        if lease.resource != path and covers(path, lease.resource):
            kind = (lease.state, lease.mode if lease.state is LeaseState.ACTIVE else None)
            counts[kind] += 1
            if counts[kind] > BELOW_PAGE:
                continue
        records.leases.append(lease)
    if any(count >= BELOW_PAGE for count in counts.values()):
        records.wide.add(tree)


def _read_queue(queue: list[Lease], limit: int, records: Records) -> str:
    records.leases += queue[:limit]
    return LAST_PLACE if len(queue) < limit else queue[limit - 1].place


def _is_asked_for(lease: Lease, keys: Keys) -> bool:
    """Say whether an unended lease is among those that are asked for by path, or by holder."""
    holder = (lease.tenant, lease.holder)
    return (
        (holder in keys.waits and lease.is_waiting)
        or (holder in keys.owners and lease.state is LeaseState.ACTIVE)
        or any(lease.tenant == tenant and related(path, lease.resource) for tenant, path in keys.whole_trees)
    )
