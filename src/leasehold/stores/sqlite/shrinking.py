"""Giving room back to the file system that a store does not need any more.

What is pruned leaves free pages in the file, and later entries fill them. Who wants the room back at once has
the file rewritten: nobody else can write meanwhile, and on the disk there has to be room for a second one.
Whoever reads is not disturbed, but may keep the file from getting shorter until its log is next cut.
"""

from contextlib import suppress
from pathlib import Path

import apsw

from leasehold.engine.clock import SystemClock
from leasehold.stores.sqlite.backup import opened_in
from leasehold.stores.sqlite.failures import translated
from leasehold.stores.sqlite.write_queue import PATIENCE_SECONDS, turn


def free_bytes(store_path: Path) -> int:
    """Return how much of a store's database is free for what comes."""
    with opened_in(store_path, clock=SystemClock()) as opened, translated(str(store_path)):
        pages: int = opened.reader.pragma("freelist_count")
        size_bytes: int = opened.reader.pragma("page_size")
    return pages * size_bytes


def shrink(store_path: Path) -> None:
    """Rewrite the database without its free pages; raise StoreBusy if another process keeps writing."""
    with (
        opened_in(store_path, clock=SystemClock()) as opened,
        turn(store_path, PATIENCE_SECONDS),
        translated(str(store_path)),
    ):
        opened.writer.execute("VACUUM")
        with suppress(apsw.BusyError):
            opened.writer.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_TRUNCATE)
