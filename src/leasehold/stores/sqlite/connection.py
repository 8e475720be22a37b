"""Opening a SQLite file the way a store needs it.

SQLite 3.7.0 to 3.51.2 can lose a commit without a word when a write meets a checkpoint (the WAL-reset
bug), so such a library is refused outright.
"""

from array import array
from contextlib import suppress
from pathlib import Path
from urllib.parse import quote

import apsw

from leasehold.errors import StoreUnusable
from leasehold.stores.sqlite.failures import store_error, translated

APPLICATION_ID = 0x4C454153
"""The four letters that mark a SQLite file as ours."""

BACKUP_APPLICATION_ID = 0x4C454142
"""What marks a backup. It cannot be used as a store, lest it be put in place by hand: see `backup`."""

_FIRST_AFFECTED = (3, 7, 0)
_FIRST_SOUND = (3, 51, 3)
_FOREIGN_LOCK_PATIENCE_MS = 5_000
"""How long to wait for a program that does not queue like we do, such as a SQL shell."""

_CHECKPOINT_PAGES = 2_000
"""How far the log may grow (times the page size) before a commit moves it into the file."""

DURABILITIES = {"full": "FULL", "fast": "NORMAL"}


def refuse_affected_library(version: str | None = None) -> None:
    """Raise StoreUnusable if the SQLite library could lose commits."""
    version = version or apsw.sqlite_lib_version()
    numbers = tuple(int(part) for part in version.split("."))
    if _FIRST_AFFECTED <= numbers < _FIRST_SOUND:
        raise StoreUnusable(
            f"SQLite {version} can lose commits (the WAL-reset bug, fixed in 3.51.3); "
            "upgrade with: pip install --upgrade apsw"
        )


def open_connection(path: Path, *, durability: str, vfs: str | None = None) -> apsw.Connection:
    """Open an existing file for reading and writing, and refuse one that is not ours."""
    refuse_affected_library()
    with translated(str(path)):
        connection = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READWRITE, vfs=vfs)
        try:
            connection.set_busy_timeout(_FOREIGN_LOCK_PATIENCE_MS)
            _refuse_foreign(connection, path)
            connection.pragma("synchronous", DURABILITIES[durability])
            connection.pragma("foreign_keys", True)
            connection.pragma("cache_size", -32_000)
            connection.wal_autocheckpoint(_CHECKPOINT_PAGES)
            _keep_log(connection)
            # Else SQLite looks at the values bound to a statement that sorts, and plans it anew each time.
            connection.config(apsw.SQLITE_DBCONFIG_ENABLE_QPSG, 1)
        except apsw.Error as error:
            problem = store_error(error, str(path), connection.system_errno)
            connection.close()
            raise problem from error
        except BaseException:
            connection.close()
            raise
    return connection


def _keep_log(connection: apsw.Connection) -> None:
    """Let the log and the shared memory stay when the last connection is closed.

    So they are always the same files, and one that is missing was taken away by somebody else.
    """
    yes = array("i", [1])
    connection.file_control("main", apsw.SQLITE_FCNTL_PERSIST_WAL, yes.buffer_info()[0])


def close_connection(connection: apsw.Connection) -> None:
    """Close a connection; who closes the last one leaves an empty log, with everything in the database."""
    with suppress(apsw.Error):
        connection.pragma("journal_size_limit", 0)
    connection.close()


def refuse_foreign_file(path: Path) -> None:
    """Raise StoreUnusable for a file that is plainly not ours, without touching it in any way.

    To open it in earnest could change it: SQLite would first tidy up what its own program left unfinished.
    A file that says too little is let pass; `open_connection` looks again.
    """
    uri = f"file:{quote(str(path))}?immutable=1"
    with translated(str(path)):
        connection = apsw.Connection(uri, flags=apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_URI)
        try:
            _refuse_foreign(connection, path)
        except apsw.CorruptError:
            pass  # It may be ours and just being written to.
        finally:
            connection.close()


def _refuse_foreign(connection: apsw.Connection, path: Path) -> None:
    has_tables = connection.execute("SELECT count(*) FROM sqlite_schema").get > 0
    # Asked after the tables: whoever is making a store right now marks it and fills it in one commit.
    mark = connection.pragma("application_id")
    if mark == APPLICATION_ID:
        return
    if mark == BACKUP_APPLICATION_ID:
        raise StoreUnusable(
            f"{path} is a backup of a store; put it in place with `leasehold restore`", path=str(path)
        )
    if has_tables:
        raise StoreUnusable(f"{path} is a SQLite file of another program; name another file", path=str(path))
