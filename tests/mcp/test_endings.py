"""How a server begins and ends, and what it leaves behind; spoken to line by line."""

import json
import shutil
import signal
from pathlib import Path

import pytest

from tests.cli.shell import EXECUTABLE, Shell, until
from tests.mcp.agent import Wire, holders, wait_until_nobody_waits, wait_until_queued


@pytest.mark.parametrize("ending", ["input", "ctrl-c", "terminated"])
def test_what_was_claimed_under_a_name_outlives_the_server(shell: Shell, ending: str) -> None:
    server = Wire(shell, LEASEHOLD_AGENT="agent-7")
    assert server.call("claim", paths=["src/app.py"])["structuredContent"]["granted"]
    assert server.call("claim", paths=["docs/"], agent="helper")["structuredContent"]["granted"]
    assert end(server, ending) == {"input": 0, "ctrl-c": 130, "terminated": 143}[ending]
    assert holders(shell) == {"agent-7", "helper"}


def test_what_a_server_holds_under_a_name_of_its_own_ends_with_it(shell: Shell) -> None:
    server = Wire(shell, LEASEHOLD_HOLDER="who started it")
    (lease,) = server.call("claim", paths=["src/app.py"])["structuredContent"]["leases"]
    assert str(server.running.process.pid) in lease["agent"]
    server.call("claim", paths=["docs/"], agent="helper")
    assert end(server, "ctrl-c") == 130
    assert holders(shell) == {"helper"}


@pytest.mark.parametrize("ending", ["input", "ctrl-c"])
def test_a_server_that_ends_leaves_every_queue(shell: Shell, ending: str) -> None:
    shell.run("acquire", "src/app.py", "--as", "agent-7")
    server = Wire(shell, "--as", "agent-9")
    server.start("wait", paths=["src/app.py"])
    wait_until_queued(shell, "src/app.py")
    end(server, ending)
    wait_until_nobody_waits(shell, "src/app.py")
    shell.run("release", "src/app.py", "--as", "agent-7")
    assert holders(shell) == set()


def test_a_client_that_cancels_hears_no_more_of_it(shell: Shell) -> None:
    shell.run("acquire", "src/app.py", "--as", "agent-7")
    server = Wire(shell, "--as", "agent-9")
    number = server.start("wait", paths=["src/app.py"])
    wait_until_queued(shell, "src/app.py")
    server.tell("notifications/cancelled", requestId=number)
    wait_until_nobody_waits(shell, "src/app.py")
    assert server.call("list")["structuredContent"]["total"] == 1


def test_nothing_but_the_protocol_is_on_standard_output(shell: Shell) -> None:
    shell.sabotage("import atexit; atexit.register(print, 'not the protocol')")
    server = Wire(shell, LEASEHOLD_DEBUG="1")
    server.running.give("this is no message")
    server.running.give("\xff{}")
    assert server.call("claim", nonsense=True)["isError"]
    server.running.end_input()
    ended = server.running.end()
    assert ended.code == 0
    assert "there is no argument 'nonsense'" in ended.err, "who debugs is told where an error comes from"
    assert [line for line in ended.out.splitlines() if line != "not the protocol"] == []


def test_a_text_that_was_cut_inside_a_character_is_answered(shell: Shell) -> None:
    server = Wire(shell, "--as", "agent-7")
    (lease,) = server.call("claim", paths=["src/app.py"], reason="cut \ud83d")["structuredContent"]["leases"]
    assert lease["reason"] == "cut \ufffd"


def test_who_starts_it_by_hand_is_told_what_it_is_for(shell: Shell) -> None:
    terminal = shell.terminal(EXECUTABLE, "mcp")
    terminal.wait_for("for a coding agent's program; Ctrl-C ends it")
    terminal.press(b"\x03")
    code, shown = terminal.end()
    assert code == 130
    assert "Traceback" not in shown


def test_a_stopped_writer_keeps_no_server_from_ending(shell: Shell) -> None:
    shell.run("acquire", "src/app.py", "--as", "agent-7")
    server = Wire(shell)
    assert server.call("list")["structuredContent"]["total"] == 1
    with shell.stalled_writer():
        server.start("claim", paths=["docs/"])
        shell.wait_until_queued(server.running.process.pid)
        assert end(server, "ctrl-c") == 130


def test_a_store_is_made_with_the_first_call(shell: Shell) -> None:
    server = Wire(shell)
    assert not shell.store.exists()
    assert server.call("list")["structuredContent"] == {"leases": [], "total": 0}
    assert shell.store.exists()


def test_a_damaged_store_is_told_of_and_used_again_once_it_is_mended(shell: Shell, tmp_path: Path) -> None:
    shell.run("acquire", "src/app.py", "--as", "agent-7")
    kept = tmp_path / "kept"
    database = shell.store / "leases.db"
    shutil.move(database, kept)
    server = Wire(shell)
    for _ in range(2):
        answer = server.call("list")
        assert answer["isError"]
        assert "leases.db" in answer["content"][0]["text"]
    shutil.move(kept, database)
    assert server.call("list")["structuredContent"]["total"] == 1


def test_a_store_that_is_replaced_meanwhile_is_connected_to_again(shell: Shell) -> None:
    server = Wire(shell, "--as", "agent-9")
    assert server.call("claim", paths=["src/app.py"])["structuredContent"]["granted"]
    shutil.rmtree(shell.store)
    shell.run("acquire", "docs/", "--as", "agent-7")
    until(lambda: not server.call("list").get("isError"))
    assert server.call("claim", paths=["docs/"])["structuredContent"]["held_by"] == "agent-7"


def test_a_store_in_memory_is_refused(shell: Shell) -> None:
    server = Wire(shell, "--store", "memory:")
    assert "name a folder with --store" in server.call("list")["content"][0]["text"]


def test_a_missing_extra_says_what_to_install(shell: Shell) -> None:
    shell.sabotage("import sys; sys.modules['mcp'] = None")
    refused = shell.run("mcp", code=1)
    assert refused.out == ""
    assert "needs mcp, which is not installed; install leasehold with its extra `mcp`" in refused.err
    assert json.loads(shell.run("mcp", "--json", code=1).err)["error"]["code"] == "EXTRA_MISSING"


def end(server: Wire, how: str) -> int:
    """End a server; return its exit code."""
    match how:
        case "input":
            server.running.end_input()
        case "ctrl-c":
            server.running.send(signal.SIGINT)
        case _:
            server.running.send(signal.SIGTERM)
    ended = server.running.end()
    assert "Traceback" not in ended.err
    return ended.code
