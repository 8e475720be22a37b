"""One process's hold on the store's file: a connection that writes, and one that reads.

It is never mended. When the path leads to another file, or when the process forks, it is retired, and
whoever comes next opens a new one:

- A file that was removed or replaced lives on for those who have it open. To write on in it would be to
  grant leases that nobody else can see.
- SQLite keeps a table of the locks it has taken, per process and file. A forked child inherits the table,
  but not the locks: even a connection that it opens itself would believe in locks it does not have, and
  somebody else could delete the log under its hands. So nothing may be open at the moment of a fork.
"""

import os
import threading
from contextlib import ExitStack, closing
from pathlib import Path

from leasehold.engine.clock import Clock
from leasehold.errors import StoreUnusable
from leasehold.kernel.ledger.authority import ClockReading
from leasehold.stores.sqlite.connection import open_connection, refuse_foreign_file
from leasehold.stores.sqlite.failures import system_error, translated
from leasehold.stores.sqlite.identity import identity_of
from leasehold.stores.sqlite.migrations import is_current, migrate, refuse_newer
from leasehold.stores.sqlite.write_queue import turn


class OpenFile:
    """The connections to one file, and which file that is."""

    def __init__(self, path: Path, *, durability: str, clock: Clock, vfs: str | None) -> None:
        self._path = str(path)
        self._clock = clock
        self.writing = threading.Lock()
        """Held by who uses the writer."""
        self.reading = threading.Lock()
        """Held by who uses the reader."""
        self._retired = False
        # Asked before the file is opened: one that takes its place meanwhile must not pass for it.
        self._status = _status(self._path)
        self.identity = identity_of(path)
        if (self._status.st_dev, self._status.st_ino) in _tainted:
            raise StoreUnusable(
                f"this process was forked in the middle of a use of {path}, and can never use it safely; "
                "use it from a new process",
                path=self._path,
            )
        refuse_foreign_file(path)
        with ExitStack() as undo, translated(self._path):
            self.writer = open_connection(path, durability=durability, vfs=vfs)
            undo.callback(self.writer.close)
            refuse_newer(self.writer, path)
            if not is_current(self.writer):
                with turn(path):
                    migrate(self.writer, path)
            self.reader = open_connection(path, durability=durability, vfs=vfs)
            undo.pop_all()

    def is_current(self) -> bool:
        """Say whether this is still the file that the path leads to. Asked by who holds a lock."""
        if self._retired:
            return False
        try:
            status = os.stat(self._path)
        except OSError:
            return False
        return status.st_ino == self._status.st_ino and status.st_dev == self._status.st_dev

    def read_clock(self) -> ClockReading:
        """Read the authority clock: the machine's, which all processes share."""
        clock = self._clock
        # Wall time first: what a lease has left, added to it, is never later than the truth.
        return ClockReading(
            wall_ns=clock.wall_ns(),
            tick_value=clock.tick_ns(),
            boot_id=clock.boot_id,
            identity=self.identity,
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
                    with closing(self.reader), closing(self.writer):
                        pass
            finally:
                self.reading.release()
        finally:
            self.writing.release()
        return True


def abandon(path: Path, opened: OpenFile | None) -> None:
    """In a forked child, give up a file that was in use: never to be closed here, nor opened again."""
    _abandoned.append(opened)
    status = _status(str(path))
    _tainted.add((status.st_dev, status.st_ino))


def _status(path: str) -> os.stat_result:
    try:
        return os.stat(path)
    except FileNotFoundError as error:
        raise StoreUnusable(
            f"the store at {path} was removed while it was in use; connect again to make a new one", path=path
        ) from error
    except OSError as error:
        raise system_error(error, path) from error


_abandoned: list[OpenFile | None] = []
"""Kept, so that nothing closes them: SQLite would free locks and delete a log that are our parent's."""

_tainted: set[tuple[int, int]] = set()
"""The files that SQLite in this process has a wrong idea of."""
