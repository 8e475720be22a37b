"""Leases by holder, and by parent: the orders in which they can be scanned and counted.

A range is everything under a tenant, a tenant and holder, or a parent. Inside of it, leases come in no
particular order.
"""

from collections import defaultdict
from collections.abc import Iterable
from functools import cache

import apsw

from leasehold.kernel.lease.records import CHILDREN, HELD, UNENDED, WAITING, LeaseFound
from leasehold.kernel.ledger.key import split_key
from leasehold.kernel.ledger.records import Count, Scan
from leasehold.stores.sqlite.shelves.lease_rows import LEASE_AND_AWAITED
from leasehold.stores.sqlite.shelves.queues import take_in
from leasehold.stores.sqlite.shelves.shelf import FEW, as_json

_HOLDER = ("tenant", "holder")
_STANDS = "status = 'active'"
_ORDERS: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    HELD: (_HOLDER, (_STANDS,)),
    WAITING: (_HOLDER, ("place IS NOT NULL",)),
    # In two parts, because those who hold, and those who wait, have an index each.
    UNENDED: (_HOLDER, (_STANDS, "place IS NOT NULL AND status = 'pending'")),
    CHILDREN: (("parent",), (f"{_STANDS} AND parent IS NOT NULL",)),
}
"""By name, the columns of an order, and which leases are in it: each part of them has an index."""

_Prefix = tuple[str, ...]


@cache
def scanning(order: str, depth: int) -> str:
    """Return a statement for the leases under a prefix of so many parts, up to a limit."""
    values = [f"?{number}" for number in range(1, depth + 1)]
    parts = [f"SELECT {LEASE_AND_AWAITED} FROM leases WHERE {part}" for part in _parts(order, values)]
    return f"{' UNION ALL '.join(parts)} LIMIT ?{depth + 1}"


@cache
def scanning_many(order: str, depth: int) -> str:
    """Return a statement for the leases under each of many prefixes, with the number of the prefix."""
    values = [f"wanted.value ->> {place}" for place in range(depth)]
    parts = [f"SELECT rowid FROM leases WHERE {part}" for part in _parts(order, values)]
    return (
        f"SELECT wanted.key, {LEASE_AND_AWAITED} FROM json_each(?1) AS wanted "
        f"CROSS JOIN leases ON leases.rowid IN ({' UNION ALL '.join(parts)} LIMIT ?2)"
    )


@cache
def counting(order: str, depth: int) -> str:
    """Return a statement that counts the leases under each of some prefixes of so many parts."""
    values = [f"wanted.value ->> {place}" for place in range(depth)]
    parts = [f"(SELECT count(*) FROM leases WHERE {part})" for part in _parts(order, values)]
    return f"SELECT {' + '.join(parts)} FROM json_each(?1) AS wanted ORDER BY wanted.key"


def _parts(order: str, values: list[str]) -> list[str]:
    columns, conditions = _ORDERS[order]
    under = [f"{column} = {value}" for column, value in zip(columns, values, strict=False)]
    return [" AND ".join([*under, condition]) for condition in conditions]


def read_scans(cursor: apsw.Cursor, scans: Iterable[Scan], found: LeaseFound) -> None:
    """Read the leases under prefixes; one statement for all of one kind, if they are many."""
    alike: dict[tuple[str, int, int], dict[_Prefix, Scan]] = defaultdict(dict)
    for scan in scans:
        prefix = _prefix(scan)
        alike[(scan.order, len(prefix), scan.limit)][prefix] = scan
    for (order, depth, limit), here in alike.items():
        if len(here) > FEW:
            _read_many(cursor, scanning_many(order, depth), here, limit, found)
            continue
        for prefix, scan in here.items():
            rows = cursor.execute(scanning(order, depth), (*prefix, limit))
            found.scans[scan] = [lease.lease_id for lease in take_in(rows, found)]


def _read_many(
    cursor: apsw.Cursor, sql: str, here: dict[_Prefix, Scan], limit: int, found: LeaseFound
) -> None:
    scans = list(here.values())
    for scan in scans:
        found.scans[scan] = []
    for number, *row in cursor.execute(sql, (as_json(here), limit)):
        (lease,) = take_in([row], found)
        found.scans[scans[number]].append(lease.lease_id)


def read_counts(cursor: apsw.Cursor, counts: Iterable[Count], found: LeaseFound) -> None:
    """Count the leases under prefixes. Those of a whole tenant are all walked: asked only for a quota."""
    alike: dict[tuple[str, int], dict[_Prefix, Count]] = defaultdict(dict)
    for count in counts:
        prefix = _prefix(count)
        alike[(count.order, len(prefix))][prefix] = count
    for (order, depth), here in alike.items():
        numbers = cursor.execute(counting(order, depth), (as_json(here),))
        found.counts.update(zip(here.values(), (row[0] for row in numbers), strict=True))


def _prefix(asked: Scan | Count) -> _Prefix:
    """Return the parts that a range is under: its first text goes on with nothing."""
    return tuple(split_key(asked.low)[:-1])
