"""What a view knows of a family whose records are kept as documents.

Records are found by key, and in the order of their keys. Of that order the table knows the intervals that
were read whole; a scan merges them with what this batch has made and removed, and asks for what is not known.
Every answer of the store is as of the moment the turn began, because nothing is written before the commit, so
a record that the batch has changed is never what the store says of it.
"""

from bisect import bisect_left, insort
from typing import Any

from leasehold.kernel.ledger.journal import Journal
from leasehold.kernel.ledger.records import BY_KEY, Count, Found, Keys, Missing, Scan, Wanted

_AFTER = "\x00"
"""Put behind a key, the first text that comes after it."""


class Table:
    """The records of one family that a batch has seen."""

    def __init__(self, family: str, journal: Journal) -> None:
        self._family = family
        self._journal = journal
        self.records: dict[str, Any] = {}
        """By key; None: there is no such record."""
        self._keys: list[str] = []
        """Those that have a record, sorted."""
        self._whole: list[tuple[str, str]] = []
        """Intervals of which all records are here, sorted and apart from each other."""
        self.before: dict[str, Any] = {}
        """Records that events have changed, as the store has them."""
        self._counts: dict[Count, int] = {}
        self.is_touched = False
        """Whether something was loaded, or put, since it was made or settled."""

    def load(self, wanted: Wanted, found: Found) -> None:
        """Take in what a store found."""
        self.is_touched = True
        for key, record in found.records.items():
            if key not in self.before:
                self._file(key, record)
        for key in wanted.keys:
            self.records.setdefault(key, None)
        for scan, keys in found.scans.items():
            self._know(scan, keys)
        for count, number in found.counts.items():
            self._counts.setdefault(count, number)

    def get(self, key: str) -> Any:
        """Return a record, or None if there is none."""
        try:
            return self.records[key]
        except KeyError:
            if any(low <= key < high for low, high in self._whole):
                return None
            raise self._missing(keys={key}) from None

    def scan(self, low: str, high: str, limit: int, *, reverse: bool = False) -> list[str]:
        """Return the first keys of a range, or the last ones, up to a limit; the nearest to the end first."""
        if low >= high:
            return []
        known_low, known_high = self._known_from(low, high, reverse=reverse)
        start, end = bisect_left(self._keys, known_low), bisect_left(self._keys, known_high)
        found = self._keys[start:end]
        if reverse:
            found.reverse()
        if len(found) < limit and (known_low, known_high) != (low, high):
            # As many as there are to be: some of them may have been removed by this batch.
            rest = (low, known_low) if reverse else (known_high, high)
            raise self._missing(scans={Scan(*rest, limit, BY_KEY, reverse)})
        return found[:limit]

    def count(self, low: str, high: str) -> int:
        """Return how many records there are in a range."""
        if self._known_from(low, high, reverse=False) == (low, high):
            return bisect_left(self._keys, high) - bisect_left(self._keys, low)
        asked = Count(low, high)
        if asked not in self._counts:
            raise self._missing(counts={asked})
        change = sum(
            (self.records[key] is not None) - (before is not None)
            for key, before in self.before.items()
            if low <= key < high
        )
        return self._counts[asked] + change

    def put(self, key: str, record: Any) -> None:
        """Keep a record as an event has left it; None: it is gone."""
        self.is_touched = True
        journal, before = self._journal, self.records.get(key)
        if key not in self.before:
            journal.put(self.before, key, before)
        journal.note(self._file, key, before)
        self._file(key, record)

    def settle(self) -> int:
        """Take what was changed for what the store says, and return how many records are here."""
        self.is_touched = False
        self.before = {}
        self._counts = {}
        return len(self.records) + len(self._whole)

    def _file(self, key: str, record: Any) -> None:
        had = self.records.get(key) is not None
        self.records[key] = record
        if had and record is None:
            del self._keys[bisect_left(self._keys, key)]
        elif record is not None and not had:
            insort(self._keys, key)

    def _know(self, scan: Scan, keys: list[str]) -> None:
        """Note up to where a scan has read everything, together with what was known before."""
        low, high = scan.low, scan.high
        if len(keys) >= scan.limit:
            low, high = (keys[-1], high) if scan.reverse else (low, keys[-1] + _AFTER)
        apart = []
        for one in self._whole:
            if one[1] < low or high < one[0]:
                apart.append(one)
            else:
                low, high = min(low, one[0]), max(high, one[1])
        self._whole = sorted([*apart, (low, high)])

    def _known_from(self, low: str, high: str, *, reverse: bool) -> tuple[str, str]:
        """Return how much of a range is known whole, from its beginning, or in reverse from its end."""
        for first, end in self._whole:
            if reverse and first < high <= end:
                return max(low, first), high
            if not reverse and first <= low < end:
                return low, min(high, end)
        return (high, high) if reverse else (low, low)

    def _missing(self, **wanted: Any) -> Missing:
        return Missing(Keys(families={self._family: Wanted(**wanted)}))
