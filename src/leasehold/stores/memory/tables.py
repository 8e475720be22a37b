"""What a store in memory keeps, and how a batch is taken in: whole, or not at all."""

from leasehold.engine.port import Batch
from leasehold.kernel.lease.family import LEASES
from leasehold.kernel.lease.model import Lease
from leasehold.kernel.lease.records import LEASE, ResourceKey
from leasehold.kernel.ledger.authority import Authority, Era
from leasehold.kernel.ledger.chain import Entry
from leasehold.kernel.ledger.events import Event
from leasehold.kernel.ledger.family import Families
from leasehold.kernel.ledger.journal import Change
from leasehold.kernel.ledger.keys import Key
from leasehold.kernel.ledger.state import State
from leasehold.kernel.ledger.tick import Tick
from leasehold.stores.memory.document_shelf import DocumentShelf
from leasehold.stores.memory.lease_shelf import LeaseShelf
from leasehold.stores.memory.ledger import MemoryLedger


class MemoryTables:
    """The ledger, a shelf for each family, and the registrar's own records."""

    def __init__(self, families: Families = LEASES) -> None:
        self.families = families
        self.ledger = MemoryLedger()
        self.lease_shelf = LeaseShelf(self.ledger)
        self.shelves: dict[str, LeaseShelf | DocumentShelf] = {
            family.name: self.lease_shelf if family.name == LEASE else DocumentShelf(family)
            for family in families
        }
        self.authority: Authority | None = None
        self.eras: dict[int, Era] = {}
        self.revision = object()
        """Another one after each change."""
        self.keys: dict[bytes, Key] = {}
        self.readers = 0
        """How many snapshots look at these tables, which must not change meanwhile."""

    @property
    def entries(self) -> list[Entry]:
        """Return the entries of the ledger that were not pruned."""
        return self.ledger.entries

    @property
    def position(self) -> int:
        """Return where the ledger ends."""
        return self.ledger.position

    @property
    def requests(self) -> dict[str, Event]:
        """Return what each request has caused that is still remembered."""
        return self.ledger.requests

    @property
    def leases(self) -> dict[str, Lease]:
        """Return all leases, by id."""
        return self.lease_shelf.records

    @property
    def standing(self) -> dict[ResourceKey, dict[str, None]]:
        """Return the leases that stand, by resource."""
        return self.lease_shelf.standing

    @property
    def waiting(self) -> dict[ResourceKey, dict[str, None]]:
        """Return the leases that wait, by resource."""
        return self.lease_shelf.waiting

    def copy(self) -> "MemoryTables":
        """Return tables with the same content, to be changed instead of these."""
        twin = MemoryTables(self.families)
        twin.ledger = self.ledger.copy()
        twin.lease_shelf = self.lease_shelf.copy(twin.ledger)
        twin.shelves = {
            name: shelf.copy() if isinstance(shelf, DocumentShelf) else twin.lease_shelf
            for name, shelf in self.shelves.items()
        }
        twin.authority = self.authority
        twin.eras = dict(self.eras)
        twin.keys = dict(self.keys)
        return twin

    def due(self, now: Tick, limit: int) -> list[tuple[str, str]]:
        """Return records, by family and key, that time has something to do with, in order."""
        found = [
            (era, value, name, key)
            for name, shelf in self.shelves.items()
            for era, value, key in shelf.due(now)
        ]
        found.sort(key=lambda one: one[:2])  # Among equals, the order of the families, and their own.
        return [(name, key) for _, _, name, key in found[:limit]]

    def take_in(self, batch: Batch) -> None:
        """Take a whole batch in; raise StoreRejected, and change nothing, if it cannot be."""
        self.refuse_impossible(batch)
        try:
            self._take_in(batch)
        except BaseException:
            self._take_in(batch)  # Interrupted half-way: then whole, because it cannot be nothing any more.
            raise

    def _take_in(self, batch: Batch) -> None:
        """Take a batch in that is possible; doing so twice gives the same."""
        self.ledger.append(batch.entries)
        for name, changes in _by_family(batch).items():
            self.shelves[name].write(changes)
        for era in batch.ended_eras:
            self.eras[era.number] = era
        for key in batch.keys:
            self.keys[key.public_key] = key
        if batch.pruned is not None:
            for name, keys in batch.pruned.forgotten.items():
                self.shelves[name].forget(keys)
            self.ledger.take_away(batch.pruned.through, batch.pruned.checkpoint)
        self.authority = batch.authority
        self.revision = object()

    def rebuild(self, state: State) -> None:
        """Take the records from a state, and the rest of the tables from the records and the ledger."""
        assert state.authority is not None, "a ledger that begins has a registrar"
        made = MemoryTables(self.families)
        made.ledger.entries, made.ledger.checkpoint = self.ledger.entries, self.ledger.checkpoint
        made.ledger.remember_anew()
        for name, shelf in made.shelves.items():
            shelf.fill(state.of(name))
        self.ledger, self.lease_shelf, self.shelves = made.ledger, made.lease_shelf, made.shelves
        self.authority, self.eras, self.keys = state.authority, dict(state.eras), dict(state.keys)
        self.revision = object()

    def refuse_impossible(self, batch: Batch) -> None:
        """Keep unique what must be, whatever the law has let through: keys, and exclusive leases."""
        for name, changes in _by_family(batch).items():
            self.shelves[name].refuse_impossible(changes)


def _by_family(batch: Batch) -> dict[str, list[Change]]:
    found: dict[str, list[Change]] = {}
    for change in batch.changes:
        found.setdefault(change.family, []).append(change)
    return found
