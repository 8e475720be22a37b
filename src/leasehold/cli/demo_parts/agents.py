"""The chapter about coding agents: two of them, one repository, and a hook that lets in one at a time."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from leasehold.cli.demo_parts.narration import Story

_FILE = "shop.py"
_SECONDS = 60.0
_MINE = ("LEASEHOLD_", "CLAUDE_", "GIT_")
"""What the variables begin with that would lead the agents elsewhere."""


def guard_a_repository(story: Story, folder: Path, number: int) -> None:
    """Let two agents edit the same file, as Claude Code would let them."""
    story.heading(f"{number}. Two coding agents, one repository, and a hook that refuses")
    place = folder / "shop"
    place.mkdir()
    (place / _FILE).write_text("open = True\n")
    for words in (("git", "init", "--quiet", "."), ("git", "config", "leasehold.project", "shop")):
        _run(words, place)
    _run((sys.executable, "-m", "leasehold", "guard", "install", "claude-code"), place)
    settings = json.loads((place / ".claude" / "settings.local.json").read_text())
    asking, ending = (
        settings["hooks"][event][0]["hooks"][0]["command"] for event in ("PreToolUse", "SessionEnd")
    )
    story.say(f"Claude Code now asks `leasehold guard` before each edit. ada and ben both want {_FILE}.")
    first = _hear(asking, place, "ada")
    story.claim("ada edits it, and has it from now on", (first.returncode, first.stderr) == (0, ""))
    refused = _hear(asking, place, "ben")
    story.say(f"ben is told: {refused.stderr.strip()}")
    story.claim(
        "ben's edit is blocked, and he is told who has it",
        refused.returncode == 2 and "held by ada" in refused.stderr and not refused.stdout,
    )
    _hear(ending, place, "ada", event="SessionEnd")
    second = _hear(asking, place, "ben")
    story.claim("ada is done, and ben has it at once", (second.returncode, second.stderr) == (0, ""))


def _hear(
    command: str, place: Path, agent: str, event: str = "PreToolUse"
) -> "subprocess.CompletedProcess[str]":
    """Run a hook as Claude Code does; return what came of it."""
    told: dict[str, Any] = {
        "session_id": agent,
        "hook_event_name": event,
        "cwd": str(place),
        "tool_name": "Edit",
        "tool_input": {"file_path": str(place / _FILE)},
    }
    return _run(("sh", "-c", command), place, json.dumps(told))


def _run(command: tuple[str, ...], place: Path, given: str = "") -> "subprocess.CompletedProcess[str]":
    environment = {name: value for name, value in os.environ.items() if not name.startswith(_MINE)}
    return subprocess.run(
        command,
        cwd=place,
        env=environment,
        input=given,
        capture_output=True,
        text=True,
        timeout=_SECONDS,
        check=False,
    )
