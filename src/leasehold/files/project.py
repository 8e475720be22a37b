"""Which project a folder belongs to.

The project is what clones and work trees of one repository have in common: git's setting `leasehold.project`,
else the root commit. A clone that does not have its root commit cannot tell, and says what to do about it.
"""

import os
from functools import lru_cache
from typing import NamedTuple

from leasehold import git
from leasehold.errors import InvalidInput
from leasehold.kernel.lease.globs import escape

_DIGITS = 16
"""How much of a root commit's name is used: more than enough to tell projects apart."""
LONGEST_NAME = 64
_SECONDS = 10.0
_STEP = "set a name for it: git config leasehold.project NAME"


class Project(NamedTuple):
    """A repository's work tree, and the name of what it is a copy of."""

    top: str
    """Its folder, with all symbolic links resolved."""
    name: str


def project_of(folder: str) -> Project | None:
    """Return the project that a folder belongs to; None if it is in no repository. Links are resolved."""
    top = top_of(folder)
    return None if top is None else _project(top)


def top_of(folder: str) -> str | None:
    """Return the top of the work tree that a folder, or a file, is in; None if it is in none."""
    while not os.path.lexists(os.path.join(folder, ".git")):
        above = os.path.dirname(folder)
        if above == folder:
            return None
        folder = above
    return folder


def is_project_name(text: str) -> bool:
    """Say whether a project can have a name."""
    return bool(text) and "/" not in text and text.isprintable() and len(text.encode()) <= LONGEST_NAME


@lru_cache(maxsize=64)
def _project(top: str) -> Project:
    """Ask git. What it says stays: within one process, a project does not become another."""
    configured = _git(top, "config", "--get", "leasehold.project")
    if configured:
        if not is_project_name(configured):
            raise InvalidInput(
                f"git's setting leasehold.project is {configured!r}; "
                f"it must be at most {LONGEST_NAME} bytes without a slash",
                field="project",
            )
        return Project(top, escape(configured))
    root = _git(top, "rev-list", "--max-parents=0", "--first-parent", "HEAD")
    if not (root and _is_plainly_whole(top)) and _git(top, "rev-parse", "--is-shallow-repository") != "false":
        raise InvalidInput(f"{top} is a shallow clone, or git cannot read it; {_STEP}", field="project")
    if not root:
        raise InvalidInput(f"the repository {top} has no commit yet; {_STEP}", field="project")
    return Project(top, root[:_DIGITS])


def _is_plainly_whole(top: str) -> bool:
    """Say whether a look into git's folder shows that nothing is cut off; if not, git has to be asked."""
    folder = os.path.join(top, ".git")
    return os.path.isdir(folder) and not os.path.lexists(os.path.join(folder, "shallow"))


def _git(top: str, *arguments: str) -> str:
    """Return what git answers; empty if it refuses."""
    try:
        return (git.ask(top, *arguments, seconds=_SECONDS) or "").strip()
    except OSError as error:
        raise InvalidInput(
            f"{top} is a git work tree, and git cannot be asked: {error}", field="path"
        ) from error
