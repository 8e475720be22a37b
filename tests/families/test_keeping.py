"""What a family of the tests' own has told is kept, verified, rebuilt, pruned, backed up and restored."""

from collections.abc import Callable
from functools import partial
from pathlib import Path

import apsw
import pytest

from leasehold.engine.audit import audit, rebuild
from leasehold.engine.batch import Rules, run_batch
from leasehold.engine.keyholding import rotate
from leasehold.engine.port import EntryQuery, LeaseQuery
from leasehold.engine.pruning import prune
from leasehold.engine.recording import open_epoch, resume
from leasehold.errors import StoreUnusable
from leasehold.kernel.lease.family import LEASES
from leasehold.kernel.ledger.events import FamiliesAdmitted, StoreOpened
from leasehold.kernel.ledger.family import Families, Family, Soft
from leasehold.kernel.ledger.state import State
from leasehold.stores.memory import MemoryStore
from leasehold.stores.sqlite import SqliteStore
from leasehold.stores.sqlite.backup import backup, restore
from leasehold.testing.clock import FakeClock
from tests.engine.doubles import claim, expect, granted, release
from tests.families.conftest import House
from tests.families.test_deciding import SECOND, bump
from tests.families.toy import COUNTER, Close, Record, evolve, own_key, toy_families

DAY = 24 * 3600


def fill(house: House) -> None:
    lease = granted(house.one(claim("door")))
    house.run(*(bump(f"counter {number}", f"request {number}", by=number) for number in range(1, 20)))
    house.one(bump("bound", "b", lease_id=lease.lease_id))
    house.one(bump("short", "s", ttl_ns=SECOND))
    house.one(release(lease))
    house.one(Close(most=3, request_id="close"))


def problems_of(house: House) -> list[str]:
    return audit(house.store).problems


def test_the_ledger_replays_to_the_tables(house: House) -> None:
    fill(house)
    assert problems_of(house) == []
    with house.store.snapshot() as snapshot:
        assert len(snapshot.state().of(COUNTER)) > 20


@pytest.fixture
def filled(tmp_path: Path, clock: FakeClock) -> House:
    house = House(SqliteStore(tmp_path / "leases", clock=clock, families=toy_families()), clock)
    fill(house)
    return house


@pytest.mark.parametrize(
    ("statement", "says"),
    [
        (
            "UPDATE documents SET body = replace(body, '\"value\":7', '\"value\":8')",
            "value 8 (the ledger says 7)",
        ),
        ("DELETE FROM documents WHERE key LIKE '%own%counter 7'", "is missing from the tables"),
        (
            "INSERT INTO documents SELECT family, key || 'x', tenant, due_era, due_tick, body FROM documents "
            "WHERE key LIKE '%own%counter 7'",
            "no entry of the ledger tells of it",
        ),
        ("UPDATE documents SET body = 'x' WHERE key LIKE '%own%counter 7'", "cannot be read"),
        ("UPDATE events SET body = replace(body, '\"by\":7', '\"by\":8')", "its hash does not match"),
        ("UPDATE events SET resource = 'counter 8' WHERE resource = 'counter 7'", "indexed columns"),
    ],
)
def test_tampering_with_its_records_is_found_and_mended(
    filled: House, tmp_path: Path, statement: str, says: str
) -> None:
    connection = apsw.Connection(str(tmp_path / "leases" / "leases.db"))
    before = connection.total_changes()
    connection.execute(statement)
    assert connection.total_changes() > before, "the tampering itself did nothing"
    problems = problems_of(filled)
    assert any(says in problem for problem in problems), problems
    if "events" not in statement:
        rebuild(filled.store)
        assert problems_of(filled) == []
    connection.close()
    filled.store.close()


def test_a_rebuilt_store_goes_on_as_before(house: House) -> None:
    fill(house)
    rebuild(house.store)
    assert problems_of(house) == []
    assert house.one(bump("counter 5", "again", by=1)).value == 6
    house.clock.advance(2)
    assert house.sweep() == 1, "what is due is still known"


