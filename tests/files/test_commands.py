"""Paths on the command line: an argument with a slash, or a dot at its beginning."""

import os
import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest

import leasehold
from tests.cli.conftest import signals_as_at_a_terminal
from tests.cli.shell import Shell
from tests.files.conftest import git

__all__ = ["signals_as_at_a_terminal"]


@pytest.fixture
def shell(repository: Path) -> Iterator[Shell]:
    """A user in a repository, whose store is found by being there."""
    shell = Shell(repository)
    del shell.environment["LEASEHOLD_URL"]
    yield shell
    shell.close()


def test_an_agent_acquires_and_another_is_told_who_why_until_when_and_what_next(shell: Shell) -> None:
    acquire = ("acquire", "src/app.py", "--as", "agent-7", "--ttl", "10m", "--reason", "new parser")
    assert shell.run(*acquire).out.startswith("acquired src/app.py\n")
    refused = shell.run("acquire", "src/*.py", "--as", "agent-9", code=75)
    assert re.search(
        r"src/app\.py is held by agent-7 \(new parser\) since [\d:]+, until [\d:]+ unless renewed; "
        r"you would be number 1 in the queue\. Next: leasehold acquire 'src/\*\.py' --as agent-9 --wait 30s",
        refused.err,
    )
    error = shell.run("acquire", "./src", "--as", "agent-9", "--json", code=75).error
    facts = error["facts"]
    assert (error["code"], facts["holder"], facts["reason"]) == ("HELD", "agent-7", "new parser")
    assert facts["next_command"].startswith("leasehold acquire ./src --as agent-9")


@pytest.mark.parametrize("wait", [(), ("--wait", "50ms")])
def test_a_path_that_the_registrar_keeps_closed_is_nobodys_to_ask_for(
    shell: Shell, wait: tuple[str, ...]
) -> None:
    held = shell.json("acquire", "src/app.py", "--as", "agent-7", "--lock-delay", "1h")
    shell.run("revoke", held["lease_id"], "--reason", "test")
    refused = shell.run("acquire", "src/app.py", "--as", "agent-9", *wait, code=75).err
    assert re.search(r"[ :]src/app\.py is (still )?kept closed for at most", refused)
    assert "registrar" not in refused


def test_an_agent_that_claims_what_it_has_gets_more_time(shell: Shell) -> None:
    first = shell.json("acquire", "src/", "--as", "agent-7", "--ttl", "1m", "--json")
    again = shell.run("acquire", "src/app.py", "--ttl", "10m", LEASEHOLD_AGENT="agent-7")
    assert again.out.startswith("renewed ./src\n")
    assert first["lease_id"] in again.out
    assert "(in 10m)" in again.out or "(in 9m" in again.out


def test_a_path_is_the_same_from_every_folder_and_work_tree(shell: Shell, repository: Path) -> None:
    shell.run("acquire", "src/app.py", "--as", "agent-7")
    git(repository, "worktree", "add", "../beside")
    for folder, path in ((repository / "src", "./app.py"), (repository.parent / "beside", "src/app.py")):
        shell.folder = folder
        assert "agent-7" in shell.run("acquire", path, "--as", "b", code=75).err
        assert "agent-7" in shell.run("show", path).out
        assert shell.run("ls", ".").out.count("agent-7") == 1


def test_ls_shows_what_lies_around_a_path(shell: Shell) -> None:
    for path in ("src/app.py", "docs/", "**/*.py", "report-42"):
        shell.run("acquire", path, "--as", "agent-7", "--shared")
    assert _resources(shell.run("ls", "src/").out) == ["src/app.py", "**/*.py"]
    assert _resources(shell.run("ls", "docs/a.md").out) == ["./docs"]
    assert _resources(shell.run("ls").out) == ["src/app.py", "./docs", "**/*.py", "report-42"]


def _resources(out: str) -> list[str]:
    return [line.split()[0] for line in out.splitlines()[1:]]


def test_whatever_takes_a_lease_or_a_resource_takes_a_path(shell: Shell) -> None:
    shell.run("acquire", "src/app.py", "--as", "a", "--shared")
    assert "nobody waits for src/app.py" in shell.run("queue", "src/app.py").out
    shell.run("renew", "src/app.py", "--as", "a", "--ttl", "2h")
    shell.run("upgrade", "src/app.py", "--as", "a")
    shell.run("transfer", "src/app.py", "--as", "a", "--to", "b")
    assert "transferred" in shell.run("history", "src/app.py").out
    shell.run("release", "./src/app.py", "--as", "b")
    assert "nobody holds src/app.py" in shell.run("show", "src/app.py").out


