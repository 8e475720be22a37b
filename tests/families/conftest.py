"""Stores that are opened with a family of the tests' own."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from leasehold.engine.batch import Outcome, Rules, run_batch
from leasehold.engine.port import Store
from leasehold.kernel.ledger.commands import Command, SweepDue
from leasehold.kernel.ledger.events import Event
from leasehold.kernel.ledger.family import Families
from leasehold.stores.memory import MemoryStore
from leasehold.stores.sqlite import SqliteStore
from leasehold.testing.clock import FakeClock
from tests.families.toy import toy_families


class House:
    """A store with counters beside its leases, and a clock to turn by hand."""

    def __init__(self, store: Store, clock: FakeClock) -> None:
        self.store = store
        self.clock = clock

    def run(self, *commands: Command) -> list[Outcome]:
        return run_batch(self.store, commands, Rules())

    def one(self, command: Command) -> Outcome:
        return self.run(command)[0]

    def sweep(self, limit: int = 100) -> int:
        ended: int = self.one(SweepDue(limit=limit, request_id="sweep")).ended
        return ended

    def events(self, family: str = "counter") -> list[Event]:
        from leasehold.engine.port import EntryQuery

        with self.store.snapshot() as snapshot:
            return [entry.event for entry in snapshot.entries(EntryQuery(family=family))]

    def position(self) -> int:
        with self.store.snapshot() as snapshot:
            return snapshot.head.position


Opening = Callable[[Families], Store]


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture(params=["memory", "sqlite"])
def house(request: pytest.FixtureRequest, tmp_path: Path, clock: FakeClock) -> Iterator[House]:
    store: Store
    if request.param == "memory":
        store = MemoryStore(clock=clock, families=toy_families())
    else:
        store = SqliteStore(tmp_path / "leases", clock=clock, families=toy_families())
    yield House(store, clock)
    store.close()
