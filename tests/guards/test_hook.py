"""The hook of Claude Code as a real process: each outcome as documented, and never an accidental yes."""

import json
import signal
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.files.conftest import git
from tests.guards.conftest import Team, clone

BLOCK = 2

HANGS = """
import re, leasehold.guards.tool_use as tool_use
tool_use.read = lambda text: re.match("(a+)+$", "a" * 99 + "b")
"""
"""A comparison that never ends, and never lets another thread run."""
DIES = """
import os, leasehold.guards.tool_use as tool_use
tool_use.read = lambda text: os.kill(os.getpid(), 9)
"""

TOOLS: dict[str, dict[str, Any]] = {
    "Edit": {"file_path": "src/app.py", "old_string": "a", "new_string": "b", "replace_all": False},
    "MultiEdit": {"file_path": "src/app.py", "edits": [{"old_string": "a", "new_string": "b"}]},
    "Write": {"file_path": "src/app.py", "content": "x" * 200_000},
    "NotebookEdit": {"notebook_path": "src/app.py", "new_source": "1", "cell_id": "c"},
    "Bash": {"command": "sed -i s/a/b/ src/app.py", "description": "replace"},
}


@pytest.mark.parametrize("tool", TOOLS)
def test_a_tool_that_writes_claims_the_file_and_nobody_else_s_tool_writes_it_then(
    hooked: Team, tool: str
) -> None:
    tool_input = {
        name: str(hooked.top / value) if name.endswith("_path") else value
        for name, value in TOOLS[tool].items()
    }
    told = hooked.told(tool_name=tool, tool_input=tool_input)
    for _ in range(2):
        assert hooked.hook(told) == (0, "", "")
    assert hooked.holders() == {"src/app.py": "session-1"}
    refused = hooked.hook(told | {"session_id": "session-2"})
    assert (refused.code, refused.out) == (BLOCK, "")
    assert refused.err.startswith("leasehold: src/app.py is held by session-1 (edited in Claude Code) since ")
    assert "Next: leasehold acquire src/app.py --as session-2 --wait 30s" in refused.err
    assert hooked.ends("SessionEnd", reason="clear").code == 0
    assert hooked.holders() == {}
    assert hooked.hook(told | {"session_id": "session-2"}) == (0, "", "")


@pytest.mark.parametrize("tool", ["Read", "Grep", "Task", "WebFetch", "mcp__other__write", "", None])
def test_a_tool_that_is_not_known_is_allowed_and_nothing_is_made(hooked: Team, tool: str | None) -> None:
    hooked.shell.environment["LEASEHOLD_URL"] = "sqlite:///nowhere"
    told = hooked.told(tool_name=tool, tool_input={"file_path": str(hooked.top / "src/app.py")})
    assert hooked.hook(told) == (0, "", "")
    assert not (hooked.top / ".leasehold").exists()


MALFORMED: dict[str, Any] = {
    "nothing": "",
    "half of it": '{"session_id": "s", "tool_',
    "no object": "[]",
    "no text": b"\xff\xfe",
    "too deep": '{"a":' * 5_000,
    "no session": {"session_id": None},
    "an empty session": {"session_id": ""},
    "no folder": {"cwd": None},
    "a folder that is none": {"cwd": "here"},
    "no event": {"hook_event_name": None},
    "no path": {"tool_input": {}},
    "no text for a path": {"tool_input": {"file_path": 7}},
    "an empty path": {"tool_input": {"file_path": ""}},
    "no input": {"tool_input": None},
    "an input that is no object": {"tool_input": "src/app.py"},
    "a command that is none": {"tool_name": "Bash", "tool_input": {"command": ["rm", "src/app.py"]}},
    "a path with a NUL": {"tool_input": {"file_path": "src/\0app.py"}},
    "a path nobody can lease": {"tool_input": {"file_path": "src/a\nb.py"}},
}


