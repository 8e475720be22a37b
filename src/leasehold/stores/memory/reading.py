"""The questions a snapshot of a store in memory can be asked."""

from collections.abc import Callable, Iterator
from itertools import islice

from leasehold.engine.port import Checkpoint, EntryQuery, Head, LeaseQuery, LedgerRow
from leasehold.kernel.lease.events import Event
from leasehold.kernel.lease.model import Lease
from leasehold.kernel.lease.records import CHILDREN_PAGE, Keys, Records
from leasehold.kernel.ledger.authority import Authority, ClockReading
from leasehold.kernel.ledger.chain import Entry
from leasehold.kernel.ledger.keys import Key
from leasehold.kernel.ledger.state import State
from leasehold.kernel.ledger.tick import Tick
from leasehold.stores.memory.ledger import entry_matches
from leasehold.stores.memory.queues import read_queues
from leasehold.stores.memory.tables import MemoryTables


class MemorySnapshot:
    """One consistent look at the tables."""

    def __init__(self, tables: MemoryTables, reading: Callable[[], ClockReading]) -> None:
        self._tables = tables
        self.reading = reading

    @property
    def authority(self) -> Authority | None:
        """Return the registrar's record."""
        return self._tables.authority

    @property
    def head(self) -> Head:
        """Return where the ledger ends."""
        entries = self._tables.entries
        return Head(position=entries[-1].position, hash=entries[-1].hash) if entries else Head()

    def read(self, keys: Keys) -> Records:
        """Return the records that exist for `keys`."""
        tables = self._tables
        wanted = dict.fromkeys(keys.leases)
        for resource in keys.resources:
            wanted |= tables.standing.get(resource, {})
        events = {key: tables.requests[key] for key in keys.requests if key in tables.requests}
        wanted |= dict.fromkeys(lease_id for event in events.values() for lease_id in event.lease_ids)
        records = Records(
            leases=[tables.leases[lease_id] for lease_id in wanted if lease_id in tables.leases],
            requests=events,
            grants=tables.grants_of(keys.grants),
            holders={key: self._count(tenant=key[0], holder=key[1]) for key in keys.holders},
            tenants={tenant: self._count(tenant=tenant, holder=None) for tenant in keys.tenants},
            eras={number: tables.eras[number] for number in keys.eras if number in tables.eras},
            children={parent: self._children(parent) for parent in keys.children},
        )
        if keys.queues or keys.trees or keys.tangles or keys.places or keys.waits or keys.owners:
            read_queues(tables.unended(), keys, records)
        found = (*records.leases, *(child for here in records.children.values() for child in here))
        named = keys.resources | {(lease.tenant, lease.resource) for lease in found}
        records.awaited = {key for key in named if tables.is_awaited(key)}
        return records

    def _children(self, parent_id: str) -> list[Lease]:
        """Return unended children of a lease, by looking at all that stands."""
        children = (lease for lease in self.standing() if parent_of(lease) == parent_id)
        return list(islice(children, CHILDREN_PAGE))

    def standing(self) -> Iterator[Lease]:
        """Yield every lease that is recorded as standing."""
        for here in self._tables.standing.values():
            for lease_id in here:
                yield self._tables.leases[lease_id]

    def _count(self, tenant: str, holder: str | None) -> int:
        return sum(
            lease.tenant == tenant and holder in (None, lease.holder) and not lease.is_terminal
            for lease in self._tables.leases.values()
        )

    def lease(self, lease_id: str) -> Lease | None:
        """Return one lease by its id."""
        return self._tables.leases.get(lease_id)

    def signing_keys(self) -> list[Key]:
        """Return every key that the ledger ever admitted."""
        return list(self._tables.keys.values())

    def lapsed(self, now: Tick, limit: int) -> list[str]:
        """Return standing leases that time may have ended, the longest overdue first, then the oldest.

        Behind them come the children that an ended lease has left.
        """
        overdue = [
            (lease.expires_tick.era, lease.expires_tick.value, lease.token, lease.lease_id)
            for lease in self._tables.unended()
            if lease.expires_tick is not None
            and (lease.expires_tick.era, lease.expires_tick.value) <= (now.era, now.value)
        ]
        found = dict.fromkeys(lease_id for *_, lease_id in sorted(overdue))
        found |= dict.fromkeys(lease.lease_id for lease in self.standing() if self._is_orphan(lease))
        return list(found)[:limit]

    def _is_orphan(self, lease: Lease) -> bool:
        parent = self._tables.leases.get(parent_of(lease) or "")
        return parent is not None and parent.delegation is not None and parent.delegation.orphaned

    def leases(self, query: LeaseQuery) -> list[Lease]:
        """Return the leases that a query asks for, in the order of their ids."""
        found = [lease for lease in self._tables.leases.values() if _lease_matches(lease, query)]
        return sorted(found, key=lambda lease: lease.lease_id)[: query.limit]

    def entries(self, query: EntryQuery) -> list[Entry]:
        """Return the ledger entries that a query asks for."""
        found: list[Entry] = []
        for entry in self._tables.entries[self._tables.behind(query.after) :]:
            if len(found) == query.limit:
                break
            if entry_matches(entry, query):
                found.append(entry)
        return found

    def rows(self, after: int, limit: int) -> list[LedgerRow]:
        """Return the ledger as it is kept, behind a position."""
        start = self._tables.behind(after)
        found = self._tables.entries[start : start + limit]
        return [(one.position, one.body, one.hash, one.seal, None, one.event) for one in found]

    @property
    def pruned(self) -> int:
        """Return the position of the last entry that is gone."""
        return self._tables.pruned

    def checkpoint(self) -> Checkpoint | None:
        """Return what stands for entries that are gone."""
        return self._tables.checkpoint

    def filing(self, event: Event) -> tuple[object, ...]:
        """Return what an event is found by: itself."""
        return (event,)

    def state(self) -> State:
        """Return everything that the tables say."""
        tables = self._tables
        return State(
            leases=dict(tables.leases),
            authority=tables.authority,
            eras=dict(tables.eras),
            keys=dict(tables.keys),
        )


def _lease_matches(lease: Lease, query: LeaseQuery) -> bool:
    return (
        query.tenant in (None, lease.tenant)
        and query.resource in (None, lease.resource)
        and (query.resource_prefix is None or lease.resource.startswith(query.resource_prefix))
        and query.holder in (None, lease.holder)
        and (not query.states or lease.state in query.states)
        and (query.held_at_ns is None or lease.was_held_at(query.held_at_ns))
        and (query.after is None or lease.lease_id > query.after)
    )


def parent_of(lease: Lease) -> str | None:
    """Return the lease that one was derived from, if it was."""
    return None if lease.delegation is None else lease.delegation.parent
