import os
import signal
import sys
from contextlib import suppress
from pathlib import Path

import pytest

from tests.cli.shell import (
    EXECUTABLE,
    UNTIL_END_OF_INPUT,
    Running,
    Shell,
    children_of,
    until,
    wait_until_gone,
)


def start(shell: Shell, *options: str, command: tuple[str, ...] = UNTIL_END_OF_INPUT) -> Running:
    """Start a run, and return once its command runs."""
    running = shell.start("run", "job", *options, "--", *command)
    assert running.line() == "started"
    return running


def keeper_process_of(running: Running) -> int:
    (keeper_process,) = children_of(running.process.pid)
    return keeper_process


def launcher_of(running: Running) -> int:
    (launcher,) = children_of(keeper_process_of(running))
    return launcher


def command_of(running: Running) -> int:
    (command,) = children_of(launcher_of(running))
    return command


def until_signal(number: signal.Signals) -> tuple[str, ...]:
    """Return a command that runs until a signal comes, and ends with 9 then."""
    # A shell that reads in the foreground would miss one that comes just before it does.
    script = (
        "import signal, sys\n"
        f"signal.pthread_sigmask(signal.SIG_BLOCK, {{{number:d}}})\n"
        "print('started', flush=True)\n"
        f"signal.sigwait({{{number:d}}})\n"
        "print('got it')\n"
        "sys.exit(9)\n"
    )
    return (sys.executable, "-c", script)


def is_pending(number: signal.Signals, process_id: int) -> bool:
    """Return whether a signal was sent to a process that has not taken it yet."""
    status = Path(f"/proc/{process_id}/status").read_text()
    (pending,) = (line.split()[1] for line in status.splitlines() if line.startswith("ShdPnd:"))
    return bool(int(pending, 16) & 1 << number - 1)


def test_the_command_finds_its_lease_in_the_environment(shell: Shell) -> None:
    names = ["LEASEHOLD_RESOURCE", "LEASEHOLD_HOLDER", "LEASEHOLD_TOKEN", "LEASEHOLD_LEASE_ID"]
    running = shell.start("run", "job", "--", "sh", "-c", f"printenv {' '.join(names)}; exec cat")
    resource, holder, token, lease_id = (running.line() for _ in names)
    (lease,) = shell.leases()
    assert (resource, holder, token, lease_id) == (
        "job", lease.holder, str(lease.token), lease.lease_id,
    )  # fmt: skip
    assert holder.endswith(f"/{running.process.pid}")
    assert lease.bound_to_boot


def test_the_command_can_use_leasehold_as_the_holder(shell: Shell) -> None:
    renew = f"{EXECUTABLE} renew $LEASEHOLD_LEASE_ID --ttl 1h"
    assert "renewed job" in shell.run("run", "job", "--", "sh", "-c", renew).out
    assert shell.history("job") == ["issued", "renewed", "released"]


@pytest.mark.parametrize("code", [0, 1, 76, 255])
def test_the_exit_code_is_that_of_the_command(shell: Shell, code: int) -> None:
    shell.run("run", "job", "--", "sh", "-c", f"exit {code}", code=code)
    with shell.client() as client:
        (ended,) = client.list(states=["released"]).statuses
    assert ended.lease.release_reason == ("completed" if code == 0 else "aborted")


def test_a_command_that_a_signal_ended_gives_128_and_the_signal(shell: Shell) -> None:
    shell.run("run", "job", "--", "sh", "-c", "kill -KILL $$", code=128 + signal.SIGKILL)
    assert shell.leases() == []


def test_a_command_that_cannot_be_started_gives_127_or_126_and_leaves_no_lease(shell: Shell) -> None:
    assert "there is no command 'nosuch'" in shell.run("run", "job", "--", "nosuch", code=127).err
    letter = shell.folder / "letter"
    letter.write_text("hello")
    error = shell.run("run", "job", "--json", "--", str(letter), code=126).error
    assert error["code"] == "COMMAND_NOT_STARTED"
    assert shell.leases() == []