@pytest.mark.parametrize("what", MALFORMED)
def test_what_makes_no_sense_is_blocked_or_in_warn_mode_told(hooked: Team, what: str) -> None:
    given = MALFORMED[what]
    told = hooked.edit("src/app.py") | given if isinstance(given, dict) else given
    blocked = hooked.hook(told)
    assert (blocked.code, blocked.out) == (BLOCK, "")
    assert blocked.err.startswith("leasehold: could not tell whether this file is free to be changed: ")
    warning = hooked.command("PreToolUse").replace("--mode block || exit 2", "--mode warn")
    warned = hooked.call(["sh", "-c", warning], told)
    assert (warned.code, warned.err) == (0, "")
    assert "could not tell" in json.loads(warned.out)["systemMessage"]


def test_in_warn_mode_a_refusal_is_a_message(team: Team) -> None:
    team.run("guard", "install", "claude-code", "--mode", "warn")
    team.hook(team.edit("src/app.py"))
    warned = team.hook(team.edit("src/app.py", "session-2"))
    assert (warned.code, warned.err) == (0, "")
    assert "src/app.py is held by session-1" in json.loads(warned.out)["systemMessage"]
    assert team.holders() == {"src/app.py": "session-1"}


def test_what_is_outside_of_the_repository_is_nobody_s_business_even_if_all_is_broken(
    hooked: Team, tmp_path: Path
) -> None:
    other = tmp_path / "other"
    (other / "src").mkdir(parents=True)
    git(other, "init")
    hooked.run("acquire", ".", "--as", "somebody")
    (hooked.top / ".leasehold" / "leases.db").write_bytes(b"broken" * 1_000)
    for path in (other / "src" / "app.py", tmp_path / "loose.txt", Path("/dev/null"), other / ".." / "x"):
        assert hooked.hook(hooked.edit(path)) == (0, "", "")
        assert hooked.hook(hooked.bash(f"echo x >{path}")) == (0, "", "")
    assert hooked.hook(hooked.edit("src/app.py")).code == BLOCK


def test_who_writes_a_folder_around_the_repository_writes_what_is_in_it(hooked: Team) -> None:
    hooked.hook(hooked.edit("src/app.py"))
    for command in (
        "rm -rf /",
        "rm -rf ..",
        f"mv {hooked.top.parent} /elsewhere",
        "(cd src && ls); rm -r src",
    ):
        blocked = hooked.hook(hooked.bash(command))
        assert (blocked.code, "is held by session-1" in blocked.err) == (BLOCK, True), command
    assert hooked.hook(hooked.bash("touch ../beside")) == (0, "", "")


def test_a_way_around_the_repository_leads_back_into_it(hooked: Team, tmp_path: Path) -> None:
    hooked.hook(hooked.edit("src/app.py"))
    (tmp_path / "way").symlink_to(hooked.top / "src")
    (hooked.top / "again.py").symlink_to("src/app.py")
    for path in (
        tmp_path / "way" / "app.py",
        "again.py",
        "src/../src/app.py",
        f"../{hooked.top.name}/src/app.py",
    ):
        assert hooked.hook(hooked.edit(path, "session-2")).code == BLOCK
    assert (
        hooked.hook(
            hooked.told(session_id="s", tool_name="Edit", tool_input={"file_path": "src/app.py"})
        ).code
        == BLOCK
    )


def test_clones_and_work_trees_of_the_repository_belong_to_it(hooked: Team, tmp_path: Path) -> None:
    git(hooked.top, "worktree", "add", "../tree")
    other = clone(hooked, "copy")
    hooked.hook(hooked.edit("src/app.py"))
    for place in (tmp_path / "tree", other):
        assert hooked.hook(hooked.edit(place / "src" / "app.py", "session-2")).code == BLOCK


