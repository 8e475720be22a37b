"""`leasehold guard`: three outcomes, each with its exit code, and a bypass that history remembers."""

import json
import os
import re
import shutil
from pathlib import Path
from typing import Any

import pytest

from tests.files.conftest import git
from tests.guards.conftest import Team


def test_a_path_that_somebody_else_has_is_refused_with_who_why_until_when_and_what_next(team: Team) -> None:
    team.run("acquire", "src/app.py", "--as", "agent-7", "--reason", "new parser")
    refused = team.run("guard", "src/app.py", "--as", "agent-9", code=2)
    assert refused.out == ""
    assert re.fullmatch(
        r"leasehold: src/app\.py is held by agent-7 \(new parser\) since [\d:]+, until [\d:]+ "
        r"unless renewed; you would be number 1 in the queue\. "
        r"Next: leasehold acquire src/app\.py --as agent-9 --wait 30s\n",
        refused.err,
    )
    assert team.run("guard", "src/app.py", "docs/", "--as", "agent-7") == (0, "", "")
    assert team.run("guard", "docs/a.md", "--as", "agent-9") == (0, "", "")
    team.run("release", "src/app.py", "--as", "agent-7")
    assert team.run("guard", "src/app.py", "--as", "agent-9") == (0, "", "")


@pytest.mark.parametrize("path", ["src", "src/", ".", "src/*.py", "**/*.py", "./src/../src/app.py"])
def test_what_lies_around_a_lease_is_refused_too(team: Team, path: str) -> None:
    team.run("acquire", "src/app.py", "--as", "a")
    assert "held by a" in team.run("guard", path, "--as", "b", code=2).err


def test_what_only_begins_alike_is_not_refused(team: Team) -> None:
    team.run("acquire", "src/", "--as", "a")
    team.run("guard", "src2/app.py", "src.py", "--as", "b")


def test_an_agent_s_name_comes_from_the_option_or_the_environment(team: Team) -> None:
    team.run("acquire", "src/", "--as", "a")
    for variable in ("LEASEHOLD_AGENT", "LEASEHOLD_HOLDER", "CLAUDE_CODE_SESSION_ID"):
        named: dict[str, Any] = {variable: "a"}
        team.run("guard", "src/app.py", **named)
        team.run("guard", "src/app.py", "--as", "b", code=2, **named)
    team.run("guard", "src/app.py", code=2)
    assert "--as needs a name" in team.run("guard", "src/app.py", "--as", "", code=64).err


def test_a_file_that_others_share_is_refused_to_one_who_shares_it(team: Team) -> None:
    team.run("acquire", "src/app.py", "--shared", "--as", "a")
    team.run("guard", "src/app.py", "--as", "a")
    team.run("acquire", "src/app.py", "--shared", "--as", "b")
    assert "held by b" in team.run("guard", "src/app.py", "--as", "a", code=2).err


def test_many_leases_of_one_s_own_hide_nobody_else_s(team: Team) -> None:
    paths = [f"src/{number}.py" for number in range(40)]
    team.run("acquire", *paths, "--as", "a")
    team.run("acquire", "src/last.py", "--as", "b")
    assert "src/last.py is held by b" in team.run("guard", "src/", "--as", "a", code=2).err


def test_an_agent_speaks_for_its_subagents_and_for_nobody_whose_name_begins_alike(team: Team) -> None:
    team.run("acquire", "src/app.py", "--as", "session/sub")
    team.run("acquire", "docs/a.md", "--as", "session-2")
    team.run("guard", "src/app.py", "--as", "session")
    team.run("guard", "docs/a.md", "--as", "session", code=2)
    team.run("guard", "src/app.py", "--as", "session/other", code=2)


def test_warning_says_the_same_and_stops_nobody(team: Team) -> None:
    team.run("acquire", "src/app.py", "--as", "a")
    assert "held by a" in team.run("guard", "src/app.py", "--as", "b", "--mode", "warn").err
    (team.top / ".leasehold" / "identity").unlink()
    assert "could not tell" in team.run("guard", "src/app.py", "--as", "b", "--mode", "warn").err


def test_without_a_store_everything_is_free_and_none_is_made(team: Team) -> None:
    assert team.run("guard", "src/app.py", "--staged", code=64).err.startswith("leasehold: name paths, or")
    assert team.run("guard", "src/app.py") == (0, "", "")
    assert not (team.top / ".leasehold").exists()


@pytest.mark.parametrize("how", ["environment", "git", "option"])
def test_a_store_that_was_named_and_is_not_there_means_nobody_can_tell(
    team: Team, how: str, tmp_path: Path
) -> None:
    url = f"sqlite:///{tmp_path}/gone"
    if how == "git":
        git(team.top, "config", "leasehold.url", url)
    named: dict[str, Any] = {"environment": {"LEASEHOLD_URL": url}}.get(how, {})
    option = ["--store", url] if how == "option" else []
    assert "could not tell" in team.run("guard", "src/app.py", *option, code=3, **named).err
    assert not (tmp_path / "gone").exists()