def test_input_and_arguments_pass_through_untouched(shell: Shell) -> None:
    script = 'import sys; print(sys.argv[1:], sys.stdin.read()); print("to stderr", file=sys.stderr)'
    arguments = ["--json", "--", "-x", "a b", "--ttl=5"]
    result = shell.run("run", "job", "--", sys.executable, "-c", script, *arguments, given="some\ninput")
    assert result.out == f"{arguments} some\ninput\n"
    assert result.err == "to stderr\n"


def test_two_runs_of_one_user_compete(shell: Shell) -> None:
    start(shell)
    refused = shell.run("run", "job", "--", "echo", "must not run", code=75)
    assert refused.out == ""
    assert "job is held by" in refused.err
    assert shell.run("run", "job", "--json", "--", "true", code=75).error["code"] == "HELD"


def test_two_runs_of_one_user_can_share(shell: Shell) -> None:
    start(shell, "--mode", "shared")
    assert shell.run("run", "job", "--mode", "shared", "--", "echo", "both").out == "both\n"


def test_the_lease_is_renewed_while_the_command_runs_and_released_after_it(shell: Shell) -> None:
    shell.renew_often()
    running = start(shell, "--ttl", "1h")
    shell.wait_for_event("job", "renewed")
    running.end_input()
    assert running.end().code == 0
    assert shell.history("job")[-1] == "released"


@pytest.mark.parametrize(
    "number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT, signal.SIGUSR1]
)
def test_signals_are_handed_on_to_the_command(shell: Shell, number: signal.Signals) -> None:
    running = start(shell, command=until_signal(number))
    running.send(number)
    result = running.end()
    assert (result.code, result.out) == (9, "got it")
    assert shell.leases() == []


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGUSR1])
def test_a_signal_reaches_a_command_that_runs_before_its_parent_knows_of_it(
    shell: Shell, number: signal.Signals
) -> None:
    may_know = shell.folder / "may know"
    os.mkfifo(may_know)
    shell.sabotage(
        "import pathlib; from leasehold.cli.running.launcher import Launcher; start = Launcher.start\n"
        "def start_and_dawdle(*given):\n"
        "    command = start(*given)\n"
        "    pathlib.Path('may know').read_text()\n"
        "    return command\n"
        "Launcher.start = start_and_dawdle\n"
    )
    running = start(shell, command=until_signal(number))
    running.send(number)
    until(lambda: not is_pending(number, running.process.pid))
    may_know.write_text("")
    result = running.end()
    assert (result.code, result.out) == (9, "got it")


def test_a_signal_also_reaches_what_the_command_has_started(shell: Shell) -> None:
    running = start(shell, command=("sh", "-c", "exec 3<&0; cat <&3 & echo started; wait"))
    (cat,) = children_of(command_of(running))
    running.send(signal.SIGTERM)
    assert running.end().code == 128 + signal.SIGTERM
    wait_until_gone(cat)


def test_a_signal_reaches_the_command_of_a_run_inside_a_run_once(shell: Shell) -> None:
    script = (
        "import signal\n"
        "signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGUSR1, signal.SIGUSR2})\n"
        "print('started', flush=True)\n"
        "number = 0\n"
        "while number != signal.SIGUSR2:\n"
        "    number = signal.sigwait({signal.SIGUSR1, signal.SIGUSR2})\n"
        "    print(signal.Signals(number).name, flush=True)\n"
    )
    running = start(shell, command=(EXECUTABLE, "run", "inner", "--", sys.executable, "-c", script))
    inner = command_of(running)
    until(lambda: children_of(inner) != [])
    # Let the inner one come late, so that what it might hand on is not taken for the same signal.
    os.kill(inner, signal.SIGSTOP)
    until(lambda: "T (stopped)" in Path(f"/proc/{inner}/status").read_text())
    running.send(signal.SIGUSR1)
    assert running.line() == "SIGUSR1"
    os.kill(inner, signal.SIGCONT)
    # Signals are handed on in order: once this one has come, nothing more follows from the other.
    os.kill(inner, signal.SIGUSR2)
    assert running.line() == "SIGUSR2"
    assert running.end().code == 0


