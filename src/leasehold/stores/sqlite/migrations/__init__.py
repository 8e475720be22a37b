"""The schema, as numbered steps that run once each.

All steps that are due run in one transaction behind the write queue, so they are safe to run twice and by
several processes at once. A file from a newer leasehold is refused and left alone.
"""

import time
from functools import cache
from pathlib import Path

import apsw
import msgspec

from leasehold.errors import StoreUnusable
from leasehold.stores.sqlite.connection import APPLICATION_ID


class Migration(msgspec.Struct, frozen=True, kw_only=True):
    """One step of the schema."""

    version: int
    name: str
    description: str
    script: str


_BOOKKEEPING = """
CREATE TABLE IF NOT EXISTS migrations (
    version       INTEGER PRIMARY KEY,
    name          TEXT NOT NULL UNIQUE,
    description   TEXT,
    applied_at    INTEGER NOT NULL,
    status        TEXT NOT NULL DEFAULT 'success',
    error_message TEXT
) STRICT
"""


@cache
def all_migrations() -> list[Migration]:
    """Return every step this program knows, in order."""
    found = []
    for file in Path(__file__).parent.glob("*.sql"):
        script = file.read_text()
        number, _, name = file.stem.partition("_")
        description = script.splitlines()[0].removeprefix("-- ")
        found.append(Migration(version=int(number), name=name, description=description, script=script))
    return sorted(found, key=lambda migration: migration.version)


def schema_version(connection: apsw.Connection) -> int:
    """Return the number of the last step that was run on this file."""
    return int(connection.pragma("user_version"))


def refuse_newer(connection: apsw.Connection, path: Path) -> None:
    """Raise StoreUnusable for a file that a newer leasehold has made or changed."""
    known, found = all_migrations()[-1].version, schema_version(connection)
    if found > known:
        raise StoreUnusable(
            f"{path} has schema {found}, and this leasehold knows {known}; upgrade leasehold", path=str(path)
        )


def is_current(connection: apsw.Connection) -> bool:
    """Say whether a file has every step behind it, and its log."""
    return schema_version(connection) == all_migrations()[-1].version and _has_log(connection)


def migrate(connection: apsw.Connection, path: Path) -> None:
    """Bring a file up to date. The caller has the turn to write."""
    refuse_newer(connection, path)
    start_log(connection)
    due = [step for step in all_migrations() if step.version > schema_version(connection)]
    if not due:
        return
    with connection:
        connection.execute(_BOOKKEEPING)
        for step in due:
            for _ in connection.execute(step.script):
                pass
            connection.execute(
                "INSERT INTO migrations (version, name, description, applied_at) VALUES (?, ?, ?, ?)",
                (step.version, step.name, step.description, int(time.time())),
            )
        connection.pragma("user_version", due[-1].version)
        connection.pragma("application_id", APPLICATION_ID)


def start_log(connection: apsw.Connection) -> None:
    """Put a file that is new, or came from elsewhere, into write-ahead mode."""
    if not _has_log(connection):
        # Rows are small: smaller pages mean less to write for each commit.
        connection.pragma("page_size", 2048)
        connection.pragma("journal_mode", "wal")


def _has_log(connection: apsw.Connection) -> bool:
    return bool(connection.pragma("journal_mode") == "wal")
