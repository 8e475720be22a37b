"""What is wrong with a store's file itself, whatever its ledger says.

Found: pages, rows and indexes that SQLite cannot make sense of, an index that says something else than its
table, and a schema other than the one that leasehold makes. The last includes what somebody added: a trigger
would change what is written, and an index or statistics of SQLite's the order in which it is found. Also
found: an edited list of migrations, a ledger that was emptied while the tables were not, and more checkpoints
than one.

Not found: rows that are well-formed and wrong. Those are compared with the ledger, by an audit.
"""

from collections.abc import Iterator
from contextlib import closing
from functools import cache
from pathlib import Path
from typing import Any

import apsw

from leasehold.engine.port import Progress
from leasehold.stores.sqlite.migrations import migrate

_SHOWN = 20
"""How many of its complaints SQLite is asked for. One damaged page can bring thousands."""

_STEPS_PER_LOOK = 10_000
_PAGES_PER_LOOK = 90
"""About how many pages SQLite gets through in so many steps; measured, and good enough to show progress."""

# Text as bytes: of a damaged file it may be none.
_SCHEMA = (
    "SELECT CAST(type AS BLOB), CAST(name AS BLOB), CAST(tbl_name AS BLOB), CAST(sql AS BLOB) "
    "FROM sqlite_schema"
)
_MIGRATIONS = (
    "SELECT version, CAST(name AS BLOB), CAST(description AS BLOB), CAST(status AS BLOB), "
    "CAST(error_message AS BLOB) FROM migrations ORDER BY version"
)
_PROJECTIONS = ("authority", "eras", "keys", "checkpoints", "leases", "documents")
"""The tables that have no rows unless the ledger has."""

_Schema = dict[tuple[str, str], tuple[bytes, bytes | None]]
"""Which table everything is about, and the SQL that makes it, by its type and name."""


def find_defects(connection: apsw.Connection, progress: Progress | None = None) -> list[str]:
    """Return what is wrong with the file that a connection is in a transaction on.

    `progress` is told about how many pages of how many are done; what it raises ends the search.
    """
    schema = list(_schema_defects(_schema_of(connection)))
    rows = [] if schema else list(_row_defects(connection))
    return [*schema, *rows, *_damage(connection, progress)]


@cache
def _expected() -> tuple[_Schema, list[Any]]:
    """Return the schema, and the list of migrations, of a store that was just made."""
    with closing(apsw.Connection(":memory:")) as fresh:
        migrate(fresh, Path(":memory:"))
        return _schema_of(fresh), fresh.execute(_MIGRATIONS).fetchall()


def _schema_of(connection: apsw.Connection) -> _Schema:
    rows: list[Any] = connection.execute(_SCHEMA).fetchall()
    return {(_shown(kind), _shown(name)): (table, sql) for kind, name, table, sql in rows}


def _schema_defects(found: _Schema) -> Iterator[str]:
    expected, _ = _expected()
    for kind, name in sorted({*found, *expected}):
        if (kind, name) not in expected:
            article = "an" if kind == "index" else "a"
            yield f"the schema has {article} {kind} {name} that leasehold did not make"
        elif (kind, name) not in found:
            yield f"the schema lacks the {kind} {name}"
        elif found[kind, name] != expected[kind, name]:
            yield f"the {kind} {name} is not defined as leasehold defines it"


def _row_defects(connection: apsw.Connection) -> Iterator[str]:
    """Look for rows that no ledger tells of, in tables that are there."""
    _, migrations = _expected()
    if connection.execute(_MIGRATIONS).fetchall() != migrations:
        yield "the table migrations does not list the migrations that made this schema"
    checkpoints = connection.execute("SELECT count(*) FROM checkpoints").get
    if checkpoints > 1:
        yield f"the table checkpoints has {checkpoints} rows; at most one belongs there"
    if connection.execute("SELECT max(position) FROM events").get is None:
        for table in _PROJECTIONS:
            if connection.execute(f"SELECT EXISTS (SELECT 1 FROM {table})").get:
                yield f"the ledger is empty, and the table {table} is not"


def _damage(connection: apsw.Connection, progress: Progress | None) -> list[str]:
    """Let SQLite check every page, every row, and every index against its table."""
    connection.release_memory()  # What is read must come from the file, and not from this process's memory.
    pages = connection.pragma("page_count")
    seen = 0

    def look() -> bool:
        nonlocal seen
        seen = min(seen + _PAGES_PER_LOOK, pages)
        if progress is not None:
            progress(seen, pages)
        return False

    found: list[str] = []
    connection.set_progress_handler(look, _STEPS_PER_LOOK, id=look)
    try:
        for (text,) in connection.execute(f"PRAGMA integrity_check({_SHOWN})"):
            found.append(str(text))
    except apsw.CorruptError as error:  # what SQLite cannot even get past
        found.append(str(error))
    finally:
        connection.set_progress_handler(None, id=look)
    return [f"SQLite finds damage: {' '.join(text.split())}" for text in found if text != "ok"]


def _shown(name: bytes) -> str:
    return name.decode(errors="backslashreplace")
