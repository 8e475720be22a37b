"""Waiting at a shell: acquire and run that wait, queue, transfer, upgrade and downgrade."""

import signal
from typing import Any

import pytest

from tests.cli.shell import EXECUTABLE, UNTIL_END_OF_INPUT, Shell


def wait_until_queued(shell: Shell) -> None:
    shell.wait_for_event("door", "queued")


def test_acquire_waits_for_its_turn(shell: Shell) -> None:
    held = shell.json("acquire", "door", "--holder", "ann", "--ttl", "1h")
    waiting = shell.start("acquire", "door", "--holder", "ben", "--wait", "forever", "--ttl", "1h", "--json")
    wait_until_queued(shell)
    shell.run("release", held["lease_id"], "--holder", "ann")
    result = waiting.end()
    assert result.code == 0
    assert result.json["holder"] == "ben"
    assert result.json["expires_in"] > 3000, "its whole time, not just until it is confirmed"
    assert result.json["token"] > held["token"]


def test_a_wait_in_vain_ends_with_75_and_tells_the_place_in_the_queue(shell: Shell) -> None:
    shell.run("acquire", "door", "--holder", "ann")
    result = shell.run("acquire", "door", "--holder", "ben", "--wait", "50ms", code=75)
    assert "still held by ann" in result.err
    assert "place 1 in the queue" in result.err
    error = shell.run("acquire", "door", "--holder", "ben", "--wait", "50ms", "--json", code=75).error
    assert (error["code"], error["facts"]["position"]) == ("WAIT_TIMEOUT", 1)
    assert error["facts"]["waited"] >= 0.05


def test_what_the_registrar_keeps_closed_says_why_and_for_whom(shell: Shell) -> None:
    held = shell.json("acquire", "door", "--holder", "ann", "--lock-delay", "1h")
    shell.run("revoke", held["lease_id"], "--reason", "test")
    shown = shell.run("show", "door").out
    assert shown.startswith("door is kept closed\n")
    assert "registrar (kept for ann)" in shown
    assert "ann did not release it, and had asked for a lock-delay of 1h; ann may come back before" in shown
    assert "registrar (kept for ann)" in shell.run("ls").out
    assert "door is held by registrar (kept for ann)" in shell.run("queue", "door").out
    assert shell.json("ls")["leases"][0]["kept_for"] == "ann"
    refused = shell.run("acquire", "door", "--holder", "ben", "--wait", "50ms", code=75).err
    assert "door is still kept closed for at most" in refused
    assert "after a lease that was not released" in refused
    assert "ask them" not in refused


def test_an_interrupted_wait_leaves_the_queue(shell: Shell) -> None:
    shell.run("acquire", "door", "--holder", "ann")
    waiting = shell.start("acquire", "door", "--holder", "ben", "--wait", "1h")
    wait_until_queued(shell)
    waiting.send(signal.SIGINT)
    assert waiting.end().code == 130
    assert shell.json("queue", "door")["waiters"] == []


def test_run_waits_and_a_signal_ends_the_wait(shell: Shell) -> None:
    shell.run("acquire", "door", "--holder", "ann")
    waiting = shell.start("run", "door", "--holder", "ben", "--wait", "1h", "--", *UNTIL_END_OF_INPUT)
    wait_until_queued(shell)
    waiting.send(signal.SIGTERM)
    assert waiting.end().code == 128 + signal.SIGTERM
    assert shell.json("queue", "door")["waiters"] == []


def test_run_starts_its_command_when_its_turn_has_come(shell: Shell) -> None:
    held = shell.json("acquire", "door", "--holder", "ann")
    waiting = shell.start("run", "door", "--holder", "ben", "--wait", "1h", "--", *UNTIL_END_OF_INPUT)
    wait_until_queued(shell)
    shell.run("release", held["lease_id"], "--holder", "ann")
    assert waiting.line() == "started"
    waiting.end_input()
    assert waiting.end().code == 0


def test_a_run_that_is_killed_while_it_waits_leaves_the_queue(shell: Shell) -> None:
    shell.run("acquire", "door", "--holder", "ann")
    waiting = shell.start("run", "door", "--holder", "ben", "--wait", "1h", "--", *UNTIL_END_OF_INPUT)
    wait_until_queued(shell)
    waiting.send(signal.SIGKILL)
    left = shell.wait_for_event("door", "left")
    assert getattr(left.event, "holder", None) == "ben"
    waiting.end()