def test_a_git_that_does_not_say_which_store_is_named_means_nobody_can_tell(
    team: Team, tmp_path: Path
) -> None:
    team.run("guard", "install", "--store", str(tmp_path / "store"))
    team.run("acquire", "src/app.py", "--as", "a")
    team.run("guard", "install", "claude-code")
    (team.top / "new.py").touch()
    git(team.top, "add", "new.py")
    silent = tmp_path / "silent" / "git"
    silent.parent.mkdir()
    silent.write_text(f'#!/bin/sh\ncase "$*" in *--list*) exit 128;; esac\nexec {shutil.which("git")} "$@"\n')
    silent.chmod(0o755)
    path: dict[str, Any] = {"PATH": f"{silent.parent}:{os.environ['PATH']}"}

    refused = team.run("guard", "src/app.py", "--as", "b", code=3, **path)
    assert "git cannot be asked which store is meant" in refused.err
    assert team.run("guard", "--staged", "--as", "b", code=3, **path).err == refused.err
    assert team.hook(team.edit("src/app.py"), **path).code == 2
    assert "which store is meant" in team.run("acquire", "nightly", "--as", "b", code=1, **path).err
    assert not (team.top / ".leasehold").exists()


def test_a_store_that_cannot_be_read_means_nobody_can_tell(team: Team) -> None:
    team.run("acquire", "src/app.py", "--as", "a")
    (team.top / ".leasehold" / "leases.db").write_bytes(b"no database" * 1_000)
    refused = team.run("guard", "src/app.py", "--as", "a", code=3)
    assert refused.err.startswith("leasehold: could not tell whether this may be changed: ")


def test_a_stopped_writer_keeps_nobody_from_asking(team: Team) -> None:
    team.run("acquire", "src/app.py", "--as", "a")
    with team.shell.stalled_writer():
        team.run("guard", "src/app.py", "--as", "a")
        team.run("guard", "src/app.py", "--as", "b", code=2)


@pytest.mark.parametrize(
    "arguments",
    [
        [],
        ["--bogus", "x"],
        ["--mode", "bogus", "x"],
        ["x", "--as"],
        ["src/[a"],
        [""],
        ["--staged", "--pushed", "origin"],
        ["x", "--bypass", " "],
        ["x", "--tenant", ""],
        ["install"],
        ["install", "emacs"],
        ["uninstall"],
    ],
)
def test_wrong_usage_is_never_taken_for_an_answer(team: Team, arguments: list[str]) -> None:
    assert team.run("guard", *arguments, code=64).err.startswith("leasehold: ")


def test_a_path_that_is_no_text_is_wrong_usage(team: Team) -> None:
    assert "not UTF-8" in team.run("guard", os.fsdecode(b"./\xff"), code=64).err


def test_a_bypass_is_in_the_sealed_history_with_who_what_and_why(team: Team) -> None:
    team.run("acquire", "src/app.py", "--as", "a")
    passed = team.run("guard", "src/app.py", "docs/", "--as", "b", "--bypass", "the build is broken")
    assert passed.err == "leasehold: bypassed: src/app.py is held by a; history has it\n"
    last = json.loads(team.run("history", "--json").out.splitlines()[-1])
    event = last.get("event", last)
    assert (event["actor"], event["held_by"], event["reason"]) == ("b", "a", "the build is broken")
    assert "guard.bypassed" in team.run("history", "src/app.py").out
    assert "OK" in team.run("verify").out
    team.run("guard", "src/app.py", "--as", "b", code=2)


def test_a_bypass_of_nothing_is_not_recorded_and_one_that_cannot_be_recorded_does_not_count(
    team: Team,
) -> None:
    team.run("guard", "src/app.py", "--as", "b", "--bypass", "no reason")
    assert not (team.top / ".leasehold").exists()
    team.run("acquire", "src/app.py", "--as", "a")
    with team.shell.stalled_writer():
        unknown = team.run("guard", "src/app.py", "--as", "b", "--bypass", "why", code=3)
    assert "could not tell" in unknown.err
    assert "guard.bypassed" not in team.run("history").out


def test_json_says_the_outcome_and_what_is_in_the_way(team: Team) -> None:
    team.run("acquire", "src/app.py", "--as", "a")
    said = team.run("guard", "src/", "--as", "b", "--json", code=2).json
    (refused,) = said["refused"]
    assert (said["outcome"], said["mode"], said["bypassed"]) == ("refused", "block", False)
    assert (refused["path"], refused["holder"]) == ("src", "a")
    assert team.run("guard", "docs/", "--as", "b", "--json").json["outcome"] == "allowed"
    passed = team.run("guard", "src/", "--as", "b", "--json", "--bypass", "why").json
    assert (passed["outcome"], passed["bypassed"]) == ("allowed", True)


def test_a_file_that_is_called_as_a_command_is_written_as_a_path(team: Team) -> None:
    team.run("acquire", "./install", "--as", "a")
    team.run("guard", "./install", "--as", "b", code=2)


def test_leases_of_another_tenant_are_in_nobody_s_way(team: Team) -> None:
    team.run("acquire", "src/app.py", "--as", "a", "--tenant", "other")
    team.run("guard", "src/app.py", "--as", "b")
    team.run("guard", "src/app.py", "--as", "b", "--tenant", "other", code=2)


def test_a_name_that_no_tenant_can_have_lets_nobody_through(team: Team) -> None:
    team.run("acquire", "src/app.py", "--as", "a", "--tenant", "acme")
    for name in ("acme\n", "a" * 10_000):
        for asked in (["src/app.py", "--tenant", name], ["src/app.py"]):
            told = team.run("guard", *asked, "--as", "b", code=3, LEASEHOLD_TENANT=name)
            assert "tenant" in told.err


def test_one_lease_that_is_in_the_way_of_many_paths_is_told_once(team: Team) -> None:
    team.run("acquire", "src/", "--as", "a")
    paths = [f"src/{number}.py" for number in range(9)]
    (line,) = team.run("guard", *paths, "--as", "b", code=2).err.splitlines()
    assert line.endswith(f"Next: leasehold acquire {' '.join(paths[:5])} --as b --wait 30s")
