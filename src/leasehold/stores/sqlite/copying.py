"""Copying the pages of one SQLite file into another, and telling whether a copy can be relied on."""

from collections.abc import Callable
from pathlib import Path

import apsw

from leasehold.engine.port import Head
from leasehold.errors import StoreUnusable
from leasehold.kernel.ledger.authority import Authority, ClockReading
from leasehold.stores.sqlite.connection import APPLICATION_ID, BACKUP_APPLICATION_ID
from leasehold.stores.sqlite.migrations import refuse_newer
from leasehold.stores.sqlite.reading import SqliteSnapshot
from leasehold.stores.sqlite.shelves import LEASE_SHELVES, Shelves

Progress = Callable[[int, int], None]
"""Is told how many pages of how many are done. What it raises before all are done ends the work, and nothing
was changed."""

_PAGES_PER_STEP = 500


def open_private(name: str) -> apsw.Connection:
    """Open a file that nobody else knows of; who is interrupted throws it away, so nothing guards it."""
    connection = apsw.Connection(name)
    connection.pragma("journal_mode", "off")
    connection.pragma("synchronous", "off")
    return connection


class Reporter:
    """Adds up the pages of several rounds over the same pages."""

    def __init__(self, progress: Progress | None, *, rounds: int) -> None:
        self._progress = progress
        self._rounds_left = rounds
        self._pages_before = 0

    def step(self, done: int, total: int) -> None:
        """Report how far the present round has come."""
        if self._progress is not None:
            self._progress(self._pages_before + done, self._pages_before + total * self._rounds_left)
        if done == total:
            self._pages_before += total
            self._rounds_left -= 1


def copy_pages(source: apsw.Connection, target: apsw.Connection, reporter: Reporter) -> None:
    """Replace the content of `target` in one transaction, which the last step commits."""
    with target.backup("main", source, "main") as pages:
        while not pages.done:
            pages.step(_PAGES_PER_STEP)
            reporter.step(pages.page_count - pages.remaining, pages.page_count)


def check_content(connection: apsw.Connection, path: Path) -> None:
    """Raise StoreUnusable if a copy cannot be relied on. Its schema may be an old one."""
    if connection.pragma("application_id") not in (APPLICATION_ID, BACKUP_APPLICATION_ID):
        raise StoreUnusable(f"{path} is not a backup of a leasehold store; name another file", path=str(path))
    refuse_newer(connection, path)
    problem = connection.execute("PRAGMA integrity_check(1)").get
    if problem != "ok":
        raise StoreUnusable(f"{path} is damaged ({problem}); use another backup", path=str(path))


def _no_clock() -> ClockReading:
    raise AssertionError("a copy tells no time")


def look_into(connection: apsw.Connection, shelves: Shelves = LEASE_SHELVES) -> SqliteSnapshot:
    """Return what a file says of itself; the moment at which it is read does not matter."""
    return SqliteSnapshot(connection, _no_clock, shelves=shelves)


def known(snapshot: SqliteSnapshot, path: Path) -> tuple[Authority, Head]:
    """Return the registrar's record and the ledger's end; raise StoreUnusable where nothing ever happened."""
    if snapshot.authority is None:
        raise StoreUnusable(f"{path} has no history: nothing was ever leased there", path=str(path))
    return snapshot.authority, snapshot.head
