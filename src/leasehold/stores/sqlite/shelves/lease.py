"""Leases, in a table with real columns and indexes, which people can query.

Every statement reads through an index. A lone caller is served by single lookups; whoever asks for many
leases, resources or queues at once, by one statement for all of a kind.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import apsw

from leasehold.kernel.lease.model import Lease, LeaseState, Mode
from leasehold.kernel.lease.records import LEASE, LeaseFound, LeaseWanted, ResourceKey
from leasehold.kernel.ledger.family import Families
from leasehold.kernel.ledger.journal import Change
from leasehold.kernel.ledger.tick import Tick
from leasehold.stores.sqlite.rows import Row
from leasehold.stores.sqlite.shelves.lease_rows import (
    END_LEASE,
    EXTEND_LEASE,
    INSERT_LEASE,
    LEASE_AND_AWAITED,
    LEASE_COLUMNS,
    RESHAPE_LEASE,
    SET_DELEGATION,
    delegation_of,
    ending_of,
    extension_of,
    lease_of,
    reshape_of,
    row_of,
)
from leasehold.stores.sqlite.shelves.orders import read_counts, read_scans
from leasehold.stores.sqlite.shelves.queues import read_queues, take_in
from leasehold.stores.sqlite.shelves.shelf import FEW, Due, as_json

_SELECT = f"SELECT {LEASE_AND_AWAITED} FROM leases"
_LEASE = f"{_SELECT} WHERE lease_id = ?"
_LEASES = f"{_SELECT} WHERE lease_id IN (SELECT value FROM json_each(?))"
# Two halves, because each mode has a partial index of its own and every lease is in just one of them. And one
# waiter, if there are any: enough to know that the queue has to be read.
_STANDING = (
    f"{_SELECT} WHERE tenant = ?1 AND resource = ?2 AND status = 'active' AND mode = 'exclusive' "
    f"UNION ALL {_SELECT} WHERE tenant = ?1 AND resource = ?2 AND status = 'active' AND mode = 'shared' "
    f"UNION ALL SELECT * FROM ({_SELECT} WHERE tenant = ?1 AND resource = ?2 AND place IS NOT NULL "
    "AND status = 'pending' LIMIT 1)"
)
# The same of many resources.
_ON = "one.tenant = wanted.value ->> 0 AND one.resource = wanted.value ->> 1"
_STANDING_ON_MANY = (
    f"SELECT {LEASE_AND_AWAITED} FROM json_each(?1) AS wanted CROSS JOIN leases ON leases.rowid IN ("
    f"SELECT one.rowid FROM leases AS one WHERE {_ON} AND one.status = 'active' AND one.mode = 'exclusive' "
    f"UNION ALL SELECT one.rowid FROM leases AS one WHERE {_ON} AND one.status = 'active' "
    f"AND one.mode = 'shared' UNION ALL SELECT * FROM (SELECT one.rowid FROM leases AS one WHERE {_ON} "
    "AND one.place IS NOT NULL AND one.status = 'pending' LIMIT 1))"
)
# By way of the resource, which has an index, from the latest on: a retry comes soon after the first try.
_GRANTS = (
    "SELECT wanted.value, (SELECT body FROM leases CROSS JOIN events USING (resource, lease_id) "
    "WHERE leases.lease_id = wanted.value AND events.type = 'lease.issued' "
    "ORDER BY events.position DESC LIMIT 1) FROM json_each(?) AS wanted"
)
# By era, then tick: leases of an ended era come first, whatever their ticks.
# Two halves, because those who wait, and those who hold, have an index each. Of equals the oldest comes first
# in each half too: its limit decides which of them are seen at all.
_LAPSED = " UNION ALL ".join(
    "SELECT * FROM (SELECT tick_era, expires_tick, lease_id, token FROM leases "
    f"WHERE status = '{status}' AND (tick_era, expires_tick) <= (?1, ?2) "
    "ORDER BY tick_era, expires_tick, token LIMIT ?3)"
    for status in ("active", "pending")
)
_LAPSED = (
    f"SELECT tick_era, expires_tick, '{LEASE}', lease_id FROM ({_LAPSED}) "
    "ORDER BY tick_era, expires_tick, token LIMIT ?3"
)
_LAST_ERA = 1 << 62
"""Behind everything that time has ended come the children that an ended lease has left."""
# Driven by the few leases that have left children; each leads to its children through their index.
_ORPHANS = (
    f"SELECT {_LAST_ERA}, 0, '{LEASE}', child.lease_id FROM leases AS parent "
    "CROSS JOIN leases AS child ON child.parent = parent.lease_id "
    "WHERE parent.delegation IS NOT NULL AND parent.delegation ->> '$.orphaned' "
    "AND child.status = 'active' AND child.parent IS NOT NULL LIMIT ?"
)
_FORGET = "DELETE FROM leases WHERE lease_id IN (SELECT value FROM json_each(?))"

_IN_ORDER = (END_LEASE, EXTEND_LEASE, RESHAPE_LEASE, INSERT_LEASE, SET_DELEGATION)
"""Ends come before grants: a resource must be free before the unique index lets it be taken again. For the
same reason, of each kind those come first who share, or have ended: they make room for who is alone."""


class LeaseShelf:
    """The table of leases."""

    wanted = LeaseWanted

    def __init__(self, families: Families) -> None:
        self._decode_event = families.decode_event

    def read(self, cursor: apsw.Cursor, family: str, wanted: LeaseWanted) -> LeaseFound:
        """Return what there is of all that is wanted."""
        del family
        found = LeaseFound()
        if wanted.keys:
            _read_by_id(cursor, wanted.keys, found)
        if wanted.resources:
            _read_standing(cursor, wanted.resources, found)
        if wanted.grants:
            for lease_id, body in cursor.execute(_GRANTS, (as_json(wanted.grants),)):
                if body is not None:
                    found.grants[lease_id] = self._decode_event(body)
        if wanted.scans:
            read_scans(cursor, wanted.scans, found)
        if wanted.counts:
            read_counts(cursor, wanted.counts, found)
        if wanted.is_crowded:
            read_queues(cursor, wanted, found)
        return found

    def write(self, cursor: apsw.Cursor, changes: Sequence[Change]) -> None:
        """Write new leases whole, and of others what has changed of them. Leases go by pruning only."""
        if len(changes) == 1:
            for sql, row in _statements(changes[0].before, changes[0].after):
                cursor.execute(sql, row)
            return
        rows: dict[str, list[Row]] = {sql: [] for sql in _IN_ORDER}
        for change in sorted(changes, key=_is_alone_after):
            for sql, row in _statements(change.before, change.after):
                rows[sql].append(row)
        for sql, here in rows.items():
            if here:
                cursor.executemany(sql, here)

    def forget(self, cursor: apsw.Cursor, family: str, keys: Sequence[str]) -> None:
        """Remove leases, if they are there."""
        del family
        cursor.execute(_FORGET, (as_json(keys),))

    def due(self, cursor: apsw.Cursor, now: Tick, limit: int) -> list[Due]:
        """Return unended leases whose time is over, the longest overdue first, then orphans."""
        found: list[Any] = cursor.execute(_LAPSED, (now.era, now.value, limit)).fetchall()
        if len(found) < limit:
            lapsed = {key for *_, key in found}
            orphans = cursor.execute(_ORPHANS, (limit,)).fetchall()
            found += [orphan for orphan in orphans if orphan[-1] not in lapsed]
        return found[:limit]

    def load(self, cursor: apsw.Cursor) -> dict[str, dict[str, Any]]:
        """Return all leases."""
        leases = [lease_of(row) for row in cursor.execute(f"SELECT {LEASE_COLUMNS} FROM leases")]
        return {LEASE: {lease.lease_id: lease for lease in leases}}

    def replace(self, cursor: apsw.Cursor, records: Mapping[str, Mapping[str, Any]]) -> None:
        """Put other leases in the place of all that are there."""
        cursor.execute("DELETE FROM leases")
        cursor.executemany(INSERT_LEASE, (row_of(lease) for lease in records[LEASE].values()))


def _read_by_id(cursor: apsw.Cursor, lease_ids: set[str], found: LeaseFound) -> None:
    if len(lease_ids) > FEW:
        take_in(cursor.execute(_LEASES, (as_json(lease_ids),)), found)
    else:
        for lease_id in lease_ids:
            take_in(cursor.execute(_LEASE, (lease_id,)), found)


def _read_standing(cursor: apsw.Cursor, resources: set[ResourceKey], found: LeaseFound) -> None:
    if len(resources) > FEW:
        take_in(cursor.execute(_STANDING_ON_MANY, (as_json(resources),)), found)
    else:
        for resource in resources:
            take_in(cursor.execute(_STANDING, resource), found)


def _statements(before: Lease | None, after: Lease) -> list[tuple[str, Row]]:
    """Return what has to be written of a lease."""
    if before is None:
        return [(INSERT_LEASE, row_of(after))]
    ended = after.is_terminal
    if (
        after.token != before.token
        or after.mode is not before.mode
        or after.issued_at_ns != before.issued_at_ns
        or after.ticket != before.ticket
        or (after.state is not before.state and (after.ticket is not None or not ended))
    ):  # More than time, end and delegation. Only who waits has a place in a queue.
        found = [(RESHAPE_LEASE, reshape_of(after))]
    elif ended:
        found = [(END_LEASE, ending_of(after))]
    else:
        found = [(EXTEND_LEASE, extension_of(after))]
    if after.delegation is not before.delegation and after.delegation != before.delegation:
        found.append((SET_DELEGATION, delegation_of(after)))
    return found


def _is_alone_after(change: Change) -> bool:
    lease: Lease = change.after
    return lease.state is LeaseState.ACTIVE and lease.mode is Mode.EXCLUSIVE