def test_a_command_runs_under_a_folder(shell: Shell) -> None:
    token = shell.run("run", "src/", "--as", "a", "--", "sh", "-c", "echo $LEASEHOLD_TOKEN").out
    assert int(token) > 0
    shell.run("acquire", "src/app.py", "--as", "b")
    assert "held by b" in shell.run("run", "src/", "--as", "a", "--", "true", code=75).err
    shell.run("run", "src/", "--as", "b", "--wait", "1s", "--", "true", code=0)


def test_who_ran_a_command_is_told_which_file_was_revoked_just_before_it_ended(shell: Shell) -> None:
    running = shell.start("run", "src/app.py", "--as", "a", "--ttl", "1h", "--", "sh", "-c", "echo on; cat")
    assert running.line() == "on"
    shell.run("revoke", "src/app.py", "--reason", "test")
    running.end_input()
    told = running.end()
    assert told.code == 76
    assert re.search(r"lease \S+ on \S+/src/app\.py had ended before the command did \(revoked by ", told.err)


def test_of_several_paths_all_are_acquired_or_none(shell: Shell) -> None:
    shell.run("acquire", "docs/a.md", "--as", "a")
    assert "docs/a.md is held by a" in shell.run("acquire", "src/", "docs/", "--as", "b", code=75).err
    assert _resources(shell.run("ls").out) == ["docs/a.md"]


@pytest.mark.parametrize(
    ("path", "problem"),
    [("src/[a", "not closed"), ("a/" + "b" * 600, "too long"), (os.fsdecode(b"./\xff"), "not UTF-8")],
)
def test_a_bad_path_is_wrong_usage(shell: Shell, path: str, problem: str) -> None:
    for command in ("acquire", "show", "ls"):
        assert problem in shell.run(command, path, code=2).err


def test_a_virtual_name_and_a_plain_one_are_no_paths(shell: Shell) -> None:
    shell.run("acquire", "service://db", "report-42", "--as", "a")
    assert {lease["resource"] for lease in shell.json("ls", "--json")["leases"]} == {
        "service://db",
        "report-42",
    }


def test_what_to_type_next_works_from_where_it_was_typed(shell: Shell, repository: Path) -> None:
    shell.run("acquire", "src/app.py", "--as", "a", "--store", "other")
    shell.folder = repository / "src"
    typed = ("./app.py", "--as", "b", "--store", "../other", "--tenant", "default")
    refused = shell.run("acquire", *typed, "--reason", "new parser", "--ttl", "5m", code=75)
    assert (
        "Next: leasehold acquire ./app.py --as b --wait 30s --store ../other --tenant default "
        "--ttl 300s --reason 'new parser'" in refused.err
    )
    refused = shell.run("run", *typed, "--", "make", "all the rest", code=75)
    command = (
        "leasehold run ./app.py --as b --wait 30s --store ../other --tenant default -- make 'all the rest'"
    )
    assert f"Next: {command}" in refused.err
    shell.run("release", "./app.py", "--as", "a", "--store", "../other")
    shell.run("acquire", *typed)


def test_a_path_is_called_by_its_place_in_the_repository_wherever_people_read_it(shell: Shell) -> None:
    shell.run("acquire", "src/app.py", "--as", "agent 7")
    for refused in (shell.run("release", "src/app.py", code=76), shell.run("renew", "src/app.py", code=76)):
        assert (
            "on src/app.py belongs to agent 7; if that is you, say so with --holder 'agent 7'" in refused.err
        )
    assert "there is no lease src/b.py" in shell.run("release", "src/b.py", code=76).err
    assert " src/app.py " in shell.run("history", "src/app.py", "--as", "agent 7").out
    assert shell.run("ls", "--as", "agent 9").out == "no leases\n"
    assert shell.run("top").out.count(" src/app.py ") + 1 == shell.run("top").out.count("src/app.py") == 2
    for command in ("history", "top", "ls", "show src/app.py"):
        assert "/@" not in shell.run(*command.split()).out


def test_a_setting_for_a_path_holds_for_the_leases_on_it(shell: Shell, repository: Path) -> None:
    said = shell.run("config", "set", "default_ttl_seconds", "60", "--resource", "src/app.py").out
    assert said == "default_ttl_seconds for src/app.py: 60 (was 3600)\n"
    listed = [line.split()[:3] for line in shell.run("config", "ls").out.splitlines()]
    assert ["default_ttl_seconds", "60", "src/app.py"] in listed
    assert ["keep_history", "true", "store"] in listed
    shell.folder = repository / "src"
    assert "(in 1m)" in shell.run("acquire", "./app.py", "--as", "a").out
    assert "(in 1h)" in shell.run("acquire", "./b.py", "--as", "a").out


