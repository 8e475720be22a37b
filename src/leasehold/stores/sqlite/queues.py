"""The questions about those who wait.

They are asked only where somebody does, or for paths. Every statement reads through an index: what a claim
costs depends on who is ahead of it, and on what is above and below its path, and on nothing else.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable
from functools import lru_cache

import apsw

from leasehold.kernel.lease.model import Lease, LeaseState, Mode
from leasehold.kernel.lease.paths import ancestors, descendant_range, is_path
from leasehold.kernel.lease.records import FIRST_IN_LINE, Keys, QueueKey, Records, TreeKey
from leasehold.kernel.lease.ticket import LAST_PLACE
from leasehold.stores.sqlite.rows import AWAITED, LEASE_COLUMNS, Row, lease_of

_COLUMNS = f"SELECT {LEASE_COLUMNS}, {AWAITED}"
_SELECT = f"{_COLUMNS} FROM leases"
_LINED_UP = f"place IS NOT NULL AND place < '{LAST_PLACE}'"
_ABOVE, _BELOW = "above", "below"
_NAMES_EACH = 32
"""Up to so many names are looked up each for itself, which is quickest; SQLite would not take hundreds."""
_WAITS = f"{_SELECT} WHERE tenant = ? AND holder = ? AND place IS NOT NULL"
_OWNED = f"{_SELECT} WHERE tenant = ? AND holder = ? AND status = 'active'"


class _Statements:
    """What is asked about one resource, or about a path and what lies in its reach.

    Each part of the reach is looked up for itself: the names there, and the range below a path. What is
    sorted, or counted, is in the index itself; of the leases only those are read that are wanted.
    Parameters: the tenant, the ends of the range below, a number or place or holder, and the names.
    """

    def __init__(self, names: int, *, is_path: bool) -> None:
        self.is_deep = names > _NAMES_EACH
        numbers = [f"?{number}" for number in range(5, 5 + names)]
        reach = [f"resource = {number}" for number in numbers]
        if self.is_deep:
            reach = [f"resource IN ({', '.join(numbers)})"]
        reach += ["resource > ?2 AND resource < ?3"] if is_path else []
        parts = [f"tenant = ?1 AND {part} AND mode = '{mode.value}'" for part in reach for mode in Mode]
        first_in_line = [_some(f"{part} AND {_LINED_UP} ORDER BY place LIMIT ?4") for part in parts]
        self.queue = _of_leases(first_in_line)
        self.ahead = "SELECT " + " + ".join(
            f"(SELECT count(*) FROM leases WHERE {part} AND place IS NOT NULL AND place < ?4)"
            for part in parts
        )
        ends = ", ".join(
            f"coalesce((SELECT max(place) FROM leases WHERE {part} AND {_LINED_UP}), '')" for part in parts
        )
        self.whole_queue = f"{self.ahead}, max({ends})"
        held = [_some(f"{part} AND status = 'active' ORDER BY resource LIMIT ?4") for part in parts]
        anybody = [_some(f"tenant = ?1 AND {part} AND {_LINED_UP} LIMIT 1") for part in reach]
        self.tree = _of_leases(held + anybody)
        self.upgrading = _of_leases([_some(f"{part} AND place = '{LAST_PLACE}'") for part in parts])
        around = " OR ".join(f"({part})" for part in reach)
        self.held_by = f"{_SELECT} WHERE tenant = ?1 AND holder = ?4 AND status = 'active' AND ({around})"
        # From those who wait to what they hold: mostly few wait, whatever there is below a path.
        self.held_by_waiting = (
            f"{_SELECT} WHERE rowid IN (SELECT held.rowid FROM "
            "(SELECT DISTINCT holder FROM leases WHERE tenant = ?1 AND place IS NOT NULL) AS waiting "
            "CROSS JOIN leases AS held ON held.tenant = ?1 AND held.holder = waiting.holder "
            f"AND held.status = 'active' WHERE {around})"
        )


def _some(condition: str) -> str:
    return f"SELECT * FROM (SELECT rowid AS number FROM leases WHERE {condition})"


def _of_leases(numbers: list[str]) -> str:
    """Return a statement that reads the leases which other statements find, in their order."""
    found = " UNION ALL ".join(numbers)
    return f"{_COLUMNS} FROM ({found}) CROSS JOIN leases ON leases.rowid = number"


@lru_cache(maxsize=64)
def _statements(names: int, *, is_path: bool) -> _Statements:
    return _Statements(names, is_path=is_path)


def _asked(tenant: str, resource: str, detail: int | str) -> tuple[_Statements, tuple[str | int, ...]]:
    """Return the statements for a resource, and their parameters."""
    if not is_path(resource):
        return _statements(1, is_path=False), (tenant, "", "", detail, resource)
    names = (*ancestors(resource), resource)
    return _statements(len(names), is_path=True), (tenant, *descendant_range(resource), detail, *names)


def take_in(rows: Iterable[Row], records: Records) -> None:
    """Read leases, and for the resource of each whether anybody waits for it."""
    for row in rows:
        lease = lease_of(row)
        records.leases.append(lease)
        if row[-1]:
            records.awaited.add((lease.tenant, lease.resource))


def read_queues(connection: apsw.Connection, keys: Keys, records: Records) -> None:
    """Read what `keys` asks about those who wait, and about paths."""
    execute = connection.execute
    for queue in keys.queues:
        _read_queue(connection, queue, records)
    for tree in keys.trees:
        _read_tree(connection, tree, records)
    for place in keys.places:
        statements, values = _asked(*place)
        if place[-1] == LAST_PLACE:
            records.places[place], records.ends[place[:2]] = execute(statements.whole_queue, values).get
        else:
            records.places[place] = execute(statements.ahead, values).get
    for tangle in keys.tangles:
        statements, values = _asked(*tangle)
        statement = statements.held_by if tangle[-1] else statements.held_by_waiting
        records.tangles[tangle] = [one.lease_id for one in _taken_in(execute(statement, values), records)]
    for holder in keys.waits:
        take_in(execute(_WAITS, holder), records)
    for holder in keys.owners:
        take_in(execute(_OWNED, holder), records)


def _taken_in(rows: Iterable[Row], records: Records) -> list[Lease]:
    before = len(records.leases)
    take_in(rows, records)
    return records.leases[before:]


def _part(lease: Lease, resource: str, statements: _Statements) -> tuple[Mode, str]:
    """Return which part of the reach of a resource a lease was read with."""
    if len(lease.resource) > len(resource):
        return lease.mode, _BELOW
    return lease.mode, _ABOVE if statements.is_deep else lease.resource


def _read_queue(connection: apsw.Connection, queue: QueueKey, records: Records) -> None:
    """Read the first who wait, and note the places up to which that is everybody, for each mode."""
    _, resource, limit = queue
    statements, values = _asked(*queue)
    places: dict[tuple[Mode, str], list[str]] = defaultdict(list)
    for one in _taken_in(connection.execute(statements.queue, values), records):
        places[_part(one, resource, statements)].append(one.place)
    horizons = {Mode.EXCLUSIVE: LAST_PLACE, Mode.SHARED: LAST_PLACE}
    for (mode, _), part in places.items():
        if len(part) == limit:
            horizons[mode] = min(horizons[mode], max(part))
    records.queues[queue] = (horizons[Mode.EXCLUSIVE], horizons[Mode.SHARED])


def _read_tree(connection: apsw.Connection, tree: TreeKey, records: Records) -> None:
    """Read what is held around a path, up to a limit, and who waits first; note where that was not all."""
    tenant, path, limit = tree
    statements, values = _asked(*tree)
    found = _taken_in(connection.execute(statements.tree, values), records)
    held = Counter(_part(one, path, statements) for one in found if one.state is LeaseState.ACTIVE)
    cut = frozenset(mode for (mode, _), count in held.items() if count == limit)
    if cut:
        records.cut[tree] = cut
    if Mode.SHARED in cut:
        take_in(connection.execute(statements.upgrading, values), records)
    queue = (tenant, path, FIRST_IN_LINE)
    if held.total() < len(found):
        _read_queue(connection, queue, records)
    else:
        records.queues[queue] = (LAST_PLACE, LAST_PLACE)
