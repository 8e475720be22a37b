"""How a batch becomes rows: all of them, or none."""

from leasehold.engine.port import Batch, Head
from leasehold.kernel.tick import Tick
from leasehold.stores.sqlite.reading import SqliteSnapshot
from leasehold.stores.sqlite.rows import (
    AUTHORITY_COLUMNS,
    END_LEASE,
    EXTEND_LEASE,
    INSERT_LEASE,
    Row,
    authority_columns,
    ending_of,
    era_columns,
    event_columns,
    extension_of,
    row_of,
)

_APPEND_EVENT = (
    "INSERT INTO events "
    "(position, type, at_ns, tenant, lease_id, resource, holder, token, request, body, hash) "
    "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
)
_SET_AUTHORITY = (
    f"INSERT OR REPLACE INTO authority (only_row, {AUTHORITY_COLUMNS}) "
    "VALUES (1, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
)
_END_ERA = "INSERT INTO eras (number, boot_id, first_tick, last_tick, rate) VALUES (?, ?, ?, ?, ?)"
# By era, then tick: leases of an ended era come first, whatever their ticks.
_LAPSED = (
    "SELECT lease_id FROM leases WHERE status = 'active' AND (tick_era, expires_tick) <= (?, ?) "
    "ORDER BY tick_era, expires_tick LIMIT ?"
)


class SqliteTransaction(SqliteSnapshot):
    """The only writer of the file while it lasts; the connection holds SQLite's write lock."""

    def lapsed(self, now: Tick, limit: int) -> list[str]:
        """Return standing leases that time may have ended, the longest overdue first."""
        rows = self._connection.execute(_LAPSED, (now.era, now.value, limit))
        return [row[0] for row in rows]

    def commit(self, batch: Batch) -> None:
        """Write the whole batch and commit it. Any error leaves the transaction to be rolled back."""
        ends = [ending_of(lease) for lease in batch.changed if lease.is_terminal]
        extensions = [extension_of(lease) for lease in batch.changed if not lease.is_terminal]
        # Ends come before grants: a resource must be free before the unique index lets it be taken again.
        self._write(END_LEASE, ends)
        self._write(EXTEND_LEASE, extensions)
        self._write(INSERT_LEASE, [row_of(lease) for lease in batch.created])
        self._write(_APPEND_EVENT, [event_columns(entry) for entry in batch.entries])
        self._write(_END_ERA, [era_columns(era) for era in batch.ended_eras])
        last = batch.entries[-1]
        head = Head(position=last.position, hash=last.hash)
        self._connection.execute(_SET_AUTHORITY, authority_columns(batch.authority, head))
        self._connection.execute("COMMIT")

    def _write(self, sql: str, rows: list[Row]) -> None:
        if len(rows) == 1:
            self._connection.execute(sql, rows[0])
        elif rows:
            self._connection.executemany(sql, rows)
