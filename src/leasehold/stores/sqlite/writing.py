"""How a batch becomes rows: all of them, or none."""

from collections.abc import Generator, Mapping
from itertools import repeat
from types import TracebackType
from typing import Generic, TypeVar

import msgspec

from leasehold.engine.port import Batch, Head, Pruned
from leasehold.kernel.ledger.state import State
from leasehold.stores.sqlite.opened import OpenFile
from leasehold.stores.sqlite.reading import SqliteSnapshot
from leasehold.stores.sqlite.rows import (
    AUTHORITY_COLUMNS,
    EVENT_COLUMNS,
    KEY_COLUMNS,
    authority_columns,
    era_columns,
    event_columns,
    key_columns,
)
from leasehold.stores.sqlite.shelves.shelf import as_json

_Yielded = TypeVar("_Yielded")


def _inserting(table: str, columns: str, *, replacing: bool = False) -> str:
    marks = ", ".join("?" * (columns.count(",") + 1))
    return f"INSERT {'OR REPLACE ' if replacing else ''}INTO {table} ({columns}) VALUES ({marks})"


_APPEND_EVENT = _inserting("events", EVENT_COLUMNS)
_SET_AUTHORITY = _inserting("authority", f"only_row, {AUTHORITY_COLUMNS}", replacing=True)
_END_ERA = _inserting("eras", "number, boot_id, first_tick, last_tick, rate")
_SET_KEY = _inserting("keys", KEY_COLUMNS, replacing=True)
_SET_SOFT = _inserting("soft_state", "family, key, value, at_ns", replacing=True)
_DROP_SOFT = "DELETE FROM soft_state WHERE family = ?1 AND key IN (SELECT value FROM json_each(?2))"


class SqliteTransaction(SqliteSnapshot):
    """The only writer of the database while it lasts; the connection holds SQLite's write lock."""

    opened: OpenFile | None = None
    """The files that are written; None: a copy that nobody else knows of."""

    revision: object = None
    """What SQLite knows the content by, which is worth something on this connection only; None: not any more.
    """

    def commit(self, batch: Batch) -> None:
        """Write the whole batch and commit it. Any error leaves the transaction to be rolled back."""
        if self.opened is not None and batch.opens_epoch:
            self.opened.place.keep_epoch(batch.authority.epoch)
        cursor = self._cursor
        if batch.changes:
            self._shelves.write(cursor, batch.changes)
        counter = batch.authority.counter
        cursor.executemany(_APPEND_EVENT, map(event_columns, batch.entries, repeat(counter)))
        if batch.ended_eras:
            cursor.executemany(_END_ERA, map(era_columns, batch.ended_eras))
        if batch.keys:
            cursor.executemany(_SET_KEY, map(key_columns, batch.keys))
        if batch.opens_epoch:
            self._execute(_SET_AUTHORITY, (1, *authority_columns(batch.authority)))
        if batch.pruned is not None:
            self._prune(batch.pruned)
        last = batch.entries[-1]
        self._commit(Head(position=last.position, hash=last.hash))
        if self.opened is not None:
            self.opened.farthest = (batch.authority.epoch, last.position)

    def _commit(self, head: Head) -> None:
        """Commit, and note where the ledger ends now, before anybody is told that it does."""
        self._execute("COMMIT")
        self.revision = (self._connection, self._connection.data_version())
        if self.opened is not None:
            self.opened.verified = (self.opened.place.keep(head), self.revision)

    def _forgets(self, written: bytes) -> bool:
        """Spare the look into the database if this is what we left there ourselves."""
        opened = self.opened
        if opened is None or opened.verified == (written, self.revision):
            return False
        authority = self.authority
        reached = (0, 0) if authority is None else (authority.epoch, self.head.position)
        # An older note may have been put back, together with the content that it tells of.
        if super()._forgets(written) or reached < opened.farthest or opened.place.was_overwritten():
            return True
        opened.farthest = reached
        return False

    def _prune(self, pruned: Pruned) -> None:
        self._shelves.forget(self._cursor, pruned.forgotten)
        for family, keys in pruned.forgotten.items():
            # What was kept beside a record goes with it.
            self._execute(_DROP_SOFT, (family, as_json(keys)))
        self._execute("DELETE FROM events WHERE position <= ?", (pruned.through,))
        self._execute("DELETE FROM checkpoints")
        self._execute(
            "INSERT INTO checkpoints (position, state) VALUES (?, ?)",
            (pruned.checkpoint.position, pruned.checkpoint.state),
        )

    def rebuild(self, state: State) -> None:
        """Rebuild the tables, in one transaction. Soft state is left alone, and families unknown here."""
        assert state.authority is not None, "a ledger that begins has a registrar"
        cursor = self._cursor
        self._shelves.replace(cursor, state)
        for table in ("eras", "keys"):
            cursor.execute(f"DELETE FROM {table}")
        cursor.executemany(_END_ERA, (era_columns(era) for era in state.eras.values()))
        cursor.executemany(_SET_KEY, (key_columns(key) for key in state.keys.values()))
        cursor.execute(_SET_AUTHORITY, (1, *authority_columns(state.authority)))
        self._commit(self.head)

    def put_soft(self, family: str, values: Mapping[str, bytes]) -> None:
        """Write soft state and commit it: nothing else happens in this transaction."""
        at_ns = self.reading().wall_ns
        kept = [(family, key, value, at_ns) for key, value in values.items() if value]
        gone = [key for key, value in values.items() if not value]
        if kept:
            self._cursor.executemany(_SET_SOFT, kept)
        if gone:
            self._execute(_DROP_SOFT, (family, as_json(gone)))
        self._execute("COMMIT")


class Stepped(msgspec.Struct, Generic[_Yielded]):
    """A generator that yields once, for `with`.

    What `contextlib.contextmanager` makes of one costs as much as a small statement. If Ctrl-C comes when it
    has just yielded, its transaction stays open for as long as anybody keeps the traceback.
    """

    steps: Generator[_Yielded, None, None]

    def __enter__(self) -> _Yielded:
        try:
            return next(self.steps)
        except BaseException:
            self.steps.close()
            raise

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is None:
            next(self.steps, None)
        else:
            self.steps.throw(error)
