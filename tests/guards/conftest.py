"""Repositories with hooks, and agents that work in them."""

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import signals_as_at_a_terminal
from tests.cli.shell import Result, Shell
from tests.files.conftest import git, nobodys_settings, repository

__all__ = ["nobodys_settings", "repository", "signals_as_at_a_terminal"]

SECONDS = 60


class Team:
    """Agents, people and git in one repository, or in several copies of it."""

    def __init__(self, shell: Shell, top: Path) -> None:
        self.shell = shell
        self.top = top
        self.environment = shell.environment | {
            name: value
            for kind in ("AUTHOR", "COMMITTER")
            for name, value in ((f"GIT_{kind}_NAME", "n"), (f"GIT_{kind}_EMAIL", "e"))
        }

    def run(self, *arguments: str, code: int = 0, at: Path | None = None, **environment: str) -> Result:
        """Run leasehold in a copy of the repository."""
        self.shell.folder = at or self.top
        return self.shell.run(*arguments, code=code, **environment)

    def git(
        self, *arguments: str, agent: str = "somebody", at: Path | None = None, **environment: str
    ) -> Result:
        """Let git do something for an agent, whatever comes of it."""
        return self.call(["git", *arguments], at=at, LEASEHOLD_AGENT=agent, **environment)

    def hook(
        self, told: dict[str, Any] | str | bytes, *, at: Path | None = None, **environment: str
    ) -> Result:
        """Run the hook that is installed, as Claude Code does, before it uses a tool."""
        return self.call(["sh", "-c", self.command("PreToolUse")], told, at=at, **environment)

    def ends(self, event: str, **told: str) -> Result:
        """Run the hook that is installed for the end of something."""
        return self.call(["sh", "-c", self.command(event)], self.told(hook_event_name=event, **told))

    def command(self, event: str) -> str:
        """Return the command that Claude Code runs at an event."""
        settings = json.loads((self.top / ".claude" / "settings.local.json").read_text())
        command = settings["hooks"][event][0]["hooks"][0]["command"]
        assert isinstance(command, str)
        return command

    def told(self, **differences: Any) -> dict[str, Any]:
        """Return what Claude Code tells a hook, recorded, with differences."""
        return {
            "session_id": "session-1",
            "transcript_path": f"{self.top}/transcript.jsonl",
            "cwd": str(self.top),
            "permission_mode": "default",
            "hook_event_name": "PreToolUse",
            "tool_use_id": "toolu_01ABC123",
        } | differences

    def edit(self, path: str | Path, session: str = "session-1", **differences: Any) -> dict[str, Any]:
        """Return what a hook is told before a file is edited."""
        tool_input = {"file_path": str(self.top / path), "old_string": "a", "new_string": "b"}
        return self.told(session_id=session, tool_name="Edit", tool_input=tool_input, **differences)

    def bash(self, command: str, session: str = "session-2") -> dict[str, Any]:
        """Return what a hook is told before a command is run."""
        return self.told(session_id=session, tool_name="Bash", tool_input={"command": command})

    def holders(self) -> dict[str, str]:
        """Return who holds what."""
        found = json.loads(self.run("ls", "--json").out)["leases"]
        return {lease["resource"].partition("/")[2].partition("/")[2]: lease["holder"] for lease in found}

    def call(
        self, command: list[str], told: Any = "", *, at: Path | None = None, **environment: str
    ) -> Result:
        """Run a process, and return what came of it."""
        given = json.dumps(told) if isinstance(told, dict) else told
        done = subprocess.run(
            command,
            cwd=at or self.top,
            env=self.environment | environment,
            input=given.encode() if isinstance(given, str) else given,
            capture_output=True,
            timeout=SECONDS,
            check=False,
        )
        return Result(done.returncode, done.stdout.decode(), done.stderr.decode())

    def commit(self, path: str, *, agent: str, at: Path | None = None, **environment: str) -> Result:
        """Change a file, and commit it."""
        place = (at or self.top) / path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(f"{place.read_text() if place.exists() else ''}{agent}\n")
        assert self.git("add", path, at=at).code == 0
        return self.git("commit", "-m", f"{path} by {agent}", agent=agent, at=at, **environment)


@pytest.fixture
def team(repository: Path) -> Iterator[Team]:
    """Agents in a repository, whose store is found by being there."""
    shell = Shell(repository)
    for name in ("LEASEHOLD_URL", "CLAUDE_PROJECT_DIR", "CLAUDE_CODE_SESSION_ID", "LEASEHOLD_BYPASS"):
        shell.environment.pop(name, None)
    shell.store = repository / ".leasehold"
    yield Team(shell, repository)
    shell.close()


@pytest.fixture
def guarded(team: Team) -> Team:
    """A repository with git's hooks installed."""
    team.run("guard", "install", "git")
    return team


@pytest.fixture
def hooked(team: Team) -> Team:
    """A repository with Claude Code's hooks installed."""
    team.run("guard", "install", "claude-code")
    return team


def clone(team: Team, name: str) -> Path:
    """Return a clone of the team's repository."""
    place = team.top.parent / name
    git(team.top.parent, "clone", "--quiet", str(team.top), name)
    return place
