"""A prune that is killed at any moment leaves a store that verifies: pruned, or not at all."""

import itertools
import os
import signal
from pathlib import Path
from typing import Any

import apsw

from leasehold.engine import pruning
from leasehold.engine.pruning import prune
from leasehold.kernel.ledger.checkpoint import encode_state
from leasehold.testing.clock import FakeClock
from leasehold.testing.faults import FaultyDisk
from tests.stores.sqlite.support import Other, Pipe, client_of, open_store, others, problems_of
from tests.stores.sqlite.test_crash import die, trace_connections

DAYS_40 = 40 * 24 * 3600


def live(path: Path, clock: FakeClock) -> None:
    """Have something to prune, and something that stands."""
    with client_of(path, clock=clock) as client:
        for number in range(3):
            client.acquire(f"old-{number}").release()
        clock.advance(DAYS_40)
        client.acquire("young", ttl=3600).detach()


def positions(path: Path) -> list[int]:
    connection = apsw.Connection(str(path / "leases.db"))
    found = [row[0] for row in connection.execute("SELECT position FROM events ORDER BY position")]
    connection.close()
    return found


def is_whole(path: Path) -> bool:
    """Say whether it was pruned; whatever it is must be right."""
    assert problems_of(path) == []
    found = positions(path)
    assert found in ([*range(1, 9)], [8, 9]), found
    return found[0] == 8


def test_a_prune_that_dies_between_any_two_statements_leaves_all_or_nothing(tmp_path: Path) -> None:
    with others(Other(die_at_every_statement, tmp_path / "leases")) as (other,):
        *_, statements = other.hear_to_the_end()
        assert other.join() == 0
    assert any(statement.startswith("DELETE FROM events") for statement in statements)
    assert any(statement.startswith("INSERT INTO checkpoints") for statement in statements)


def die_at_every_statement(pipe: Pipe, path: Path) -> None:
    clock = FakeClock()
    live(path, clock)
    for at in itertools.count(1):
        told, tell = os.pipe()
        child = os.fork()
        if child == 0:
            trace_connections(at, tell)
            store = open_store(path, clock=clock)
            prune(store, actor="ops")
            os._exit(0)
        os.close(tell)
        _, status = os.waitpid(child, 0)
        with os.fdopen(told) as lines:
            statements = lines.read().splitlines()
        assert is_whole(path) == (status == 0)
        pipe.send(statements)
        if status == 0:
            break


def test_a_prune_that_dies_between_two_batches_has_removed_whole_batches(tmp_path: Path) -> None:
    with others(Other(die_at_every_statement_of_four_batches, tmp_path)) as (other,):
        begins: list[int] = other.hear_to_the_end()
        assert other.join() == 0
    assert sorted(set(begins)) == [1, 3, 5, 7, 8]


def die_at_every_statement_of_four_batches(pipe: Pipe, folder: Path) -> None:
    for at in itertools.count(1):
        clock, path = FakeClock(), folder / f"{at}.db"
        live(path, clock)
        told, tell = os.pipe()
        child = os.fork()
        if child == 0:
            trace_connections(at, tell)
            prune(open_store(path, clock=clock), actor="ops", batch_entries=2)
            os._exit(0)
        os.close(tell)
        os.close(told)
        _, status = os.waitpid(child, 0)
        assert problems_of(path) == []
        found = positions(path)
        assert found == [*range(found[0], found[-1] + 1)]
        pipe.send(found[0])
        if status == 0:
            break


def test_a_prune_that_was_killed_is_finished_by_the_next(tmp_path: Path) -> None:
    clock, path = FakeClock(), tmp_path / "leases"
    live(path, clock)
    with others(Other(die_in_the_second_batch, path, clock)) as (other,):
        assert other.join() != 0
    assert positions(path)[0] == 3
    store = open_store(path, clock=clock)
    assert prune(store, actor="ops").through == 7
    store.close()
    assert problems_of(path) == []


def die_in_the_second_batch(pipe: Pipe, path: Path, clock: FakeClock) -> None:
    del pipe
    module: Any = pruning
    batches = itertools.count(1)

    def die_at_the_second(*arguments: Any) -> bytes:
        if next(batches) == 2:
            os.kill(os.getpid(), signal.SIGKILL)
        return encode_state(*arguments)

    module.encode_state = die_at_the_second
    prune(open_store(path, clock=clock), actor="ops", batch_entries=2)


def test_a_prune_that_dies_in_any_write_or_sync_leaves_all_or_nothing(tmp_path: Path) -> None:
    with others(Other(die_at_every_call, tmp_path)) as (other,):
        was_done: list[bool] = other.hear_to_the_end()
        assert other.join() == 0
    assert len(was_done) > 9
    assert was_done.count(False) > 1, "it was never killed before it was done"


def die_at_every_call(pipe: Pipe, folder: Path) -> None:
    for deaths in itertools.count():
        clock, path = FakeClock(), folder / f"{deaths}.db"
        live(path, clock)
        child = os.fork()
        if child == 0:
            disk = FaultyDisk()
            store = open_store(path, clock=clock, disk=disk)
            disk.at("any", nth=deaths + 1, action=die)
            prune(store, actor="ops")
            disk.repair()
            os._exit(0)
        _, status = os.waitpid(child, 0)
        pipe.send(is_whole(path))
        if status == 0:
            break
