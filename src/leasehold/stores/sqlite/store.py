"""Transactions, snapshots and waiting on one SQLite database; and what happens to all that in a fork.

One connection writes, behind the write queue; another reads, and no writer waits for it. Both are closed
before this process forks, and opened again where they are needed; a fork waits for the transactions of other
threads to end. A child that was forked without that, because they did not end in time, is refused the store.
"""

import os
import threading
from collections.abc import Generator
from pathlib import Path

import apsw

from leasehold.engine.clock import Clock, SystemClock
from leasehold.engine.news import News
from leasehold.engine.port import WouldBlock
from leasehold.engine.sealing import Sealer
from leasehold.engine.turn import Turn
from leasehold.errors import ClientClosed, InvalidInput, StoreReplaced, StoreUnusable
from leasehold.kernel.lease.family import LEASES
from leasehold.kernel.ledger.family import Families
from leasehold.stores.sqlite import files
from leasehold.stores.sqlite.bells import SocketBells
from leasehold.stores.sqlite.connection import DURABILITIES
from leasehold.stores.sqlite.failures import store_error, system_error
from leasehold.stores.sqlite.forks import register
from leasehold.stores.sqlite.key_files import KeyFolder
from leasehold.stores.sqlite.opened import OpenFile, abandon, open_file
from leasehold.stores.sqlite.reading import SqliteSnapshot
from leasehold.stores.sqlite.shelves import Shelves
from leasehold.stores.sqlite.soft import SqliteSoftState
from leasehold.stores.sqlite.write_queue import WriteQueue, writer_of
from leasehold.stores.sqlite.writing import SqliteTransaction, Stepped

_POLL_SECONDS = 0.025
"""How late a watcher may notice a commit of another process."""

_FORK_PATIENCE_SECONDS = 5.0
"""How long a fork waits for the transactions of other threads to end."""


