"""Does an installed hook really block? The only proof is to have it refuse something.

Each hook is run as git, or Claude Code, runs it, on a file that somebody holds; and on one that nobody holds.
Neither the repository nor its store is touched: the file is held in a store made for this purpose. Only where
the hooks ask a server, that very server has to answer them: the leases are released at once, and history has
them. Names are drawn for each proof, so several at a time are not in each other's way.
"""

import json
import os
import secrets
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from leasehold.client.connect import connect
from leasehold.files.project import top_of
from leasehold.guards import claude_code, git_hooks
from leasehold.guards.hook import AGENT_VARIABLE, EXIT_BLOCK, PROJECT_VARIABLE
from leasehold.guards.verdict import BYPASS_VARIABLE
from leasehold.stores.locate import ENVIRONMENT, TENANT_ENVIRONMENT, place_of

_SECONDS = 60.0
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


class _Trial(NamedTuple):
    """Who holds which file, and who may not have it."""

    holder: str
    intruder: str
    probe: str
    server: str | None
    tenant: str

    @contextmanager
    def held(self, folder: Path) -> Iterator[dict[str, str]]:
        """Hold the file in a folder meanwhile; yield an environment in which hooks ask whoever knows that."""
        with tempfile.TemporaryDirectory(prefix="leasehold-doctor-") as scratch:
            address = self.server or f"sqlite:///{scratch}/store"
            with connect(address, tenant=self.tenant, holder=self.holder) as client:
                try:
                    with client.files.lease(folder / self.probe, agent=self.holder, ttl=_SECONDS, wait=False):
                        yield self._environment(address)
                finally:
                    client.release_all(self.intruder)

    def _environment(self, address: str) -> dict[str, str]:
        names = {AGENT_VARIABLE: self.intruder, "LEASEHOLD_HOLDER": self.intruder}
        return _without_git() | names | {ENVIRONMENT: address, TENANT_ENVIRONMENT: self.tenant}


def prove(folder: Path, server: str | None = None, tenant: str | None = None) -> Iterator[Proof]:
    """Try every hook of leasehold's that is installed around a folder; against a server, if it is asked.

    Without a tenant, it is the one whose leases the hooks look at.
    """
    number = secrets.token_hex(4)
    trial = _Trial(
        f"doctor's-holder-{number}",
        f"doctor's-intruder-{number}",
        f"leasehold-probe-{number}.txt",
        server,
        place_of(None, tenant, folder).tenant,
    )
    top = top_of(os.path.realpath(folder))
    home = Path(top or folder)
    ours = [] if top is None else git_hooks.installed(top)
    if ours:
        yield _prove_git(trial, ours[0].parent, warns=all(_WARN in hook.read_text() for hook in ours))
    for command in claude_code.commands_of(home):
        yield _prove_claude_code(trial, command, home, warns=_WARN in command)


def _prove_git(trial: _Trial, hooks: Path, *, warns: bool) -> Proof:
    """Have a commit refused, in a repository that is made for this and has the same hooks."""
    with tempfile.TemporaryDirectory(prefix="leasehold-doctor-") as scratch:
        place = Path(scratch)

        def git(*words: str, environment: dict[str, str] | None = None) -> subprocess.CompletedProcess[str]:
            command = ["git", "-c", f"core.hooksPath={hooks}", *_IDENTITY, *words]
            return _run(command, place, environment or _without_git())

        git("init", "--quiet", ".")
        git("config", "leasehold.project", "leasehold-doctor")
        (place / trial.probe).write_text("probe\n")
        git("add", trial.probe)
        with trial.held(place) as environment:
            done = git("commit", "--quiet", "-m", "probe", environment=environment)
        landed = git("rev-parse", "--verify", "--quiet", "HEAD").returncode == 0
    return _seen("git's pre-commit hook", trial, done, blocks=not landed, warns=warns)


def _prove_claude_code(trial: _Trial, command: str, home: Path, *, warns: bool) -> Proof:
    """Have a tool refused that is about to write a file which is not there."""
    with trial.held(home) as environment:
        environment[PROJECT_VARIABLE] = str(home)
        probe = home / trial.probe
        told = {
            "session_id": trial.intruder,
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
    return _seen("Claude Code's hook", trial, held, blocks=blocks, warns=warns)


def _without_git() -> dict[str, str]:
    """Return an environment in which git is led nowhere else, nor past the guard."""
    return {
        name: value
        for name, value in os.environ.items()
        if not name.startswith("GIT_") and name != BYPASS_VARIABLE
    }


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


def _seen(
    hook: str, trial: _Trial, done: subprocess.CompletedProcess[str], *, blocks: bool, warns: bool
) -> Proof:
    """Say what a hook did with a file that somebody else held."""
    if trial.holder in done.stderr + done.stdout and blocks is not warns:
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
