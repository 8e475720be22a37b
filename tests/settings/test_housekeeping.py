"""What is done in the background because settings say so."""

import gc
import json
import os
import threading
from collections.abc import Iterator
from functools import partial
from typing import Any

import apsw
import pytest

import leasehold
from leasehold.client.blocking.client import Client
from leasehold.engine.audit import audit, rebuild
from leasehold.engine.chores import Chores
from leasehold.engine.desk import Failure
from leasehold.engine.job_runner import JobRunner
from leasehold.engine.port import EntryQuery
from leasehold.engine.registrar import Registrar
from leasehold.errors import JobCancelled, StoreFull, StoreUnusable
from leasehold.registry import CARRIERS, REPLIES, all_families
from leasehold.settings.housekeeping import ApplyRetention, Housekeeper, apply_retention
from leasehold.stores.memory import MemoryStore
from leasehold.stores.sqlite import SqliteStore
from leasehold.testing.clock import FakeClock
from tests.client.worlds import SIGNAL_SECONDS
from tests.engine.doubles import WatchedStore, registrar_of

DAY = 86_400


class House:
    """A store, a client, and a housekeeper that comes when it is called."""

    def __init__(self, store: Any, clock: FakeClock) -> None:
        self.clock = clock
        self.registrar = Registrar(store, also=REPLIES, jobs=JobRunner(store, CARRIERS))
        self.client = Client(self.registrar, holder="ann", clock=clock)
        self.housekeeper = Housekeeper(now=self.now)

    def now(self) -> float:
        return self.clock.tick_ns() / 1e9

    def keep(self) -> float:
        """Let the housekeeper come once, and wait for the job that it has begun."""
        delay = self.housekeeper(self.registrar)
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
        store = SqliteStore(tmp_path / "leases", clock=clock, durability="fast", families=families)
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

    def chore(owner: object) -> float:
        assert owner is caplog
        calls.append(1)
        if len(calls) < 3:
            raise RuntimeError("once")
        came_again.set()
        return 3600

    chores = Chores(caplog, [chore], first_seconds=0)
    chores.start()
    assert came_again.wait(SIGNAL_SECONDS)
    chores.stop()
    assert chores.wait(SIGNAL_SECONDS)
    assert "tried again later" in caplog.text
    assert len(calls) == 3


def test_a_connected_client_does_chores_in_a_thread_that_ends_with_it(tmp_path: Any) -> None:
    before = _threads()
    with leasehold.connect(tmp_path / "leases"):
        assert _threads() - before == {"leasehold-chores"}
    assert _threads() == before


def _threads() -> set[str]:
    return {thread.name for thread in threading.enumerate()}


