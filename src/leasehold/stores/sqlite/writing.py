"""How a batch becomes rows: all of them, or none."""

import msgspec

from leasehold.engine.port import Batch, Pruned
from leasehold.kernel.lease.model import Lease, LeaseState, Mode
from leasehold.kernel.ledger.state import State
from leasehold.stores.sqlite.reading import SqliteSnapshot
from leasehold.stores.sqlite.rows import (
    AUTHORITY_COLUMNS,
    END_LEASE,
    EVENT_COLUMNS,
    EXTEND_LEASE,
    INSERT_LEASE,
    KEY_COLUMNS,
    RESHAPE_LEASE,
    SET_DELEGATION,
    Row,
    authority_columns,
    delegation_of,
    ending_of,
    era_columns,
    event_columns,
    extension_of,
    key_columns,
    reshape_of,
    row_of,
)

_APPEND_EVENT = f"INSERT INTO events ({EVENT_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
_SET_AUTHORITY = (
    f"INSERT OR REPLACE INTO authority (only_row, {AUTHORITY_COLUMNS}) VALUES (1, ?, ?, ?, ?, ?, ?, ?)"
)
_END_ERA = "INSERT INTO eras (number, boot_id, first_tick, last_tick, rate) VALUES (?, ?, ?, ?, ?)"
_SET_KEY = f"INSERT OR REPLACE INTO keys ({KEY_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"


class SqliteTransaction(SqliteSnapshot):
    """The only writer of the file while it lasts; the connection holds SQLite's write lock."""

    @property
    def revision(self) -> object:
        """Return what SQLite knows the content by, which is worth something on this connection only."""
        return (self._connection, self._connection.data_version())

    def commit(self, batch: Batch) -> None:
        """Write the whole batch and commit it. Any error leaves the transaction to be rolled back."""
        self._write_leases(batch)
        counter = batch.authority.counter
        self._write(_APPEND_EVENT, [event_columns(entry, counter) for entry in batch.entries])
        if batch.ended_eras:
            self._write(_END_ERA, [era_columns(era) for era in batch.ended_eras])
        if batch.keys:
            self._write(_SET_KEY, [key_columns(key) for key in batch.keys])
        if batch.opens_epoch:
            self._execute(_SET_AUTHORITY, authority_columns(batch.authority))
        if batch.pruned is not None:
            self._prune(batch.pruned)
        self._execute("COMMIT")

    def _prune(self, pruned: Pruned) -> None:
        names = msgspec.json.encode(pruned.forgotten).decode()
        for table in ("leases", "heartbeats"):
            self._execute(f"DELETE FROM {table} WHERE lease_id IN (SELECT value FROM json_each(?))", (names,))
        self._execute("DELETE FROM events WHERE position <= ?", (pruned.through,))
        self._execute("DELETE FROM checkpoints")
        self._execute(
            "INSERT INTO checkpoints (position, state) VALUES (?, ?)",
            (pruned.checkpoint.position, pruned.checkpoint.state),
        )

    def _write_leases(self, batch: Batch) -> None:
        ends: list[Row] = []
        extensions: list[Row] = []
        for lease in batch.changed:
            if lease.lease_id in batch.reshaped:
                continue
            if lease.is_terminal:
                ends.append(ending_of(lease))
            else:
                extensions.append(extension_of(lease))
        # Ends come before grants: a resource must be free before the unique index lets it be taken again.
        if ends:
            self._write(END_LEASE, ends)
        if extensions:
            self._write(EXTEND_LEASE, extensions)
        if batch.reshaped:
            # In this order for the same reason: who shares, or has ended, makes room for who is alone.
            shapes = sorted((one for one in batch.changed if one.lease_id in batch.reshaped), key=_is_alone)
            self._write(RESHAPE_LEASE, [reshape_of(lease) for lease in shapes])
        if batch.created:
            self._write(INSERT_LEASE, [row_of(lease) for lease in batch.created])
        delegating = [lease for lease in batch.changed if lease.delegation is not None]
        if delegating:
            self._write(SET_DELEGATION, [delegation_of(lease) for lease in delegating])

    def rebuild(self, state: State) -> None:
        """Make the tables anew, in one transaction. What holders report about their work is left alone."""
        assert state.authority is not None, "a ledger that begins has a registrar"
        for table in ("leases", "eras", "keys"):
            self._connection.execute(f"DELETE FROM {table}")
        self._connection.executemany(INSERT_LEASE, (row_of(lease) for lease in state.leases.values()))
        self._connection.executemany(_END_ERA, (era_columns(era) for era in state.eras.values()))
        self._connection.executemany(_SET_KEY, (key_columns(key) for key in state.keys.values()))
        self._connection.execute(_SET_AUTHORITY, authority_columns(state.authority))
        self._connection.execute("COMMIT")

    def _write(self, sql: str, rows: list[Row]) -> None:
        if len(rows) == 1:
            self._execute(sql, rows[0])
        else:
            self._connection.executemany(sql, rows)


def _is_alone(lease: Lease) -> bool:
    return lease.state is LeaseState.ACTIVE and lease.mode is Mode.EXCLUSIVE
