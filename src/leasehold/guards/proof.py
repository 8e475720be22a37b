"""Does an installed hook really block? The only proof is to have it refuse something.

Each hook is run as git, or Claude Code, runs it, on a file that somebody holds in a store made for this
purpose; and on one that nobody holds. Neither the repository nor its store is touched.
"""

import json
import os
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from leasehold.client.connect import connect
from leasehold.files.project import top_of
from leasehold.guards import claude_code, git_hooks
from leasehold.guards.hook import AGENT_VARIABLE, EXIT_BLOCK, PROJECT_VARIABLE
from leasehold.guards.verdict import BYPASS_VARIABLE
from leasehold.stores.locate import ENVIRONMENT

_HOLDER = "doctor's-holder"
_INTRUDER = "doctor's-intruder"
_SECONDS = 60.0
_PROBE = "leasehold-probe.txt"
_WARN = "--mode warn"
_IDENTITY = (
    "-c",
    "user.name=leasehold",
    "-c",
    "user.email=leasehold@localhost",
    "-c",
    "commit.gpgSign=false",
)


class Proof(NamedTuple):
    """What was seen of one hook."""

    hook: str
    holds: bool
    """It does what it was installed for."""
    detail: str


def prove(folder: Path) -> Iterator[Proof]:
    """Try every hook of leasehold's that is installed around a folder."""
    top = top_of(os.path.realpath(folder))
    home = Path(top or folder)
    ours = [] if top is None else git_hooks.installed(top)
    if ours:
        yield _prove_git(ours[0].parent, warns=all(_WARN in hook.read_text() for hook in ours))
    for command in claude_code.commands_of(home):
        yield _prove_claude_code(command, home, warns=_WARN in command)


def _prove_git(hooks: Path, *, warns: bool) -> Proof:
    """Have a commit refused, in a repository that is made for this and has the same hooks."""
    with tempfile.TemporaryDirectory(prefix="leasehold-doctor-") as scratch:
        place = Path(scratch, "repository")
        place.mkdir()
        environment = _environment(Path(scratch, "store"))

        def git(*words: str) -> subprocess.CompletedProcess[str]:
            command = ["git", "-c", f"core.hooksPath={hooks}", *_IDENTITY, *words]
            return _run(command, place, environment)

        git("init", "--quiet", ".")
        git("config", "leasehold.project", "leasehold-doctor")
        (place / _PROBE).write_text("probe\n")
        git("add", _PROBE)
        _hold(environment, place / _PROBE)
        done = git("commit", "--quiet", "-m", "probe")
        landed = git("rev-parse", "--verify", "--quiet", "HEAD").returncode == 0
    return _seen("git's pre-commit hook", done, blocks=not landed, warns=warns)


def _prove_claude_code(command: str, home: Path, *, warns: bool) -> Proof:
    """Have a tool refused that is about to write a file which is not there."""
    with tempfile.TemporaryDirectory(prefix="leasehold-doctor-") as scratch:
        environment = _environment(Path(scratch, "store")) | {PROJECT_VARIABLE: str(home)}
        probe = home / _PROBE
        _hold(environment, probe)
        told = {
            "session_id": _INTRUDER,
            "hook_event_name": "PreToolUse",
            "cwd": str(home),
            "tool_name": "Write",
            "tool_input": {"file_path": str(probe)},
        }
        held = _run(["sh", "-c", command], home, environment, json.dumps(told))
        told["tool_input"] = {"file_path": f"{probe}.free"}
        free = _run(["sh", "-c", command], home, environment, json.dumps(told))
    if free.returncode != 0:
        return Proof("Claude Code's hook", False, f"it blocks also what is free: {free.stderr.strip()}")
    blocks = held.returncode == EXIT_BLOCK and not held.stdout
    return _seen("Claude Code's hook", held, blocks=blocks, warns=warns)


def _environment(store: Path) -> dict[str, str]:
    """Return an environment in which hooks ask the store of this proof, and nothing leads elsewhere."""
    inherited = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith("GIT_") and name != BYPASS_VARIABLE
    }
    return inherited | {
        ENVIRONMENT: f"sqlite:///{store}",
        AGENT_VARIABLE: _INTRUDER,
        "LEASEHOLD_HOLDER": _INTRUDER,
    }


def _hold(environment: dict[str, str], path: Path) -> None:
    with connect(environment[ENVIRONMENT], holder=_HOLDER) as client:
        for one in client.files.lease(path, agent=_HOLDER, ttl=600, wait=False).parts():
            one.detach()


def _run(
    command: list[str], folder: Path, environment: dict[str, str], given: str = ""
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command,
        cwd=folder,
        env=environment,
        input=given,
        capture_output=True,
        text=True,
        errors="replace",
        timeout=_SECONDS,
        check=False,
    )


def _seen(hook: str, done: subprocess.CompletedProcess[str], *, blocks: bool, warns: bool) -> Proof:
    """Say what a hook did with a file that somebody else held."""
    if _HOLDER in done.stderr + done.stdout and blocks is not warns:
        did = (
            "refused a file that somebody else held" if blocks else "warned of a file that somebody else held"
        )
        return Proof(hook, True, f"it {did}, and named the holder")
    said = (done.stderr or done.stdout).strip().splitlines()
    told = f"it said: {said[-1]}" if said else "it said nothing"
    did = (
        "refused a file, and did not say whose it was"
        if blocks
        else "let a file through that somebody else held"
    )
    return Proof(hook, False, f"it {did}; {told}")
