"""A disk that fails when it is told to: at the nth write, sync or truncation of a SQLite store.

    disk = FaultyDisk()
    store = SqliteStore(path, vfs=disk.name)
    disk.fail("write", nth=3, error=errno.ENOSPC)

Counting starts when the fault is planned, over all files of all stores on the disk. A write that fails
leaves half of its bytes behind, as a real one may; a sync that fails has not synced.

One thing is harsher than a real disk: SQLite keeps an error in an automatic checkpoint to itself, because
the commit before it is safe, and here it is raised all the same. So a commit that was made may be reported
as failed, which is what callers have to be ready for in any case.

Not covered: errors in shared memory (the `-shm` file), which does not pass through here, and errors on
reading.
"""

import errno
import itertools
import os
from collections import Counter
from collections.abc import Callable
from typing import Literal

import apsw
import msgspec

Operation = Literal["write", "sync", "truncate", "any"]
FileKind = Literal["store", "log", "journal", "any"]
"""The store's main file, its write-ahead log, or the rollback journal of its first moments."""

_KINDS: dict[int, FileKind] = {
    apsw.SQLITE_OPEN_MAIN_DB: "store",
    apsw.SQLITE_OPEN_WAL: "log",
    apsw.SQLITE_OPEN_MAIN_JOURNAL: "journal",
}
_RESULTS = {
    "write": apsw.SQLITE_IOERR_WRITE,
    "sync": apsw.SQLITE_IOERR_FSYNC,
    "truncate": apsw.SQLITE_IOERR_TRUNCATE,
}
_numbers = itertools.count(1)


class _Fault(msgspec.Struct, kw_only=True):
    """What is to happen at the nth call, and whether at all later ones too."""

    operation: Operation
    file: FileKind
    nth: int
    lasting: bool
    action: Callable[[str], None]


class FaultyDisk(apsw.VFS):
    """A virtual file system that works like the real one until it is told to fail."""

    def __init__(self) -> None:
        self.name = f"leasehold-faults-{next(_numbers)}"
        """What to give as `vfs` to a store that is to live on this disk."""
        self.calls: Counter[tuple[str, str]] = Counter()
        """How often each operation was called on each kind of file, since the disk was made or repaired."""
        self.fired = 0
        """How many faults have happened since then."""
        self._faults: list[_Fault] = []
        super().__init__(self.name, "")

    def fail(
        self,
        operation: Operation = "any",
        *,
        nth: int = 1,
        error: int = errno.EIO,
        file: FileKind = "any",
        lasting: bool = False,
    ) -> None:
        """Let the nth call of an operation fail with EIO or ENOSPC; and, if `lasting`, all after it."""

        def raise_error(called: str) -> None:
            raise _error(called, error)

        self.at(operation, nth=nth, action=raise_error, file=file, lasting=lasting)

    def at(
        self,
        operation: Operation,
        *,
        nth: int,
        action: Callable[[str], None],
        file: FileKind = "any",
        lasting: bool = False,
    ) -> None:
        """Call `action` with the operation's name in the midst of its nth call."""
        self._faults.append(
            _Fault(operation=operation, file=file, nth=nth, lasting=lasting, action=action),
        )

    def repair(self) -> None:
        """Work again, and count from nothing."""
        self._faults.clear()
        self.calls.clear()
        self.fired = 0

    def xOpen(self, name: "str | apsw.URIFilename | None", flags: list[int]) -> "_File":  # noqa: N802
        """Open a file on this disk."""
        kind: FileKind = next((kind for flag, kind in _KINDS.items() if flags[0] & flag), "any")
        return _File(self, kind, name, flags)

    def due(self, operation: Operation, file: FileKind) -> list[Callable[[str], None]]:
        """Count a call, and return what is to happen in it."""
        self.calls[(operation, file)] += 1
        actions = []
        for fault in list(self._faults):
            if fault.operation not in (operation, "any") or fault.file not in (file, "any"):
                continue
            fault.nth -= 1
            if fault.nth <= 0:
                actions.append(fault.action)
                self.fired += 1
                if not fault.lasting:
                    self._faults.remove(fault)
        return actions


class _File(apsw.VFSFile):
    def __init__(
        self, disk: FaultyDisk, kind: FileKind, name: "str | apsw.URIFilename | None", flags: list[int]
    ) -> None:
        super().__init__("", name, flags)
        self._disk = disk
        self._kind = kind

    def xWrite(self, data: bytes, offset: int) -> None:  # noqa: N802
        actions = self._disk.due("write", self._kind)
        if actions:
            super().xWrite(data[: len(data) // 2], offset)
        _run(actions, "write")
        super().xWrite(data, offset)

    def xSync(self, flags: int) -> None:  # noqa: N802
        _run(self._disk.due("sync", self._kind), "sync")
        super().xSync(flags)

    def xTruncate(self, newsize: int) -> None:  # noqa: N802
        _run(self._disk.due("truncate", self._kind), "truncate")
        super().xTruncate(newsize)


class _DiskError(apsw.IOError):
    extendedresult: int
    """What SQLite returns from the call that failed."""


def _run(actions: list[Callable[[str], None]], operation: str) -> None:
    for action in actions:
        action(operation)


def _error(operation: str, number: int) -> apsw.Error:
    """Return what SQLite makes of an error of the operating system in an operation."""
    message = f"{os.strerror(number)} (injected into a {operation})"
    if operation == "write" and number == errno.ENOSPC:
        return apsw.FullError(message)
    error = _DiskError(message)
    error.extendedresult = _RESULTS[operation]
    return error
