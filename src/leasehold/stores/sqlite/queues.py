"""The questions about those who wait.

They are asked only where somebody does, or for paths. Every statement reads through an index: what a claim
costs depends on who is ahead of it, and on what is above and below its path, and on nothing else.
"""

from collections.abc import Iterable
from typing import Any

import apsw
import msgspec

from leasehold.kernel.lease import Mode
from leasehold.kernel.paths import ancestors, descendant_range
from leasehold.kernel.records import Keys, Records
from leasehold.kernel.ticket import LAST_PLACE
from leasehold.stores.sqlite.rows import AWAITED, LEASE_COLUMNS, Row, lease_of

_SELECT = f"SELECT {LEASE_COLUMNS}, {AWAITED} FROM leases"
_QUEUE = (
    f"{_SELECT} WHERE tenant = ? AND resource = ? AND mode = ? "
    f"AND place IS NOT NULL AND place < '{LAST_PLACE}' ORDER BY place LIMIT ?"
)
_AHEAD = " + ".join(
    "(SELECT count(*) FROM leases WHERE tenant = ?1 AND resource = ?2 "
    f"AND mode = '{mode.value}' AND place IS NOT NULL AND place < ?3)"
    for mode in Mode
)
_WAITS = f"{_SELECT} WHERE tenant = ? AND holder = ? AND place IS NOT NULL"
_OWNED = f"{_SELECT} WHERE tenant = ? AND holder = ? AND status = 'active'"
_KINDS = (
    "status = 'active' AND mode = 'exclusive'",
    "status = 'active' AND mode = 'shared'",
    "place IS NOT NULL AND status = 'pending'",
)
_TREE = " UNION ALL ".join(
    f"{_SELECT} WHERE tenant = ?1 AND resource {where} AND {kind}"
    for kind in _KINDS
    for where in ("IN (SELECT value FROM json_each(?2))", "> ?3 AND resource < ?4")
)


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
    for tenant, resource, limit in keys.queues:
        exclusive = _read_queue(connection, (tenant, resource, Mode.EXCLUSIVE.value, limit), records)
        shared = _read_queue(connection, (tenant, resource, Mode.SHARED.value, limit), records)
        records.queues[(tenant, resource, limit)] = (exclusive, shared)
    for tenant, path in keys.trees:
        names = msgspec.json.encode([*ancestors(path), path]).decode()
        take_in(execute(_TREE, (tenant, names, *descendant_range(path))), records)
    for place in keys.places:
        records.places[place] = execute(f"SELECT {_AHEAD}", place).get
    for holder in keys.waits:
        take_in(execute(_WAITS, holder), records)
    for holder in keys.owners:
        take_in(execute(_OWNED, holder), records)


def _read_queue(connection: apsw.Connection, which: tuple[Any, ...], records: Records) -> str:
    """Read the first waiters of one mode, and return the place up to which they were read."""
    rows = connection.execute(_QUEUE, which).fetchall()
    take_in(rows, records)
    return records.leases[-1].place if len(rows) == which[-1] else LAST_PLACE