def test_losing_the_lease_ends_the_command_and_all_it_has_started(shell: Shell) -> None:
    shell.renew_often()
    # The grandchild is in a session of its own, where no signal to a process group would find it.
    grandchild_script = 'trap "echo told; exit" TERM; echo $$; while :; do read line <&3; done'
    script = f"exec 3<&0; setsid sh -c '{grandchild_script}' & wait"
    running = shell.start("run", "job", "--ttl", "1h", "--grace", "1h", "--", "sh", "-c", script)
    grandchild = int(running.line())
    shell.revoke_all()
    assert running.line() == "told"
    result = running.end()
    assert result.code == 76
    assert "is over (revoked by test: test)" in result.err
    assert "The command was ended" in result.err
    assert result.err.count("\n") == 1
    wait_until_gone(grandchild)


def test_loss_is_told_as_json_where_json_was_asked_for(shell: Shell) -> None:
    shell.renew_often()
    running = start(shell, "--ttl", "1h", "--json")
    shell.revoke_all()
    result = running.end()
    assert result.code == 76
    assert result.error["code"] == "LEASE_LOST"
    assert result.error["facts"]["resource"] == "job"


def test_a_command_that_ignores_the_request_to_end_is_killed_after_the_grace_time(shell: Shell) -> None:
    script = (
        "import os, signal\n"
        "signal.signal(signal.SIGTERM, lambda *given: os.write(1, b'not yet\\n'))\n"
        "os.write(1, b'started\\n')\n"
        "while True: signal.pause()\n"
    )
    shell.renew_often()
    running = start(shell, "--ttl", "1h", "--grace", "300ms", command=(sys.executable, "-c", script))
    command = command_of(running)
    shell.revoke_all()
    assert running.line() == "not yet"
    assert running.end().code == 76
    wait_until_gone(command)


def test_a_command_that_ends_in_the_grace_time_is_not_killed(shell: Shell) -> None:
    script = (
        "trap 'echo tidying up; read line; echo tidy; exit 0' TERM; echo started; while :; do read line; done"
    )
    shell.renew_often()
    running = start(shell, "--ttl", "1h", "--grace", "1h", command=("sh", "-c", script))
    shell.revoke_all()
    assert running.line() == "tidying up"
    shell.run("--help")  # time in which it could be killed
    running.give("go on")
    assert running.line() == "tidy"
    assert running.end().code == 76


def test_a_stopped_command_is_ended_as_well(shell: Shell) -> None:
    shell.renew_often()
    running = start(shell, "--ttl", "1h", "--grace", "1h")
    os.kill(command_of(running), signal.SIGSTOP)
    shell.revoke_all()
    assert running.end().code == 76


def test_a_lease_that_ended_just_before_the_command_did_is_lost(shell: Shell) -> None:
    running = start(shell, "--ttl", "1h")
    shell.revoke_all()
    running.end_input()
    result = running.end()
    assert result.code == 76
    assert "had ended before the command did" in result.err


def test_killing_leasehold_ends_the_command_and_frees_the_resource_at_once(shell: Shell) -> None:
    running = start(shell, "--ttl", "1h")
    command = command_of(running)
    running.send(signal.SIGKILL)
    wait_until_gone(command)
    shell.wait_for_event("job", "released")


def test_killing_the_process_that_keeps_the_lease_ends_the_command(shell: Shell) -> None:
    running = start(shell)
    command = command_of(running)
    os.kill(keeper_process_of(running), signal.SIGKILL)
    result = running.end()
    assert result.code == 76
    assert "was ended by signal 9" in result.err
    wait_until_gone(command)


def test_pausing_the_process_that_keeps_the_lease_ends_the_command_in_time(shell: Shell) -> None:
    running = start(shell, "--ttl", "1s")
    command = command_of(running)
    os.kill(keeper_process_of(running), signal.SIGSTOP)
    result = running.end()
    assert result.code == 76
    assert "has stopped working" in result.err
    wait_until_gone(command)


