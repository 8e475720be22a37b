"""The questions a snapshot of a SQLite store can be asked.

Inside one transaction all answers belong to the same moment. Every statement reads through an index, or
says that it does not.
"""

from collections.abc import Callable, Sequence

import apsw
import msgspec

from leasehold.engine.port import Checkpoint, EntryQuery, Head, LeaseQuery, LedgerRow
from leasehold.kernel.lease.events import decode_event
from leasehold.kernel.lease.model import Lease
from leasehold.kernel.lease.records import CHILDREN_PAGE, Keys, Records
from leasehold.kernel.ledger.authority import Authority, ClockReading
from leasehold.kernel.ledger.chain import Entry, entry_of
from leasehold.kernel.ledger.keys import Key
from leasehold.kernel.ledger.state import State
from leasehold.kernel.ledger.tick import Tick
from leasehold.stores.sqlite.queues import read_queues, take_in
from leasehold.stores.sqlite.rows import (
    AUTHORITY_COLUMNS,
    AWAITED,
    KEY_COLUMNS,
    LAST_EVENT_COLUMNS,
    LEASE_COLUMNS,
    Row,
    authority_of,
    era_of,
    filing_of,
    key_of,
    lease_of,
)

_AUTHORITY = (
    f"SELECT {AUTHORITY_COLUMNS}, {LAST_EVENT_COLUMNS} FROM authority "
    "JOIN events ON position = (SELECT max(position) FROM events)"
)
_SELECT = f"SELECT {LEASE_COLUMNS}, {AWAITED} FROM leases"
_LEASE = f"{_SELECT} WHERE lease_id = ?"
_ONE_LEASE = f"SELECT {LEASE_COLUMNS} FROM leases WHERE lease_id = ?"
_LEASES = f"{_SELECT} WHERE lease_id IN (SELECT value FROM json_each(?))"
# Two halves, because each mode has a partial index of its own and every lease is in just one of them. And one
# waiter, if there are any: enough to know that the queue has to be read.
_STANDING = (
    f"{_SELECT} WHERE tenant = ?1 AND resource = ?2 AND status = 'active' AND mode = 'exclusive' "
    f"UNION ALL {_SELECT} WHERE tenant = ?1 AND resource = ?2 AND status = 'active' AND mode = 'shared' "
    f"UNION ALL SELECT * FROM ({_SELECT} WHERE tenant = ?1 AND resource = ?2 AND place IS NOT NULL "
    "AND status = 'pending' LIMIT 1)"
)
# In order of position, because that is how the index keeps equal requests; sorting would cost more.
_REQUEST = (
    "SELECT body FROM events WHERE request = ? "
    "AND type IN ('lease.issued', 'lease.renewed', 'lease.spent', 'lease.queued', 'lease.mode_changed')"
)
# By way of the resource, which has an index, from the latest on: a retry comes soon after the first try.
_GRANT = (
    "SELECT body FROM leases CROSS JOIN events USING (resource, lease_id) "
    "WHERE lease_id = ? AND type = 'lease.issued' ORDER BY position DESC LIMIT 1"
)
_COUNT_OF_HOLDER = (
    "SELECT (SELECT count(*) FROM leases WHERE tenant = ?1 AND holder = ?2 AND status = 'active') + "
    "(SELECT count(*) FROM leases WHERE tenant = ?1 AND holder = ?2 AND place IS NOT NULL "
    "AND status = 'pending')"
)
# Walks all unended leases of the tenant; asked only where a quota is set.
_COUNT_OF_TENANT = (
    "SELECT (SELECT count(*) FROM leases WHERE tenant = ?1 AND status = 'active') + "
    "(SELECT count(*) FROM leases WHERE tenant = ?1 AND place IS NOT NULL AND status = 'pending')"
)
_CHILDREN = f"{_SELECT} WHERE parent = ? AND status = 'active' AND parent IS NOT NULL LIMIT ?"
_KEYS = f"SELECT {KEY_COLUMNS} FROM keys ORDER BY number"
_ERAS = "SELECT number, boot_id, first_tick, last_tick, rate FROM eras"
_ERA = f"{_ERAS} WHERE number = ?"
_ROWS = (
    "SELECT position, CAST(body AS BLOB), hash, seal, counter, "
    "type, at_ns, tenant, lease_id, resource, holder, token, request, tick "
    "FROM events WHERE position > ? ORDER BY position LIMIT ?"
)
# By era, then tick: leases of an ended era come first, whatever their ticks.
# Two halves, because those who wait, and those who hold, have an index each.
_LAPSED = " UNION ALL ".join(
    "SELECT * FROM (SELECT lease_id, tick_era, expires_tick, token FROM leases "
    f"WHERE status = '{status}' AND (tick_era, expires_tick) <= (?1, ?2) "
    "ORDER BY tick_era, expires_tick LIMIT ?3)"
    for status in ("active", "pending")
)
_LAPSED = f"SELECT lease_id FROM ({_LAPSED}) ORDER BY tick_era, expires_tick, token LIMIT ?3"

