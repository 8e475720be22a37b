"""Work is verified, rebuilt, pruned, backed up and restored, and nothing of it is forgotten."""

from pathlib import Path

import apsw
import pytest

import leasehold
from leasehold.engine.audit import audit, rebuild
from leasehold.engine.pruning import prune
from leasehold.engine.registrar import Registrar
from leasehold.registry import REPLIES, all_families
from leasehold.stores.sqlite import SqliteStore
from leasehold.stores.sqlite.backup import backup, restore
from leasehold.testing.clock import FakeClock
from leasehold.work.questions import ListFailed
from tests.work.house import SECOND, WorkHouse

DAY = 86_400


def fill(house: WorkHouse) -> None:
    house.do("A", 0, 1, 2, 5)
    house.fail("A", house.token("A", 3), max_retries=0, reason="bad")
    house.token("A", 9, ttl_ns=60 * SECOND)
    house.enqueue("A", 11, 10)
    house.give_back("B", house.token("B", 4))
    house.start_at("C", 50)


def test_the_ledger_replays_to_the_tables_and_the_tables_are_rebuilt_from_it(house: WorkHouse) -> None:
    fill(house)
    house.ensure_sound()
    before = house.records()
    rebuild(house.store)
    assert house.records() == before


def test_pruning_forgets_history_and_no_range_no_flight_and_no_backlog(house: WorkHouse) -> None:
    fill(house)
    house.clock.advance(40 * DAY)
    house.sweep()
    before = house.records()
    pruned = prune(house.store, actor="op", keep_ns=30 * DAY * SECOND)
    assert pruned.entries > 0
    assert house.records() == before
    house.ensure_sound()
    assert house.acquire("A", 3).outcome == "ALREADY_FAILED"
    assert house.acquire("A", 2).outcome == "ALREADY_PROCESSED"
    assert house.acquire("B", 4).outcome == "ACQUIRED"
    assert house.acquire("C", 49).outcome == "ALREADY_PROCESSED"


def test_the_reason_of_a_failure_is_gone_with_its_history_and_the_failure_is_not(house: WorkHouse) -> None:
    registrar = Registrar(house.store, also=REPLIES)
    question = ListFailed(tenant="default", domain="A")
    fill(house)
    assert registrar.ask(question)[0].reason == "bad"
    house.clock.advance(40 * DAY)
    prune(house.store, actor="op", keep_ns=30 * DAY * SECOND)
    (failed,) = registrar.ask(question)
    assert (failed.offset, failed.reason, failed.retry_count) == (3, None, None)


@pytest.mark.parametrize(
    ("statement", "says"),
    [
        (
            "UPDATE documents SET body = json_set(body, '$.last', 99) WHERE key LIKE '%done%'",
            "the ledger says",
        ),
        ("DELETE FROM documents WHERE key LIKE '%flight%'", "is missing from the tables"),
        ("UPDATE events SET body = replace(body, '\"offset\":9', '\"offset\":8')", "its hash does not match"),
    ],
)
def test_tampering_with_it_is_found_and_mended(tmp_path: Path, statement: str, says: str) -> None:
    clock = FakeClock()
    store = SqliteStore(tmp_path / "leases.db", clock=clock, durability="fast", families=all_families())
    house = WorkHouse(store, clock)
    fill(house)
    connection = apsw.Connection(str(tmp_path / "leases.db" / "leases.db"))
    connection.execute(statement)
    connection.close()
    assert any(says in problem for problem in audit(store).problems)
    if "events" not in statement:
        rebuild(store)
        house.ensure_sound()
    store.close()


def test_a_restored_store_never_repeats_a_token(tmp_path: Path) -> None:
    path, copy = tmp_path / "leases.db", tmp_path / "copy.db"
    with leasehold.connect(f"sqlite:///{path}") as client:
        client.work.succeed("A", str(client.work.try_acquire("A", 1).token))
    backup(path, copy)
    with leasehold.connect(f"sqlite:///{path}") as client:
        forgotten = client.work.try_acquire("A", 2).fence
    restore(copy, path, families=all_families())
    with leasehold.connect(f"sqlite:///{path}") as client:
        again = client.work.try_acquire("A", 2)
        assert again.outcome == "ACQUIRED", "the backup knows nothing of it"
        assert again.fence is not None
        assert forgotten is not None
        assert again.fence > forgotten
        assert client.work.try_acquire("A", 1).outcome == "ALREADY_PROCESSED"
        assert client.verify().problems == []