def test_pruning_drops_what_its_family_lets_go_of(house: House) -> None:
    fill(house)
    house.clock.advance(40 * DAY)
    house.one(bump("counter 5", "late", by=1))
    pruned = prune(house.store, actor="olga", keep_ns=30 * DAY * SECOND)
    assert pruned.entries > 20
    assert problems_of(house) == []
    with house.store.snapshot() as snapshot:
        records = snapshot.state().of(COUNTER)
    assert own_key("default", "counter 19") not in records, "it was closed long ago"
    assert own_key("default", "counter 5") in records
    assert house.one(bump("counter 5", "later", by=1)).value == 7
    rebuild(house.store)
    assert problems_of(house) == []


def test_pruning_does_not_pass_what_a_family_keeps(house: House) -> None:
    fill(house)
    house.clock.advance(40 * DAY)
    house.one(bump("counter 5", "late", by=1))
    house.store.soft.put(COUNTER, {"slow reader": b"3", "quick reader": b"23"})
    assert prune(house.store, actor="olga", keep_ns=30 * DAY * SECOND, batch_entries=1).through <= 3
    house.store.soft.put(COUNTER, {"slow reader": b""})
    assert 3 < prune(house.store, actor="olga", keep_ns=30 * DAY * SECOND, batch_entries=1).through <= 23


def test_what_goes_although_its_end_is_kept_in_history_goes_from_what_that_replays_to(house: House) -> None:
    house.one(bump("a", "1"))
    reader = house.position()
    house.one(Close(request_id="2"))
    house.clock.advance(40 * DAY)
    house.store.soft.put(COUNTER, {"slow reader": str(reader).encode()})

    pruned = prune(house.store, actor="olga", keep_ns=30 * DAY * SECOND, batch_entries=1)

    assert (pruned.through, pruned.records) == (reader, 1)
    assert house.events()[-1].type == "counter.closed"
    assert problems_of(house) == []
    rebuild(house.store)
    with house.store.snapshot() as snapshot:
        assert snapshot.state().of(COUNTER) == {}


def test_pruning_goes_as_far_as_the_family_that_keeps_most_and_no_further(clock: FakeClock) -> None:
    def value_of_a(state: State, soft: Soft) -> int:
        del soft
        value: int = state.of(COUNTER)[own_key("default", "a")].value
        return value

    keepers = [keeper("any", lambda *_: None), keeper("most", value_of_a), keeper("less", lambda *_: 5)]
    known = Families((*toy_families(), *keepers))
    house = House(MemoryStore(clock=clock, families=known), clock)
    for number in range(6):
        house.one(bump("a" if number < 3 else "b", str(number)))
    clock.advance(40 * DAY)

    assert prune(house.store, actor="olga", keep_ns=30 * DAY * SECOND, batch_entries=1).through == 3
    assert problems_of(house) == []


def keeper(name: str, keeps: Callable[[State, Soft], int | None]) -> Family:
    """A family that has no records, and needs history all the same."""
    return Family(name=name, record=Record, events=(), evolve=evolve, keeps=keeps)


def test_a_backup_holds_it_and_a_restore_brings_it_back(filled: House, tmp_path: Path) -> None:
    path, copy = tmp_path / "leases", tmp_path / "copy.db"
    backup(path, copy)
    lost = filled.one(bump("counter 5", "lost", by=1))
    restore(copy, path, clock=filled.clock, families=toy_families())
    again = filled.one(bump("counter 5", "again", by=1))
    assert (lost.value, again.value) == (6, 6)
    assert again.fence > lost.fence, "no number comes again"
    assert problems_of(filled) == []
    filled.store.close()


def test_it_is_all_there_when_the_store_is_opened_again(filled: House, tmp_path: Path) -> None:
    filled.store.close()
    house = House(SqliteStore(tmp_path / "leases", clock=filled.clock, families=toy_families()), filled.clock)
    assert house.one(bump("counter 5", "again", by=1)).value == 6
    assert problems_of(house) == []
    house.store.close()


def test_the_ledger_names_its_families_once(house: House) -> None:
    fill(house)
    events = house.events("store")
    assert [expect(StoreOpened, event).families for event in events] == [{"lease": 1, "counter": 1}]


Lacking = Callable[[Path, FakeClock], SqliteStore]