def test_who_claims_a_plain_name_that_a_file_has_is_told_how_to_claim_the_file(
    shell: Shell, repository: Path
) -> None:
    (repository / "my notes").touch()
    claimed = shell.run("acquire", "my notes", "report-42", "--as", "a")
    assert claimed.err == (
        "leasehold: note: my notes is claimed as a plain name; to claim the file, use './my notes'\n"
    )
    assert shell.run("acquire", "./my notes", "--as", "b").err == ""
    held = [line[:10].strip() for line in shell.run("ls").out.splitlines()]
    assert held == ["RESOURCE", "my notes", "report-42", "./my notes"]
    shell.run("release", "my notes", "--as", "a")
    assert shell.run("acquire", "my notes", "--as", "a", "--json").err == ""


def test_a_plain_name_that_looks_like_a_path_is_the_same_for_programs_and_at_the_command_line(
    shell: Shell, repository: Path
) -> None:
    for name in ("src/app.py", ".hidden", "-foo", "name:x", "plain"):
        typed = name if name == "plain" else f"name:{name}"
        with leasehold.connect(str(repository / ".leasehold"), holder="program") as leases:
            held = leases.acquire(name)
            refused = shell.run("acquire", typed, "--as", "b", code=75)
            assert refused.err.startswith(f"leasehold: {typed} is held by program")
            assert shell.run("ls").out.splitlines()[1].split()[0] == typed
            assert shell.run("show", typed).out.startswith(f"{typed} is held\n")
            assert shell.run("queue", typed).out.startswith(f"{typed} is held by program")
            assert shell.run("history", typed).out.splitlines()[1].split()[4] == typed
            assert shell.run("renew", typed, "--as", "program").out.startswith(f"renewed {typed}\n")
            assert (
                f"lease {held.lease_id} on {typed} belongs to program"
                in shell.run("release", typed, "--as", "b", code=76).err
            )
            assert shell.json("show", typed, "--json")["resource"] == name
            assert typed in shell.run("top", "--once").out
            assert typed in shell.run("show", typed, "--tree").out
            assert shell.run("revoke", typed, "--reason", "test").out.startswith(f"revoked {held.lease_id}")
    assert shell.run("acquire", "name:", code=2).err
    told = shell.run("config", "set", "max_renewals", "3", "--resource", "name:a/b").out
    assert told.startswith("max_renewals for name:a/b: 3")
    assert shell.run("config", "get", "max_renewals", "--resource", "name:a/b").out == "3\n"
    assert shell.run("config", "get", "max_renewals", "--resource", "a/b").out != "3\n"


def test_a_file_and_a_plain_name_are_held_side_by_side_and_told_apart(shell: Shell) -> None:
    shell.run("acquire", "src/app.py", "--as", "a")
    shell.run("acquire", "name:src/app.py", "--as", "b")
    printed = [line.split()[0] for line in shell.run("ls").out.splitlines()[1:]]
    assert printed == ["src/app.py", "name:src/app.py"]
    assert [line.split()[1] for line in shell.run("ls", "name:src/").out.splitlines()[1:]] == ["b"]
    assert [line.split()[1] for line in shell.run("ls", "src/").out.splitlines()[1:]] == ["a"]


def test_whatever_a_command_prints_in_a_folder_can_be_typed_there(shell: Shell, repository: Path) -> None:
    for path in ("src/app.py", "./README.md", "docs/", "src/**/*.txt", "name:src/app.py", "/srv/x"):
        shell.run("acquire", path, "--as", "a")
    for folder in (repository, repository / "src"):
        shell.folder = folder
        leases = {lease["lease_id"] for lease in shell.json("ls", "--json")["leases"]}
        printed = [line.split()[0] for line in shell.run("ls").out.splitlines()[1:]]
        found = [
            shell.json("renew", name, "--as", "a", "--json")["renewed"][0]["lease_id"] for name in printed
        ]
        assert (len(printed), set(found)) == (6, leases)
        assert printed == [
            line.split()[4] for line in shell.run("history", "--type", "issued").out.splitlines()[1:]
        ]
    assert printed == ["./app.py", "../README.md", "../docs", "**/*.txt", "name:src/app.py", "/srv/x"]


def test_what_to_type_next_claims_the_very_file_in_a_subfolder(shell: Shell, repository: Path) -> None:
    shell.folder = repository / "src"
    for path, resource in (("./app.py", "src/app.py"), ("../README.md", "README.md")):
        shell.run("acquire", path, "--as", "a")
        refused = shell.run("acquire", path, "--as", "b", code=75)
        assert refused.err.startswith(f"leasehold: {path} is held by a ")
        command = shlex.split(refused.err.partition("Next: leasehold ")[2])
        shell.run("release", path, "--as", "a")
        got = shell.json(*command, "--json")
        assert (got["holder"], got["resource"].split("/", 2)[2]) == ("b", resource)