def test_what_the_command_leaves_behind_is_left_alone_when_it_ends_well(shell: Shell) -> None:
    script = "cat <&3 3>&- >/dev/null 2>&1 & echo $!"
    running = shell.start("run", "job", "--", "sh", "-c", f"exec 3<&0; {script}")
    left_behind = int(running.line())
    assert running.end().code == 0
    os.kill(left_behind, 0)
    running.end_input()
    wait_until_gone(left_behind)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interruption_before_the_lease_is_held_leaves_nothing(shell: Shell, number: int) -> None:
    shell.run("acquire", "something else")
    with shell.stalled_writer():
        running = shell.start("run", "job", "--", "echo", "must not run")
        until(lambda: children_of(running.process.pid) != [])
        shell.wait_until_queued(keeper_process_of(running))
        running.send(number)
        result = running.end()
    assert (result.code, result.out, result.err) == (128 + number, "", "")
    assert shell.history("job") == []


def test_ctrl_c_at_a_terminal_reaches_the_command_once(shell: Shell) -> None:
    script = (
        "import os, signal, sys\n"
        "for name in ('SIGINT', 'SIGUSR1'):\n"
        "    signal.signal(getattr(signal, name), lambda number, frame: os.write(1, b'got %d\\n' % number))\n"
        "os.write(1, b'started\\n')\n"
        "sys.stdin.readline()\n"
        "sys.exit(7)\n"
    )
    terminal = shell.terminal(EXECUTABLE, "run", "job", "--", sys.executable, "-c", script)
    terminal.wait_for("started")
    # Let leasehold come late, so that what it might hand on is not taken for the same signal.
    os.kill(terminal.process_id, signal.SIGSTOP)
    os.waitid(os.P_PID, terminal.process_id, os.WSTOPPED)
    terminal.press(b"\x03")
    terminal.wait_for(f"got {signal.SIGINT:d}")
    os.kill(terminal.process_id, signal.SIGCONT)
    # Signals are handed on in order: once this one has come, nothing more follows from Ctrl-C.
    os.kill(terminal.process_id, signal.SIGUSR1)
    terminal.wait_for(f"got {signal.SIGUSR1:d}")
    terminal.press(b"go on\n")
    code, shown = terminal.end()
    assert code == 7
    assert shown.count(f"got {signal.SIGINT:d}") == 1
    assert shell.leases() == []


def test_ctrl_c_ends_a_command_that_does_not_mind_it(shell: Shell) -> None:
    terminal = shell.terminal(EXECUTABLE, "run", "job", "--", *UNTIL_END_OF_INPUT)
    terminal.wait_for("started")
    terminal.press(b"\x03")
    assert terminal.end()[0] == 128 + signal.SIGINT
    assert shell.history("job") == ["issued", "released"]


def test_a_command_that_is_suspended_keeps_its_lease(shell: Shell) -> None:
    shell.renew_often()
    run = f"{EXECUTABLE} run job --ttl 1h -- sh -c 'echo started; exec cat'"
    script = f"{run}; echo suspended with $?; read line; fg; echo ended with $?"
    terminal = shell.terminal("bash", "-m", "-c", script)
    terminal.wait_for("started")
    terminal.press(b"\x1a")
    terminal.wait_for(f"suspended with {128 + signal.SIGTSTP}")
    with shell.client() as client:
        before = len(client.history(resource="job"))
        until(lambda: len(client.history(resource="job")) >= before + 3)
    terminal.press(b"go on\n")
    terminal.wait_for("exec cat")
    terminal.press(b"\x04")
    assert "ended with 0" in terminal.end()[1]
    assert shell.history("job")[-1] == "released"


WITH_AN_ORPHAN = 'exec 3<&0; echo $$; (setsid sh -c "echo \\$\\$; exec cat <&3" &); exec cat'
"""A command that has left something behind, in a session of its own. It tells the process id of both.

What a shell starts in the background reads /dev/null, and would end at once if it were given no other input.
"""


