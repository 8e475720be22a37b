"""Several resources at once, at a shell: all of them, or none."""

import os
import signal
import subprocess

import pytest

from leasehold.kernel.lease.model import ReleaseReason
from tests.cli.shell import EXECUTABLE, UNTIL_END_OF_INPUT, Running, Shell, children_of, wait_until_gone

BOTH = ("door", "gate")


def ended(shell: Shell) -> dict[str, ReleaseReason | None]:
    """Return why each released lease was released."""
    with shell.client() as client:
        statuses = client.list(states=["released"]).statuses
    return {status.lease.resource: status.lease.release_reason for status in statuses}


def start(shell: Shell, *options: str) -> Running:
    """Start a run under both leases, and return once its command runs."""
    running = shell.start("run", *BOTH, *options, "--", *UNTIL_END_OF_INPUT)
    assert running.line() == "started"
    return running


def revoke(shell: Shell, resource: str) -> None:
    with shell.client() as client:
        (status,) = client.inspect(resource)
        client.revoke(status.lease.lease_id, reason="test")


def test_acquire_tells_every_lease_in_the_order_named(shell: Shell) -> None:
    text = shell.run("acquire", "gate", "door", "attic", "--ttl", "5m", "--holder", "ann").out
    titles = [line for line in text.splitlines() if not line.startswith(" ")]
    assert titles == ["acquired gate", "acquired door", "acquired attic"]
    leases = shell.leases()
    assert {lease.resource for lease in leases} == {"gate", "door", "attic"}
    assert all(lease.lease_id in text and str(lease.token) in text for lease in leases)
    assert not any(lease.bound_to_boot for lease in leases)


def test_json_has_a_list_for_several_and_the_lease_itself_for_one(shell: Shell) -> None:
    several = shell.json("acquire", "gate", "door", "--shared", "--metadata", "why=test", "--ttl", "1h")
    assert several.keys() == {"leases"}
    assert [lease["resource"] for lease in several["leases"]] == ["gate", "door"]
    assert {(lease["mode"], lease["ttl"]) for lease in several["leases"]} == {("shared", 3600)}
    assert [lease["metadata"] for lease in several["leases"]] == [{"why": "test"}] * 2
    one = shell.json("acquire", "attic")
    assert one["resource"] == "attic"
    assert one.keys() == several["leases"][0].keys()


@pytest.mark.parametrize("held", BOTH)
def test_if_somebody_holds_one_of_them_none_is_acquired(shell: Shell, held: str) -> None:
    shell.run("acquire", held, "--holder", "ann")
    result = shell.run("acquire", *BOTH, "--holder", "ben", code=75)
    assert result.out == ""
    assert f"{held} is held by ann" in result.err
    error = shell.run("acquire", *BOTH, "--holder", "ben", "--json", code=75).error
    assert (error["code"], error["facts"]["resource"]) == ("HELD", held)
    assert [shell.history(one) for one in BOTH if one != held] == [[]]


def test_what_one_holds_already_of_several_is_told_with_a_step_that_helps(shell: Shell) -> None:
    shell.run("acquire", "gate")
    for command in (["acquire", *BOTH], ["run", *BOTH, "--holder", shell.leases()[0].holder, "--", "true"]):
        result = shell.run(*command, code=75)
        assert "renew or release it, or replace it with `leasehold acquire gate --adopt`" in result.err


def test_of_several_paths_that_cover_one_another_the_highest_is_enough(shell: Shell) -> None:
    shell.run("acquire", "/repo/a", "/repo", "/repo/b/c", "door")
    assert {lease.resource for lease in shell.leases()} == {"/repo", "door"}


def test_acquire_waits_until_all_are_free_and_has_them_for_their_whole_time(shell: Shell) -> None:
    shell.run("acquire", "gate", "--holder", "ann", "--ttl", "1h")
    waiting = shell.start("acquire", *BOTH, "--holder", "ben", "--wait", "forever", "--ttl", "1h", "--json")
    shell.wait_for_event("gate", "queued")
    shell.run("release", "gate", "--holder", "ann")
    result = waiting.end()
    assert result.code == 0
    assert [lease["resource"] for lease in result.json["leases"]] == [*BOTH]
    assert all(lease["expires_in"] > 3000 for lease in result.json["leases"])
    assert {lease.resource for lease in shell.leases()} == {*BOTH}


