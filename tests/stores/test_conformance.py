"""Every store of ours, in every durability, proves the same things."""

from pathlib import Path

import pytest

from leasehold.engine.clock import Clock
from leasehold.engine.port import Store
from leasehold.kernel.ledger.family import Families
from leasehold.stores.memory import MemoryStore
from leasehold.stores.sqlite import SqliteStore
from leasehold.testing.conformance import PersistentStoreConformance, StoreConformance


class TestMemoryStore(StoreConformance):
    def open_store(self, folder: Path, clock: Clock, families: Families) -> Store:
        del folder
        return MemoryStore(clock=clock, families=families)

    def open_again(self, store: Store, folder: Path, clock: Clock) -> Store:
        del folder, clock
        return store


class TestSqliteStore(PersistentStoreConformance):
    def open_store(self, folder: Path, clock: Clock, families: Families) -> Store:
        return SqliteStore(folder / "leases", clock=clock, families=families)


class TestFastSqliteStore(PersistentStoreConformance):
    def open_store(self, folder: Path, clock: Clock, families: Families) -> Store:
        return SqliteStore(folder / "leases", durability="fast", clock=clock, families=families)


def test_a_suite_without_a_store_says_what_is_missing(tmp_path: Path) -> None:
    with pytest.raises(TypeError, match="has to say how its store is opened"):
        StoreConformance().open_store(tmp_path, None, None)  # type: ignore[arg-type]
