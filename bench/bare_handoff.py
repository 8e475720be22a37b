"""The least that a hand-off through SQLite could cost: one commit, one datagram, one look.

No lease, no expiry, no law, and no ledger but rows of bytes: what is left is a row that says who has it, a
line of addresses, and the disk. Whoever gives it back writes the next one's name down and rings.
"""

import fcntl
import os
import socket

import apsw

_SCHEMA = """
CREATE TABLE IF NOT EXISTS state (only_row INTEGER PRIMARY KEY, owner TEXT);
CREATE TABLE IF NOT EXISTS line (ticket INTEGER PRIMARY KEY, address TEXT);
CREATE TABLE IF NOT EXISTS events (position INTEGER PRIMARY KEY, body BLOB);
INSERT OR IGNORE INTO state VALUES (1, NULL);
"""
_BODY = b"e" * 250
_BUSY_MS = 5_000


class BareLock:
    """A lock that is handed on in the order of coming."""

    def __init__(self, path: str, synchronous: str) -> None:
        self._gate = os.open(f"{path}-gate", os.O_RDWR | os.O_CREAT)
        self._connection = apsw.Connection(path)
        self._connection.set_busy_timeout(_BUSY_MS)
        self._connection.pragma("journal_mode", "wal")
        self._connection.pragma("synchronous", synchronous)
        self._address = f"{path}-{os.getpid()}"
        self._bell = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._bell.bind(self._address)
        with self:
            self._connection.execute(_SCHEMA)

    def __enter__(self) -> None:
        fcntl.flock(self._gate, fcntl.LOCK_EX)  # SQLite's own waiting is a sleep.
        self._connection.execute("BEGIN IMMEDIATE")

    def __exit__(self, *trouble: object) -> None:
        self._connection.execute("COMMIT")
        fcntl.flock(self._gate, fcntl.LOCK_UN)

    def acquire(self) -> None:
        """Take it, or wait for one's turn."""
        execute = self._connection.execute
        with self:
            owner = execute("SELECT owner FROM state").get
            if owner is None:
                execute("UPDATE state SET owner = ?", (self._address,))
                return
            execute("INSERT INTO line (address) VALUES (?)", (self._address,))
        self._bell.recv(16)
        assert execute("SELECT owner FROM state").get == self._address

    def release(self) -> None:
        """Hand it on."""
        execute = self._connection.execute
        with self:
            following = execute("SELECT ticket, address FROM line ORDER BY ticket LIMIT 1").fetchone()
            ticket, address = following or (None, None)
            execute("DELETE FROM line WHERE ticket = ?", (ticket,))
            execute("UPDATE state SET owner = ?", (address,))
            execute("INSERT INTO events (body) VALUES (?)", (_BODY,))
        if address is not None:
            self._bell.sendto(b"!", address)
