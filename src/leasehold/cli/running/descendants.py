"""Finding and ending everything that a command has started.

Whoever calls `adopt_orphans` becomes the parent of those of its descendants whose own parent dies, so that
nothing below it gets out of sight: not behind a shell that has ended, not in a session of its own.
"""

import os
import signal
import time
from pathlib import Path
from typing import NamedTuple

_PR_SET_PDEATHSIG = 1
_PR_SET_CHILD_SUBREAPER = 36
_LOOK_EVERY_SECONDS = 0.01
_KILL_SECONDS = 5.0
"""How long a killed process may take to be gone; one that hangs in a device driver may take for ever."""


class Process(NamedTuple):
    """A process and where it stands."""

    process_id: int
    parent: int
    group: int
    has_ended: bool


def adopt_orphans() -> None:
    """Make the calling process the parent of orphans below it."""
    _prctl(_PR_SET_CHILD_SUBREAPER, 1)


def die_with_parent(parent: int) -> None:
    """Have the kernel kill the calling process when its parent dies; or end it, if that has happened."""
    _prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(1)


def _prctl(option: int, value: int) -> None:
    import ctypes

    ctypes.CDLL(None).prctl(option, value, 0, 0, 0)


def descendants(root: int) -> list[Process]:
    """Return the processes below `root` that still run."""
    children: dict[int, list[Process]] = {}
    for process in _all_processes():
        children.setdefault(process.parent, []).append(process)
    found: list[Process] = []
    unseen = [root]
    while unseen:
        below = children.get(unseen.pop(), [])
        found += below
        unseen += [process.process_id for process in below]
    return [process for process in found if not process.has_ended]


def _all_processes() -> list[Process]:
    found = []
    for entry in os.scandir("/proc"):
        if not entry.name.isdecimal():
            continue
        try:
            text = Path(entry.path, "stat").read_text(errors="replace")
        except (FileNotFoundError, ProcessLookupError):  # it has ended since
            continue
        # The name, in parentheses, may contain anything; what follows the last one does not.
        state, parent, group = text.rpartition(")")[2].split()[:3]
        # One that has ended is still the way to children whom we saw before it handed them on.
        found.append(Process(int(entry.name), int(parent), int(group), has_ended=state in "ZX"))
    return found


def end_descendants(root: int, *, grace: float, spare: int = 0) -> None:
    """End everything below `root` but `spare`: ask with TERM, give it `grace` seconds, then KILL.

    Returns when nothing is left, or nothing that can be ended: what runs as another user stays.
    """

    def left() -> list[Process]:
        reap()
        return [process for process in descendants(root) if process.process_id != spare]

    for process in left():
        send(process.process_id, signal.SIGTERM)
        send(process.process_id, signal.SIGCONT)  # what is stopped cannot end
    patience_ends = time.monotonic() + grace
    while left() and time.monotonic() < patience_ends:
        time.sleep(_LOOK_EVERY_SECONDS)
    hope_ends = time.monotonic() + _KILL_SECONDS
    while (remaining := left()) and time.monotonic() < hope_ends:
        for process in remaining:
            send(process.process_id, signal.SIGKILL)
        time.sleep(_LOOK_EVERY_SECONDS)


def send(process_id: int, number: int) -> None:
    """Send a signal to a process that may have ended meanwhile."""
    try:
        os.kill(process_id, number)
    except (ProcessLookupError, PermissionError):
        # Gone, or running as another user (sudo): nothing that we could do about it.
        return


def reap() -> dict[int, int]:
    """Collect the children that have ended; return the wait status of each."""
    ended: dict[int, int] = {}
    while True:
        try:
            process_id, status = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return ended
        if process_id == 0:
            return ended
        ended[process_id] = status
