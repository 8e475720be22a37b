"""What is kept beside the ledger, and can be lost without harm."""

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager

from leasehold.stores.sqlite.reading import SqliteSnapshot
from leasehold.stores.sqlite.writing import SqliteTransaction, Stepped


class SqliteSoftState:
    """A table of values, each written in a small transaction behind the same queue as all writes.

    Like any other transaction or snapshot, neither can be begun by a thread that is inside of one.
    """

    def __init__(
        self,
        snapshot: Callable[[], AbstractContextManager[SqliteSnapshot]],
        write: Callable[[], Stepped[SqliteTransaction]],
    ) -> None:
        self._snapshot = snapshot
        self._write = write

    def put(self, family: str, values: Mapping[str, bytes]) -> None:
        """Keep values by key, each in the place of the one before; an empty one takes its key away."""
        if values:
            with self._write() as transaction:
                transaction.put_soft(family, values)

    def get(self, family: str) -> dict[str, bytes]:
        """Return all values of a family, by key."""
        with self._snapshot() as snapshot:
            return snapshot.soft_values(family)
