import json
import os
import pty
import subprocess
import sys
from pathlib import Path

import pytest

import leasehold
from leasehold.cli.parser import GROUPS, all_commands
from tests.cli.shell import EXECUTABLE, Shell

COMMANDS = [
    "acquire", "renew", "derive", "spend", "release", "revoke", "sweep", "ls", "show", "history", "watch",
    "run", "mcp", "backup", "restore", "doctor", "demo",
]  # fmt: skip


def test_help_names_every_command_and_teaches(shell: Shell) -> None:
    text = shell.run("--help").out
    assert shell.run("acquire", "--help").out.startswith("usage: leasehold acquire ")
    for command in COMMANDS:
        assert f"\n  {command} " in text
    for lesson in ("examples:", "exit codes:", "75 not acquired", "76 lease lost", "LEASEHOLD_URL", "--json"):
        assert lesson in text


@pytest.mark.parametrize("command", COMMANDS)
def test_the_help_of_a_command_has_an_example_and_exit_codes(command: str) -> None:
    text = all_commands().by_name[command].format_help()
    assert "example" in text
    assert f"  leasehold {command}" in text
    assert "exit codes: " in text


def test_help_loads_neither_a_store_nor_what_single_commands_need(shell: Shell) -> None:
    loaded = shell.run("--help", PYTHONPROFILEIMPORTTIME="1").err
    assert "leasehold.cli.claims" in loaded
    for heavy in (
        "apsw",
        "leasehold.stores.sqlite.store",
        "leasehold.cli.demo_parts",
        "leasehold.cli.checks",
        "leasehold.mcp.tools",
        "pydantic",
    ):
        assert heavy not in loaded


def test_a_terminal_that_knows_few_characters_is_no_reason_to_fail(shell: Shell) -> None:
    assert "0 done ? 1 error" in shell.run("--help", PYTHONIOENCODING="ascii").out


def test_without_a_command_the_help_is_shown_as_an_error(shell: Shell) -> None:
    result = shell.run(code=2)
    assert result.out == ""
    assert "usage: leasehold" in result.err


def test_the_package_can_be_run_as_the_command() -> None:
    command = [sys.executable, "-m", "leasehold", "ls", "--help"]
    assert subprocess.check_output(command, text=True).startswith("usage: leasehold ls ")


def test_version_is_that_of_the_package(shell: Shell) -> None:
    assert shell.run("--version").out == f"leasehold {leasehold.__version__}\n"
    assert shell.json("--version") == {"version": leasehold.__version__}


@pytest.mark.parametrize(
    ("arguments", "hint"),
    [
        (["aquire", "x"], "there is no command 'aquire'; did you mean 'acquire'?"),
        (["qqq"], "there is no command 'qqq'; see `leasehold --help`"),
        (["acquire", "x", "--tll", "5"], "there is no option '--tll'; did you mean '--ttl'?"),
        (["acquire", "x", "--tll=5"], "there is no option '--tll'; did you mean '--ttl'?"),
        (["release", "--all", "--reason", "completed", "x", "--holder", "y", "z"], "unexpected argument 'z'"),
        (["acquire"], "required: RESOURCE"),
        (["acquire", "x", "--ttl", "5x"], "invalid duration '5x'"),
        (["acquire", "x", "--mode", "sharde"], "choose from"),
        (["acquire", "x", "--metadata", "why"], "--metadata takes KEY=VALUE, not 'why'"),
        (["--holder", "me", "acquire", "x"], "'--holder' is not a global option"),
        (["ls", "--limit", "0"], "invalid number '0'"),
        (["ls", "--all", "--state", "active"], "not allowed with"),
        (["history", "--type", "renwed"], "'renwed' is not one of: confirmed, delegated, doubted, expired,"),
        (["history", "--after", "x"], "invalid position 'x'"),
        (["release"], "name the leases to release, or use --all"),
        (["release", "id", "--all"], "name the leases to release, or use --all"),
        (["revoke", "id"], "required: --reason"),
        (["run", "x"], "name the command after --"),
        (["run", "x", "--"], "name the command after --"),
        (["run", "x", "make"], "name the command after --"),
        (["run", "x", "make", "-j2"], "unexpected argument '-j2'; name the command after --"),
        (["run", "x", "--wiat", "5"], "there is no option '--wiat'; did you mean '--wait'?"),
        (["run", "x", "y", "x", "--", "true"], "'x' is named twice; name each resource once"),
        (["acquire", "x", "y", "x"], "'x' is named twice; name each resource once"),
        (["acquire", "x", "--ttl", "5", "y"], "unexpected argument 'y'; write every RESOURCE in one place"),
        (["acquire", "x", "--shared", "--mode", "exclusive"], "not allowed with"),
        (["run", "x", "--shared", "--mode", "exclusive", "--", "true"], "not allowed with"),
        (["acquire", "x", "y", "--adopt"], "--adopt is for one resource, not for several"),
        (["acquire", "x", "y", "--max-renewals", "3"], "--max-renewals is for one resource, not for several"),
        (["acquire", "x", "y", "--scope", "tool=read"], "--scope is for one resource, not for several"),
        (["acquire", "x", "y", "--budget", "tokens=5"], "--budget is for one resource, not for several"),
        (["acquire", "x", "--bogus"], "there is no option '--bogus'; see `leasehold acquire --help`"),
        (["acquire", "x", "--holder", ""], "holder must not be empty"),
        (["run", "x", "--holder", "", "--", "true"], "holder must not be empty"),
        (["acquire", "x", "--store", ""], "url must not be empty"),
        (["acquire", "x", "--store", "sqlite:"], "invalid address of a store 'sqlite:'"),
        (["acquire", "x", "--metadata", "a=1", "a=2"], "--metadata has 'a' twice"),
    ],
)
def test_wrong_usage_is_one_line_with_the_next_step(shell: Shell, arguments: list[str], hint: str) -> None:
    result = shell.run(*arguments, code=2)
    assert result.out == ""
    assert hint in result.err
    assert result.err.startswith("leasehold: ")
    assert result.err.count("\n") == 1
    assert not shell.store.exists()


