"""Stores with work in them, and the worlds of the client's tests."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from leasehold.engine.port import Store
from leasehold.registry import all_families
from leasehold.stores.memory import MemoryStore
from leasehold.stores.sqlite import SqliteStore
from leasehold.testing.clock import FakeClock
from tests.client.conftest import (
    client_kind,
    leases,
    pytest_pyfunc_call,
    real_world,
    store_kind,
    strangers,
    world,
)
from tests.work.house import WorkHouse

__all__ = [
    "client_kind",
    "leases",
    "pytest_pyfunc_call",
    "real_world",
    "store_kind",
    "strangers",
    "world",
]


@pytest.fixture(params=["memory", "sqlite"])
def house(request: pytest.FixtureRequest, tmp_path: Path, clock: FakeClock) -> Iterator[WorkHouse]:
    store: Store
    if request.param == "memory":
        store = MemoryStore(clock, families=all_families())
    else:
        store = SqliteStore(tmp_path / "leases.db", clock=clock, durability="fast", families=all_families())
    yield WorkHouse(store, clock)
    store.close()