def test_a_wait_for_several_in_vain_ends_with_75_and_leaves_nothing(shell: Shell) -> None:
    shell.run("acquire", "gate", "--holder", "ann")
    error = shell.run("acquire", *BOTH, "--holder", "ben", "--wait", "50ms", "--json", code=75).error
    assert (error["code"], error["facts"]["resource"]) == ("WAIT_TIMEOUT", "gate")
    assert [lease.resource for lease in shell.leases()] == ["gate"]
    assert [shell.json("queue", one)["waiters"] for one in BOTH] == [[], []]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_an_interrupted_wait_for_several_leaves_nothing(shell: Shell, number: int) -> None:
    shell.run("acquire", "gate", "--holder", "ann")
    waiting = shell.start("acquire", *BOTH, "--holder", "ben", "--wait", "1h")
    shell.wait_for_event("gate", "queued")
    waiting.send(number)
    assert waiting.end() == (128 + number, "", "")
    assert [lease.resource for lease in shell.leases()] == ["gate"]
    assert [shell.json("queue", one)["waiters"] for one in BOTH] == [[], []]


def test_an_acquire_of_several_that_is_interrupted_before_it_is_granted_leaves_nothing(shell: Shell) -> None:
    shell.run("acquire", "something else")
    with shell.stalled_writer():
        acquiring = shell.start("acquire", *BOTH)
        shell.wait_until_queued(acquiring.process.pid)
        acquiring.send(signal.SIGINT)
        assert acquiring.end() == (130, "", "")
    assert [shell.history(one) for one in BOTH] == [[], []]


def test_leases_that_nobody_could_be_told_about_are_given_back(shell: Shell) -> None:
    command = ["sh", "-c", f'exec "$0" acquire {" ".join(BOTH)} >/dev/full', EXECUTABLE]
    finished = subprocess.run(
        command, env=shell.environment, cwd=shell.folder, capture_output=True, timeout=60, check=False
    )
    assert finished.returncode == 1
    assert b"what was acquired is given back" in finished.stderr
    assert [shell.history(one) for one in BOTH] == [["issued", "released"]] * 2


def test_an_interruption_after_all_was_told_does_not_leave_a_part(shell: Shell) -> None:
    shell.sabotage(
        "import os, signal\n"
        "from leasehold.client.blocking.lease import HeldLease\n"
        "detach = HeldLease.detach\n"
        "def detach_and_interrupt(lease):\n"
        "    detach(lease)\n"
        "    os.kill(os.getpid(), signal.SIGINT)\n"
        "HeldLease.detach = detach_and_interrupt\n"
    )
    shell.run("acquire", *BOTH)
    assert {lease.resource for lease in shell.leases()} == {*BOTH}


def test_a_command_finds_all_its_leases_in_the_environment_in_the_order_named(shell: Shell) -> None:
    names = ["LEASEHOLD_RESOURCE", "LEASEHOLD_TOKEN", "LEASEHOLD_LEASE_ID", "LEASEHOLD_HOLDER"]
    resources = ["gate", "door", "attic"]
    script = f"printenv {' '.join(names)}; exec cat"
    running = shell.start("run", *resources, "--", "sh", "-c", script)
    found = [[running.line() for _ in resources] for _ in names[:3]]
    holder = running.line()
    by_resource = {lease.resource: lease for lease in shell.leases()}
    leases = [by_resource[resource] for resource in resources]
    assert found == [
        resources,
        [str(lease.token) for lease in leases],
        [lease.lease_id for lease in leases],
    ]
    assert {lease.holder for lease in leases} == {holder}
    assert holder.endswith(f"/{running.process.pid}")


@pytest.mark.parametrize("code", [0, 3])
def test_all_leases_are_released_after_the_command(shell: Shell, code: int) -> None:
    shell.run("run", *BOTH, "--", "sh", "-c", f"exit {code}", code=code)
    reason = ReleaseReason.COMPLETED if code == 0 else ReleaseReason.ABORTED
    assert ended(shell) == dict.fromkeys(BOTH, reason)


@pytest.mark.parametrize("held", BOTH)
def test_a_command_is_not_started_without_all_leases(shell: Shell, held: str) -> None:
    shell.run("acquire", held, "--holder", "ann")
    result = shell.run("run", *BOTH, "--", "echo", "must not run", code=75)
    assert result.out == ""
    assert [shell.history(one) for one in BOTH if one != held] == [[]]


def test_all_leases_are_renewed_while_the_command_runs(shell: Shell) -> None:
    running = start(shell, "--ttl", "500ms")
    for one in BOTH:
        shell.wait_for_event(one, "renewed")
    running.end_input()
    assert running.end().code == 0