def test_a_store_that_would_be_gone_with_the_command_is_refused(shell: Shell) -> None:
    result = shell.run("acquire", "door", "--store", "memory:", code=1)
    assert "memory: is gone when this command ends; name a folder with --store" in result.err


@pytest.mark.parametrize("closed", [">&-", "2>&-", "<&- >&-", "<&- >&- 2>&-"])
def test_closed_standard_streams_lead_nowhere(shell: Shell, closed: str) -> None:
    # No stream was there to write to, and every command failed at its first look at one.
    for command in ("acquire door", "ls", "run window -- sh -c 'echo said; echo done > told'"):
        finished = subprocess.run(
            ["sh", "-c", f'exec "$0" {command} {closed}', EXECUTABLE],
            env=shell.environment,
            cwd=shell.folder,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        assert (finished.returncode, finished.stderr) == (0, "")
    assert (shell.folder / "told").read_text() == "done\n"
    assert [lease.resource for lease in shell.leases()] == ["door"]


def test_what_goes_wrong_is_not_told_where_answers_go_if_stderr_is_closed(shell: Shell) -> None:
    shell.run("acquire", "door", "--holder", "ann")
    command = ["sh", "-c", 'exec "$0" acquire door --holder bob 2>&-', EXECUTABLE]
    finished = subprocess.run(
        command, env=shell.environment, cwd=shell.folder, capture_output=True, timeout=60, check=False
    )
    assert (finished.returncode, finished.stdout) == (75, b"")


def test_wrong_usage_is_json_where_json_was_asked_for(shell: Shell) -> None:
    error = shell.run("aquire", "x", "--json", code=2).error
    assert error["code"] == "USAGE"
    assert error["exit_code"] == 2
    assert "acquire" in error["message"]


def test_global_options_are_understood_before_and_behind_the_command(shell: Shell) -> None:
    other = shell.folder / "other.db"
    shell.run("--store", str(other), "--tenant=acme", "--json", "acquire", "door")
    listed = shell.json("ls", "--tenant", "acme", "--store", f"sqlite:///{other}")
    assert [lease["tenant"] for lease in listed["leases"]] == ["acme"]
    assert shell.json("ls", "--store", str(other))["leases"] == []
    assert not shell.store.exists()


def test_a_name_that_begins_with_a_dash_goes_behind_two(shell: Shell) -> None:
    shell.run("acquire", "--", "-door")
    assert shell.json("ls")["leases"][0]["resource"] == "-door"


def test_the_nearest_store_is_found_and_only_claims_create_one(shell: Shell) -> None:
    del shell.environment["LEASEHOLD_URL"]
    missing = shell.run("ls", code=1)
    assert "there is no store at" in missing.err
    assert not (shell.folder / ".leasehold").exists()
    shell.run("acquire", "door")
    assert (shell.folder / ".leasehold" / "leases.db").exists()
    below = shell.folder / "below"
    below.mkdir()
    shell.folder = below
    assert len(shell.json("ls")["leases"]) == 1


def test_a_group_may_use_a_store_that_was_created_for_it(shell: Shell) -> None:
    path = shell.folder / "shared"
    shell.run("acquire", "door", "--group", "--durability", "fast", "--store", str(path))
    assert (path / "leases.db").stat().st_mode & 0o7777 == 0o660
    assert path.stat().st_mode & 0o7777 == 0o2770


def test_a_file_that_is_no_store_is_refused_in_one_line(shell: Shell) -> None:
    shell.store.write_text("this is a letter, not a store\n" * 100)
    result = shell.run("ls", code=1)
    assert result.err.startswith("leasehold: ")
    assert result.err.count("\n") == 1
    assert shell.run("ls", "--json", code=1).error["code"] == "STORE_UNUSABLE"


def test_an_unexpected_error_is_still_one_line_and_says_how_to_get_more(shell: Shell) -> None:
    shell.run("acquire", "door")
    shell.sabotage("import leasehold.cli.looking as looking; looking._find = lambda *given: 1 / 0")
    result = shell.run("ls", code=1)
    assert result.err.count("\n") == 1
    assert "ZeroDivisionError" in result.err
    assert "LEASEHOLD_DEBUG=1" in result.err


def test_colours_are_for_terminals_whose_user_wants_them(shell: Shell) -> None:
    shell.run("acquire", "door")
    assert "\033[" not in shell.run("ls").out
    assert "\033[32mactive\033[0m" in on_terminal(shell, "ls")
    assert "\033[" not in on_terminal(shell, "ls", "--no-color")
    assert "\033[" not in on_terminal(shell, "ls", NO_COLOR="1")
    assert "\033[" not in on_terminal(shell, "ls", TERM="dumb")


def on_terminal(shell: Shell, *arguments: str, **environment: str) -> str:
    """Run a command whose stdout is a terminal; return what it showed there."""
    master, slave = pty.openpty()
    process = subprocess.Popen(
        [EXECUTABLE, *arguments], env=shell.environment | environment, cwd=shell.folder, stdout=slave
    )
    os.close(slave)
    shown = b""
    try:
        while chunk := os.read(master, 4096):
            shown += chunk
    except OSError:  # how a terminal says that nobody is there any more
        pass
    finally:
        os.close(master)
    assert process.wait() == 0
    return shown.decode()


def test_output_that_nobody_reads_ends_the_command_quietly(shell: Shell) -> None:
    shell.run("acquire", "door")
    reading, writing = os.pipe()
    os.close(reading)
    command, err = [EXECUTABLE, "history"], subprocess.PIPE
    finished = subprocess.run(command, env=shell.environment, stdout=writing, stderr=err, check=False)
    os.close(writing)
    assert finished.returncode == 141
    assert finished.stderr == b""


def test_an_acquire_that_could_not_tell_about_its_lease_leaves_none(shell: Shell) -> None:
    with Path("/dev/full").open("w") as full:
        command, err = [EXECUTABLE, "acquire", "door", "--json"], subprocess.PIPE
        finished = subprocess.run(command, env=shell.environment, stdout=full, stderr=err, check=False)
    assert finished.returncode == 1
    assert json.loads(finished.stderr)["error"]["code"] == "SYSTEM_ERROR"
    assert shell.history("door") == ["issued", "released"]


def test_a_missing_extra_is_named_without_saying_where_it_comes_from(shell: Shell) -> None:
    shell.sabotage("import sys; sys.modules['granian'] = sys.modules['aiohttp'] = None")
    serving = shell.run("serve", code=1)
    assert "which is not installed; install leasehold with its extra `server`" in serving.err
    asking = shell.run("ls", "--store", "http://127.0.0.1:1", code=1)
    assert "which is not installed; install leasehold with its extra `http`" in asking.err


def test_help_lists_every_command_once_by_what_it_is_for(shell: Shell) -> None:
    commands = all_commands()
    listed = [name for names in GROUPS.values() for name in names]
    assert sorted(listed) == sorted(
        name for name in commands.by_name if name.partition(" ")[0] not in commands.groups or " " not in name
    )
    told = shell.run("--help").out
    for heading in GROUPS:
        assert f"\n{heading}:\n" in told
    assert "\n  backup " in told
    assert "--store URL" in told


@pytest.mark.parametrize(
    "arguments",
    [
        ("acquire", "door", "--ttl", "0"),
        ("acquire", "door", "--ttl", "400d"),
        ("acquire", "d" * 513),
        ("acquire", "door", "--holder", "h" * 129),
    ],
)
def test_a_value_that_can_never_be_right_is_wrong_usage(shell: Shell, arguments: tuple[str, ...]) -> None:
    shell.run(*arguments, code=2)


def test_an_id_of_no_lease_is_an_error_and_a_free_resource_is_none(shell: Shell) -> None:
    shell.run("acquire", "door")
    unknown = "019a7f3e-5c1b-7d2a-9f00-1c2d3e4f5a6b"
    assert f"there is no lease {unknown}" in shell.run("show", unknown, code=76).err
    assert shell.run("show", "gate").out == "nobody holds gate\n"
