"""`leasehold work consume`, when it or its launcher is killed."""

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.shell import Running, Shell, children_of, until, wait_until_gone

WITH_AN_ORPHAN = 'echo $$; (setsid sh -c "echo \\$\\$; exec cat never" &); exec cat never'
"""A command that has left something behind, in a session of its own. It tells the process id of both."""


@pytest.fixture
def shell(tmp_path: Path) -> Iterator[Shell]:
    shell = Shell(tmp_path)
    os.mkfifo(shell.folder / "never")  # Whoever opens it waits for somebody who writes.
    yield shell
    shell.close()


def consume(shell: Shell, script: str) -> Running:
    running = shell.start("work", "consume", "--json", "--", "sh", "-c", script)
    running.give("orders 41 payload")
    return running


def launcher_of(consumer: Running) -> int:
    (launcher,) = children_of(consumer.process.pid)
    return launcher


@pytest.mark.parametrize("killed", ["consumer", "launcher"])
def test_killing_a_consumer_or_its_launcher_ends_the_command_and_all_it_has_started(
    shell: Shell, killed: str
) -> None:
    consumer = consume(shell, WITH_AN_ORPHAN)
    command, orphan = int(consumer.line()), int(consumer.line())
    processes = {"consumer": consumer.process.pid, "launcher": launcher_of(consumer)}
    until(lambda: orphan in children_of(processes["launcher"]))
    os.kill(processes[killed], signal.SIGKILL)
    for process_id in (command, orphan, *processes.values()):
        wait_until_gone(process_id)


def test_killing_both_at_once_kills_the_command(shell: Shell) -> None:
    consumer = consume(shell, "echo $$; exec cat never")
    command = int(consumer.line())
    processes = (consumer.process.pid, launcher_of(consumer))
    for number in (signal.SIGSTOP, signal.SIGKILL):
        for process_id in processes:
            os.kill(process_id, number)
    wait_until_gone(command)


def test_a_killed_launcher_is_told_of_and_costs_no_attempt(shell: Shell) -> None:
    consumer = consume(shell, "echo started; exec cat never")
    assert consumer.line() == "started"
    os.kill(launcher_of(consumer), signal.SIGKILL)
    result = consumer.end()
    assert (result.code, result.error["code"]) == (1, "LAUNCHER_GONE")
    state = shell.json("work", "show", "orders")
    assert (state["state"], state["head"]) == ("IDLE", 41)
    with shell.client() as client:
        assert client.work.try_acquire("orders", 41).retry_count == 0


def test_what_a_command_leaves_behind_goes_on_when_the_consumer_ends_well(shell: Shell) -> None:
    consumer = consume(shell, "cat never >/dev/null 2>&1 & echo $!")
    left_behind = int(consumer.line())
    consumer.end_input()
    assert consumer.end().code == 0
    os.kill(left_behind, 0)
    (shell.folder / "never").write_text("")
    wait_until_gone(left_behind)
