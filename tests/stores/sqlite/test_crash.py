"""Processes that die in the middle of a write, and lose nothing that was acknowledged."""

import itertools
import os
import signal
from pathlib import Path

import apsw
import pytest

from leasehold.stores.sqlite import connection as connection_module
from leasehold.stores.sqlite import opened
from leasehold.testing.faults import FaultyDisk
from tests.stores.sqlite.support import Other, Pipe, client_of, others, problems_of, tokens_of

TTL = 3600


def die(*_: object) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


@pytest.mark.parametrize("durability", ["full", "fast"])
def test_a_process_that_dies_in_any_write_or_sync_loses_nothing_acknowledged(
    tmp_path: Path, durability: str
) -> None:
    path = tmp_path / "leases"
    with others(Other(die_at_every_call, path, durability)) as (other,):
        acknowledged: list[list[int]] = other.hear_to_the_end()
        assert other.join() == 0
    assert len(acknowledged) > 17
    tokens = [token for each in acknowledged for token in each]
    assert tokens == sorted(set(tokens)), "a token came again"
    assert set(tokens) <= tokens_of(path)
    assert problems_of(path) == []


def die_at_every_call(pipe: Pipe, path: Path, durability: str) -> None:
    """Fork a process that acquires and dies in the nth call to the disk, for every n until none dies."""
    connection_module._CHECKPOINT_PAGES = 8  # so that checkpoints are among what it dies in
    for deaths in itertools.count():
        told, tell = os.pipe()
        child = os.fork()
        if child == 0:
            disk = FaultyDisk()
            with client_of(path, holder=f"child-{deaths}", disk=disk, durability=durability) as client:
                disk.at("any", nth=deaths + 1, action=die)
                for number in range(2):
                    token = client.acquire(f"resource-{deaths}-{number}", ttl=TTL).detach().token
                    os.write(tell, b"%d\n" % token)
                disk.repair()
            os._exit(0)
        os.close(tell)
        _, status = os.waitpid(child, 0)
        with os.fdopen(told) as acknowledged:
            tokens = [int(line) for line in acknowledged]
        with client_of(path, holder="survivor") as client:
            tokens.append(client.acquire(f"after-{deaths}", ttl=TTL).detach().token)
        pipe.send(tokens)
        if status == 0:
            break


def test_a_process_that_dies_between_any_two_statements_of_a_transaction_leaves_none_of_it(
    tmp_path: Path,
) -> None:
    path = tmp_path / "leases"
    with others(Other(die_at_every_statement, path)) as (other,):
        *_, statements = other.hear_to_the_end()
        assert other.join() == 0
    assert statements[0] == "BEGIN IMMEDIATE"
    assert statements[-1] == "COMMIT"
    assert any(statement.startswith("INSERT INTO leases") for statement in statements)
    assert any(statement.startswith("INSERT INTO events") for statement in statements)
    # One grant from before, and one of the process that was let live.
    assert len(tokens_of(path)) == 2
    assert problems_of(path) == []


def die_at_every_statement(pipe: Pipe, path: Path) -> None:
    with client_of(path, holder="before") as client:
        client.acquire("before", ttl=TTL).detach()
    for at in itertools.count(1):
        told, tell = os.pipe()
        child = os.fork()
        if child == 0:
            trace_connections(at, tell)
            with client_of(path, holder="child") as client:
                os.write(tell, b"---\n")
                client.acquire("resource", ttl=TTL).detach()
                os._exit(0)
        os.close(tell)
        _, status = os.waitpid(child, 0)
        with os.fdopen(told) as lines:
            statements = lines.read().partition("---\n")[2].splitlines()
        assert problems_of(path) == []
        pipe.send(statements)
        if status == 0:
            break
        assert len(tokens_of(path)) == 1, f"{statements} left something behind"


def trace_connections(at: int, tell: int) -> None:
    """Report each statement that the writer runs once it is connected, and die instead of the nth."""
    plain = connection_module.open_connection

    def open_traced(path: Path, *, durability: str, vfs: str | None = None) -> apsw.Connection:
        connection = plain(path, durability=durability, vfs=vfs)
        numbers = itertools.count(1)
        writing = False

        def trace(cursor: apsw.Cursor, statement: str, bindings: object) -> bool:
            nonlocal writing
            writing = writing or statement == "BEGIN IMMEDIATE"
            if writing:
                os.write(tell, statement.encode() + b"\n")
                if next(numbers) == at:
                    die()
            return True

        connection.exec_trace = trace
        return connection

    vars(opened)["open_connection"] = open_traced
