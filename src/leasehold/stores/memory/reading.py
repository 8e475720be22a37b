"""The questions a snapshot of a store in memory can be asked."""

from collections.abc import Callable
from typing import Any

from msgspec.structs import replace

from leasehold.engine.port import Checkpoint, EntryQuery, Head, LeaseQuery, LedgerRow, Progress
from leasehold.kernel.lease.model import Lease
from leasehold.kernel.ledger.authority import Authority, ClockReading
from leasehold.kernel.ledger.chain import Entry
from leasehold.kernel.ledger.events import Event
from leasehold.kernel.ledger.family import Families
from leasehold.kernel.ledger.keys import Key
from leasehold.kernel.ledger.records import Keys, Records
from leasehold.kernel.ledger.state import State
from leasehold.kernel.ledger.tick import Tick
from leasehold.stores.memory.tables import MemoryTables


class MemorySnapshot:
    """One consistent look at the tables."""

    def __init__(self, tables: MemoryTables, reading: Callable[[], ClockReading]) -> None:
        self._tables = tables
        self.reading = reading

    @property
    def families(self) -> Families:
        """Return the families that the store was opened with."""
        return self._tables.families

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
        records = Records(
            requests={key: tables.requests[key] for key in keys.requests if key in tables.requests},
            eras={number: tables.eras[number] for number in keys.eras if number in tables.eras},
        )
        for name, wanted in self._wanted(keys, records).items():
            records.families[name] = tables.shelves[name].read(wanted)
        return records

    def _wanted(self, keys: Keys, records: Records) -> dict[str, Any]:
        """Return what is wanted of each family, and what the requests that were found have changed."""
        families = dict(keys.families)
        for event in records.requests.values():
            family = self.families.of_event[type(event)].name
            wanted = families.get(family) or self._tables.shelves[family].wanted()
            families[family] = replace(wanted, keys=wanted.keys | set(event.keys))
        return families

    def lease(self, lease_id: str) -> Lease | None:
        """Return one lease by its id."""
        return self._tables.leases.get(lease_id)

    def signing_keys(self) -> list[Key]:
        """Return every key that the ledger ever admitted."""
        return list(self._tables.keys.values())

    def due(self, now: Tick, limit: int) -> list[tuple[str, str]]:
        """Return records, by family and key, that time has something to do with, the longest overdue first.

        Behind the leases among them come the children that an ended lease has left.
        """
        return self._tables.due(now, limit)

    def leases(self, query: LeaseQuery) -> list[Lease]:
        """Return the leases that a query asks for, in the order of their ids."""
        found = [lease for lease in self._tables.leases.values() if _lease_matches(lease, query)]
        return sorted(found, key=lambda lease: lease.lease_id)[: query.limit]

    def entries(self, query: EntryQuery) -> list[Entry]:
        """Return the ledger entries that a query asks for."""
        return self._tables.ledger.find(query)

    def rows(self, after: int, limit: int) -> list[LedgerRow]:
        """Return the ledger as it is kept, behind a position."""
        start = self._tables.ledger.behind(after)
        found = self._tables.entries[start : start + limit]
        return [(one.position, one.body, one.hash, one.seal, None, one.event) for one in found]

    @property
    def pruned(self) -> int:
        """Return the position of the last entry that is gone."""
        return self._tables.ledger.pruned

    def checkpoint(self) -> Checkpoint | None:
        """Return what stands for entries that are gone."""
        return self._tables.ledger.checkpoint

    def filing(self, event: Event) -> tuple[object, ...]:
        """Return what an event is found by: itself."""
        return (event,)

    def defects(self, progress: Progress | None = None) -> list[str]:
        """Return nothing: there is no file that could be damaged."""
        del progress
        return []

    def state(self) -> State:
        """Return everything that the tables say."""
        tables = self._tables
        return State(
            records={name: dict(shelf.records) for name, shelf in tables.shelves.items()},
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