def test_queue_and_show_and_ls_tell_who_waits(shell: Shell) -> None:
    assert shell.run("queue", "door", code=1).err.startswith("leasehold: there is no store")
    shell.run("acquire", "door", "--holder", "ann", "--ttl", "1h")
    assert "nobody waits for door" in shell.run("queue", "door").out
    waiting = shell.start("acquire", "door", "--holder", "ben", "--wait", "1h", "--priority", "7")
    wait_until_queued(shell)
    queue = shell.json("queue", "door")
    (waiter,) = queue["waiters"]
    assert [status["holder"] for status in queue["held_by"]] == ["ann"]
    assert (waiter["holder"], waiter["position"], waiter["priority"]) == ("ben", 1, 7)
    assert 3500 < waiter["estimate"] <= 3600
    assert waiter["waited"] >= 0
    assert waiter["waiting_since"].endswith("Z")
    text = shell.run("queue", "door").out
    assert "door is held by ann (exclusive)" in text
    assert "ben" in text
    assert shell.json("show", "door")["waiters"][0]["lease_id"] == waiter["lease_id"]
    assert "ben" in shell.run("show", "door").out
    states = {lease["holder"]: lease["state"] for lease in shell.json("ls")["leases"]}
    assert states == {"ann": "active", "ben": "pending"}
    waiting.send(signal.SIGINT)
    waiting.end()


def test_transfer_hands_a_lease_over(shell: Shell) -> None:
    mine = shell.json("acquire", "door", "--holder", "ann")
    theirs = shell.json("transfer", mine["lease_id"], "--to", "ben", "--holder", "ann")
    assert theirs["holder"] == "ben"
    assert theirs["token"] > mine["token"]
    assert "--holder" in shell.run("transfer", theirs["lease_id"], "--to", "cid", code=76).err


def test_upgrade_and_downgrade_change_how_a_lease_is_held(shell: Shell) -> None:
    mine = shell.json("acquire", "door", "--shared", "--holder", "ann")
    assert mine["mode"] == "shared"
    exclusive = shell.json("upgrade", mine["lease_id"], "--holder", "ann")
    assert exclusive["mode"] == "exclusive"
    assert exclusive["token"] > mine["token"]
    assert "can be shared" in shell.run("downgrade", mine["lease_id"], "--holder", "ann").out
    shell.run("acquire", "door", "--shared", "--holder", "ben")
    shell.run("upgrade", mine["lease_id"], "--holder", "ann", "--wait", "20ms", code=75)


@pytest.mark.parametrize("wait", ["soon", "-1", ""])
def test_a_wait_that_makes_no_sense_is_wrong_usage(shell: Shell, wait: str) -> None:
    assert "invalid duration" in shell.run("acquire", "door", f"--wait={wait}", code=2).err


def test_a_priority_that_does_not_exist_is_refused(shell: Shell) -> None:
    result: Any = shell.run("acquire", "door", "--priority", "11", code=2)
    assert "priority" in result.err


def test_who_is_refused_is_told_what_the_holder_needs_it_for(shell: Shell) -> None:
    shell.run("acquire", "door", "--holder", "ann", "--reason", "nightly build")
    for wait, what in (("0", "is held by"), ("50ms", "is still held by")):
        claim = ("acquire", "door", "--holder", "ben", "--wait", wait)
        assert f"door {what} ann (nightly build)" in shell.run(*claim, code=75).err
        assert shell.run(*claim, "--json", code=75).error["facts"]["reason"] == "nightly build"


@pytest.mark.parametrize("command", [("acquire", "door"), ("run", "door")], ids=lambda words: words[0])
def test_who_waits_at_a_terminal_is_told_once_for_whom(shell: Shell, command: tuple[str, ...]) -> None:
    held = shell.json("acquire", "door", "--holder", "ann", "--ttl", "1h")
    child = ("--", "true") if command[0] == "run" else ()
    waiting = shell.terminal(EXECUTABLE, *command, "--holder", "ben", "--wait", "forever", *child)
    waiting.wait_for("waiting for door, held by ann, place 1 in the queue")
    shell.run("release", held["lease_id"], "--holder", "ann")
    code, shown = waiting.end()
    assert code == 0
    assert shown.count("waiting for") == 1


def test_a_script_that_waits_is_told_nothing(shell: Shell) -> None:
    shell.run("acquire", "door", "--holder", "ann", "--ttl", "1h")
    result = shell.run("acquire", "door", "--holder", "ben", "--wait", "1500ms", code=75)
    assert "waiting for" not in result.err
    in_json = shell.terminal(EXECUTABLE, "acquire", "door", "--holder", "ben", "--wait", "1500ms", "--json")
    assert "waiting for" not in in_json.end()[1]
