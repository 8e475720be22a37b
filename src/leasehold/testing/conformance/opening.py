"""How the tests of the suite come to a store, and what they do with it most."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from leasehold.engine.clock import Clock
from leasehold.engine.port import Batch, Store
from leasehold.errors import StoreRejected
from leasehold.kernel.lease.model import Lease
from leasehold.kernel.lease.records import LEASE, LeaseFound, LeaseWanted
from leasehold.kernel.ledger.family import Families
from leasehold.kernel.ledger.records import EVERYTHING, Count, Found, Keys, Records, Scan, Wanted
from leasehold.testing.clock import FakeClock
from leasehold.testing.conformance.notes import FAMILIES, NOTE


class Opening:
    """The part of the suite that a store's author fills in."""

    def open_store(self, folder: Path, clock: Clock, families: Families) -> Store:
        """Open the store that lives in `folder`, on the given clock; make it if it is not there.

        `families` are what it is to be opened with: leases, and some that only this suite has.
        """
        raise TypeError(f"{type(self).__name__} has to say how its store is opened")

    def open_again(self, store: Store, folder: Path, clock: Clock) -> Store:
        """Open the store a second time while `store` is open, as another client of it would."""
        return self.open_store(folder, clock, store.families)

    @contextmanager
    def opened(
        self, folder: Path, *batches: Batch, clock: Clock | None = None, families: Families = FAMILIES
    ) -> Iterator[Store]:
        """Open a store for the length of a block, and commit some batches at its beginning."""
        store = self.open_store(folder, clock or FakeClock(), families)
        try:
            for one in batches:
                commit(store, one)
            yield store
        finally:
            store.close()

    @contextmanager
    def opened_twice(self, folder: Path) -> Iterator[tuple[Store, Store]]:
        """Open a store for two clients, for the length of a block."""
        clock = FakeClock()
        with self.opened(folder, clock=clock) as first:
            second = self.open_again(first, folder, clock)
            try:
                yield first, second
            finally:
                second.close()


def commit(store: Store, batch: Batch) -> None:
    """Commit one batch in a transaction of its own."""
    with store.write() as transaction:
        transaction.commit(batch)


def reject(store: Store, batch: Batch) -> None:
    """Commit what has to be rejected, and see that the ledger has not grown."""
    with store.snapshot() as snapshot:
        head = snapshot.head
    try:
        commit(store, batch)
    except StoreRejected:
        pass
    else:
        raise AssertionError("the store took a batch that it had to reject")
    with store.snapshot() as snapshot:
        assert snapshot.head == head


def read(
    store: Store, *, requests: Iterable[str] = (), eras: Iterable[int] = (), **wanted: Iterable[Any]
) -> Records:
    """Read records from a snapshot of their own; `wanted` of leases is named as the fields of LeaseWanted."""
    families = {LEASE: LeaseWanted(**_as_sets(wanted))} if wanted else {}
    with store.snapshot() as snapshot:
        return snapshot.read(Keys(requests=set(requests), eras=set(eras), families=families))


def find(store: Store, **wanted: Iterable[Any]) -> LeaseFound:
    """Read what is wanted of leases."""
    found: LeaseFound = read(store, **wanted).families[LEASE]
    return found


def find_leases(store: Store, **wanted: Iterable[Any]) -> list[Lease]:
    """Read leases."""
    return list(find(store, **wanted).records.values())


def names_of(leases: Iterable[Lease]) -> list[str]:
    """Return the ids of leases in order, each once."""
    return sorted({one.lease_id for one in leases})


def find_documents(store: Store, family: str, **wanted: Iterable[Any]) -> Found:
    """Read what is wanted of a family; named as the fields of Wanted are."""
    keys = Keys(families={family: Wanted(**_as_sets(wanted))})
    with store.snapshot() as snapshot:
        found: Found = snapshot.read(keys).families[family]
    return found


def scanned(
    store: Store, low: str, high: str, limit: int = EVERYTHING, *, reverse: bool = False
) -> list[str]:
    """Read the keys of notes in a range."""
    scan = Scan(low, high, limit, reverse=reverse)
    return find_documents(store, NOTE, scans={scan}).scans[scan]


def counted(store: Store, low: str, high: str) -> int:
    """Count notes in a range."""
    count = Count(low, high)
    return find_documents(store, NOTE, counts={count}).counts[count]


def _as_sets(wanted: dict[str, Iterable[Any]]) -> dict[str, set[Any]]:
    return {name: set(names) for name, names in wanted.items()}