# Driven by the few leases that have left children; each leads to its children through their index.
_ORPHANS = (
    "SELECT child.lease_id FROM leases AS parent "
    "CROSS JOIN leases AS child ON child.parent = parent.lease_id "
    "WHERE parent.delegation IS NOT NULL AND parent.delegation ->> '$.orphaned' "
    "AND child.status = 'active' AND child.parent IS NOT NULL LIMIT ?"
)

_FEW = 4
"""Up to so many leases, one lookup each is quicker than one query for all."""


class SqliteSnapshot:
    """One consistent look at the file; the connection is inside a transaction for as long as it lasts."""

    def __init__(
        self,
        connection: apsw.Connection,
        reading: Callable[[], ClockReading],
        cursor: apsw.Cursor | None = None,
    ) -> None:
        self._connection = connection
        self._execute = (cursor or connection.cursor()).execute
        """One cursor for all that is read whole at once: making one costs as much as a small statement."""
        self.reading = reading
        self._known: tuple[Authority | None, Head] | None = None

    @property
    def authority(self) -> Authority | None:
        """Return the registrar's record."""
        return (self._known or self._registrar())[0]

    @property
    def head(self) -> Head:
        """Return where the ledger ends."""
        return (self._known or self._registrar())[1]

    def _registrar(self) -> tuple[Authority | None, Head]:
        # To the end, here and below: a statement that is left half-read would hold on to this moment.
        row = self._execute(_AUTHORITY).get
        self._known = (None, Head()) if row is None else authority_of(row)
        return self._known

    def read(self, keys: Keys) -> Records:
        """Return the records that exist for `keys`."""
        execute = self._execute
        records = Records()
        wanted = keys.leases
        for key in keys.requests:
            rows: Sequence[Row] = execute(_REQUEST, (key,)).fetchall()
            if rows:
                records.requests[key] = event = decode_event(rows[-1][0])
                wanted = wanted | set(event.lease_ids)
        self._leases_by_id(wanted, records)
        for lease_id in keys.grants:
            body = execute(_GRANT, (lease_id,)).get
            if body is not None:
                records.grants[lease_id] = decode_event(body)
        for resource in keys.resources:
            take_in(execute(_STANDING, resource), records)
        for holder in keys.holders:
            records.holders[holder] = execute(_COUNT_OF_HOLDER, holder).get
        for tenant in keys.tenants:
            records.tenants[tenant] = execute(_COUNT_OF_TENANT, (tenant,)).get
        for number in keys.eras:
            row = execute(_ERA, (number,)).get
            if row is not None:
                records.eras[number] = era_of(row)
        for parent in keys.children:
            found = Records()
            take_in(execute(_CHILDREN, (parent, CHILDREN_PAGE)), found)
            records.children[parent] = found.leases
            records.awaited |= found.awaited
        if keys.queues or keys.trees or keys.tangles or keys.places or keys.waits or keys.owners:
            read_queues(self._connection, keys, records)
        return records

    def _leases_by_id(self, lease_ids: set[str], records: Records) -> None:
        execute = self._execute
        if len(lease_ids) > _FEW:
            names = msgspec.json.encode(list(lease_ids)).decode()
            take_in(execute(_LEASES, (names,)), records)
        else:
            for lease_id in lease_ids:
                take_in(execute(_LEASE, (lease_id,)), records)

    def lease(self, lease_id: str) -> Lease | None:
        """Return one lease by its id."""
        row = self._execute(_ONE_LEASE, (lease_id,)).get
        return None if row is None else lease_of(row)

    def signing_keys(self) -> list[Key]:
        """Return every key that the ledger ever admitted."""
        return [key_of(row) for row in self._connection.execute(_KEYS)]

    def lapsed(self, now: Tick, limit: int) -> list[str]:
        """Return standing leases that time may have ended, the longest overdue first.

        Behind them come the children that an ended lease has left.
        """
        found = dict.fromkeys(
            row[0] for row in self._connection.execute(_LAPSED, (now.era, now.value, limit))
        )
        if len(found) < limit:
            found |= dict.fromkeys(row[0] for row in self._connection.execute(_ORPHANS, (limit,)))
        return list(found)[:limit]

    def leases(self, query: LeaseQuery) -> list[Lease]:
        """Return the leases that a query asks for, in the order of their ids."""
        where = _Where()
        if query.tenant is not None:
            where.add("tenant = ?", query.tenant)
        if query.resource is not None:
            where.add("resource = ?", query.resource)
        if query.resource_prefix is not None:
            where.add("substr(resource, 1, length(?)) = ?", query.resource_prefix, query.resource_prefix)
        if query.holder is not None:
            where.add("holder = ?", query.holder)
        if query.states:
            # Spelled out, not bound: only then can SQLite see that a partial index applies.
            names = ", ".join(f"'{state.value}'" for state in query.states)
            where.add(f"status = {names}" if len(query.states) == 1 else f"status IN ({names})")
        if query.held_at_ns is not None:
            # No index: history is asked rarely, and an index would cost every commit.
            where.add("issued_at_ns <= ?", query.held_at_ns)
            where.add("min(expires_at_ns, coalesce(terminated_at_ns, expires_at_ns)) > ?", query.held_at_ns)
        if query.after is not None:
            where.add("lease_id > ?", query.after)
        sql = f"SELECT {LEASE_COLUMNS} FROM leases {where} ORDER BY lease_id LIMIT ?"
        return [lease_of(row) for row in self._connection.execute(sql, (*where.values, query.limit))]

    def entries(self, query: EntryQuery) -> list[Entry]:
        """Return the ledger entries that a query asks for."""
        where = _Where()
        where.add("position > ?", query.after)
        if query.tenant is not None:
            where.add("tenant = ?", query.tenant)
        if query.resource is not None:
            where.add("resource = ?", query.resource)
        if query.holder is not None:
            where.add("holder = ?", query.holder)
        if query.lease_id is not None:
            spelled = msgspec.json.encode(query.lease_id).decode()  # as it stands in the body of an event
            if self.lease(query.lease_id) is not None:
                where.add(_CONCERNS_LEASE, query.lease_id, query.lease_id, spelled, query.lease_id)
            else:
                where.add(_CONCERNED_LEASE, query.lease_id, spelled, query.lease_id)
        if query.types:
            where.add(f"type IN ({', '.join('?' * len(query.types))})", *query.types)
        sql = f"SELECT position, body, hash, seal FROM events {where} ORDER BY position LIMIT ?"
        rows = self._connection.execute(sql, (*where.values, query.limit))
        return [
            entry_of(position, body.encode(), entry_hash, seal) for position, body, entry_hash, seal in rows
        ]

    def rows(self, after: int, limit: int) -> list[LedgerRow]:
        """Return the ledger as it is kept, behind a position."""
        return self._connection.execute(_ROWS, (after, limit)).fetchall()

    @property
    def pruned(self) -> int:
        """Return the position of the last entry that is gone."""
        first = self._execute("SELECT min(position) FROM events").get
        return 0 if first is None else int(first) - 1

    def checkpoint(self) -> Checkpoint | None:
        """Return what stands for entries that are gone: the newest, should there be several."""
        row = self._execute("SELECT position, state FROM checkpoints ORDER BY position DESC LIMIT 1").get
        return None if row is None else Checkpoint(position=row[0], state=row[1])

    filing = staticmethod(filing_of)

    def state(self) -> State:
        """Return everything that the tables say."""
        execute = self._connection.execute
        leases = [lease_of(row) for row in execute(f"SELECT {LEASE_COLUMNS} FROM leases")]
        eras = [era_of(row) for row in execute(_ERAS)]
        return State(
            leases={lease.lease_id: lease for lease in leases},
            authority=self.authority,
            eras={era.number: era for era in eras},
            keys={key.public_key: key for key in self.signing_keys()},
        )


