"""The hook that Claude Code runs before a tool is used, and when a session or a subagent ends.

Before a tool writes a file of this repository, the file is claimed for the agent, or its lease renewed; if
somebody else has it, the tool is blocked: exit code 2, the reason on stderr, nothing on stdout. To Claude
Code any other exit code, a time-out and a missing command mean yes. So in block mode everything that goes
wrong ends with 2, and in warn mode with 0 and a message; and the hook answers within 5 seconds.

What lies outside of the repository is none of its business, whatever state the store is in. `--release` gives
back what a session or a subagent has; that never blocks anything, whatever goes wrong.
"""

import os
import sys
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, NoReturn

from leasehold.guards.deadline import Deadline
from leasehold.guards.verdict import BYPASS_VARIABLE

if TYPE_CHECKING:
    from leasehold.guards.tool_use import Told

EXIT_BLOCK = 2
EXIT_FAILED = 1
DEADLINE_SECONDS = 5.0
DEADLINE_VARIABLE = "LEASEHOLD_GUARD_DEADLINE"
PROJECT_VARIABLE = "CLAUDE_PROJECT_DIR"
AGENT_VARIABLE = "LEASEHOLD_AGENT"
RELEASE_OPTION = "--release"
CALLS = (["--mode", "block"], ["--mode", "warn"], [RELEASE_OPTION])
"""The arguments that Claude Code is told to call it with."""

_CLAIMED_FOR = "edited in Claude Code"
_LATE = "it took too long; `leasehold doctor` tells what keeps the store waiting"


def main(arguments: Sequence[str]) -> NoReturn:
    """Answer one question of Claude Code's, and end the process."""
    releases = RELEASE_OPTION in arguments
    act = _release if releases else _judge
    say = _warn if "warn" in arguments else partial(_complain, EXIT_FAILED if releases else EXIT_BLOCK)
    deadline = Deadline(_seconds(), lambda: say(_could_not(act, _LATE)))
    try:
        problem = _escaped(act(sys.stdin.buffer.read()))
    except BaseException as error:
        problem = _escaped(_could_not(act, str(error) or type(error).__name__))
    deadline.answer(lambda: say(problem))


def _seconds() -> float:
    """Return how long the hook may take: 5 seconds, or less where the environment says so."""
    try:
        return min(DEADLINE_SECONDS, max(0.0, float(os.environ[DEADLINE_VARIABLE])))
    except (KeyError, ValueError):
        return DEADLINE_SECONDS


def _could_not(act: Callable[[bytes], str], why: str) -> str:
    if act is _release:
        return f"the leases of this session could not be released, and end after their TTL: {why}"
    return f"could not tell whether this file is free to be changed: {why}"


def _complain(code: int, problem: str) -> int:
    if problem:
        _write(2, f"leasehold: {problem}\n")
    return code if problem else 0


def _warn(problem: str) -> int:
    if problem:
        import json

        _write(1, json.dumps({"systemMessage": f"leasehold: {problem}"}))
    return 0


def _escaped(problem: str) -> str:
    """Return a problem as it may be shown: whatever is in names, it steers no terminal."""
    if not problem:
        return ""
    from leasehold.cli.output import escaped

    return "\n".join(map(escaped, problem.split("\n")))


def _write(stream: int, text: str) -> None:
    left = text.encode("utf-8", "backslashreplace")
    while left:
        try:
            left = left[os.write(stream, left) :]
        except OSError:  # Nobody listens; the exit code says what matters.
            return


def _judge(text: bytes) -> str:
    """Return why a tool must not be used now; nothing if it may."""
    from leasehold.guards import tool_use

    told = tool_use.read(text)
    paths = tool_use.paths_written(told)
    if told.event != "PreToolUse" or not paths:
        return ""
    from leasehold.guards.home import Home

    folder = _folder(told)
    ours = Home(folder).own(paths)
    if not ours:
        return ""
    os.chdir(folder)
    from leasehold.files.names import file_at
    from leasehold.guards.asking import Asker
    from leasehold.guards.claiming import take

    asker = Asker(os.environ.get(AGENT_VARIABLE) or told.agent, folder=told.folder)
    bypass = os.environ.get(BYPASS_VARIABLE, "")
    by_path = {path: file_at(path)[1] for path in ours}
    spared = _ignored(folder, ours) if told.tool == "Bash" else set()
    claimed = [name for path, name in by_path.items() if path not in spared]
    return take(list(by_path.values()), asker, claimed=claimed, reason=_CLAIMED_FOR, bypass=bypass)


def _ignored(folder: str, paths: Sequence[str]) -> set[str]:
    """Return the paths that git ignores: logs and the like, which every clone has for itself.

    Who writes them in passing, by a command, needs no lease on them.
    """
    from leasehold import git

    words = ("-c", "core.quotePath=false", "check-ignore", "--", *paths)
    return set((git.ask(folder, *words, seconds=DEADLINE_SECONDS) or "").splitlines())


def _release(text: bytes) -> str:
    """Give back what a session, or a subagent of it, has."""
    from leasehold.guards import tool_use

    told = tool_use.read(text)
    name = os.environ.get(AGENT_VARIABLE)
    if told.event == "SubagentStop" and (name or not told.subagent):
        return ""  # It goes by the name that the whole session has, which goes on.
    os.chdir(_folder(told))
    from leasehold.guards.asking import Asker, release

    release(Asker(name or told.agent), subagents=not told.subagent)
    return ""


def _folder(told: "Told") -> str:
    """Return where the hook is at home, and looks for its store: wherever the agent is just now."""
    home = os.environ.get(PROJECT_VARIABLE, "")
    return home if os.path.isdir(home) else told.folder
