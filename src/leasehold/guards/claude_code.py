"""The guard as hooks of Claude Code: entries in .claude/settings.local.json, beside all others.

What was in the file is kept beside it, in git's folder, until the guard is uninstalled: if nobody has changed
the file since, it is as it was before, byte for byte. Else only our entries are taken out.
"""

import json
import os
import re
import shutil
from pathlib import Path
from typing import Any, NamedTuple

from leasehold.errors import LeaseholdError
from leasehold.guards.hook import DEADLINE_SECONDS, RELEASE_OPTION
from leasehold.guards.program import quoted_program
from leasehold.guards.repository import GitTrouble, answers, git, require_project, work_tree
from leasehold.guards.tool_use import TOOLS

SETTINGS = Path(".claude", "settings.local.json")
_OURS = re.compile(rb" guard hook --(?:mode|release)\b")
"""What our commands have in common, wherever leasehold is installed."""
_TIMEOUT_SECONDS = int(DEADLINE_SECONDS) + 5
"""Longer than the hook's own deadline: Claude Code takes a time-out for a yes."""


class BadSettings(LeaseholdError, code="BAD_SETTINGS"):
    """The settings of Claude Code cannot be read."""


def install(mode: str) -> list[str]:
    """Add the hooks; return what was done."""
    home = _home()
    if (home / ".git").exists():
        require_project(str(home))
    file = home / SETTINGS
    uninstall()  # What is there of ours may be from another place, or in another mode.
    before = _read(file)
    settings = _parsed(file, before)
    for event, entry in _entries(mode).items():
        settings.setdefault("hooks", {}).setdefault(event, []).append(entry)
    after = _spelled(settings)
    _keep_state(_keep(home), _State(before, after, made_folder=not file.parent.exists()))
    file.parent.mkdir(exist_ok=True)
    _write(file, after)
    done = [f"{file}: installed; it is in force in sessions that begin from now on"]
    if (home / ".git").exists() and not answers("check-ignore", "--quiet", str(SETTINGS), folder=str(home)):
        done.append(f"{SETTINGS} is yours alone, and git does not ignore it: add it to .gitignore")
    return done


def uninstall() -> list[str]:
    """Take our hooks out; return what was done."""
    home = _home()
    file, keep = home / SETTINGS, _keep(home)
    now, state = _read(file), _kept_state(keep)
    done = []
    if now is not None and _is_in(now):
        is_as_we_left_it = state.after == now
        text = (
            state.before if is_as_we_left_it else _without_ours(file, now, existed=state.before is not None)
        )
        if text is None:
            file.unlink()
        else:
            _write(file, text)
        done.append(f"{file}: {'as it was before' if is_as_we_left_it else 'our entries are removed'}")
    shutil.rmtree(keep, ignore_errors=True)
    if state.made_folder and not any(file.parent.iterdir()):
        file.parent.rmdir()
    return done


def commands_of(folder: Path) -> list[str]:
    """Return those commands of ours that Claude Code runs before it uses a tool in a folder."""
    now = _read(folder / SETTINGS)
    if now is None or not _is_in(now):
        return []
    hooks = _parsed(folder / SETTINGS, now).get("hooks", {})
    return [
        one["command"] for entry in hooks.get("PreToolUse", []) for one in entry["hooks"] if _is_ours(one)
    ]


def _entries(mode: str) -> dict[str, dict[str, Any]]:
    program = quoted_program()
    # Whatever else happens to the command, such as that it is not there any more, has to say no.
    asking = f"{program} guard hook --mode {mode}" + (" || exit 2" if mode == "block" else "")
    releasing = f"{program} guard hook {RELEASE_OPTION}"
    fails = {"onFailure": "block"} if mode == "block" else {}
    return {
        "PreToolUse": {"matcher": "|".join(TOOLS), "hooks": [_hook(asking) | fails]},
        "SubagentStop": {"hooks": [_hook(releasing)]},
        "SessionEnd": {"hooks": [_hook(releasing)]},
    }


def _hook(command: str) -> dict[str, Any]:
    return {"type": "command", "command": command, "timeout": _TIMEOUT_SECONDS}


def _is_ours(hook: Any) -> bool:
    command = hook.get("command") if isinstance(hook, dict) else None
    return isinstance(command, str) and _OURS.search(command.encode()) is not None


def _is_in(text: bytes) -> bool:
    return _OURS.search(text) is not None


def _without_ours(file: Path, text: bytes, *, existed: bool) -> bytes | None:
    """Return settings without our hooks, and without what is empty because of that; None: nothing is left."""
    settings = _parsed(file, text)
    hooks = settings.get("hooks", {})
    for event in list(hooks):
        for entry in list(hooks[event]):
            entry["hooks"] = [one for one in entry.get("hooks", []) if not _is_ours(one)]
            if not entry["hooks"]:
                hooks[event].remove(entry)
        if not hooks[event]:
            del hooks[event]
    if not hooks:
        settings.pop("hooks", None)
    return _spelled(settings) if settings or existed else None


def _spelled(settings: dict[str, Any]) -> bytes:
    return f"{json.dumps(settings, indent=2, ensure_ascii=False)}\n".encode()


def _home() -> Path:
    """Return the folder that Claude Code is started in: the top of the work tree, or where we are."""
    try:
        return Path(work_tree())
    except GitTrouble:
        return Path.cwd()


def _keep(home: Path) -> Path:
    """Return where to keep what was there before: where neither git nor Claude Code looks at it."""
    try:
        folder = git("rev-parse", "--git-dir", folder=str(home)).removesuffix("\n")
    except GitTrouble:
        return home / ".claude" / ".leasehold"
    return home / folder / "leasehold-claude-code"


class _State(NamedTuple):
    """What the settings were before, and what we have made of them; None: there was no such file."""

    before: bytes | None = None
    after: bytes | None = None
    made_folder: bool = False


def _keep_state(keep: Path, state: _State) -> None:
    keep.mkdir(parents=True, exist_ok=True)
    texts = {"before": state.before, "after": state.after, "made_folder": b"" if state.made_folder else None}
    for name, text in texts.items():
        if text is not None:
            (keep / name).write_bytes(text)


def _kept_state(keep: Path) -> _State:
    made_folder = (keep / "made_folder").exists()
    return _State(_read(keep / "before"), _read(keep / "after"), made_folder)


def _read(file: Path) -> bytes | None:
    try:
        return file.read_bytes()
    except FileNotFoundError:
        return None


def _parsed(file: Path, text: bytes | None) -> dict[str, Any]:
    """Read settings; refuse what Claude Code would not understand, instead of losing it."""
    if text is None or not text.strip():
        return {}
    try:
        settings = json.loads(text)
        hooks = settings.get("hooks", {})
        understood = all(
            isinstance(entries, list)
            and all(isinstance(entry, dict) and isinstance(entry.get("hooks", []), list) for entry in entries)
            for entries in hooks.values()
        )
    except (ValueError, AttributeError, TypeError):
        understood = False
    if not understood:
        raise BadSettings(f"{file} is not what Claude Code's settings look like; mend it first")
    return dict(settings)


def _write(file: Path, text: bytes) -> None:
    """Replace a file at once, with the rights that it has; one that is a link is written where it leads."""
    place = Path(os.path.realpath(file))
    draft = place.with_name(f"{place.name}.leasehold-{os.getpid()}")
    draft.write_bytes(text)
    if place.exists():
        draft.chmod(place.stat().st_mode & 0o7777)
    draft.replace(place)
