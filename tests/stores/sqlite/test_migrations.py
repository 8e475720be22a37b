"""The schema comes to be once, however many make it, and however often."""

from contextlib import closing
from pathlib import Path

import apsw

from leasehold.stores.sqlite.migrations import all_migrations, migrate
from leasehold.stores.sqlite.write_queue import turn
from tests.stores.sqlite.support import Other, Pipe, client_of, open_store, others, problems_of, tokens_of

STEPS = [(step.version, step.name, step.description, "success") for step in all_migrations()]


def recorded_in(path: Path) -> list[tuple[object, ...]]:
    with closing(apsw.Connection(str(path / "leases.db"))) as connection:
        columns = "version, name, description, status"
        return list(connection.execute(f"SELECT {columns} FROM migrations ORDER BY version"))


def test_every_step_has_a_number_a_name_and_a_description() -> None:
    assert [version for version, *_ in STEPS] == list(range(1, len(STEPS) + 1))
    assert all(name and description for _, name, description, _ in STEPS)


def test_steps_that_were_run_are_recorded_and_not_run_again(tmp_path: Path) -> None:
    path = tmp_path / "leases"
    with client_of(path) as client:
        client.acquire("resource")
    for _ in range(2):
        with closing(apsw.Connection(str(path / "leases.db"))) as connection, turn(path):
            migrate(connection, path)
    assert recorded_in(path) == STEPS
    assert len(tokens_of(path)) == 1
    assert problems_of(path) == []


def test_processes_that_make_the_same_store_at_once_make_one(tmp_path: Path) -> None:
    path = tmp_path / "store" / "leases"
    with others(*(Other(make_at_once, path, f"holder-{number}") for number in range(8))) as processes:
        for other in processes:
            assert other.hear() == "ready"
        for other in processes:
            other.tell("go")
        tokens: list[int] = [other.hear() for other in processes]
        assert [other.join() for other in processes] == [0] * 8
    assert len(set(tokens)) == 8
    assert tokens_of(path) == set(tokens)
    assert recorded_in(path) == STEPS
    assert problems_of(path) == []


def make_at_once(pipe: Pipe, path: Path, holder: str) -> None:
    pipe.send("ready")
    pipe.recv()
    with client_of(path, holder=holder) as client:
        pipe.send(client.acquire(f"resource of {holder}").token)


def test_a_store_that_came_without_its_log_gets_one(tmp_path: Path) -> None:
    path = tmp_path / "leases"
    open_store(path).close()
    with closing(apsw.Connection(str(path / "leases.db"))) as connection:
        assert connection.pragma("journal_mode", "delete") == "delete"
    open_store(path).close()
    with closing(apsw.Connection(str(path / "leases.db"))) as connection:
        assert connection.pragma("journal_mode") == "wal"
