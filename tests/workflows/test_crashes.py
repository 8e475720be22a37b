"""An emission that is cut off at any point happened whole or not at all, and a retry is not a second one."""

import errno
import itertools
import os
from contextlib import suppress
from pathlib import Path

import pytest

from leasehold import StoreError
from leasehold.stores.sqlite import connection as connection_module
from leasehold.testing.faults import FaultyDisk, Operation
from tests.stores.sqlite.support import Other, Pipe, others
from tests.stores.sqlite.test_crash import die, trace_connections
from tests.workflows.support import client_of, emit_blindly, problems_of, steps_of

TTL = 3600


def test_an_orchestrator_that_dies_in_any_write_or_sync_has_emitted_once_or_not(tmp_path: Path) -> None:
    path = tmp_path / "leases"
    with others(Other(die_at_every_call, path)) as (other,):
        seen = other.hear_to_the_end()
        assert other.join() == 0
    assert len(seen) > 5
    assert {(acknowledged, before) for acknowledged, before, _ in seen} <= {(0, 0), (0, 1), (1, 1)}
    assert {after for *_, after in seen} == {1}
    assert problems_of(path) == []


def die_at_every_call(pipe: Pipe, path: Path) -> None:
    connection_module._CHECKPOINT_PAGES = 8  # so that checkpoints are among what it dies in
    for deaths in itertools.count():
        status, acknowledged = emit_in_a_child(path, deaths, die_in_call=deaths + 1)
        pipe.send(look_and_repeat(path, deaths, acknowledged))
        if status == 0:
            break


def test_an_orchestrator_that_dies_between_any_two_statements_has_emitted_once_or_not(tmp_path: Path) -> None:
    path = tmp_path / "leases"
    with others(Other(die_at_every_statement, path)) as (other,):
        seen = other.hear_to_the_end()
        assert other.join() == 0
    assert len(seen) > 5
    # Only who got past COMMIT has emitted anything.
    assert [before for _, before, _ in seen[:-1]] == [0] * (len(seen) - 1)
    assert {after for *_, after in seen} == {1}
    assert problems_of(path) == []


def die_at_every_statement(pipe: Pipe, path: Path) -> None:
    for deaths in itertools.count():
        status, acknowledged = emit_in_a_child(path, deaths, die_in_statement=deaths + 1)
        pipe.send(look_and_repeat(path, deaths, acknowledged))
        if status == 0:
            break


def emit_in_a_child(
    path: Path, number: int, *, die_in_call: int = 0, die_in_statement: int = 0
) -> tuple[int, int]:
    """Fork a process that emits an action and dies on the way; return how it ended, and what it heard."""
    with client_of(path, holder="child") as client:
        held = client.workflows.claim(f"w-{number}", ttl=TTL)
        held._held.detach()
    told, tell = os.pipe()
    silence = os.open(os.devnull, os.O_WRONLY)
    child = os.fork()
    if child == 0:
        if die_in_statement:
            trace_connections(die_in_statement, silence)
        disk = FaultyDisk()
        with client_of(path, holder="child", disk=disk) as client:
            if die_in_call:
                disk.at("any", nth=die_in_call, action=die)
            emit_blindly(client, f"w-{number}", held.lease_id, epoch=0, request=f"r-{number}")
            os.write(tell, b"1")
            disk.repair()
            os._exit(0)
    os.close(tell)
    os.close(silence)
    _, status = os.waitpid(child, 0)
    with os.fdopen(told) as acknowledged:
        return status, len(acknowledged.read())


def look_and_repeat(path: Path, number: int, acknowledged: int) -> tuple[int, int, int]:
    """Return what was acknowledged, how many actions there are, and how many after the same request again."""
    with client_of(path, holder="child") as client:
        before = len(steps_of(client, f"w-{number}"))
        status = client.workflows.find(f"w-{number}")
        assert status is not None
        assert status.workflow.epoch == before, "the action and its epoch are one commit"
        again = emit_blindly(
            client, f"w-{number}", status.workflow.lease_id, epoch=before, request=f"r-{number}"
        )
        assert (again.epoch, again.repeated) == (0, before == 1)
        return acknowledged, before, len(steps_of(client, f"w-{number}"))


@pytest.mark.parametrize(
    ("operation", "error"), [("write", errno.ENOSPC), ("write", errno.EIO), ("sync", errno.EIO)]
)
def test_an_emission_on_a_failing_disk_can_be_repeated_until_it_succeeds(
    tmp_path: Path, operation: Operation, error: int
) -> None:
    path, disk = tmp_path / "leases", FaultyDisk()
    with client_of(path, holder="ann", disk=disk) as client:
        orchestrator = client.workflows.claim("w", ttl=TTL)
        for nth in itertools.count(1):
            disk.repair()
            disk.fail(operation, nth=nth, error=error, lasting=True)
            with suppress(StoreError):
                orchestrator.emit("step", {"n": nth}, request_id=f"r-{nth}")
            fired = disk.fired
            disk.repair()
            action = orchestrator.emit("step", {"n": nth}, request_id=f"r-{nth}")
            assert action.epoch == nth - 1
            assert orchestrator.current_epoch == nth
            if not fired:
                break
        assert steps_of(client, "w") == list(range(nth))
    assert nth > 1
    assert problems_of(path) == []
