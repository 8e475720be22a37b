"""What every shelf can do.

A shelf reads and writes through the cursor of whoever has the transaction: making one costs as much as a
small statement. So each answer is read to its end before the next question.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Protocol

import apsw
import msgspec

from leasehold.kernel.ledger.journal import Change
from leasehold.kernel.ledger.records import Found, Wanted
from leasehold.kernel.ledger.tick import Tick

Due = tuple[int, int, str, str]
"""Era and tick at which a record was due, its family and its key."""

FEW = 4
"""Up to so many names, one lookup each is quicker than one query for all."""


class Shelf(Protocol):
    """Where the records of one family are kept, or of several."""

    @property
    def wanted(self) -> type[Wanted]:
        """Return what this shelf is asked with."""
        ...

    def read(self, cursor: apsw.Cursor, family: str, wanted: Any) -> Found:
        """Return what there is of all that is wanted of a family."""
        ...

    def write(self, cursor: apsw.Cursor, changes: Sequence[Change]) -> None:
        """Write what has changed; raise ConstraintError for a new record whose key is taken."""
        ...

    def forget(self, cursor: apsw.Cursor, family: str, keys: Sequence[str]) -> None:
        """Remove records, if they are there."""
        ...

    def due(self, cursor: apsw.Cursor, now: Tick, limit: int) -> list[Due]:
        """Return records that time has something to do with, the longest overdue first."""
        ...

    def load(self, cursor: apsw.Cursor) -> dict[str, dict[str, Any]]:
        """Return all records, by family and key; families without any may be left out."""
        ...

    def replace(self, cursor: apsw.Cursor, records: Mapping[str, Mapping[str, Any]]) -> None:
        """Put other records, by family and key, in the place of all that are there of these families."""
        ...


def as_json(names: Iterable[object]) -> str:
    """Spell a list for `json_each`, which makes one query of many."""
    return msgspec.json.encode(list(names)).decode()
