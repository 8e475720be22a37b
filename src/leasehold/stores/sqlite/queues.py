"""The questions about those who wait.

They are asked only where somebody does, or for paths. Every statement reads through an index: what a claim
costs depends on who is ahead of it, and on what is above and below its path, and on nothing else.
"""

from collections import Counter
from collections.abc import Iterable

import apsw
import msgspec

from leasehold.kernel.lease import LeaseState, Mode
from leasehold.kernel.paths import ancestors, descendant_range
from leasehold.kernel.records import BELOW_PAGE, Keys, QueueKey, Records, ResourceKey
from leasehold.kernel.ticket import LAST_PLACE
from leasehold.stores.sqlite.rows import AWAITED, LEASE_COLUMNS, Row, lease_of

_SELECT = f"SELECT {LEASE_COLUMNS}, {AWAITED} FROM leases"
_QUEUE = " UNION ALL ".join(
    f"SELECT * FROM ({_SELECT} WHERE tenant = ?1 AND resource = ?2 AND mode = '{mode.value}' "
    f"AND place IS NOT NULL AND place < '{LAST_PLACE}' ORDER BY place LIMIT ?3)"
    for mode in Mode
)
_AHEAD = " + ".join(
    "(SELECT count(*) FROM leases WHERE tenant = ?1 AND resource = ?2 "
    f"AND mode = '{mode.value}' AND place IS NOT NULL AND place < ?3)"
    for mode in Mode
)
_END = ", ".join(
    "coalesce((SELECT max(place) FROM leases WHERE tenant = ?1 AND resource = ?2 "
    f"AND mode = '{mode.value}' AND place IS NOT NULL AND place < ?3), '')"
    for mode in Mode
)
_WHOLE_QUEUE = f"SELECT {_AHEAD}, max({_END})"
_WAITS = f"{_SELECT} WHERE tenant = ? AND holder = ? AND place IS NOT NULL"
_OWNED = f"{_SELECT} WHERE tenant = ? AND holder = ? AND status = 'active'"
_KINDS = (
    "status = 'active' AND mode = 'exclusive'",
    "status = 'active' AND mode = 'shared'",
    "place IS NOT NULL AND status = 'pending'",
)
_TREE = " UNION ALL ".join(
    f"{_SELECT} WHERE tenant = ?1 AND resource IN (SELECT value FROM json_each(?2)) AND {kind} UNION ALL "
    f"SELECT * FROM ({_SELECT} WHERE tenant = ?1 AND resource > ?3 AND resource < ?4 AND {kind} "
    "ORDER BY resource LIMIT ?5)"
    for kind in _KINDS
)
_ALL = -1


def take_in(rows: Iterable[Row], records: Records) -> None:
    """Read leases, and for the resource of each whether anybody waits for it."""
    for row in rows:
        lease = lease_of(row)
        records.leases.append(lease)
        if row[-1]:
            records.awaited.add((lease.tenant, lease.resource))


def read_queues(connection: apsw.Connection, keys: Keys, records: Records) -> None:
    """Read what `keys` asks about those who wait."""
    execute = connection.execute
    for queue in keys.queues:
        _read_queue(execute(_QUEUE, queue), queue, records)
    for tree in keys.trees:
        if _read_tree(connection, tree, BELOW_PAGE, records):
            records.wide.add(tree)
    for tree in keys.whole_trees:
        _read_tree(connection, tree, _ALL, records)
    for place in keys.places:
        if place[-1] == LAST_PLACE:
            records.places[place], records.ends[place[:2]] = execute(_WHOLE_QUEUE, place).get
        else:
            records.places[place] = execute(f"SELECT {_AHEAD}", place).get
    for holder in keys.waits:
        take_in(execute(_WAITS, holder), records)
    for holder in keys.owners:
        take_in(execute(_OWNED, holder), records)


def _read_tree(connection: apsw.Connection, tree: ResourceKey, limit: int, records: Records) -> bool:
    """Read what is above a path and, up to a limit of each kind, below it; say whether that was reached."""
    tenant, path = tree
    above = [*ancestors(path), path]
    names = msgspec.json.encode(above).decode()
    before = len(records.leases)
    take_in(connection.execute(_TREE, (tenant, names, *descendant_range(path), limit)), records)
    below = Counter(
        (lease.state, lease.mode if lease.state is LeaseState.ACTIVE else None)
        for lease in records.leases[before:]
        if lease.resource not in above
    )
    return limit in below.values()


def _read_queue(rows: Iterable[Row], queue: QueueKey, records: Records) -> None:
    """Read the first waiters of each mode, and note the places up to which they were read."""
    before = len(records.leases)
    take_in(rows, records)
    horizons = []
    for mode in (Mode.EXCLUSIVE, Mode.SHARED):
        places = [lease.place for lease in records.leases[before:] if lease.mode is mode]
        horizons.append(places[-1] if len(places) == queue[-1] else LAST_PLACE)
    exclusive, shared = horizons
    records.queues[queue] = (exclusive, shared)
