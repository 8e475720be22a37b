"""Giving room back to the file system that a store does not need any more.

What is pruned leaves free pages in the file, and later entries fill them. Who wants the room back at once has
the file rewritten: nobody else can write meanwhile, and on the disk there has to be room for a second one.
Whoever reads is not disturbed, but may keep the file from getting shorter until its log is next cut.
"""

from contextlib import closing, suppress
from pathlib import Path

import apsw

from leasehold.stores.sqlite.connection import open_connection
from leasehold.stores.sqlite.failures import translated
from leasehold.stores.sqlite.write_queue import PATIENCE_SECONDS, turn


def free_bytes(store_path: Path) -> int:
    """Return how much of a store's file is free for what comes."""
    with translated(str(store_path)), closing(open_connection(store_path, durability="full")) as connection:
        pages: int = connection.pragma("freelist_count")
        size_bytes: int = connection.pragma("page_size")
    return pages * size_bytes


def shrink(store_path: Path, *, patience_seconds: float = PATIENCE_SECONDS) -> None:
    """Rewrite the file without its free pages.

    Raises StoreBusy if another process is writing for longer than `patience_seconds`.
    """
    with (
        turn(store_path, patience_seconds),
        translated(str(store_path)),
        closing(open_connection(store_path, durability="full")) as connection,
    ):
        connection.execute("VACUUM")
        with suppress(apsw.BusyError):
            connection.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_TRUNCATE)
