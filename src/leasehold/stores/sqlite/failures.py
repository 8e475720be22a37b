"""What SQLite's errors mean to us.

An error before the commit has changed nothing. An I/O error during the commit leaves the outcome unknown:
the bytes may have reached the disk and come back to light when the file is next recovered.
"""

import errno
from collections.abc import Iterator
from contextlib import contextmanager

import apsw

from leasehold.errors import (
    StoreBusy,
    StoreDamaged,
    StoreError,
    StoreFailed,
    StoreFull,
    StoreRejected,
    StoreUnusable,
)

_NO_SPACE = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
"""What the operating system says when a file may not grow. SQLite calls only the first of them full."""

_GROWING = (apsw.SQLITE_IOERR_WRITE, apsw.SQLITE_IOERR_SHMSIZE)
"""What SQLite says if it was the database or its log, or the file by which readers find their way in that."""


@contextmanager
def translated(path: str) -> Iterator[None]:
    """Raise SQLite's errors as ours, with what to do about them."""
    try:
        yield
    except apsw.Error as error:
        raise store_error(error, path) from error


def system_error(error: OSError, path: str, purpose: str = "used as a store") -> StoreError:
    """Return our error for one that the operating system gave us before SQLite had its say."""
    if error.errno in _NO_SPACE:
        return _full(path)
    return StoreUnusable(
        f"{path} cannot be {purpose}: {error.strerror}; check the path, and that the file and its "
        "folder are writable for this user",
        path=path,
    )


def _full(path: str) -> StoreFull:
    return StoreFull(f"no space left for {path}; free some, or raise the quota, and try again", path=path)


def store_error(
    error: apsw.Error | UnicodeDecodeError, path: str, system_errno: int = 0, *, committing: bool = False
) -> StoreError:
    """Return our error for one of SQLite's; `system_errno` is what the system said to SQLite's last call."""
    if system_errno in _NO_SPACE and getattr(error, "extendedresult", 0) in _GROWING:
        error = apsw.FullError(str(error))
    match error:
        case apsw.BusyError() | apsw.LockedError():
            return StoreBusy(
                f"another program keeps {path} locked; `leasehold doctor` says which. Nothing was changed",
                path=path,
            )
        case apsw.FullError():
            return _full(path)
        case apsw.ConstraintError():
            return StoreRejected(f"{path} does not allow this change: {error}", path=path)
        case apsw.ReadOnlyError():
            return StoreUnusable(f"{path} is read-only; make it writable for this user", path=path)
        case apsw.CantOpenError():
            return StoreUnusable(
                f"{path} cannot be opened; check that the folder exists and is writable for this user",
                path=path,
            )
        case apsw.NotADBError():
            return StoreUnusable(f"{path} is not a leasehold store; name another file", path=path)
        case apsw.CorruptError() | UnicodeDecodeError():
            return StoreDamaged(
                f"{path} is damaged ({error}); restore a backup with `leasehold restore`", path=path
            )
        case apsw.SQLError():  # Ours are right for the schema that we make.
            return StoreDamaged(
                f"{path} has another schema than leasehold made ({error}); restore a backup with "
                "`leasehold restore`",
                path=path,
            )
        case _ if committing:
            return StoreFailed(
                f"writing {path} failed ({error}); whether the change was made is unknown: "
                "try again with the same request id",
                path=path,
            )
        case _:
            return StoreFailed(f"reading or writing {path} failed ({error}); check the disk", path=path)
