"""Leases in memory: all of them by id, and by resource those that stand and those that wait."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import islice

from leasehold.errors import StoreRejected
from leasehold.kernel.lease.model import Lease, LeaseState, Mode
from leasehold.kernel.lease.records import (
    CHILDREN,
    HELD,
    UNENDED,
    WAITING,
    LeaseFound,
    LeaseWanted,
    ResourceKey,
)
from leasehold.kernel.ledger.journal import Change
from leasehold.kernel.ledger.key import split_key
from leasehold.kernel.ledger.records import Count, Scan
from leasehold.kernel.ledger.tick import Tick
from leasehold.stores.memory.ledger import MemoryLedger
from leasehold.stores.memory.queues import read_queues

_LAST_ERA = 1 << 62
"""Behind everything that time has ended come the children that an ended lease has left."""


class LeaseShelf:
    """The leases of a store. What they were granted with is in its ledger."""

    wanted = LeaseWanted

    def __init__(self, ledger: MemoryLedger) -> None:
        self._ledger = ledger
        self.records: dict[str, Lease] = {}
        self.standing: dict[ResourceKey, dict[str, None]] = {}
        self.waiting: dict[ResourceKey, dict[str, None]] = {}

    def copy(self, ledger: MemoryLedger) -> "LeaseShelf":
        """Return a shelf with the same content, to be changed instead of this one."""
        twin = LeaseShelf(ledger)
        twin.records = dict(self.records)
        twin.standing = {key: dict(here) for key, here in self.standing.items()}
        twin.waiting = {key: dict(here) for key, here in self.waiting.items()}
        return twin

    def read(self, wanted: LeaseWanted) -> LeaseFound:
        """Return what there is of all that is wanted."""
        keys = dict.fromkeys(wanted.keys)
        for resource in wanted.resources:
            keys |= self.standing.get(resource, {})
        found = LeaseFound(
            records={key: self.records[key] for key in keys if key in self.records},
            grants=self._ledger.grants_of(wanted.grants),
            counts={count: sum(1 for _ in self._under(count)) for count in wanted.counts},
        )
        for scan in wanted.scans:
            leases = list(islice(self._under(scan), scan.limit))
            found.scans[scan] = [lease.lease_id for lease in leases]
            found.records |= {lease.lease_id: lease for lease in leases}
        if wanted.is_crowded:
            read_queues(self.unended(), wanted, found)
        named = wanted.resources | {(lease.tenant, lease.resource) for lease in found.records.values()}
        found.awaited = {key for key in named if self._is_awaited(key)}
        return found

    def unended(self) -> list[Lease]:
        """Return every lease that stands or waits."""
        indexes = (*self.standing.values(), *self.waiting.values())
        return [self.records[lease_id] for here in indexes for lease_id in here]

    def _under(self, asked: Scan | Count) -> Iterator[Lease]:
        """Yield the leases in a range, which is all under a prefix, by looking at everything unended."""
        *prefix, _ = split_key(asked.low)
        is_in_order, key_of = _ORDERS[asked.order]
        for lease in self.unended():
            if is_in_order(lease) and list(key_of(lease)[: len(prefix)]) == prefix:
                yield lease

    def _is_awaited(self, key: ResourceKey) -> bool:
        """Say whether anybody waits for a resource, or for being alone on it."""
        upgrading = (self.records[lease_id].is_upgrading for lease_id in self.standing.get(key, {}))
        return key in self.waiting or any(upgrading)

    def refuse_impossible(self, changes: Sequence[Change]) -> None:
        """Keep unique what must be, whatever the law has let through: lease ids, and exclusive leases."""
        after: dict[str, Lease] = {}
        for change in changes:
            if change.before is None and (change.key in self.records or change.key in after):
                raise StoreRejected("a lease with this id exists already; propose another")
            after[change.key] = change.after
        taken: set[ResourceKey] = set()
        for lease in after.values():
            if not _is_alone(lease):
                continue
            key = (lease.tenant, lease.resource)
            others = (one for one in self.standing.get(key, {}) if one != lease.lease_id)
            if key in taken or any(_is_alone(after.get(one, self.records[one])) for one in others):
                raise StoreRejected("another exclusive lease stands on this resource")
            taken.add(key)

    def write(self, changes: Iterable[Change]) -> None:
        """Take in what has changed; doing so twice gives the same."""
        for change in changes:
            self._put(change.after)

    def forget(self, keys: Iterable[str]) -> None:
        """Remove ended leases, if they are there."""
        for lease_id in keys:
            self.records.pop(lease_id, None)

    def fill(self, records: Mapping[str, Lease]) -> None:
        """Take in all leases that an empty shelf is to have."""
        for lease in records.values():
            self._put(lease)

    def due(self, now: Tick) -> list[tuple[int, int, str]]:
        """Return, by era and tick, unended leases whose time is over, of equals the oldest first.

        Behind them come the children that an ended lease has left.
        """
        overdue = [
            (lease.expires_tick.era, lease.expires_tick.value, lease.token, lease.lease_id)
            for lease in self.unended()
            if lease.expires_tick is not None
            and (lease.expires_tick.era, lease.expires_tick.value) <= (now.era, now.value)
        ]
        found = [(era, value, lease_id) for era, value, _, lease_id in sorted(overdue)]
        lapsed = {lease_id for *_, lease_id in found}
        orphans = (lease.lease_id for lease in self.unended() if self._is_orphan(lease))
        return found + [(_LAST_ERA, 0, lease_id) for lease_id in orphans if lease_id not in lapsed]

    def _is_orphan(self, lease: Lease) -> bool:
        parent = self.records.get(_parent_of(lease))
        return (
            lease.state is LeaseState.ACTIVE
            and parent is not None
            and parent.delegation is not None
            and parent.delegation.orphaned
        )

    def _put(self, lease: Lease) -> None:
        """Keep a lease, and the indexes of those that stand, and those that wait, in step."""
        self.records[lease.lease_id] = lease
        key = (lease.tenant, lease.resource)
        for state, index in ((LeaseState.ACTIVE, self.standing), (LeaseState.PENDING, self.waiting)):
            here = index.setdefault(key, {})
            if lease.state is state:
                here[lease.lease_id] = None
            else:
                here.pop(lease.lease_id, None)
            if not here:
                del index[key]


def _is_alone(lease: Lease) -> bool:
    return lease.mode is Mode.EXCLUSIVE and lease.state is LeaseState.ACTIVE


def _stands(lease: Lease) -> bool:
    return lease.state is LeaseState.ACTIVE


def _holder_of(lease: Lease) -> tuple[str, ...]:
    return (lease.tenant, lease.holder)


def _parent_of(lease: Lease) -> str:
    """Return the lease that one was derived from; empty if it was not."""
    return "" if lease.delegation is None else lease.delegation.parent or ""


_ORDERS: dict[str, tuple[Callable[[Lease], bool], Callable[[Lease], tuple[str, ...]]]] = {
    HELD: (_stands, _holder_of),
    WAITING: (lambda lease: lease.is_waiting, _holder_of),
    UNENDED: (lambda lease: not lease.is_terminal, _holder_of),
    CHILDREN: (_stands, lambda lease: (_parent_of(lease),)),
}
"""By name, which of the unended leases are in an order, and by what they are sorted there."""