def processes_of(running: Running) -> dict[str, int]:
    return {
        "front": running.process.pid,
        "keeper": keeper_process_of(running),
        "launcher": launcher_of(running),
    }


def kill_at_once(process_ids: list[int]) -> None:
    """Kill processes so that none of them sees another one die."""
    for number in (signal.SIGSTOP, signal.SIGKILL):
        for process_id in process_ids:
            with suppress(ProcessLookupError):  # Whoever saw the first one die may have ended the second.
                os.kill(process_id, number)


def assert_nothing_outlives(killed: str, shell: Shell) -> None:
    """Start a run, kill some of its processes at once, and wait for everything else to end."""
    running = shell.start("run", "job", "--ttl", "1h", "--grace", "300ms", "--", "sh", "-c", WITH_AN_ORPHAN)
    command, orphan = int(running.line()), int(running.line())
    processes = processes_of(running)
    until(lambda: orphan in children_of(processes["launcher"]))
    kill_at_once([processes[name] for name in killed.split()])
    for process_id in (command, orphan, *processes.values()):
        wait_until_gone(process_id)


@pytest.mark.parametrize("killed", ["front keeper", "front launcher", "keeper launcher", "launcher"])
def test_killing_any_two_processes_of_leasehold_together_ends_the_command_and_all_it_has_started(
    shell: Shell, killed: str
) -> None:
    assert_nothing_outlives(killed, shell)


@pytest.mark.parametrize("killed", ["front launcher", "keeper launcher", "launcher"])
def test_a_launcher_that_is_killed_before_it_has_told_of_the_command_is_seen_to_as_well(
    shell: Shell, killed: str
) -> None:
    os.mkfifo(shell.folder / "may tell")
    shell.sabotage(
        "import pathlib; import leasehold.cli.running.child as child; start = child.start\n"
        "def start_and_dawdle(*given):\n"
        "    command = start(*given)\n"
        "    pathlib.Path('may tell').read_text()\n"
        "    return command\n"
        "child.start = start_and_dawdle\n"
    )
    assert_nothing_outlives(killed, shell)


def test_a_command_is_asked_to_end_before_it_is_killed_if_front_and_keeper_are_killed_together(
    shell: Shell,
) -> None:
    script = "trap 'echo told; exit' TERM; echo started; while :; do read line; done"
    running = start(shell, "--ttl", "1h", "--grace", "1h", command=("sh", "-c", script))
    processes = processes_of(running)
    kill_at_once([processes["front"], processes["keeper"]])
    assert running.line() == "told"
    wait_until_gone(processes["launcher"])


def test_killing_all_processes_of_leasehold_at_once_kills_the_command(shell: Shell) -> None:
    running = start(shell, "--ttl", "1h")
    command = command_of(running)
    kill_at_once([*processes_of(running).values()])
    wait_until_gone(command)


@pytest.mark.parametrize(("stopped", "killed"), [("front", "keeper"), ("keeper", "front")])
def test_a_command_does_not_outlive_its_lease_if_one_process_is_stopped_and_another_killed(
    shell: Shell, stopped: str, killed: str
) -> None:
    running = start(shell, "--ttl", "1s")
    command, processes = command_of(running), processes_of(running)
    os.kill(processes[stopped], signal.SIGSTOP)
    os.kill(processes[killed], signal.SIGKILL)
    wait_until_gone(command)
    os.kill(processes[stopped], signal.SIGKILL)


def test_a_command_whose_launcher_was_killed_is_told_of_and_its_lease_released(shell: Shell) -> None:
    running = start(shell, "--ttl", "1h", "--json")
    os.kill(launcher_of(running), signal.SIGKILL)
    result = running.end()
    assert (result.code, result.error["code"]) == (1, "LAUNCHER_GONE")
    assert shell.history("job") == ["issued", "released"]


def test_a_command_of_no_name_is_refused(shell: Shell) -> None:
    assert "name the command after --" in shell.run("run", "job", "--", "", code=2).err
    assert not shell.store.exists()