def test_a_thousand_expiries_are_recorded_a_batch_at_a_time_and_settings_read_in_between(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("leasehold.settings.housekeeping.BATCH_LEASES", 2)
    for name in "abc":
        house.client.acquire(name, ttl=1).detach()
    house.clock.advance(2)
    assert house.keep() == 0
    assert house.types().count("lease.expired") == 2
    house.client.settings.set("auto_expire_enabled", False)
    assert house.keep() == 30
    assert house.types().count("lease.expired") == 2
    house.client.settings.set("auto_expire_enabled", True)
    assert house.keep() == 30
    assert house.types().count("lease.expired") == 3


def test_a_sweep_that_failed_is_made_up_for(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    house.keep()
    house.clock.advance(300)
    expire_one(house, "a")
    with monkeypatch.context() as broken:
        broken.setattr(house.registrar, "call", lambda command: Failure.of(StoreFull("no space")))
        with pytest.raises(StoreFull):
            house.keep()
    house.clock.advance(60)
    house.keep()
    assert "lease.expired" in house.types()


def test_pruning_that_was_cut_short_is_begun_again_by_the_next(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    house.client.acquire("a").release()
    house.clock.advance(31 * DAY)
    house.client.acquire("b").release()

    def cancel(*given: object, **named: object) -> None:
        raise JobCancelled("the job was cancelled")

    with monkeypatch.context() as closing:
        closing.setattr("leasehold.settings.housekeeping.prune", cancel)
        with pytest.raises(JobCancelled):
            apply_retention(ApplyRetention(), house.registrar.store, lambda done, total: None)
    assert "store.checkpointed" not in house.types()
    house.keep()
    assert "store.checkpointed" in house.types()


def test_pruning_that_fails_is_told_and_not_begun_again_at_once(
    house: House, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(*given: object, **named: object) -> None:
        raise StoreFull("no space")

    monkeypatch.setattr("leasehold.settings.housekeeping.prune", fail)
    house.housekeeper(house.registrar)
    (job_id,) = house.registrar._jobs._runs
    assert house.registrar.find_job(job_id, timeout=SIGNAL_SECONDS).failure is not None
    house.clock.advance(700)
    house.housekeeper(house.registrar)
    assert "no space" in caplog.text
    second = next(one for one in house.registrar._jobs._runs if one != job_id)
    assert house.registrar.find_job(second, timeout=SIGNAL_SECONDS).failure is None


def test_expiries_are_recorded_while_a_long_prune_goes_on(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    go_on = threading.Event()

    def slow(*given: object, **named: object) -> None:
        assert go_on.wait(SIGNAL_SECONDS)
        raise StoreFull("no space")

    monkeypatch.setattr("leasehold.settings.housekeeping.prune", slow)
    house.housekeeper(house.registrar)
    house.clock.advance(700)
    expire_one(house, "a")
    house.housekeeper(house.registrar)
    assert "lease.expired" in house.types()
    go_on.set()


@pytest.mark.parametrize(
    ("key", "value"), [("cleanup_interval_seconds", 0), ("keep_history", 7), ("history", 3)]
)
def test_a_value_that_nobody_could_have_set_stops_the_housekeeper(
    tmp_path: Any, clock: FakeClock, key: str, value: int
) -> None:
    store = SqliteStore(tmp_path / "leases.db", clock=clock, durability="fast", families=all_families())
    house = House(store, clock)
    house.client.settings.set("cleanup_interval_seconds", 20)
    house.client.settings.set("keep_history", True)
    house.client.settings.set("keep_history", False)
    connection = apsw.Connection(str(tmp_path / "leases.db" / "leases.db"))
    (body,) = next(connection.execute("SELECT body FROM documents WHERE key LIKE '%cleanup%'"))
    tampered = json.loads(body) | {"key": key, "value": value}
    where = "keep_history" if key == "keep_history" else "cleanup"
    connection.execute(f"UPDATE documents SET body = ? WHERE key LIKE '%{where}%'", (json.dumps(tampered),))
    connection.close()
    with pytest.raises(StoreUnusable, match="leasehold verify"):
        house.housekeeper(house.registrar)
    with pytest.raises(StoreUnusable, match="leasehold verify"):
        house.client.settings.list()
    assert audit(store).problems != []
    house.client.close()


def test_closing_does_not_wait_for_a_chore_that_waits_for_a_writer(clock: FakeClock) -> None:
    store = WatchedStore(MemoryStore(clock, families=all_families()))
    registrar = Registrar(store, jobs=JobRunner(store, CARRIERS), timeout=SIGNAL_SECONDS)
    registrar._chores = Chores(registrar, [Housekeeper()], first_seconds=0)
    store.occupy()
    registrar._chores.start()
    assert store.waiting.acquire(timeout=SIGNAL_SECONDS)
    closing = threading.Thread(target=registrar.close)
    closing.start()
    registrar._chores._thread.join(SIGNAL_SECONDS / 2)
    assert not registrar._chores._thread.is_alive()
    store.vacate()
    closing.join(SIGNAL_SECONDS)
    assert not closing.is_alive()


def test_a_store_is_not_closed_under_a_chore_that_goes_on(clock: FakeClock) -> None:
    store = MemoryStore(clock, families=all_families())
    registrar = Registrar(store, timeout=0.02)
    begun, go_on, looked = threading.Event(), threading.Event(), threading.Event()

    def stubborn(owner: Registrar) -> float:
        begun.set()
        assert go_on.wait(SIGNAL_SECONDS)
        with owner.store.snapshot():
            looked.set()
        return 3600

    registrar._chores = Chores(registrar, [stubborn], first_seconds=0)
    registrar._chores.start()
    assert begun.wait(SIGNAL_SECONDS)
    registrar.close()
    go_on.set()
    assert looked.wait(SIGNAL_SECONDS)
    assert registrar._chores.wait(SIGNAL_SECONDS)


def test_chores_end_with_an_owner_that_nobody_has_closed() -> None:
    class Owner:
        """Somebody who is forgotten."""

    called = threading.Event()

    def chore(owner: object) -> float:
        called.set()
        return 0.001

    owner = Owner()
    chores = Chores(owner, [chore], first_seconds=0)
    chores.start()
    assert called.wait(SIGNAL_SECONDS)
    del owner
    gc.collect()
    assert chores.wait(SIGNAL_SECONDS)


def test_a_client_that_is_dropped_takes_its_chores_with_it(
    tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("leasehold.engine.registrar.Chores", partial(Chores, first_seconds=0.001))
    monkeypatch.setattr("leasehold.settings.housekeeping._LOOK_SECONDS", 0.001)
    client = leasehold.connect(tmp_path / "leases.db")
    chores = registrar_of(client)._chores
    assert chores is not None
    store = registrar_of(client).store
    del client
    gc.collect()
    assert chores.wait(SIGNAL_SECONDS)
    store.close()


def test_an_interrupt_while_connecting_leaves_no_chores_behind(
    tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun: list[Chores] = []

    class Interrupted(Chores):
        """Interrupted when its thread has just been started."""

        def __init__(self, owner: object, chores: Any) -> None:
            super().__init__(owner, chores, first_seconds=0.001)

        def start(self) -> None:
            begun.append(self)
            super().start()
            raise KeyboardInterrupt

    monkeypatch.setattr("leasehold.engine.registrar.Chores", Interrupted)
    monkeypatch.setattr("leasehold.engine.chores._AFTER_FAILURE_SECONDS", 0.001)
    with pytest.raises(KeyboardInterrupt):
        leasehold.connect(tmp_path / "leases.db")
    gc.collect()
    assert begun[0].wait(SIGNAL_SECONDS)


@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
def test_a_forked_child_does_no_chores_and_can_be_closed(tmp_path: Any) -> None:
    with leasehold.connect(tmp_path / "leases.db") as client:
        process_id = os.fork()
        if process_id == 0:
            names = _threads()
            client.close()
            os._exit(0 if "leasehold-chores" not in names else 1)
        assert os.waitstatus_to_exitcode(os.waitpid(process_id, 0)[1]) == 0
        assert "leasehold-chores" in _threads()


def test_settings_outlast_the_pruning_of_all_that_made_them(house: House) -> None:
    house.client.settings.set("max_renewals", 5)
    house.client.settings.set("max_renewals", 1, resource="door")
    house.client.settings.set("history_retention_days", 2)
    house.clock.advance(5 * DAY)
    house.client.acquire("b").release()
    house.keep()
    assert "settings.changed" not in house.types()
    assert audit(house.registrar.store).problems == []
    rebuild(house.registrar.store)
    assert house.client.settings.get("max_renewals") == 5
    assert house.client.settings.get("max_renewals", resource="door") == 1
    assert house.client.settings.get("history_retention_days") == 2
