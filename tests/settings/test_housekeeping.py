"""What is done in the background because settings say so."""

import threading
from collections.abc import Iterator
from typing import Any

import pytest

from leasehold.client.blocking.client import Client
from leasehold.engine.audit import audit
from leasehold.engine.chores import Chores
from leasehold.engine.job_runner import JobRunner
from leasehold.engine.port import EntryQuery
from leasehold.engine.registrar import Registrar
from leasehold.registry import CARRIERS, REPLIES, all_families
from leasehold.settings.housekeeping import Housekeeper
from leasehold.stores.memory import MemoryStore
from leasehold.stores.sqlite import SqliteStore
from leasehold.testing.clock import FakeClock
from tests.client.worlds import SIGNAL_SECONDS

DAY = 86_400


class House:
    """A store, a client, and a housekeeper that comes when it is called."""

    def __init__(self, store: Any, clock: FakeClock) -> None:
        self.clock = clock
        self.registrar = Registrar(store, also=REPLIES, jobs=JobRunner(store, CARRIERS))
        self.client = Client(self.registrar, holder="ann", clock=clock)
        self.housekeeper = Housekeeper(self.registrar, now=self.now)

    def now(self) -> float:
        return self.clock.tick_ns() / 1e9

    def keep(self) -> float:
        """Let the housekeeper come once, and wait for the job that it has begun."""
        delay = self.housekeeper()
        for job_id in list(self.registrar._jobs._runs):
            status = self.registrar.find_job(job_id, timeout=SIGNAL_SECONDS)
            assert status.is_finished
            assert status.failure is None
        return delay

    def types(self) -> list[str]:
        return [entry.event.type for entry in self.entries()]

    def entries(self) -> list[Any]:
        with self.registrar.store.snapshot() as snapshot:
            return snapshot.entries(EntryQuery())


@pytest.fixture(params=["memory", "sqlite"])
def house(request: pytest.FixtureRequest, tmp_path: Any, clock: FakeClock) -> Iterator[House]:
    families = all_families()
    store: Any = MemoryStore(clock, families=families)
    if request.param == "sqlite":
        store = SqliteStore(tmp_path / "leases.db", clock=clock, durability="fast", families=families)
    made = House(store, clock)
    yield made
    made.client.close()


def expire_one(house: House, resource: str) -> None:
    house.client.acquire(resource, ttl=1).detach()
    house.clock.advance(2)


def test_expiries_are_recorded_every_cleanup_interval(house: House) -> None:
    house.client.settings.set("cleanup_interval_seconds", 20)
    expire_one(house, "a")
    assert house.keep() == 20
    assert house.types().count("lease.expired") == 1
    expire_one(house, "b")
    assert house.keep() == 18
    assert house.types().count("lease.expired") == 1
    house.clock.advance(18)
    house.keep()
    assert house.types().count("lease.expired") == 2


def test_a_shorter_interval_is_in_force_at_the_next_look(house: House) -> None:
    assert house.keep() == 30
    expire_one(house, "a")
    house.keep()
    assert "lease.expired" not in house.types()
    house.client.settings.set("cleanup_interval_seconds", 1)
    house.keep()
    assert "lease.expired" in house.types()


def test_nothing_is_recorded_while_that_is_switched_off(house: House) -> None:
    house.client.settings.set("auto_expire_enabled", False)
    expire_one(house, "a")
    assert house.keep() == 30
    assert "lease.expired" not in house.types()
    house.client.acquire("a").release()  # An expired lease blocks nobody all the same.
    assert "lease.expired" in house.types()


def test_history_is_pruned_once_a_day_without_anybody_asking(house: House) -> None:
    house.client.acquire("a").release()
    house.keep()
    house.clock.advance(31 * DAY)
    house.client.acquire("b").release()
    house.keep()
    assert "store.checkpointed" in house.types()
    assert [one.event.resource for one in house.entries() if one.event.type == "lease.issued"] == ["b"]
    assert audit(house.registrar.store).problems == []
    house.client.settings.set("history_retention_days", 1)
    house.clock.advance(DAY - 60)
    house.keep()
    assert len(house.entries()) > 3, "not twice a day"


@pytest.mark.parametrize(("days", "is_gone"), [(10, False), (4, True)])
def test_retention_is_as_many_days_as_the_setting_says(house: House, days: int, is_gone: bool) -> None:
    house.client.settings.set("history_retention_days", days)
    house.client.acquire("a").release()
    house.clock.advance(5 * DAY)
    house.client.acquire("b").release()
    house.keep()
    assert ("store.checkpointed" in house.types()) is is_gone


def test_without_history_an_hour_is_kept_and_it_is_pruned_every_hour(house: House) -> None:
    house.client.settings.set("keep_history", False)
    house.client.acquire("a").release()
    house.clock.advance(3700)
    house.client.acquire("b").release()
    house.keep()
    house.clock.advance(3700)
    house.client.acquire("c").release()
    house.keep()
    assert [one.event.resource for one in house.entries() if one.event.type == "lease.issued"] == ["c"]


def test_a_wall_clock_that_was_set_back_does_not_keep_history_for_ever(house: House) -> None:
    in_a_year = house.clock.wall_ns() + 365 * DAY * 10**9
    house.registrar.store.soft.put("settings", {"pruned": str(in_a_year).encode()})
    house.client.acquire("a").release()
    house.clock.advance(31 * DAY)
    house.client.acquire("b").release()
    house.keep()
    assert "store.checkpointed" in house.types()


def test_chores_go_on_after_one_has_failed_and_end_with_their_owner(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("leasehold.engine.chores._AFTER_FAILURE_SECONDS", 0)
    came_again = threading.Event()
    calls = []

    def chore() -> float:
        calls.append(1)
        if len(calls) < 3:
            raise RuntimeError("once")
        came_again.set()
        return 3600

    chores = Chores([chore], first_seconds=0)
    chores.start()
    assert came_again.wait(SIGNAL_SECONDS)
    assert chores.close(SIGNAL_SECONDS)
    assert "tried again later" in caplog.text
    assert len(calls) == 3


def test_a_connected_client_does_chores_in_a_thread_that_ends_with_it(tmp_path: Any) -> None:
    import leasehold

    before = _threads()
    with leasehold.connect(tmp_path / "leases.db"):
        assert _threads() - before == {"leasehold-chores"}
    assert _threads() == before


def _threads() -> set[str]:
    return {thread.name for thread in threading.enumerate()}
