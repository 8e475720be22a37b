"""The guard as hooks of git: put where git looks for hooks, in front of those that are there already.

A hook that is there is renamed, and run after the guard, as if nothing had happened to it: a shell script
even under its own name, because some look at `$0` to see which hook they are. To uninstall renames it back.
What is not leasehold's is never overwritten.
"""

import os
import stat
from pathlib import Path

from leasehold.errors import LeaseholdError
from leasehold.guards.program import quoted_program
from leasehold.guards.repository import GitTrouble, git, require_project, work_tree

HOOKS = ("pre-commit", "pre-merge-commit", "pre-push")
BEFORE = ".before-leasehold"
"""What is appended to the name of a hook that was there before."""
_MARK = "# Installed by leasehold"

_SCRIPT = """\
#!/bin/sh
{mark}: refuses what somebody else has leased. To remove it: leasehold guard uninstall git
{check}
before="$0{before}"
[ -x "$before" ] || exit 0
IFS= read -r first <"$before"
case $first in
'#!'*/sh | '#!'*/sh' '* | '#!'*/bash | '#!'*/bash' '* | '#!'*/dash | '#!'*' sh' | '#!'*' bash')
	{run}${{first#??}} -c '. "$0{before}"' "$0" "$@"
	exit
	;;
esac
{run}"$before" "$@"
"""
_STAGED = "{guard} --staged || {otherwise}"
_PUSHED = """\
refs=$(cat)
feed() {{ [ -z "$refs" ] || printf '%s\\n' "$refs"; }}
feed | {guard} --pushed "$1" || {otherwise}"""


class HooksElsewhere(LeaseholdError, code="HOOKS_ELSEWHERE"):
    """Git's hooks are where other repositories have theirs, too."""


def install(mode: str) -> list[str]:
    """Install the hooks; return what was done."""
    top = work_tree()
    folder = hooks_folder(top)
    _refuse_shared(top, folder)
    require_project(top)
    folder.mkdir(parents=True, exist_ok=True)
    done = []
    for name in HOOKS:
        hook = folder / name
        if os.path.lexists(hook) and not is_ours(hook):
            _rename(hook, _before(hook))
            done.append(f"{hook}: the hook that was there runs after the guard")
        _write(hook, _script(name, mode))
        done.append(f"{hook}: installed")
    return done


def uninstall() -> list[str]:
    """Remove the hooks, and put back what was there before; return what was done."""
    folder = hooks_folder(work_tree())
    done = []
    for name in HOOKS:
        hook = folder / name
        before = _before(hook)
        if is_ours(hook):
            hook.unlink()
            done.append(f"{hook}: removed")
        if os.path.lexists(before):
            if os.path.lexists(hook):
                done.append(f"{before}: left there, because somebody else has put {hook} in its place")
                continue
            _rename(before, hook)
            done.append(f"{hook}: as it was before")
    return done


def hooks_folder(top: str) -> Path:
    """Return where git looks for hooks in a work tree: also as core.hooksPath says."""
    return Path(top, git("rev-parse", "--git-path", "hooks", folder=top).removesuffix("\n"))


def installed(top: str) -> list[Path]:
    """Return the hooks of git in a work tree that are leasehold's."""
    folder = hooks_folder(top)
    return [folder / name for name in HOOKS if is_ours(folder / name)]


def is_ours(hook: Path) -> bool:
    """Say whether a file is a hook that was installed here."""
    try:
        with hook.open("rb") as file:
            return file.read(4096).splitlines()[1:2][0].startswith(_MARK.encode())
    except (OSError, IndexError):
        return False


def _refuse_shared(top: str, folder: Path) -> None:
    """Refuse to guard repositories that nobody has spoken of."""
    try:
        scope = git("config", "--show-scope", "--get", "core.hooksPath", folder=top).split()[0]
    except GitTrouble:
        return  # It is not set.
    if scope not in ("local", "worktree"):
        raise HooksElsewhere(
            f"core.hooksPath is {folder}, which is for other repositories as well; call the guard from the "
            f"hooks there (`{quoted_program()} guard --staged || exit`), or let this repository have hooks "
            "of its own: git config core.hooksPath .git/hooks"
        )


def _script(name: str, mode: str) -> str:
    pushes = name == "pre-push"
    check = (_PUSHED if pushes else _STAGED).format(
        guard=f"{quoted_program()} guard --mode {mode}", otherwise="exit" if mode == "block" else ":"
    )
    return _SCRIPT.format(mark=_MARK, before=BEFORE, check=check, run="feed | " if pushes else "exec ")


def _before(hook: Path) -> Path:
    return hook.with_name(f"{hook.name}{BEFORE}")


def _rename(source: Path, target: Path) -> None:
    """Rename a file, and never onto another one."""
    if os.path.lexists(target):
        raise HooksElsewhere(f"{target} is in the way of {source}; look what it is, and move it away")
    source.rename(target)


def _write(hook: Path, text: str) -> None:
    """Put a hook in place at once: git may be about to run it."""
    draft = hook.with_name(f"{hook.name}.leasehold-{os.getpid()}")
    draft.write_text(text)
    draft.chmod(draft.stat().st_mode | stat.S_IXUSR | stat.S_IXGRP | stat.S_IXOTH)
    draft.replace(hook)
