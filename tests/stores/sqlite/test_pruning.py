"""A prune that is killed at any moment leaves a store that verifies: pruned, or not at all."""

import itertools
import os
from pathlib import Path

import apsw

from leasehold.engine.pruning import prune
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
    connection = apsw.Connection(str(path))
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
    with others(Other(die_at_every_statement, tmp_path / "leases.db")) as (other,):
        statements: list[str] = other.hear()
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
        if status == 0:
            break
    pipe.send(statements)


def test_a_prune_that_dies_in_any_write_or_sync_leaves_all_or_nothing(tmp_path: Path) -> None:
    with others(Other(die_at_every_call, tmp_path)) as (other,):
        deaths, done = other.hear()
        assert other.join() == 0
    assert deaths > 8
    assert done < deaths, "it was never killed before it was done"


def die_at_every_call(pipe: Pipe, folder: Path) -> None:
    done = 0
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
        done += is_whole(path)
        if status == 0:
            break
    pipe.send((deaths, done))
