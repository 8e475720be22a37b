"""Records of one family in memory, by key and in the order of their keys."""

from bisect import bisect_left, insort
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from leasehold.errors import StoreRejected
from leasehold.kernel.ledger.family import Family
from leasehold.kernel.ledger.journal import Change
from leasehold.kernel.ledger.records import BY_KEY, Found, Scan, Wanted
from leasehold.kernel.ledger.tick import Tick


class DocumentShelf:
    """The records of a family that has no shelf of its own."""

    wanted = Wanted

    def __init__(self, family: Family) -> None:
        self._family = family
        self.records: dict[str, Any] = {}
        self._sorted: list[str] = []
        """The keys. Texts sort as their bytes in UTF-8 do."""
        self._due: dict[str, Tick] = {}
        """When time has something to do with those records with which it has."""

    def copy(self) -> "DocumentShelf":
        """Return a shelf with the same content, to be changed instead of this one."""
        twin = DocumentShelf(self._family)
        twin.records = dict(self.records)
        twin._sorted = list(self._sorted)
        twin._due = dict(self._due)
        return twin

    def read(self, wanted: Wanted) -> Found:
        """Return what there is of all that is wanted."""
        found = Found(records={key: self.records[key] for key in wanted.keys if key in self.records})
        for scan in wanted.scans:
            found.scans[scan] = keys = self._scan(scan)
            found.records |= {key: self.records[key] for key in keys}
        for count in wanted.counts:
            found.counts[count] = len(self._between(count.low, count.high))
        return found

    def _scan(self, scan: Scan) -> list[str]:
        assert scan.order == BY_KEY, "documents are in no other order"
        keys = self._between(scan.low, scan.high)
        if scan.reverse:
            keys.reverse()
        return keys[: scan.limit]

    def _between(self, low: str, high: str) -> list[str]:
        return self._sorted[bisect_left(self._sorted, low) : bisect_left(self._sorted, high)]

    def refuse_impossible(self, changes: Sequence[Change]) -> None:
        """Keep keys unique, whatever the law has let through."""
        made: set[str] = set()
        for change in changes:
            if change.before is not None or change.after is None:
                continue
            if change.key in self.records or change.key in made:
                raise StoreRejected(f"a record of {self._family.name} with this key exists already")
            made.add(change.key)

    def write(self, changes: Iterable[Change]) -> None:
        """Take in what has changed; doing so twice gives the same."""
        for change in changes:
            if change.after is None:
                self.forget((change.key,))
            else:
                self._put(change.key, change.after)

    def forget(self, keys: Iterable[str]) -> None:
        """Remove records, if they are there."""
        for key in keys:
            if self.records.pop(key, None) is not None:
                del self._sorted[bisect_left(self._sorted, key)]
                self._due.pop(key, None)

    def fill(self, records: Mapping[str, Any]) -> None:
        """Take in all records that an empty shelf is to have."""
        for key, record in records.items():
            self._put(key, record)

    def due(self, now: Tick) -> list[tuple[int, int, str]]:
        """Return, by era and tick, records that time has something to do with, in the order of their keys."""
        return sorted(
            (due.era, due.value, key)
            for key, due in self._due.items()
            if (due.era, due.value) <= (now.era, now.value)
        )

    def _put(self, key: str, record: Any) -> None:
        if key not in self.records:
            insort(self._sorted, key)
        self.records[key] = record
        due = self._family.due(record)
        if due is None:
            self._due.pop(key, None)
        else:
            self._due[key] = due
