"""What a refusal says to type next is typed, where whoever was refused stands, and claims the very file."""

import shlex
from pathlib import Path

import pytest

from tests.cli.shell import Result
from tests.guards.conftest import Team


def typed_as_told(team: Team, refused: Result, at: Path) -> dict[str, str]:
    """Let the first agent release, and the second type what it was told; return who holds what then."""
    command = shlex.split(refused.err.partition("Next: leasehold ")[2])
    team.run("release", "--all", "--as", "a")
    team.run(*command, at=at)
    return team.holders()


@pytest.mark.parametrize(
    ("folder", "name"), [("", "src/app.py"), ("src", "./app.py"), ("docs", "../src/app.py")]
)
def test_a_commit_that_is_refused_in_a_folder(guarded: Team, folder: str, name: str) -> None:
    at = guarded.top / folder
    at.mkdir(exist_ok=True)
    guarded.run("acquire", "src/app.py", "--as", "a")
    (guarded.top / "src" / "app.py").write_text("changed\n")
    refused = guarded.git("commit", "-a", "-m", "changed", agent="b", at=at)
    assert refused.err.startswith(f"leasehold: {name} is held by a ")
    assert f"Next: leasehold acquire {name} --as b" in refused.err
    assert typed_as_told(guarded, refused, at) == {"src/app.py": "b"}
    assert guarded.git("commit", "-a", "-m", "changed", agent="b", at=at).code == 0


@pytest.mark.parametrize(("path", "name"), [("app.py", "src/app.py"), ("../README.md", "README.md")])
def test_the_guard_asked_in_a_folder(team: Team, path: str, name: str) -> None:
    at = team.top / "src"
    team.run("acquire", f"./{path}", "--as", "a", at=at)
    refused = team.run("guard", path, "--as", "b", code=2, at=at)
    assert typed_as_told(team, refused, at) == {name: "b"}


@pytest.mark.parametrize("project", [False, True])
def test_a_tool_that_is_blocked_while_its_agent_is_in_a_folder(hooked: Team, *, project: bool) -> None:
    at = hooked.top / "src"
    hooked.run("acquire", "./README.md", "--as", "a")
    if project:
        hooked.environment["CLAUDE_PROJECT_DIR"] = str(hooked.top)
    refused = hooked.hook(hooked.edit("README.md", "b", cwd=str(at)))
    assert refused.err.startswith("leasehold: ../README.md is held by a ")
    assert typed_as_told(hooked, refused, at) == {"README.md": "b"}
