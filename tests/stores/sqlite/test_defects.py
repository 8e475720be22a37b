"""Damage to the file, and a schema that somebody has changed, are found; whatever the ledger says."""

import random
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import apsw
import pytest

from leasehold.engine.audit import audit
from leasehold.errors import StoreError
from leasehold.stores.sqlite.backup import backup
from leasehold.stores.sqlite.defects import find_defects
from leasehold.stores.sqlite.files import DATABASE
from leasehold.testing.clock import FakeClock
from tests.stores.sqlite.support import client_of, open_store, problems_of

FLIPS = 400
"""How many bits are flipped anywhere in the file, one after the other."""


@pytest.fixture
def path(tmp_path: Path, clock: FakeClock) -> Path:
    """A store in which every table and every index that can have a row has one, and nobody is there."""
    path = tmp_path / "leases"
    with client_of(path, clock=clock) as client:
        client.acquire("gate").release()
        clock.advance(7200)
        client.prune(keep=3600)
        client.acquire("door", metadata={"a": 1}).detach()
        client.acquire("window", mode="shared").detach()
        both = [client.acquire("one"), client.acquire("two")]
        client.renew_many(both)
        for lease in both:
            lease.detach()
    return path


def tampered(path: Path, *statements: str) -> list[str]:
    """What is wrong with a store once somebody with a SQL shell was there."""
    with closing(apsw.Connection(str(path / DATABASE))) as shell:
        shell.pragma("writable_schema", True)
        for statement in statements:
            shell.execute(statement)
    return problems_of(path)


def test_a_store_that_nobody_has_touched_has_no_defects(path: Path) -> None:
    assert problems_of(path) == []


@pytest.mark.parametrize(
    ("statement", "problem"),
    [
        (
            "CREATE TRIGGER spy AFTER INSERT ON leases BEGIN DELETE FROM leases; END",
            "the schema has a trigger spy that leasehold did not make",
        ),
        ("CREATE INDEX quick ON leases (token)", "the schema has an index quick that leasehold did not make"),
        ("CREATE VIEW v AS SELECT 1", "the schema has a view v that leasehold did not make"),
        ("CREATE TABLE t (x)", "the schema has a table t that leasehold did not make"),
        ("ANALYZE", "the schema has a table sqlite_stat1 that leasehold did not make"),
        ("DROP INDEX leases_exclusive", "the schema lacks the index leases_exclusive"),
        ("DROP INDEX events_by_request", "the schema lacks the index events_by_request"),
        ("DROP TABLE soft_state", "the schema lacks the table soft_state"),
        (
            "ALTER TABLE leases ADD COLUMN note TEXT",
            "the table leases is not defined as leasehold defines it",
        ),
        (
            "UPDATE sqlite_schema SET sql = replace(sql, 'CHECK (only_row = 1)', '') "
            "WHERE name = 'authority'",
            "the table authority is not defined as leasehold defines it",
        ),
        ("DELETE FROM migrations", "the table migrations does not list the migrations that made this schema"),
        (
            "UPDATE migrations SET name = 'other' WHERE version = 1",
            "the table migrations does not list the migrations that made this schema",
        ),
        (
            "UPDATE migrations SET status = 'failed', error_message = 'x'",
            "the table migrations does not list the migrations that made this schema",
        ),
        (
            "INSERT INTO migrations (version, name, applied_at) VALUES (99, 'more', 0)",
            "the table migrations does not list the migrations that made this schema",
        ),
        (
            "INSERT INTO checkpoints SELECT position - 1, state FROM checkpoints",
            "the table checkpoints has 2 rows; at most one belongs there",
        ),
    ],
)
def test_what_somebody_changed_is_named(path: Path, statement: str, problem: str) -> None:
    assert problem in tampered(path, statement)


def test_an_index_that_was_made_anew_with_another_condition_is_named(path: Path) -> None:
    problems = tampered(
        path,
        "DROP INDEX leases_exclusive",
        "CREATE UNIQUE INDEX leases_exclusive ON leases (tenant, resource) WHERE mode = 'none'",
    )
    assert "the index leases_exclusive is not defined as leasehold defines it" in problems


@pytest.mark.parametrize("table", ["leases", "authority", "keys", "checkpoints", "events", "migrations"])
def test_a_table_that_was_emptied_is_found(path: Path, table: str) -> None:
    assert tampered(path, f"DELETE FROM {table}")


def test_each_table_that_was_not_emptied_with_the_ledger_is_named(path: Path) -> None:
    problems = tampered(path, "DELETE FROM events", "DELETE FROM checkpoints")
    assert problems[:3] == [
        f"the ledger is empty, and the table {table} is not" for table in ("authority", "keys", "leases")
    ]


def test_a_table_that_is_missing_makes_a_store_unusable(path: Path) -> None:
    with pytest.raises(StoreError, match=r"another schema than leasehold made \(.*no such table: events"):
        tampered(path, "DROP TABLE events")


