"""A store with every family, its registrar, and the worlds of the client's tests."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from leasehold.engine.job_runner import JobRunner
from leasehold.engine.port import Store
from leasehold.engine.registrar import Registrar
from leasehold.registry import CARRIERS, REPLIES, all_families
from leasehold.stores.memory import MemoryStore
from leasehold.stores.sqlite import SqliteStore
from leasehold.testing.clock import FakeClock
from tests.cli.conftest import shell, signals_as_at_a_terminal
from tests.client.conftest import client_kind, leases, pytest_pyfunc_call, store_kind, strangers, world

__all__ = [
    "client_kind",
    "leases",
    "pytest_pyfunc_call",
    "shell",
    "signals_as_at_a_terminal",
    "store_kind",
    "strangers",
    "world",
]


@pytest.fixture(params=["memory", "sqlite"])
def store(request: pytest.FixtureRequest, tmp_path: Path, clock: FakeClock) -> Iterator[Store]:
    families = all_families()
    made: Store
    if request.param == "memory":
        made = MemoryStore(clock, families=families)
    else:
        made = SqliteStore(tmp_path / "leases", clock=clock, durability="fast", families=families)
    yield made
    made.close()


@pytest.fixture
def registrar(store: Store) -> Iterator[Registrar]:
    made = Registrar(store, also=REPLIES, jobs=JobRunner(store, CARRIERS))
    yield made
    made.close()
