"""How the tests of the suite come to a store, and what they do with it most."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from leasehold.engine.clock import Clock
from leasehold.engine.port import Batch, Store
from leasehold.kernel.lease.records import Keys, Records
from leasehold.testing.clock import FakeClock


class Opening:
    """The part of the suite that a store's author fills in."""

    def open_store(self, folder: Path, clock: Clock) -> Store:
        """Open the store that lives in `folder`, on the given clock; make it if it is not there."""
        raise TypeError(f"{type(self).__name__} has to say how its store is opened")

    def open_again(self, store: Store, folder: Path, clock: Clock) -> Store:
        """Open the store a second time while `store` is open, as another client of it would."""
        del store
        return self.open_store(folder, clock)

    @contextmanager
    def opened(self, folder: Path, clock: Clock | None = None) -> Iterator[Store]:
        """Open a store for the length of a block."""
        store = self.open_store(folder, clock or FakeClock())
        try:
            yield store
        finally:
            store.close()

    @contextmanager
    def opened_twice(self, folder: Path) -> Iterator[tuple[Store, Store]]:
        """Open a store for two clients, for the length of a block."""
        clock = FakeClock()
        with self.opened(folder, clock) as first:
            second = self.open_again(first, folder, clock)
            try:
                yield first, second
            finally:
                second.close()


def commit(store: Store, batch: Batch) -> None:
    """Commit one batch in a transaction of its own."""
    with store.write() as transaction:
        transaction.commit(batch)


def read(store: Store, **wanted: Iterable[Any]) -> Records:
    """Read records from a snapshot of their own; `wanted` is named as the fields of Keys are."""
    keys = Keys(**{name: set(names) for name, names in wanted.items()})
    with store.snapshot() as snapshot:
        return snapshot.read(keys)
