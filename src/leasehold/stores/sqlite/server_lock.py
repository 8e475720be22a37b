"""The lock of the one server that a store may have.

A server takes its start for the end of a time in which nobody could renew, and keeps what lapsed closed to
newcomers for a while. Beside another one that would be wrong, so a server locks the store's folder as long
as it serves. The kernel frees the lock when the process dies, however it dies.

The folder itself, and not a file in it: that one could be removed while it is locked, and made anew. Where
another folder is at the store's path, the store is another one as well. Local programs do not take this lock.
"""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from leasehold.errors import StoreUnusable
from leasehold.stores.sqlite.files import open_folder
from leasehold.stores.sqlite.write_queue import locker_of


@contextmanager
def sole_server(path: Path) -> Iterator[None]:
    """Be the store's only server; raise StoreUnusable, which says what to do, if there is one already."""
    folder = open_folder(path, create=False)
    try:
        try:
            fcntl.flock(folder, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise _served(path) from None
        yield
    finally:
        os.close(folder)


def _served(path: Path) -> StoreUnusable:
    process_id = locker_of(path)
    return StoreUnusable(
        f"process {process_id or 'unknown'} serves {path} already, and a store has one server; send clients "
        "to that one, or stop it first",
        path=str(path),
        process_id=process_id,
    )
