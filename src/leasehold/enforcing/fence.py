"""The highest tokens that each resource has seen.

A fence answers one question, in one atomic step: is this token not older than any that it conflicts with?
If so, it is remembered. An equal token is the same lease again, and passes. Sharers do not conflict with
one another, so a sharer is measured only against exclusive tokens, and an exclusive token against all.

`Fence` remembers as long as its process lives: a restart lets the next late writer through. `SqliteFence`
remembers across restarts, and across the processes that share its file. Tokens of one registrar only can be
compared.
"""

from pathlib import Path
from threading import Lock
from typing import NamedTuple, Protocol

import apsw

from leasehold.certificates.verifying import check_token
from leasehold.errors import InvalidInput
from leasehold.kernel.lease.model import Mode

_BUSY_MILLISECONDS = 30_000
_TOKEN_LIMIT = 1 << 63
"""What a SQLite column can keep."""


class Seen(NamedTuple):
    """What a resource has seen."""

    exclusive: int = 0
    """The highest token of an exclusive lease."""
    any: int = 0
    """The highest token of all."""

    def against(self, mode: Mode) -> int:
        """Return the highest token that conflicts with one of this mode."""
        return self.exclusive if mode is Mode.SHARED else self.any

    def after(self, token: int, mode: Mode) -> "Seen":
        """Return what the resource has seen once this token was there."""
        exclusive = self.exclusive if mode is Mode.SHARED else max(self.exclusive, token)
        return Seen(exclusive, max(self.any, token))


class Admits(Protocol):
    """Anything that keeps the highest tokens of each resource."""

    def admit(self, resource: str, token: int, mode: Mode = Mode.EXCLUSIVE) -> None:
        """Remember a token as seen; raise StaleToken if it is older than one it conflicts with."""
        ...

    def seen(self, resource: str) -> Seen:
        """Return the highest tokens that were admitted."""
        ...


class Fence:
    """A fence in memory, for the threads of one process."""

    def __init__(self) -> None:
        self._seen: dict[str, Seen] = {}
        self._lock = Lock()

    def admit(self, resource: str, token: int, mode: Mode = Mode.EXCLUSIVE) -> None:
        """Remember a token as seen; raise StaleToken if it is older than one it conflicts with."""
        _check_types(resource, token, mode)
        with self._lock:
            seen = self._seen.get(resource, Seen())
            check_token(resource, token, seen.against(mode))
            self._seen[resource] = seen.after(token, mode)

    def seen(self, resource: str) -> Seen:
        """Return the highest tokens that were admitted."""
        _check_types(resource)
        return self._seen.get(resource, Seen())


def is_utf8(text: str) -> bool:
    """Say whether a text can be written as UTF-8: what was not decoded from it has surrogates."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _check_types(resource: object, token: object = 0, mode: object = Mode.EXCLUSIVE) -> None:
    """Refuse what cannot be compared: a token that is no whole number, such as NaN, would be above none."""
    if not isinstance(resource, str) or not is_utf8(resource):
        raise InvalidInput(f"resource must be text in UTF-8, not {resource!r:.80}", field="resource")
    if not isinstance(token, int) or isinstance(token, bool) or not 0 <= token < _TOKEN_LIMIT:
        raise InvalidInput(f"token must be a whole number below 2 ** 63, not {token!r:.80}", field="token")
    if not isinstance(mode, Mode):
        raise InvalidInput(f"mode must be a Mode, not {mode!r:.80}", field="mode")


_CREATE = """
CREATE TABLE IF NOT EXISTS fence (
    resource TEXT PRIMARY KEY, exclusive INTEGER NOT NULL, "any" INTEGER NOT NULL
) WITHOUT ROWID
"""
_LOOK = 'SELECT exclusive, "any" FROM fence WHERE resource = ?'
_KEEP = 'INSERT OR REPLACE INTO fence (resource, exclusive, "any") VALUES (?, ?, ?)'


class SqliteFence:
    """A fence in a file of its own. A token is admitted once it is on disk."""

    def __init__(self, path: str | Path) -> None:
        self._database = apsw.Connection(str(path))
        self._database.set_busy_timeout(_BUSY_MILLISECONDS)
        self._database.execute("PRAGMA synchronous = FULL")
        self._database.execute(_CREATE)
        self._lock = Lock()

    def admit(self, resource: str, token: int, mode: Mode = Mode.EXCLUSIVE) -> None:
        """Remember a token as seen; raise StaleToken if it is older than one it conflicts with."""
        _check_types(resource, token, mode)
        with self._lock:
            seen = self._look(resource)
            check_token(resource, token, seen.against(mode))
            if seen.after(token, mode) == seen:
                return  # It was there before: nothing to write, and nobody to wait for.
            # The write lock comes before the look that counts: no other process can admit one in between.
            self._database.execute("BEGIN IMMEDIATE")
            try:
                seen = self._look(resource)
                check_token(resource, token, seen.against(mode))
                self._database.execute(_KEEP, (resource, *seen.after(token, mode)))
            except BaseException:
                self._database.execute("ROLLBACK")
                raise
            self._database.execute("COMMIT")

    def seen(self, resource: str) -> Seen:
        """Return the highest tokens that were admitted."""
        _check_types(resource)
        with self._lock:
            return self._look(resource)

    def _look(self, resource: str) -> Seen:
        row = self._database.execute(_LOOK, (resource,)).fetchone()
        return Seen() if row is None else Seen(*row)

    def close(self) -> None:
        """Let go of the file."""
        with self._lock:
            self._database.close()