def test_the_hook_is_at_home_where_claude_code_was_started(hooked: Team, tmp_path: Path) -> None:
    other = tmp_path / "elsewhere"
    other.mkdir()
    home = {"CLAUDE_PROJECT_DIR": str(hooked.top)}
    told = hooked.edit("src/app.py", cwd=str(other))
    assert hooked.hook(told, at=other, **home) == (0, "", "")
    assert hooked.hook(told | {"session_id": "session-2"}, at=other, **home).code == BLOCK
    assert hooked.hook(hooked.bash("touch src/app.py") | {"cwd": str(other)}, at=other, **home) == (0, "", "")
    assert hooked.holders() == {"src/app.py": "session-1"}


def test_a_folder_that_is_no_repository_can_be_guarded(team: Team, tmp_path: Path) -> None:
    place = tmp_path / "plain"
    place.mkdir()
    team.top = place
    team.run("guard", "install", "claude-code")
    assert team.hook(team.edit("a.txt")) == (0, "", "")
    assert team.hook(team.edit("a.txt", "session-2")).code == BLOCK
    assert team.hook(team.edit("../b.txt", "session-2")) == (0, "", "")
    before = sorted(place.rglob("*"))
    team.run("guard", "uninstall", "claude-code")
    assert [path for path in before if not path.exists()] == [
        place / ".claude",
        place / ".claude" / ".leasehold",
        place / ".claude" / ".leasehold" / "after",
        place / ".claude" / ".leasehold" / "made_folder",
        place / ".claude" / "settings.local.json",
    ]


def test_a_new_file_whose_name_looks_like_a_pattern_is_a_file(hooked: Team) -> None:
    assert hooked.hook(hooked.edit("app/[id]/page.tsx")) == (0, "", "")
    assert hooked.hook(hooked.edit("app/[id]/page.tsx", "session-2")).code == BLOCK
    assert hooked.hook(hooked.edit("app/i/page.tsx", "session-2")) == (0, "", "")


def test_an_agent_is_its_session_and_its_subagent_unless_the_environment_names_it(hooked: Team) -> None:
    hooked.hook(hooked.edit("a.py"))
    for subagent in ("agent-1", "agent-2"):
        assert hooked.hook(hooked.edit("a.py", agent_id=subagent)).code == BLOCK
        assert hooked.hook(hooked.edit(f"{subagent}.py", agent_id=subagent)) == (0, "", "")
    assert hooked.hook(hooked.edit("agent-1.py", agent_id="agent-2")).code == BLOCK
    assert hooked.hook(hooked.edit("agent-1.py")).code == BLOCK
    assert hooked.hook(hooked.edit("named.py"), LEASEHOLD_AGENT="ada") == (0, "", "")
    assert hooked.hook(hooked.edit("named.py", "session-2", agent_id="x"), LEASEHOLD_AGENT="ada") == (
        0,
        "",
        "",
    )
    assert hooked.holders() == {
        "a.py": "session-1",
        "agent-1.py": "session-1/agent-1",
        "agent-2.py": "session-1/agent-2",
        "named.py": "ada",
    }


def test_the_end_of_a_subagent_releases_its_own_and_that_of_a_session_everything_of_it(hooked: Team) -> None:
    for session, subagent in (
        ("session-1", ""),
        ("session-1", "sub"),
        ("session-1", "other"),
        ("session-10", ""),
    ):
        told = hooked.edit(f"{session}{subagent}.py", session, agent_id=subagent or None)
        assert hooked.hook(told).code == 0
    assert hooked.ends("SubagentStop", agent_id="sub").code == 0
    assert sorted(hooked.holders().values()) == ["session-1", "session-1/other", "session-10"]
    assert hooked.ends("SessionEnd").code == 0
    assert sorted(hooked.holders().values()) == ["session-10"]


def test_an_end_that_cannot_be_recorded_is_told_and_keeps_nobody(hooked: Team) -> None:
    assert hooked.ends("SessionEnd") == (0, "", ""), "there is no store"
    hooked.hook(hooked.edit("a.py"))
    with hooked.shell.stalled_writer():
        failed = hooked.call(
            ["sh", "-c", hooked.command("SubagentStop")],
            hooked.told(hook_event_name="SubagentStop", agent_id="x"),
            LEASEHOLD_GUARD_DEADLINE="1.5",
        )
    assert failed.code in (0, 1), "2 would keep the subagent going"


