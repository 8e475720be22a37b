"""The raw floor: what SQLite itself can do with the least that a durable lease with a history needs.

A pair is two transactions, each one lease-row write (primary key and partial unique index) and one
250-byte event row (one index). Ids and names are as long as ours; everything else is as SQLite has it by
default.
"""

from pathlib import Path

import apsw

_SCHEMA = """
CREATE TABLE leases (
    lease_id TEXT PRIMARY KEY, resource TEXT, holder TEXT, status TEXT, mode TEXT, expires INTEGER
);
CREATE UNIQUE INDEX exclusive ON leases (resource) WHERE status = 'active' AND mode = 'exclusive';
CREATE TABLE events (position INTEGER PRIMARY KEY, lease_id TEXT, body BLOB);
CREATE INDEX events_by_lease ON events (lease_id);
"""
_BODY = b"e" * 250
_HOLDER = "machine-12345-0123abcd/1"


class Floor:
    """The least that a pair could cost."""

    def __init__(self, path: Path, synchronous: str) -> None:
        self._connection = apsw.Connection(str(path))
        self._connection.pragma("journal_mode", "wal")
        self._connection.pragma("synchronous", synchronous)
        self._connection.execute(_SCHEMA)
        self._count = 0

    def pair(self) -> None:
        """Insert a lease and an event; then end the lease and insert another event."""
        self._count += 1
        lease_id = f"01234567-89ab-7cde-8f01-{self._count:012d}"
        execute = self._connection.execute
        execute("BEGIN IMMEDIATE")
        execute(
            "INSERT INTO leases VALUES (?, ?, ?, 'active', 'exclusive', 1)", (lease_id, "resource", _HOLDER)
        )
        execute("INSERT INTO events (lease_id, body) VALUES (?, ?)", (lease_id, _BODY))
        execute("COMMIT")
        execute("BEGIN IMMEDIATE")
        execute("UPDATE leases SET status = 'released' WHERE lease_id = ?", (lease_id,))
        execute("INSERT INTO events (lease_id, body) VALUES (?, ?)", (lease_id, _BODY))
        execute("COMMIT")