def without_it(path: Path, clock: FakeClock) -> SqliteStore:
    return SqliteStore(path, clock=clock)


def with_an_older_one(path: Path, clock: FakeClock) -> SqliteStore:
    return SqliteStore(path, clock=clock, families=toy_families())


@pytest.mark.parametrize(("lacking", "name"), [(without_it, "counter 2"), (with_an_older_one, "counter 2")])
def test_an_engine_that_lacks_a_family_refuses_to_write_and_says_which(
    tmp_path: Path, clock: FakeClock, lacking: Lacking, name: str
) -> None:
    path = tmp_path / "leases"
    first = House(SqliteStore(path, clock=clock, families=toy_families(version=2)), clock)
    first.run(bump("a", "1"), claim("door"))
    position = first.position()
    store = lacking(path, clock)
    with pytest.raises(StoreUnusable, match=name):
        run_batch(store, [claim("gate")], Rules())
    with store.snapshot() as snapshot:
        assert [lease.resource for lease in snapshot.leases(LeaseQuery())] == ["door"], "it may still look"
    assert first.position() == position
    store.close()
    first.store.close()


@pytest.mark.parametrize("rebooted", [False, True])
@pytest.mark.parametrize(
    "write",
    [
        partial(open_epoch, to_write=True),
        resume,
        partial(prune, actor="olga"),
        partial(rotate, actor="olga", reason="monthly"),
        rebuild,
    ],
    ids=["epoch", "resume", "prune", "rotate", "rebuild"],
)
def test_an_engine_that_lacks_a_family_records_nothing_of_its_own_either(
    tmp_path: Path, clock: FakeClock, write: Callable[[SqliteStore], object], *, rebooted: bool
) -> None:
    path = tmp_path / "leases"
    first = House(SqliteStore(path, clock=clock, families=toy_families()), clock)
    first.run(bump("a", "1"), claim("door"))
    position = first.position()
    if rebooted:
        clock.reboot()
    store = without_it(path, clock)
    with pytest.raises(StoreUnusable, match="counter 1"):
        write(store)
    assert first.position() == position
    store.close()
    first.store.close()


def test_an_engine_with_an_older_version_of_a_family_does_not_rebuild_its_records(
    tmp_path: Path, clock: FakeClock
) -> None:
    path = tmp_path / "leases"
    first = House(SqliteStore(path, clock=clock, families=toy_families(version=2)), clock)
    first.run(bump("a", "1"))
    store = with_an_older_one(path, clock)
    with pytest.raises(StoreUnusable, match="counter 2"):
        rebuild(store)
    assert problems_of(first) == []
    store.close()
    first.store.close()


def test_a_store_from_before_there_was_a_family_admits_it_later(tmp_path: Path, clock: FakeClock) -> None:
    path = tmp_path / "leases"
    old = SqliteStore(path, clock=clock, families=LEASES)
    run_batch(old, [claim("door")], Rules())
    house = House(SqliteStore(path, clock=clock, families=toy_families()), clock)
    assert house.one(bump("a", "1")).value == 1
    assert problems_of(house) == []
    assert expect(FamiliesAdmitted, house.events("store")[-1]).families == {"counter": 1}
    with pytest.raises(StoreUnusable, match="counter 1"):
        run_batch(old, [claim("gate")], Rules())
    old.close()
    house.store.close()


def test_history_is_found_by_family_and_by_what_it_is_about(house: House) -> None:
    fill(house)
    with house.store.snapshot() as snapshot:
        found = snapshot.entries(EntryQuery(family=COUNTER, resource="counter 7"))
        assert [entry.event.type for entry in found] == ["counter.bumped"]
        assert not snapshot.entries(EntryQuery(family="lease", resource="counter 7"))


def test_pruning_removes_all_up_to_what_a_family_keeps_in_however_large_batches(house: House) -> None:
    fill(house)
    house.clock.advance(40 * DAY)
    house.one(bump("counter 5", "late", by=1))
    house.store.soft.put(COUNTER, {"reader": b"23"})
    assert prune(house.store, actor="olga", keep_ns=30 * DAY * SECOND).through == 23
