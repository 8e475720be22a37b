"""Records of families that have no table of their own, as documents.

A document is found by its family and key, and in the order of the keys, which are compared byte by byte.
However many are asked for, the number of statements is the same.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import apsw
import msgspec

from leasehold.kernel.ledger.family import Family
from leasehold.kernel.ledger.journal import Change
from leasehold.kernel.ledger.key import SEPARATOR
from leasehold.kernel.ledger.records import BY_KEY, Count, Found, Scan, Wanted
from leasehold.kernel.ledger.tick import Tick
from leasehold.stores.sqlite.rows import Row
from leasehold.stores.sqlite.shelves.shelf import FEW, Due, as_json

_GET = "SELECT key, body FROM documents WHERE family = ? AND key = ?"
_GET_MANY = (
    "SELECT documents.key, body FROM json_each(?2) AS wanted "
    "CROSS JOIN documents ON family = ?1 AND documents.key = wanted.value"
)
# Numbered by which of the ranges they are in. Each range is read for itself, up to the limit of all.
_SCAN = {
    reverse: (
        "SELECT wanted.key, documents.key, body FROM json_each(?2) AS wanted "
        "CROSS JOIN documents ON documents.family = ?1 AND documents.key IN ("
        "SELECT one.key FROM documents AS one WHERE one.family = ?1 "
        "AND one.key >= wanted.value ->> 0 AND one.key < wanted.value ->> 1 "
        f"ORDER BY one.key {direction} LIMIT ?3) "
        f"ORDER BY wanted.key, documents.key {direction}"
    )
    for reverse, direction in ((False, "ASC"), (True, "DESC"))
}
_COUNT = (
    "SELECT (SELECT count(*) FROM documents WHERE family = ?1 "
    "AND key >= wanted.value ->> 0 AND key < wanted.value ->> 1) "
    "FROM json_each(?2) AS wanted ORDER BY wanted.key"
)
# The plus sign keeps SQLite from going through whole families: what is due is in order in its index.
_DUE = (
    "SELECT due_era, due_tick, family, key FROM documents "
    "WHERE due_tick IS NOT NULL AND (due_era, due_tick) <= (?1, ?2) "
    "AND +family IN (SELECT value FROM json_each(?3)) "
    "ORDER BY due_era, due_tick, family, key LIMIT ?4"
)
_COLUMNS = "family, key, tenant, due_era, due_tick, body"
_INSERT = f"INSERT INTO documents ({_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?)"
_REPLACE = f"INSERT OR REPLACE INTO documents ({_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?)"
_DELETE = "DELETE FROM documents WHERE family = ? AND key = ?"
_FORGET = "DELETE FROM documents WHERE family = ?1 AND key IN (SELECT value FROM json_each(?2))"
_LOAD = "SELECT family, key, body FROM documents WHERE family IN (SELECT value FROM json_each(?))"
_CLEAR = "DELETE FROM documents WHERE family IN (SELECT value FROM json_each(?))"


class DocumentShelf:
    """The records of some families, in one table."""

    wanted = Wanted

    def __init__(self, families: Iterable[Family]) -> None:
        self._families = {family.name: family for family in families}
        self._names = as_json(self._families)
        self._decode = {
            name: msgspec.json.Decoder(family.record).decode for name, family in self._families.items()
        }

    def read(self, cursor: apsw.Cursor, family: str, wanted: Wanted) -> Found:
        """Return what there is of all that is wanted of a family."""
        found, decode = Found(), self._decode[family]
        for key, body in _bodies(cursor, family, wanted.keys):
            found.records[key] = decode(body)
        if wanted.scans:
            for scan, key, body in _scanned(cursor, family, wanted.scans, found):
                found.scans[scan].append(key)
                if key not in found.records:
                    found.records[key] = decode(body)
        if wanted.counts:
            counts = list(wanted.counts)
            numbers = cursor.execute(_COUNT, (family, _ranges(counts)))
            found.counts = dict(zip(counts, (row[0] for row in numbers), strict=True))
        return found

    def write(self, cursor: apsw.Cursor, changes: Sequence[Change]) -> None:
        """Write what has changed; raise ConstraintError for a new document whose key is taken."""
        gone = [(one.family, one.key) for one in changes if one.after is None]
        made = [self._row(one) for one in changes if one.before is None and one.after is not None]
        changed = [self._row(one) for one in changes if one.before is not None and one.after is not None]
        for sql, rows in ((_DELETE, gone), (_REPLACE, changed), (_INSERT, made)):
            if rows:
                cursor.executemany(sql, rows)

    def _row(self, change: Change) -> Row:
        return self._spelled(self._families[change.family], change.key, change.after)

    def _spelled(self, family: Family, key: str, record: Any) -> Row:
        due = family.due(record)
        era, tick = (None, None) if due is None else (due.era, due.value)
        body = msgspec.json.encode(record).decode()
        return (family.name, key, key.partition(SEPARATOR)[0], era, tick, body)

    def forget(self, cursor: apsw.Cursor, family: str, keys: Sequence[str]) -> None:
        """Remove documents, if they are there."""
        cursor.execute(_FORGET, (family, as_json(keys)))

    def due(self, cursor: apsw.Cursor, now: Tick, limit: int) -> list[Due]:
        """Return documents that time has something to do with, the longest overdue first."""
        rows: list[Any] = cursor.execute(_DUE, (now.era, now.value, self._names, limit)).fetchall()
        return rows

    def load(self, cursor: apsw.Cursor) -> dict[str, dict[str, Any]]:
        """Return all documents of these families."""
        found: dict[str, dict[str, Any]] = defaultdict(dict)
        for family, key, body in cursor.execute(_LOAD, (self._names,)):
            found[family][key] = self._decode[family](body)
        return found

    def replace(self, cursor: apsw.Cursor, records: Mapping[str, Mapping[str, Any]]) -> None:
        """Put other documents in the place of all that are there of these families."""
        cursor.execute(_CLEAR, (as_json(records),))
        rows = (
            self._spelled(self._families[name], key, record)
            for name, here in records.items()
            for key, record in here.items()
        )
        cursor.executemany(_INSERT, rows)


def _bodies(cursor: apsw.Cursor, family: str, keys: set[str]) -> Iterable[Row]:
    if len(keys) > FEW:
        return cursor.execute(_GET_MANY, (family, as_json(keys)))
    return [row for key in keys for row in cursor.execute(_GET, (family, key))]


def _scanned(
    cursor: apsw.Cursor, family: str, scans: set[Scan], found: Found
) -> Iterable[tuple[Scan, str, str]]:
    """Yield the documents in ranges, each with its scan; one statement for all of one limit and direction."""
    alike: dict[tuple[int, bool], list[Scan]] = defaultdict(list)
    for scan in scans:
        assert scan.order == BY_KEY, "documents are in no other order"
        alike[(scan.limit, scan.reverse)].append(scan)
        found.scans[scan] = []
    for (limit, reverse), here in alike.items():
        for number, key, body in cursor.execute(_SCAN[reverse], (family, _ranges(here), limit)):
            yield here[number], key, body


def _ranges(asked: Iterable[Scan] | Iterable[Count]) -> str:
    return as_json((one.low, one.high) for one in asked)