def test_the_first_edit_makes_a_store_unless_somebody_has_named_one_that_is_gone(
    hooked: Team, tmp_path: Path
) -> None:
    gone: dict[str, Any] = {"LEASEHOLD_URL": f"sqlite:///{tmp_path}/gone"}
    blocked = hooked.hook(hooked.edit("a.py"), **gone)
    assert blocked.code == BLOCK
    assert not (tmp_path / "gone").exists()
    assert hooked.hook(hooked.edit("a.py")) == (0, "", "")
    assert (hooked.top / ".leasehold").exists()


@pytest.mark.chaos
def test_with_a_stopped_writer_the_hook_answers_in_time_and_lets_nobody_take_a_file(hooked: Team) -> None:
    hooked.hook(hooked.edit("a.py"))
    with hooked.shell.stalled_writer():
        assert hooked.hook(hooked.edit("a.py")) == (0, "", ""), "it has that already"
        assert "held by session-1" in hooked.hook(hooked.edit("a.py", "session-2")).err
        blocked = hooked.hook(hooked.edit("b.py"))
    assert (blocked.code, blocked.out) == (BLOCK, "")
    assert "could not tell" in blocked.err
    assert hooked.holders() == {"a.py": "session-1"}


@pytest.mark.parametrize("mode", ["block", "warn"])
def test_a_hook_that_waits_for_too_long_ends_itself(team: Team, mode: str) -> None:
    team.run("guard", "install", "claude-code", "--mode", mode)
    # Nobody ever ends its input.
    with subprocess.Popen(
        ["sh", "-c", team.command("PreToolUse")],
        cwd=team.top,
        env=team.environment | {"LEASEHOLD_GUARD_DEADLINE": "0.5"},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        code = process.wait(60)
        assert process.stdout is not None
        assert process.stderr is not None
        out, err = process.stdout.read(), process.stderr.read()
    if mode == "block":
        assert (code, out) == (BLOCK, "")
        assert "it took too long" in err
    else:
        assert (code, err) == (0, "")
        assert "it took too long" in json.loads(out)["systemMessage"]


def test_a_hook_that_keeps_the_interpreter_to_itself_is_ended_by_the_kernel(hooked: Team) -> None:
    hooked.shell.sabotage(HANGS)
    hooked.environment |= hooked.shell.environment
    blocked = hooked.hook(hooked.edit("a.py"), LEASEHOLD_GUARD_DEADLINE="0.2")
    assert (blocked.code, blocked.out) == (BLOCK, "")


def test_a_hook_that_is_killed_or_gone_blocks(hooked: Team) -> None:
    hooked.shell.sabotage(DIES)
    hooked.environment |= hooked.shell.environment
    assert hooked.hook(hooked.edit("a.py")).code == BLOCK
    gone = hooked.command("PreToolUse").replace("/leasehold guard", "/gone guard")
    assert hooked.call(["sh", "-c", gone], hooked.edit("a.py")).code == BLOCK


def test_a_defect_blocks(hooked: Team) -> None:
    hooked.shell.sabotage("import leasehold.guards.home as home; home.Home.own = lambda *_: 1 / 0")
    hooked.environment |= hooked.shell.environment
    assert "division by zero" in hooked.hook(hooked.edit("a.py")).err


def test_a_bypass_lets_an_agent_through_and_history_tells_of_it(hooked: Team) -> None:
    hooked.hook(hooked.edit("a.py"))
    assert hooked.hook(hooked.edit("a.py", "session-2"), LEASEHOLD_BYPASS="hot fix") == (0, "", "")
    assert "held by session-1 (hot fix)" in hooked.run("history", "./a.py").out
    assert hooked.holders() == {"a.py": "session-1"}


def test_a_lease_that_does_not_suffice_is_made_to(hooked: Team) -> None:
    hooked.run("acquire", "./a.py", "--as", "session-1", "--shared")
    assert hooked.hook(hooked.edit("a.py")) == (0, "", "")
    assert "renewed" in hooked.run("history", "./a.py").out
    assert hooked.run("acquire", "./a.py", "--as", "session-2", "--shared", code=75)


def test_a_signal_that_a_parent_has_blocked_still_ends_a_hook(hooked: Team) -> None:
    hooked.shell.sabotage(HANGS)
    hooked.environment |= hooked.shell.environment
    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGALRM])
    try:
        assert hooked.hook(hooked.edit("a.py"), LEASEHOLD_GUARD_DEADLINE="0.2").code == BLOCK
    finally:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGALRM])