class SqliteStore:
    """Records and the ledger in one SQLite database, which is in a folder of its own."""

    def __init__(
        self,
        path: Path | str,
        *,
        durability: str = "full",
        group: bool = False,
        create: bool = True,
        clock: Clock | None = None,
        vfs: str | None = None,
        families: Families = LEASES,
    ) -> None:
        if durability not in DURABILITIES:
            raise InvalidInput(f"durability must be one of {', '.join(DURABILITIES)}, not {durability!r}")
        self.path = files.resolved(path)
        self.durability = durability
        self.clock = clock or SystemClock()
        self.sealer = Sealer(KeyFolder(self.path))
        self.bells = SocketBells(self.path)
        self.families = families
        self._shelves = Shelves(families)
        self._vfs = vfs
        self._closed = False
        self._file: OpenFile | None = None
        self._queue: WriteQueue | None = None
        self._group = group
        self._store_id: str | None = None
        """Which store this is, from the first time it was opened on."""
        self._renew_locks()
        register(self)
        self._open_file(create=create)

    @property
    def url(self) -> str:
        """Return the address under which this store can be opened again."""
        return f"sqlite:///{self.path}"

    @property
    def soft(self) -> SqliteSoftState:
        """Return what is kept beside the ledger."""
        return SqliteSoftState(self.snapshot, self._write_softly)

    def _renew_locks(self) -> None:
        self._turn = Turn()
        """Held by the thread that writes or waits for its turn to; it alone touches the queue."""
        self._opening = threading.Lock()
        """Held to open the file, to give it up, and during a fork."""
        self._grown = News()

    def _open_file(self, *, create: bool = False) -> OpenFile:
        opened = self._file
        if opened is not None:
            return opened
        with self._opening:
            if self._closed:
                raise ClientClosed("this store was closed; connect again")
            if self._file is None:
                if self._store_id is not None:
                    self._refuse_gone()
                opened = open_file(
                    self.path,
                    durability=self.durability,
                    clock=self.clock,
                    vfs=self._vfs,
                    create=create,
                    group=self._group,
                )
                self._refuse_another(opened)
                self._file = opened
            return self._file

    def _refuse_gone(self) -> None:
        """Raise StoreUnusable if there is nothing any more where the store was."""
        try:
            os.stat(self.path)
        except FileNotFoundError as error:
            raise StoreUnusable(
                f"the store at {self.path} was moved or removed while it was in use; connect again to make a "
                "new one",
                path=str(self.path),
            ) from error
        except OSError as error:
            raise system_error(error, str(self.path)) from error

    def _refuse_another(self, opened: OpenFile) -> None:
        """Raise StoreReplaced if there is another store where ours was: its tokens may be lower."""
        found = opened.place.record.store_id
        if self._store_id is None:
            self._store_id = found
        elif found != self._store_id:
            opened.retire()
            raise StoreReplaced(
                f"the store at {self.path} is another one than this client was connected to; find out who "
                "replaced it, and connect again to use the other one",
                path=str(self.path),
            )

    def _give_up(self, opened: OpenFile) -> None:
        """Let the next use open the file anew."""
        with self._opening:
            if self._file is opened:
                self._file = None
        opened.retire()

    def write(self, *, blocking: bool = True, durable: bool = False) -> Stepped[SqliteTransaction]:
        """Open a transaction; leaving the block without a commit changes nothing."""
        return Stepped(self._write(blocking, "full" if durable else self.durability))

    def _write_softly(self) -> Stepped[SqliteTransaction]:
        """Open a transaction that a power cut may take back, and nobody need wait for the disk for."""
        return Stepped(self._write(True, "fast"))

    def _write(self, blocking: bool, durability: str) -> Generator[SqliteTransaction, None, None]:
        self._turn.begin(blocking=blocking)
        try:
            is_done = False
            while not is_done:
                opened = self._file or self._open_file()
                queue = self._queue or self._open_queue(opened)
                if queue is not None:
                    queue.enter(blocking=blocking)
                    try:
                        with opened.writing:
                            is_done = opened.may_write(queue) and (
                                yield from self._transaction(opened, durability)
                            )
                    finally:
                        queue.leave()
                if not is_done:
                    self._give_up_queue()
                    self._give_up(opened)
        finally:
            self._turn.end()
            if self._closed:
                self._close_queue()
        self._grown.tell()

    def _transaction(self, opened: OpenFile, durability: str) -> Generator[SqliteTransaction, None, bool]:
        """Lend out a transaction; return False, and lend out none, if the files are not what they were."""
        connection = opened.writer
        cursor = connection.cursor()
        is_unusual = durability != self.durability
        try:
            if is_unusual:
                connection.pragma("synchronous", DURABILITIES[durability])
            try:
                cursor.execute("BEGIN IMMEDIATE")
                # Now that nobody else can write: whatever is decided from here on is decided on these files.
                # They are not given up meanwhile: whoever does that waits for this to end.
                if not opened.place.is_current():
                    return False
                note = opened.place.identity.note()
                transaction = SqliteTransaction(
                    connection, opened.read_clock, cursor, self._shelves, note=note
                )
                transaction.opened = opened
                transaction.revision = (connection, connection.data_version())
                yield transaction
                return True
            finally:
                if connection.in_transaction:
                    cursor.execute("ROLLBACK")
                if is_unusual:
                    connection.pragma("synchronous", DURABILITIES[self.durability])
        except (apsw.Error, UnicodeDecodeError) as error:
            raise store_error(error, str(self.path), connection.system_errno, committing=True) from error

    def _open_queue(self, opened: OpenFile) -> WriteQueue | None:
        """Open the queue; return None if that fails because the files are not what they were."""
        try:
            self._queue = WriteQueue(self.path)
        except StoreUnusable:
            if opened.is_current():
                raise
        return self._queue

    def _give_up_queue(self) -> None:
        """Close the queue: by who has the turn, which keeps everybody else from it."""
        if self._queue is not None:
            self._queue.close()
            self._queue = None

    def snapshot(self) -> Stepped[SqliteSnapshot]:
        """Open a consistent read that no writer has to wait for."""
        return Stepped(self._read())

    def _read(self) -> Generator[SqliteSnapshot, None, None]:
        while True:
            opened = self._file or self._open_file()
            with opened.reading:  # Lent out to one thread at a time.
                if opened.is_current():
                    yield from self._look(opened)
                    return
            self._give_up(opened)

    def _look(self, opened: OpenFile) -> Generator[SqliteSnapshot, None, None]:
        connection = opened.reader
        cursor = connection.cursor()
        try:
            # The note is read first: what it says was committed before this begins.
            note = opened.place.identity.note()
            try:
                cursor.execute("BEGIN")  # Within: Ctrl-C may come when it was executed.
                snapshot = SqliteSnapshot(connection, opened.read_clock, cursor, self._shelves, note=note)
                _ = snapshot.head  # Not before something is read does SQLite fix what this will see.
                yield snapshot
            finally:
                if connection.in_transaction:
                    cursor.execute("ROLLBACK")
        except (apsw.Error, UnicodeDecodeError) as error:
            raise store_error(error, str(self.path), connection.system_errno) from error

    def wait(self, position: int, timeout: float) -> bool:
        """Return True once the ledger goes beyond `position`, or False after `timeout` seconds.

        Commits of this process are noticed at once, those of others within the polling interval.
        """

        def has_grown() -> bool:
            with self.snapshot() as snapshot:
                return snapshot.head.position > position

        return self._grown.wait_for(has_grown, timeout, _POLL_SECONDS)

    def blocker(self) -> int | None:
        """Return the id of the process that has the writer's lock, if there is one."""
        return writer_of(self.path)

    def close(self) -> None:
        """Close the file. Closing twice is fine."""
        with self._opening:
            self._closed = True
            opened, self._file = self._file, None
        if opened is not None:
            opened.retire()
        self.bells.close()
        self._close_queue()

    def _close_queue(self) -> None:
        """Close the queue of a closed store, or leave that to the thread that stands in it."""
        try:
            self._turn.begin(blocking=False)
        except WouldBlock:
            return
        try:
            self._give_up_queue()
        finally:
            self._turn.end()

    def before_fork(self) -> None:
        """Have nothing open at the moment of a fork, and let nobody open anything until it is over."""
        self._may_open = self._opening.acquire(timeout=_FORK_PATIENCE_SECONDS)
        self._nothing_open = self._may_open and (
            self._file is None or self._file.retire(_FORK_PATIENCE_SECONDS)
        )
        if self._nothing_open:
            self._file = None

    def after_fork_in_parent(self) -> None:
        """Go on; the next use opens the file anew."""
        if self._may_open:
            self._opening.release()

    def after_fork_in_child(self) -> None:
        """Start with nothing open; or never, if the file could not be closed in time."""
        self._renew_locks()
        self.bells.after_fork_in_child()
        # The parent's place in the queue is not freed by this: it has its own copies of the lock files.
        self._give_up_queue()
        if not self._nothing_open:
            abandon(self.path, self._file)
            self._file = None
