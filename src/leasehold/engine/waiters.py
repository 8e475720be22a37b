"""Who waits for a resource, since when, and for how long it may be."""

from leasehold.engine.port import Snapshot
from leasehold.engine.questions import LeaseStatus, Waiter
from leasehold.engine.status import live, read_leases, statuses_of, tree_around
from leasehold.kernel.lease.model import Lease, LeaseState, Mode
from leasehold.kernel.lease.paths import related
from leasehold.kernel.ledger.records import EVERYTHING
from leasehold.kernel.ledger.tick import NANOSECONDS_PER_SECOND


def waiters(snapshot: Snapshot, tenant: str, resource: str) -> list[Waiter]:
    """Return who waits for a resource, first in line first; for a path, also around it."""
    everything = (tenant, resource, EVERYTHING)
    trees = tree_around(*everything)
    found = read_leases(snapshot, resources={(tenant, resource)}, queues={everything}, trees=trees).records
    around = [lease for lease in found.values() if related(resource, lease.resource)]
    statuses = live(statuses_of(around, snapshot))
    waiting = [one for one in statuses if one.lease.state is LeaseState.PENDING]
    ahead = _Ahead([one for one in statuses if one.lease.state is LeaseState.ACTIVE])
    wall_ns = snapshot.reading().wall_ns
    return [
        _waiter(status, position, ahead.until_turn_of(status.lease), wall_ns)
        for position, status in enumerate(sorted(waiting, key=lambda one: one.lease.place), 1)
    ]


class _Ahead:
    """How long those take who come first: sharers side by side, all others one after the other."""

    def __init__(self, held: list[LeaseStatus]) -> None:
        self._held = held
        self._ends: dict[str, dict[Mode, float]] = {}
        """By resource and mode: when the last who waits for it ahead would be done."""

    def until_turn_of(self, wanted: Lease) -> float:
        """Return in how many seconds it is the turn of the next in line."""
        seconds = [
            status.expires_in
            for status in self._held
            if status.lease.holder != wanted.holder and _conflict(status.lease, wanted)
        ]
        for resource, ends in self._ends.items():
            if related(resource, wanted.resource):
                seconds += [end for mode, end in ends.items() if mode.conflicts_with(wanted.mode)]
        start = max(seconds, default=0.0)
        here = self._ends.setdefault(wanted.resource, {})
        end = start + wanted.ttl_ns / NANOSECONDS_PER_SECOND
        here[wanted.mode] = max(end, here.get(wanted.mode, 0.0))
        return start


def _conflict(lease: Lease, wanted: Lease) -> bool:
    return lease.mode.conflicts_with(wanted.mode) and related(lease.resource, wanted.resource)


def _waiter(status: LeaseStatus, position: int, ahead: float, wall_ns: int) -> Waiter:
    lease = status.lease
    since_ns = lease.issued_at_ns if lease.ticket is None else lease.ticket.since_ns
    return Waiter(
        lease=lease,
        position=position,
        waited=max(0, wall_ns - since_ns) / NANOSECONDS_PER_SECOND,
        estimate=ahead,
    )