def test_what_git_was_told_about_another_repository_does_not_lead_astray(
    hooked: Team, tmp_path: Path
) -> None:
    git(tmp_path, "init", "other")
    hooked.run("guard", "install", "--store", str(tmp_path / "store"))
    hooked.hook(hooked.edit("a.py"))
    elsewhere: dict[str, Any] = {
        "GIT_DIR": str(tmp_path / "other" / ".git"),
        "GIT_WORK_TREE": str(tmp_path / "other"),
    }
    assert hooked.hook(hooked.edit("a.py", "session-2"), **elsewhere).code == BLOCK
    assert not (hooked.top / ".leasehold").exists()


def test_a_repository_without_a_name_stops_nobody_elsewhere(hooked: Team, tmp_path: Path) -> None:
    git(tmp_path, "clone", "--depth", "1", f"file://{hooked.top}", "shallow")
    git(tmp_path, "clone", "--quiet", str(hooked.top), "other")
    git(tmp_path / "other", "config", "leasehold.project", "other")
    at_home = {"cwd": str(tmp_path / "shallow")}
    assert hooked.hook(hooked.edit(tmp_path / "other" / "a.py", **at_home)) == (0, "", "")
    assert "set a name for it" in hooked.hook(hooked.edit(tmp_path / "shallow" / "a.py", **at_home)).err


def test_a_folder_that_is_no_repository_guards_no_repository_in_it(hooked: Team) -> None:
    above = hooked.top.parent
    hooked.hook(hooked.edit("a.py"))
    assert hooked.hook(hooked.edit("a.py", "session-2", cwd=str(above))) == (0, "", "")
    assert hooked.hook(hooked.edit("a.py", "session-2"), CLAUDE_PROJECT_DIR=str(above / "gone")).code == BLOCK


def test_a_subagent_that_does_not_say_which_it_is_releases_nothing(hooked: Team) -> None:
    hooked.hook(hooked.edit("a.py"))
    assert hooked.ends("SubagentStop").code == 0
    assert hooked.ends("SubagentStop", agent_id="x").code == 0
    assert hooked.holders() == {"a.py": "session-1"}


def test_a_command_claims_no_file_that_git_ignores_but_respects_who_has_it(hooked: Team) -> None:
    (hooked.top / ".gitignore").write_text("*.log\nsrc/app.py\n")
    for session in ("session-1", "session-2"):
        assert hooked.hook(hooked.bash("make >build.log", session)) == (0, "", "")
    assert hooked.hook(hooked.bash("sed -i s/a/b/ src/app.py; make >build.log")) == (0, "", "")
    assert hooked.holders() == {"src/app.py": "session-2"}, "what is committed is not ignored"
    hooked.run("acquire", "./build.log", "--as", "somebody")
    assert hooked.hook(hooked.bash("make >build.log")).code == BLOCK


def test_whatever_is_in_a_name_steers_no_terminal(hooked: Team) -> None:
    hooked.run("acquire", "./a.py", "--as", "x\x9b31m")
    assert "held by x\\u009b31m since" in hooked.hook(hooked.edit("a.py")).err
