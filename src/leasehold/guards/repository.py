"""What git knows: which paths are staged or pushed, and where its hooks are.

All of it is asked of git, in the environment that a hook has (GIT_INDEX_FILE, GIT_DIR): nothing is read or
guessed beside it. A rename is two paths, the old name and the new one. Of a merge, what counts is what
differs from every parent: what was taken over as it is, its author has answered for.
"""

import os
import re
import subprocess
from collections.abc import Iterable

from leasehold.errors import LeaseholdError
from leasehold.files.project import project_of

_SECONDS = 60.0
_NOTHING = re.compile(r"0+")
_GIT_HEAD = re.compile(r"GITHEAD_([0-9a-f]{40,64})")


class GitTrouble(LeaseholdError, code="GIT_ERROR"):
    """Git could not be asked, or refused."""


def git(*arguments: str, folder: str | None = None) -> str:
    """Return what git answers; raise GitTrouble if it does not."""
    try:
        done = subprocess.run(
            ["git", *arguments],
            cwd=folder,
            capture_output=True,
            text=True,
            errors="surrogateescape",
            timeout=_SECONDS,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise GitTrouble(f"git cannot be asked: {error}; check that it is installed and in PATH") from error
    if done.returncode != 0:
        said = done.stderr.strip().splitlines()
        problem = said[-1] if said else f"exit code {done.returncode}"
        raise GitTrouble(f"`git {' '.join(arguments)}` failed: {problem}; try that by hand")
    return done.stdout


def answers(*arguments: str, folder: str | None = None) -> bool:
    """Say whether git does what it is asked."""
    try:
        git(*arguments, folder=folder)
    except GitTrouble:
        return False
    return True


def work_tree() -> str:
    """Return the top of the work tree that we are in."""
    return git("rev-parse", "--show-toplevel").removesuffix("\n")


def staged(top: str) -> list[str]:
    """Return the paths that the next commit would change, inside of the work tree."""
    if not answers("rev-parse", "--verify", "--quiet", "HEAD^{commit}", folder=top):
        return _paths(git("ls-files", "-z", folder=top))
    changed = _changed_against(top, "HEAD")
    for parent in _merged(top):
        changed &= _changed_against(top, parent)
    return sorted(changed)


def _changed_against(top: str, commit: str) -> set[str]:
    names = git("diff-index", "--cached", "--name-only", "--no-renames", "-z", commit, "--", folder=top)
    return set(_paths(names))


def _merged(top: str) -> list[str]:
    """Return what is being merged: as MERGE_HEAD says or, before that is written, the environment."""
    try:
        where = git("rev-parse", "--git-path", "MERGE_HEAD", folder=top).removesuffix("\n")
        with open(os.path.join(top, where)) as file:
            return file.read().split()
    except FileNotFoundError:
        return [found[1] for name in os.environ if (found := _GIT_HEAD.fullmatch(name))]


def pushed(top: str, remote: str, refs: Iterable[str]) -> list[str]:
    """Return the paths that commits change which a push would bring to a remote.

    `refs` are the lines that git gives a pre-push hook: local ref, its commit, remote ref, its commit.
    """
    found: set[str] = set()
    for line in refs:
        words = line.split()
        if len(words) != 4:
            raise GitTrouble(f"unexpected line {line!r:.80} on stdin; run this from git's pre-push hook")
        _, local, _, there = words
        if _NOTHING.fullmatch(local) or not _is_commit(top, local):
            continue  # A ref is deleted, or is a tag of something that is no commit.
        known = [there] if not _NOTHING.fullmatch(there) and _is_commit(top, there) else []
        since = [*known, f"--remotes={remote}"] if _is_remote(top, remote) else [*known, "--remotes"]
        found.update(
            _paths(
                git(
                    "log",
                    "--format=",
                    "--name-only",
                    "--no-renames",
                    "-c",
                    "-z",
                    local,
                    "--not",
                    *since,
                    "--",
                    folder=top,
                )
            )
        )
    return sorted(found)


def _is_commit(top: str, name: str) -> bool:
    return answers("rev-parse", "--verify", "--quiet", f"{name}^{{commit}}", folder=top)


def _is_remote(top: str, remote: str) -> bool:
    return remote in git("remote", folder=top).splitlines()


def _paths(listing: str) -> list[str]:
    return [name for name in listing.split("\0") if name]


def setting(key: str, *, folder: str, scope: str = "") -> str | None:
    """Return a setting of git's; with a scope such as `--local`, only as it is set there. None: it is not."""
    words = [*([scope] if scope else []), "--get", key]
    try:
        return git("config", *words, folder=folder).removesuffix("\n")
    except GitTrouble:
        return None


def require_project(top: str) -> None:
    """Refuse a repository whose files have no name yet, and say what to do about that."""
    project_of(os.path.realpath(top))
