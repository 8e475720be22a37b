"""Transactions, snapshots and waiting on one SQLite file; and what happens to all that in a fork.

One connection writes, behind the write queue; another reads, and no writer waits for it. Both are this
process's own: a forked child opens its own and never touches what it inherited, because SQLite's locks
belong to the process that took them.
"""

import os
import threading
import time
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import apsw

from leasehold.engine.clock import Clock, SystemClock
from leasehold.engine.port import WouldBlock
from leasehold.errors import ClientClosed, InvalidInput
from leasehold.kernel.authority import ClockReading
from leasehold.stores.sqlite import files
from leasehold.stores.sqlite.connection import DURABILITIES, open_connection
from leasehold.stores.sqlite.failures import store_error, translated
from leasehold.stores.sqlite.migrations import migrate
from leasehold.stores.sqlite.reading import SqliteSnapshot
from leasehold.stores.sqlite.write_queue import WriteQueue
from leasehold.stores.sqlite.writing import SqliteTransaction

_POLL_SECONDS = 0.025
"""How late a watcher may notice a commit of another process."""

_HEAD = "SELECT position FROM authority"


class SqliteStore:
    """Records and the ledger in one SQLite file."""

    def __init__(
        self,
        path: Path | str,
        *,
        durability: str = "full",
        group: bool = False,
        create: bool = True,
        clock: Clock | None = None,
        vfs: str | None = None,
    ) -> None:
        if durability not in DURABILITIES:
            raise InvalidInput(f"durability must be one of {', '.join(DURABILITIES)}, not {durability!r}")
        self.path = Path(path).absolute()
        self.durability = durability
        self.clock = clock or SystemClock()
        self._group = group
        self._vfs = vfs
        self._closed = False
        files.prepare(self.path, group=group, create=create)
        self._renew_locks()
        self._open()
        _stores.add(self)

    @property
    def url(self) -> str:
        """Return the address under which this store can be opened again."""
        return f"sqlite:///{self.path}"

    def _renew_locks(self) -> None:
        self._turn = threading.Lock()
        self._reading = threading.Lock()
        self._opening = threading.Lock()
        self._grown = threading.Condition()
        self._watchers = 0

    def _open(self) -> None:
        self._queue = WriteQueue(str(self.path), files.file_mode(group=self._group))
        try:
            self._queue.enter(blocking=True)
            try:
                self._writer = self._connect()
                with translated(str(self.path)):
                    migrate(self._writer, self.path)
                self._reader = self._connect()
            finally:
                self._queue.leave()
        except BaseException:
            self._queue.close()
            raise
        self._identity = files.identity(self.path)
        self._inherited = False

    def _connect(self) -> apsw.Connection:
        return open_connection(self.path, durability=self.durability, vfs=self._vfs)

    @contextmanager
    def write(self, *, blocking: bool = True, durable: bool = False) -> Iterator[SqliteTransaction]:
        """Open a transaction; leaving the block without a commit changes nothing."""
        if not self._turn.acquire(blocking=blocking):
            raise WouldBlock
        try:
            self._ensure_open()
            self._queue.enter(blocking=blocking)
            try:
                self._begin(durable=durable)
                yield SqliteTransaction(self._writer, self.reading)
            except apsw.Error as error:
                raise store_error(error, str(self.path)) from error
            finally:
                self._end(durable=durable)
                self._queue.leave()
        finally:
            self._turn.release()
        if self._watchers:
            with self._grown:
                self._grown.notify_all()

    def _begin(self, *, durable: bool) -> None:
        if durable and self.durability != "full":
            self._writer.pragma("synchronous", DURABILITIES["full"])
        self._writer.execute("BEGIN IMMEDIATE")

    def _end(self, *, durable: bool) -> None:
        if self._writer.in_transaction:
            self._writer.execute("ROLLBACK")
        if durable and self.durability != "full":
            self._writer.pragma("synchronous", DURABILITIES[self.durability])

    @contextmanager
    def snapshot(self) -> Iterator[SqliteSnapshot]:
        """Open a consistent read that no writer has to wait for."""
        with self._reading, translated(str(self.path)):
            self._ensure_open()
            self._reader.execute("BEGIN")
            try:
                yield SqliteSnapshot(self._reader, self.reading)
            finally:
                if self._reader.in_transaction:
                    self._reader.execute("ROLLBACK")

    def reading(self) -> ClockReading:
        """Read the authority clock: the machine's, which all processes share."""
        return ClockReading(
            tick_value=self.clock.tick_ns(),
            wall_ns=self.clock.wall_ns(),
            boot_id=self.clock.boot_id(),
            identity=self._identity,
        )

    def wait(self, position: int, timeout: float) -> bool:
        """Return True once the ledger goes beyond `position`, or False after `timeout` seconds.

        Commits of this process are noticed at once, those of others within the polling interval.
        """
        deadline = time.monotonic() + timeout
        while True:
            with self._reading, translated(str(self.path)):
                self._ensure_open()
                row = self._reader.execute(_HEAD).fetchone()
            if row is not None and row[0] > position:
                return True
            left = deadline - time.monotonic()
            if left <= 0:
                return False
            with self._grown:
                self._watchers += 1
                self._grown.wait(min(left, _POLL_SECONDS))
                self._watchers -= 1

    def blocker(self) -> int | None:
        """Return the id of the process that has the writer's lock, if there is one."""
        self._ensure_open()
        return self._queue.holder()

    def close(self) -> None:
        """Close the file. Closing twice is fine."""
        with self._turn, self._reading:
            if self._closed:
                return
            self._closed = True
            if not self._inherited:
                self._writer.close()
                self._reader.close()
                self._queue.close()

    def _ensure_open(self) -> None:
        if self._closed:
            raise ClientClosed("this store was closed; connect again")
        if self._inherited:
            with self._opening:
                if self._inherited:
                    self._open()

    def _after_fork_in_child(self) -> None:
        """Leave the parent's connections alone, for ever; the next use opens our own."""
        _connections_of_parents.append((self._writer, self._reader))
        self._renew_locks()
        if not self._closed and not self._inherited:
            # Closing our copies of the lock files does not free the parent's locks: it still has its own.
            self._queue.close()
            self._inherited = True


_stores: weakref.WeakSet[SqliteStore] = weakref.WeakSet()
_connections_of_parents: list[tuple[apsw.Connection, apsw.Connection]] = []
"""What we inherited from the process we were forked from; kept, so that nothing ever closes it here."""


def _after_fork_in_child() -> None:
    for store in list(_stores):
        store._after_fork_in_child()


os.register_at_fork(after_in_child=_after_fork_in_child)
