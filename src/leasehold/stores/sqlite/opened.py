"""One process's hold on a store: its place in the folder, a connection that writes, and one that reads.

It is never mended. When the files are not what they were (`place`), or when the process forks, it is retired,
and whoever comes next opens a new one:

- A file that was removed or replaced lives on for those who have it open. To write on in it would be to
  grant leases that nobody else can see.
- SQLite keeps a table of the locks it has taken, per process and file. A forked child inherits the table,
  but not the locks: even a connection that it opens itself would believe in locks it does not have, and
  somebody else could delete the log under its hands. So nothing may be open at the moment of a fork.
"""

import os
import random
import threading
import time
from contextlib import ExitStack
from pathlib import Path

from leasehold.engine.clock import Clock
from leasehold.errors import StoreDamaged, StoreUnusable
from leasehold.kernel.ledger.authority import ClockReading
from leasehold.stores.sqlite.connection import close_connection, open_connection, refuse_foreign_file
from leasehold.stores.sqlite.failures import translated
from leasehold.stores.sqlite.files import DATABASE, TURNSTILE, WRITER
from leasehold.stores.sqlite.migrations import is_current, migrate, refuse_newer
from leasehold.stores.sqlite.place import Changed, Place
from leasehold.stores.sqlite.write_queue import WriteQueue, turn

_ATTEMPTS = 100
_PAUSE_SECONDS = 0.01


def open_file(
    path: Path,
    *,
    durability: str,
    clock: Clock,
    vfs: str | None = None,
    create: bool = False,
    group: bool = False,
    replacing: bool = False,
) -> "OpenFile":
    """Enter a store's folder and open its database; raise StoreUnusable if that must not be.

    `replacing` begins anew in a folder whose files are damaged, or not what they were.
    """
    for _ in range(_ATTEMPTS):
        try:
            place = Place(
                path,
                boot_id=clock.boot_id,
                wall_ns=clock.wall_ns,
                create=create,
                group=group,
                replacing=replacing,
            )
            return OpenFile(place, durability=durability, clock=clock, vfs=vfs)
        except Changed:
            # Somebody else came, or left, between two steps of ours.
            time.sleep(_PAUSE_SECONDS * random.random())
    raise StoreUnusable(
        f"the files in {path} keep changing; find out who moves or replaces them", path=str(path)
    )


class OpenFile:
    """The connections to one store's database, and its place in the folder."""

    def __init__(self, place: Place, *, durability: str, clock: Clock, vfs: str | None) -> None:
        self.place = place
        self._clock = clock
        self.writing = threading.Lock()
        """Held by who uses the writer."""
        self.reading = threading.Lock()
        """Held by who uses the reader."""
        self._retired = False
        self._queue: WriteQueue | None = None
        """The one that is known to have the right locks."""
        self.verified: tuple[bytes, object] | None = None
        """The last note that the content was compared with, and what SQLite knew that content by."""
        self.farthest = (0, 0)
        """The epoch, and the position in it, up to which a writer of this process has seen the ledger."""
        with ExitStack() as undo:
            undo.callback(place.leave)
            path, database = place.path, place.database
            _refuse_tainted(path)
            _refuse_overwritten(database)
            with translated(str(path)):
                self.writer = open_connection(database, durability=durability, vfs=vfs)
                undo.callback(close_connection, self.writer)
                refuse_newer(self.writer, path)
                if not is_current(self.writer):
                    with turn(path):
                        migrate(self.writer, path)
                self.reader = open_connection(database, durability=durability, vfs=vfs)
                undo.callback(close_connection, self.reader)
                place.settle()
            undo.pop_all()
        self._identity, self._cause = place.record.name, place.record.cause

    def is_current(self) -> bool:
        """Say whether the store's files are still what they were. Asked by who holds a lock."""
        return not self._retired and self.place.is_current()

    def may_write(self, queue: WriteQueue) -> bool:
        """Say whether this was not retired, and a queue has the locks that everybody inside has."""
        if queue is not self._queue and not self._retired:
            holds = self.place.holds
            if holds(WRITER, queue.writer) and holds(TURNSTILE, queue.turnstile):
                self._queue = queue
        return queue is self._queue and not self._retired

    def read_clock(self, *, forgets: bool = False) -> ClockReading:
        """Read the authority clock: the machine's, which all processes share."""
        clock = self._clock
        # Wall time first: what a lease has left, added to it, is never later than the truth.
        return ClockReading(
            wall_ns=clock.wall_ns(),
            tick_value=clock.tick_ns(),
            boot_id=clock.boot_id,
            identity=self._identity,
            cause=self._cause,
            epoch_floor=self.place.record.epoch,
            forgets=forgets,
        )

    def retire(self, patience_seconds: float = -1) -> bool:
        """Close the connections once nobody uses them; return False if they are still used after a while."""
        if not self.writing.acquire(timeout=patience_seconds):
            return False
        try:
            if not self.reading.acquire(timeout=patience_seconds):
                return False
            try:
                if not self._retired:
                    self._retired = True
                    with ExitStack() as leaving:
                        leaving.callback(self.place.leave)
                        leaving.callback(close_connection, self.writer)
                        leaving.callback(close_connection, self.reader)
            finally:
                self.reading.release()
        finally:
            self.writing.release()
        return True


def abandon(path: Path, opened: OpenFile | None) -> None:
    """In a forked child, give up a store that was in use: never to be closed here, nor opened again."""
    _abandoned.append(opened)
    _tainted.add(_inode(path))


def _refuse_tainted(path: Path) -> None:
    if _tainted and _inode(path) in _tainted:
        raise StoreUnusable(
            f"this process was forked in the middle of a use of {path}, and can never use it safely; "
            "use it from a new process",
            path=str(path),
        )


def _refuse_overwritten(database: Path) -> None:
    """Raise StoreDamaged if the store's own file has the content of something else."""
    try:
        refuse_foreign_file(database)
    except StoreUnusable as error:
        raise StoreDamaged(str(error), path=str(database)) from error


def _inode(path: Path) -> tuple[int, int]:
    try:
        status = os.stat(path / DATABASE)
    except OSError:
        return (0, 0)
    return status.st_dev, status.st_ino


_abandoned: list[OpenFile | None] = []
"""Kept, so that nothing closes them: SQLite would free locks and delete a log that are our parent's."""

_tainted: set[tuple[int, int]] = set()
"""The files that SQLite in this process has a wrong idea of."""
