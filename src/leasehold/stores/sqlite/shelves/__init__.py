"""How the records of each family are kept in tables, and found there.

Leases have a table of their own, with a column for everything that somebody may want to ask for. The records
of all other families share one, as documents.

- ``shelf``       what every shelf can do
- ``lease``       the lease shelf
- ``lease_rows``  how leases are spelled as rows
- ``orders``      leases by holder, and by parent
- ``queues``      who waits, and what lies around a path
- ``document``    the document shelf
"""

from collections.abc import Mapping, Sequence
from typing import Any

import apsw

from leasehold.kernel.lease.family import LEASES
from leasehold.kernel.lease.records import LEASE
from leasehold.kernel.ledger.family import Families
from leasehold.kernel.ledger.journal import Change
from leasehold.kernel.ledger.state import State
from leasehold.kernel.ledger.tick import Tick
from leasehold.stores.sqlite.shelves.document import DocumentShelf
from leasehold.stores.sqlite.shelves.lease import LeaseShelf
from leasehold.stores.sqlite.shelves.shelf import Shelf

__all__ = ["LEASE_SHELVES", "Shelves"]


class Shelves:
    """The shelf of every family that a store was opened with. Made once; it knows no connection."""

    def __init__(self, families: Families) -> None:
        self.families = families
        documents = [family for family in families if family.name != LEASE]
        leases, others = LeaseShelf(families), DocumentShelf(documents)
        self.of: dict[str, Shelf] = {
            family.name: leases if family.name == LEASE else others for family in families
        }
        """Where the records of each family are, by its name."""
        self._all = tuple(dict.fromkeys(self.of.values()))

    def write(self, cursor: apsw.Cursor, changes: Sequence[Change]) -> None:
        """Write what a batch has changed."""
        if len(changes) == 1 or len(self._all) == 1:
            self.of[changes[0].family].write(cursor, changes)
            return
        for shelf in self._all:
            here = [change for change in changes if self.of[change.family] is shelf]
            if here:
                shelf.write(cursor, here)

    def forget(self, cursor: apsw.Cursor, forgotten: Mapping[str, Sequence[str]]) -> None:
        """Let go of the records that pruning takes away."""
        for family, keys in forgotten.items():
            if keys:
                self.of[family].forget(cursor, family, keys)

    def due(self, cursor: apsw.Cursor, now: Tick, limit: int) -> list[tuple[str, str]]:
        """Return the records, by family and key, that time has something to do with."""
        found = [one for shelf in self._all for one in shelf.due(cursor, now, limit)]
        if len(self._all) > 1:
            found.sort(key=lambda one: one[:2])  # Among equals, the order of the shelves, and their own.
        return [(family, key) for _, _, family, key in found[:limit]]

    def load(self, cursor: apsw.Cursor) -> dict[str, dict[str, Any]]:
        """Return every record of every family."""
        found: dict[str, dict[str, Any]] = {family.name: {} for family in self.families}
        for shelf in self._all:
            found |= shelf.load(cursor)
        return found

    def replace(self, cursor: apsw.Cursor, state: State) -> None:
        """Put the records of a state in the place of those that are there."""
        for shelf in self._all:
            shelf.replace(cursor, {name: state.of(name) for name, one in self.of.items() if one is shelf})


LEASE_SHELVES = Shelves(LEASES)
"""What a store has that keeps nothing but leases."""