# An entry that names the lease alone, or a renewal of several of its holder's leases that has it among
# them. Entries are found by the lease's resource and holder: an index on lease ids would cost every commit.
_CONCERNS_LEASE = """position IN (
    SELECT events.position FROM leases
    JOIN events ON events.resource = leases.resource AND events.lease_id = leases.lease_id
    WHERE leases.lease_id = ?
    UNION ALL
    SELECT events.position FROM leases
    JOIN events ON events.tenant = leases.tenant AND events.holder = leases.holder
               AND events.type = 'lease.renewed' AND events.lease_id IS NULL
    WHERE leases.lease_id = ? AND instr(events.body, ?)
      AND EXISTS (SELECT 1 FROM json_each(events.body, '$.renewals') WHERE key = ?)
)"""

# The same of a lease that has left the tables. What is left of its history is found by looking at all of it.
_CONCERNED_LEASE = """(lease_id = ? OR (
    type = 'lease.renewed' AND lease_id IS NULL AND instr(body, ?)
    AND EXISTS (SELECT 1 FROM json_each(body, '$.renewals') WHERE key = ?)
))"""


class _Where:
    """The conditions of a query and the values they are about."""

    def __init__(self) -> None:
        self.values: list[str | int] = []
        self._conditions: list[str] = []

    def add(self, condition: str, *values: str | int) -> None:
        self._conditions.append(condition)
        self.values += values

    def __str__(self) -> str:
        return "WHERE " + " AND ".join(self._conditions) if self._conditions else ""