def index_cells(path: Path, index: str) -> Iterator[int]:
    """The places in the file of the bytes that an index has of its entries, if it fits one page."""
    with closing(apsw.Connection(str(path / DATABASE))) as connection:
        root = connection.execute("SELECT rootpage FROM sqlite_schema WHERE name = ?", (index,)).get
        size = connection.pragma("page_size")
    page = (path / DATABASE).read_bytes()[(root - 1) * size :][:size]
    assert page[0] == 10, "a leaf of an index"
    count = int.from_bytes(page[3:5])
    assert count, "the index has entries"
    for number in range(count):
        start = int.from_bytes(page[8 + 2 * number :][:2])
        yield from range((root - 1) * size + start, (root - 1) * size + start + 1 + page[start])


def flip(path: Path, place: int, bit: int) -> None:
    """Flip a bit, or flip it back."""
    with (path / DATABASE).open("r+b") as file:
        file.seek(place)
        (byte,) = file.read(1)
        file.seek(place)
        file.write(bytes([byte ^ 1 << bit]))


def test_a_flipped_bit_in_the_unique_index_is_found_wherever_it_is(path: Path) -> None:
    for place in index_cells(path, "leases_exclusive"):
        flip(path, place, place % 8)
        assert problems_of(path), (place, place % 8)
        flip(path, place, place % 8)
    assert problems_of(path) == []


def test_damage_is_found_although_the_undamaged_page_is_still_in_memory(path: Path) -> None:
    with closing(open_store(path)) as store:
        assert audit(store).problems == []
        flip(path, next(index_cells(path, "leases_exclusive")) + 8, 1)
        assert audit(store, skip_storage=True).problems == []
        (problem, *_) = audit(store).problems
        assert problem.startswith("SQLite finds damage: row 1 missing from index leases_exclusive")


def content_of(path: Path) -> Any:
    """All that a store says, by its tables and by each index; but for what can be lost without harm."""
    with closing(apsw.Connection(str(path / DATABASE))) as connection:
        schema: list[Any] = connection.execute(
            "SELECT type, name, tbl_name, sql FROM sqlite_schema"
        ).fetchall()
        said: list[Any] = [schema]
        for kind, name, table, sql in schema:
            if table in ("soft_state", "migrations"):
                continue
            if kind == "table":
                said.append(connection.execute(f"SELECT * FROM {name} NOT INDEXED").fetchall())
            elif kind == "index" and sql is not None:
                condition = sql[sql.index("WHERE") :]
                rows = connection.execute(f"SELECT * FROM {table} INDEXED BY {name} {condition}").fetchall()
                said.append(sorted(rows))
        return said


def test_a_bit_that_is_flipped_anywhere_is_found_or_changes_nothing(path: Path) -> None:
    before, size = content_of(path), (path / DATABASE).stat().st_size
    found = 0
    for seed in range(FLIPS):
        chance = random.Random(seed)
        place, bit = chance.randrange(size), chance.randrange(8)
        flip(path, place, bit)
        try:
            problems = problems_of(path)
        except StoreError as error:
            problems = [str(error)]
        found += bool(problems)
        assert problems or content_of(path) == before, (place, bit)
        flip(path, place, bit)
    assert found > FLIPS // 20, "most of a small store is empty, but not all of it"


def test_progress_is_told_and_what_it_raises_ends_the_search(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("leasehold.stores.sqlite.defects._STEPS_PER_LOOK", 100)
    monkeypatch.setattr("leasehold.stores.sqlite.defects._PAGES_PER_LOOK", 1)
    told: list[tuple[int, int]] = []

    def stop(done: int, total: int) -> None:
        told.append((done, total))
        if len(told) == 5:
            raise KeyboardInterrupt

    with closing(apsw.Connection(str(path / DATABASE))) as connection:
        with pytest.raises(KeyboardInterrupt):
            find_defects(connection, stop)
        pages = connection.pragma("page_count")
        assert told == [(number, pages) for number in range(1, 6)]
        assert find_defects(connection) == [], "and what was told is told no longer"
        assert len(told) == 5


def test_the_search_can_be_skipped(path: Path) -> None:
    tampered(path, "CREATE INDEX quick ON leases (token)")
    with closing(open_store(path)) as store:
        assert audit(store).problems != []
        found = audit(store, skip_storage=True)
    assert (found.problems, found.storage_checked) == ([], False)


def test_a_store_with_a_damaged_index_is_not_backed_up(path: Path, tmp_path: Path) -> None:
    flip(path, next(index_cells(path, "leases_exclusive")) + 8, 1)
    with pytest.raises(StoreError, match="missing from index leases_exclusive"):
        backup(path, tmp_path / "copy")
    assert not (tmp_path / "copy").exists()
