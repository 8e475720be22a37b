"""The questions about those who wait, and about paths.

They are asked only where somebody does, or for paths. Every statement reads through an index: what a claim
costs depends on who is ahead of it, and on what is above and below its path, and on nothing else.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Any

import apsw

from leasehold.kernel.lease.model import Lease, LeaseState, Mode
from leasehold.kernel.lease.paths import is_glob, is_path, reach_of, related
from leasehold.kernel.lease.records import FIRST_IN_LINE, LeaseFound, LeaseWanted, PlaceKey, QueueKey, TreeKey
from leasehold.kernel.lease.ticket import LAST_PLACE
from leasehold.stores.sqlite.rows import Row
from leasehold.stores.sqlite.shelves.lease_rows import LEASE_AND_AWAITED, lease_of
from leasehold.stores.sqlite.shelves.shelf import FEW, as_json

_COLUMNS = f"SELECT {LEASE_AND_AWAITED}"
_SELECT = f"{_COLUMNS} FROM leases"
_LINED_UP = f"place IS NOT NULL AND place < '{LAST_PLACE}'"
_ABOVE, _BELOW, _PATTERN = "above", "below", "pattern"
_IN_RANGE = "resource > ?2 AND resource < ?3"
_FIRST_IN_PLAIN_QUEUES = " UNION ALL ".join(
    "SELECT * FROM (SELECT one.rowid FROM leases AS one WHERE one.tenant = wanted.value ->> 0 "
    f"AND one.resource = wanted.value ->> 1 AND one.mode = '{mode.value}' "
    f"AND one.place IS NOT NULL AND one.place < '{LAST_PLACE}' ORDER BY one.place LIMIT ?2)"
    for mode in Mode
)
_PLAIN_QUEUES = (
    f"{_COLUMNS} FROM json_each(?1) AS wanted CROSS JOIN leases ON leases.rowid IN ({_FIRST_IN_PLAIN_QUEUES})"
)
"""The first in the queues of many plain names."""
_NAMES_EACH = 32
"""Up to so many names are looked up each for itself, which is quickest; SQLite would not take hundreds."""


_PATTERNS = "glob_prefix IS NOT NULL AND glob_prefix IN (SELECT value FROM json_each(?4))"
_HELD_PATTERNS = "leases INDEXED BY leases_patterns_held"
_AWAITED_PATTERNS = "leases INDEXED BY leases_patterns_awaited"


class _Statements:
    """What is asked about one resource, or about a path or pattern and what lies in its reach.

    Each part of the reach is looked up for itself: the names there, the range below a path, and patterns by
    what they begin with. What is sorted, or counted, is in the index itself; of the leases only those are
    read that are wanted. Parameters: the tenant, the ends of the range, what patterns begin with, a number or
    place or holder, and the names.
    """

    def __init__(self, names: int, *, is_path: bool, is_glob: bool) -> None:
        self.is_deep = names > _NAMES_EACH
        numbers = [f"?{number}" for number in range(6, 6 + names)]
        reach = [f"resource = {number}" for number in numbers]
        if self.is_deep:
            reach = [f"resource IN ({', '.join(numbers)})"]
        reach += [_IN_RANGE] if is_path else []
        parts = [_part_of("leases", part, mode) for part in reach for mode in Mode]
        everywhere = [*reach, _PATTERNS] if is_path else reach
        held = [*parts, *(_part_of(_HELD_PATTERNS, _PATTERNS, mode) for mode in Mode if is_path)]
        awaited = [*parts, *(_part_of(_AWAITED_PATTERNS, _PATTERNS, mode) for mode in Mode if is_path)]
        self.queue = _of_leases(
            [_some(f"{part} AND {_LINED_UP} ORDER BY place LIMIT ?5") for part in awaited]
        )
        self.tree = _of_leases(
            [_some(f"{part} AND status = 'active' ORDER BY resource LIMIT ?5") for part in held]
            + [_some(f"leases WHERE tenant = ?1 AND {part} AND {_LINED_UP} LIMIT 1") for part in everywhere]
        )
        self.upgrading = _of_leases([_some(f"{part} AND place = '{LAST_PLACE}'") for part in awaited])
        alike = [_IN_RANGE, _PATTERNS] if is_glob else [_PATTERNS]
        self._count([one for one in parts if not is_glob or _IN_RANGE not in one], alike if is_path else [])
        around = " OR ".join(f"({part})" for part in everywhere)
        self.held_by = f"{_SELECT} WHERE tenant = ?1 AND holder = ?5 AND status = 'active' AND ({around})"
        # From those who wait to what they hold: mostly few wait, whatever there is below a path.
        self.held_by_waiting = (
            f"{_SELECT} WHERE rowid IN (SELECT held.rowid FROM "
            "(SELECT DISTINCT holder FROM leases WHERE tenant = ?1 AND place IS NOT NULL) AS waiting "
            "CROSS JOIN leases AS held ON held.tenant = ?1 AND held.holder = waiting.holder "
            f"AND held.status = 'active' WHERE {around})"
        )

    def _count(self, parts: list[str], alike: list[str]) -> None:
        """Make what counts those ahead: in the index, or by their names where they only begin alike."""
        self.ahead = "SELECT " + " + ".join(
            f"(SELECT count(*) FROM {part} AND place IS NOT NULL AND place < ?5)" for part in parts
        )
        ends = ", ".join(f"coalesce((SELECT max(place) FROM {part} AND {_LINED_UP}), '')" for part in parts)
        self.whole_queue = f"{self.ahead}, max({ends})"
        self.alike_ahead = " UNION ALL ".join(
            f"SELECT resource, place FROM leases WHERE tenant = ?1 AND {part} AND place IS NOT NULL "
            "AND place < ?5"
            for part in alike
        )


def _part_of(source: str, part: str, mode: Mode) -> str:
    return f"{source} WHERE tenant = ?1 AND {part} AND mode = '{mode.value}'"


def _some(found: str) -> str:
    return f"SELECT * FROM (SELECT rowid AS number FROM {found})"


def _of_leases(numbers: list[str]) -> str:
    """Return a statement that reads the leases which other statements find, in their order."""
    found = " UNION ALL ".join(numbers)
    return f"{_COLUMNS} FROM ({found}) CROSS JOIN leases ON leases.rowid = number"


@lru_cache(maxsize=64)
def _statements(names: int, *, is_path: bool, is_glob: bool = False) -> _Statements:
    return _Statements(names, is_path=is_path, is_glob=is_glob)


def _asked(tenant: str, resource: str, detail: int | str) -> tuple[_Statements, tuple[str | int, ...]]:
    """Return the statements for a resource, and their parameters."""
    if not is_path(resource):
        return _statements(1, is_path=False), (tenant, "", "", "[]", detail, resource)
    names, low, high, prefixes = reach_of(resource)
    statements = _statements(len(names), is_path=True, is_glob=is_glob(resource))
    return statements, (tenant, low, high, as_json(prefixes), detail, *names)


def take_in(rows: Iterable[Row], found: LeaseFound) -> list[Lease]:
    """Read leases, and for the resource of each whether anybody waits for it; return those of these rows."""
    leases = []
    for row in rows:
        lease = lease_of(row)
        leases.append(lease)
        found.records[lease.lease_id] = lease
        if row[-1]:
            found.awaited.add((lease.tenant, lease.resource))
    return leases


def read_queues(cursor: apsw.Cursor, wanted: LeaseWanted, found: LeaseFound) -> None:
    """Read what is wanted of those who wait, and of what lies around paths."""
    execute = cursor.execute
    for queue in _read_plain_queues(cursor, wanted.queues, found):
        _read_queue(cursor, queue, found)
    for tree in wanted.trees:
        _read_tree(cursor, tree, found)
    for place in wanted.places:
        _count_ahead(cursor, place, found)
    for tangle in wanted.tangles:
        statements, values = _asked(*tangle)
        statement = statements.held_by if tangle[-1] else statements.held_by_waiting
        found.tangles[tangle] = [one.lease_id for one in take_in(execute(statement, values), found)]


def _count_ahead(cursor: apsw.Cursor, place: PlaceKey, found: LeaseFound) -> None:
    """Count who is ahead of a place; where patterns come in, those who only begin alike do not count."""
    statements, values = _asked(*place)
    if place[-1] == LAST_PLACE:
        count, end = cursor.execute(statements.whole_queue, values).get
    else:
        count, end = cursor.execute(statements.ahead, values).get, ""
    if statements.alike_ahead:
        rows: list[Any] = cursor.execute(statements.alike_ahead, values[:5]).fetchall()
        places = [theirs for resource, theirs in rows if related(resource, place[1])]
        count, end = count + len(places), max(end, *places, "")
    found.places[place] = count
    if place[-1] == LAST_PLACE:
        found.ends[place[:2]] = end


def _part(lease: Lease, resource: str, statements: _Statements) -> tuple[Mode, str]:
    """Return which part of the reach of a resource a lease was read with."""
    if not is_path(resource):
        return lease.mode, resource
    names, low, high, _ = reach_of(resource)
    if low < lease.resource < high:
        return lease.mode, _BELOW
    if lease.resource in names:
        return lease.mode, _ABOVE if statements.is_deep else lease.resource
    return lease.mode, _PATTERN


def _read_plain_queues(cursor: apsw.Cursor, queues: set[QueueKey], found: LeaseFound) -> Iterable[QueueKey]:
    """Read many queues of plain names at once, and return those that are left to be read singly."""
    if len(queues) <= FEW:
        return queues
    alike: dict[int, dict[tuple[str, str], list[Lease]]] = defaultdict(dict)
    for tenant, resource, limit in queues:
        if not is_path(resource):
            alike[limit][(tenant, resource)] = []
    for limit, here in alike.items():
        for lease in take_in(cursor.execute(_PLAIN_QUEUES, (as_json(here), limit)), found):
            here[(lease.tenant, lease.resource)].append(lease)
        for (tenant, resource), waiting in here.items():
            parts = defaultdict(list)
            for lease in waiting:
                parts[(lease.mode, resource)].append(lease.place)
            _note_horizons((tenant, resource, limit), parts, found)
    return queues - found.queues.keys()


def _read_queue(cursor: apsw.Cursor, queue: QueueKey, found: LeaseFound) -> None:
    """Read the first who wait, and note the places up to which that is everybody, for each mode."""
    statements, values = _asked(*queue)
    parts: dict[tuple[Mode, str], list[str]] = defaultdict(list)
    for one in take_in(cursor.execute(statements.queue, values), found):
        parts[_part(one, queue[1], statements)].append(one.place)
    _note_horizons(queue, parts, found)


def _note_horizons(queue: QueueKey, parts: Mapping[tuple[Mode, str], list[str]], found: LeaseFound) -> None:
    """Note the places up to which everybody was read: where a part is cut, that of its last."""
    horizons = {Mode.EXCLUSIVE: LAST_PLACE, Mode.SHARED: LAST_PLACE}
    for (mode, _), places in parts.items():
        if len(places) == queue[-1]:
            horizons[mode] = min(horizons[mode], max(places))
    found.queues[queue] = (horizons[Mode.EXCLUSIVE], horizons[Mode.SHARED])


def _read_tree(cursor: apsw.Cursor, tree: TreeKey, found: LeaseFound) -> None:
    """Read what is held around a path, up to a limit, and who waits first; note where that was not all."""
    tenant, path, limit = tree
    statements, values = _asked(*tree)
    around = take_in(cursor.execute(statements.tree, values), found)
    held = Counter(_part(one, path, statements) for one in around if one.state is LeaseState.ACTIVE)
    cut = frozenset(mode for (mode, _), count in held.items() if count == limit)
    if cut:
        found.cut[tree] = cut
    if Mode.SHARED in cut:
        take_in(cursor.execute(statements.upgrading, values), found)
    queue = (tenant, path, FIRST_IN_LINE)
    if held.total() < len(around):
        _read_queue(cursor, queue, found)
    else:
        found.queues[queue] = (LAST_PLACE, LAST_PLACE)
