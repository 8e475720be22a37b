"""Every store of ours, in every durability, proves the same things."""

from pathlib import Path

import pytest

pytest.register_assert_rewrite("leasehold.testing.conformance")

from leasehold.engine.clock import Clock  # noqa: E402
from leasehold.engine.port import Store  # noqa: E402
from leasehold.stores.memory import MemoryStore  # noqa: E402
from leasehold.stores.sqlite import SqliteStore  # noqa: E402
from leasehold.testing.conformance import PersistentStoreConformance, StoreConformance  # noqa: E402


class TestMemoryStore(StoreConformance):
    def open_store(self, folder: Path, clock: Clock) -> Store:
        del folder
        return MemoryStore(clock=clock)

    def open_again(self, store: Store, folder: Path, clock: Clock) -> Store:
        del folder, clock
        return store


class TestSqliteStore(PersistentStoreConformance):
    def open_store(self, folder: Path, clock: Clock) -> Store:
        return SqliteStore(folder / "leases.db", clock=clock)


class TestFastSqliteStore(PersistentStoreConformance):
    def open_store(self, folder: Path, clock: Clock) -> Store:
        return SqliteStore(folder / "leases.db", durability="fast", clock=clock)


def test_a_suite_without_a_store_says_what_is_missing(tmp_path: Path) -> None:
    with pytest.raises(TypeError, match="has to say how its store is opened"):
        StoreConformance().open_store(tmp_path, None)  # type: ignore[arg-type]