@pytest.mark.parametrize("lost", BOTH)
def test_losing_any_of_the_leases_ends_the_command_and_releases_the_others(shell: Shell, lost: str) -> None:
    running = start(shell, "--ttl", "1s", "--json")
    (keeper_process,) = children_of(running.process.pid)
    (launcher,) = children_of(keeper_process)
    (command,) = children_of(launcher)
    revoke(shell, lost)
    result = running.end()
    wait_until_gone(command)
    assert (result.code, result.error["code"]) == (76, "LEASE_LOST")
    assert result.error["facts"]["resource"] == lost
    assert "The command was ended" in result.error["message"]
    assert ended(shell) == {one: ReleaseReason.ABORTED for one in BOTH if one != lost}


@pytest.mark.parametrize("lost", BOTH)
def test_a_lease_of_several_that_ended_just_before_the_command_did_is_lost(shell: Shell, lost: str) -> None:
    running = start(shell, "--ttl", "1h")
    revoke(shell, lost)
    running.end_input()
    result = running.end()
    assert result.code == 76
    assert f"on {lost} had ended before the command did (revoked by " in result.err
    assert shell.leases() == []


def test_killing_leasehold_ends_the_command_and_frees_all_resources_at_once(shell: Shell) -> None:
    running = start(shell, "--ttl", "1h")
    (keeper_process,) = children_of(running.process.pid)
    (launcher,) = children_of(keeper_process)
    (command,) = children_of(launcher)
    running.send(signal.SIGKILL)
    wait_until_gone(command)
    for one in BOTH:
        shell.wait_for_event(one, "released")


def test_killing_the_process_that_keeps_several_leases_ends_the_command(shell: Shell) -> None:
    running = start(shell)
    (keeper_process,) = children_of(running.process.pid)
    (launcher,) = children_of(keeper_process)
    (command,) = children_of(launcher)
    os.kill(keeper_process, signal.SIGKILL)
    result = running.end()
    assert result.code == 76
    assert "kept the leases on door, gate was ended by signal 9, so the leases can no longer" in result.err
    wait_until_gone(command)


@pytest.mark.parametrize("short", BOTH)
def test_the_leases_are_trusted_as_long_as_the_one_whose_window_closes_first(
    shell: Shell, short: str
) -> None:
    # Those of one claim have windows of one length until a renewal of one of them comes later.
    shell.sabotage(
        "from leasehold.client.blocking.lease import HeldLease\n"
        "remaining = HeldLease.remaining.fget\n"
        "HeldLease.remaining = property(\n"
        f"    lambda lease: remaining(lease) if lease.resource == {short!r} else 3600.0\n"
        ")\n"
    )
    running = start(shell, "--ttl", "1s")
    (keeper_process,) = children_of(running.process.pid)
    (launcher,) = children_of(keeper_process)
    (command,) = children_of(launcher)
    os.kill(keeper_process, signal.SIGSTOP)
    result = running.end()
    assert result.code == 76
    assert "has stopped working" in result.err
    wait_until_gone(command)


def test_a_run_that_waits_for_several_is_ended_by_a_signal_and_leaves_nothing(shell: Shell) -> None:
    shell.run("acquire", "gate", "--holder", "ann")
    waiting = shell.start("run", *BOTH, "--holder", "ben", "--wait", "1h", "--", "echo", "must not run")
    shell.wait_for_event("gate", "queued")
    waiting.send(signal.SIGTERM)
    assert waiting.end() == (128 + signal.SIGTERM, "", "")
    assert [lease.resource for lease in shell.leases()] == ["gate"]
    assert [shell.json("queue", one)["waiters"] for one in BOTH] == [[], []]


def test_a_run_that_is_killed_while_it_waits_for_several_leaves_their_queues(shell: Shell) -> None:
    shell.run("acquire", "gate", "--holder", "ann")
    waiting = shell.start("run", *BOTH, "--holder", "ben", "--wait", "1h", "--", "echo", "must not run")
    shell.wait_for_event("gate", "queued")
    waiting.send(signal.SIGKILL)
    for one in BOTH:
        shell.wait_for_event(one, "left")
    assert waiting.end().out == ""
    assert [lease.resource for lease in shell.leases()] == ["gate"]


def test_a_run_starts_its_command_when_all_are_free(shell: Shell) -> None:
    shell.run("acquire", "gate", "--holder", "ann")
    waiting = shell.start("run", *BOTH, "--holder", "ben", "--wait", "1h", "--", *UNTIL_END_OF_INPUT)
    shell.wait_for_event("gate", "queued")
    shell.run("release", "gate", "--holder", "ann")
    assert waiting.line() == "started"
    assert {lease.resource for lease in shell.leases()} == {*BOTH}
    waiting.end_input()
    assert waiting.end().code == 0
    assert shell.leases() == []
