"""The questions about those who wait, and about paths, for the store in memory."""

from collections import defaultdict
from collections.abc import Iterable

from leasehold.kernel.lease.model import Lease, LeaseState, Mode
from leasehold.kernel.lease.paths import covers, related
from leasehold.kernel.lease.records import FIRST_IN_LINE, LeaseFound, LeaseWanted, QueueKey, TreeKey
from leasehold.kernel.lease.ticket import LAST_PLACE


def read_queues(unended: list[Lease], wanted: LeaseWanted, found: LeaseFound) -> None:
    """Read what is wanted of those who wait, and of what lies around paths."""
    for tenant, resource, limit in wanted.queues:
        _read_queue(_reach(unended, tenant, resource), (tenant, resource, limit), found)
    for tenant, resource, place in wanted.places:
        queue = [one.place for one in _reach(unended, tenant, resource) if one.state is LeaseState.PENDING]
        found.places[(tenant, resource, place)] = sum(theirs < place for theirs in queue)
        if place == LAST_PLACE:
            found.ends[(tenant, resource)] = max(queue, default="")
    for tree in wanted.trees:
        _read_tree(_reach(unended, *tree[:2]), tree, found)
    for tenant, path, holder in wanted.tangles:
        waiting = {one.holder for one in unended if one.tenant == tenant and one.is_waiting}
        held = [one for one in _reach(unended, tenant, path) if one.state is LeaseState.ACTIVE]
        entangled = [one for one in held if one.holder in (waiting if holder == "" else {holder})]
        found.tangles[(tenant, path, holder)] = [one.lease_id for one in entangled]
        _keep(entangled, found)


def _keep(leases: Iterable[Lease], found: LeaseFound) -> None:
    for lease in leases:
        found.records[lease.lease_id] = lease


def _reach(unended: list[Lease], tenant: str, resource: str) -> list[Lease]:
    return [one for one in unended if one.tenant == tenant and related(resource, one.resource)]


def _read_queue(reach: list[Lease], queue: QueueKey, found: LeaseFound) -> None:
    """Read the first waiters of each mode, and note the places up to which they were read."""
    horizons = []
    for mode in (Mode.EXCLUSIVE, Mode.SHARED):
        waiting = [one for one in reach if one.state is LeaseState.PENDING and one.mode is mode]
        first = sorted(waiting, key=lambda one: one.place)[: queue[-1]]
        _keep(first, found)
        horizons.append(first[-1].place if len(first) == queue[-1] else LAST_PLACE)
    exclusive, shared = horizons
    found.queues[queue] = (exclusive, shared)


def _read_tree(reach: list[Lease], tree: TreeKey, found: LeaseFound) -> None:
    """Read what is held around a path, up to a limit, and who waits first; note where that was not all."""
    tenant, path, limit = tree
    held: dict[tuple[Mode, bool], list[Lease]] = defaultdict(list)
    for lease in sorted(reach, key=lambda one: one.resource):
        if lease.state is LeaseState.ACTIVE:
            held[(lease.mode, covers(lease.resource, path))].append(lease)
    for part in held.values():
        _keep((one for number, one in enumerate(part) if number < limit or one.is_upgrading), found)
    found.cut[tree] = frozenset(mode for (mode, _), part in held.items() if len(part) >= limit)
    _read_queue(reach, (tenant, path, FIRST_IN_LINE), found)
