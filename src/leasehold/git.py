"""Asking git, in few and quick processes.

`subprocess` would make up a good part of the start of a hook; a process whose output is short needs less.
"""

import os
import select
import time

_READ_BYTES = 65_536
_ELSEWHERE = (
    "GIT_DIR",
    "GIT_COMMON_DIR",
    "GIT_WORK_TREE",
    "GIT_OBJECT_DIRECTORY",
    "GIT_INDEX_FILE",
    "GIT_PREFIX",
    "GIT_CONFIG",
)
"""What would have git answer for another repository than that of the folder, as in hooks of that one."""


class NoAnswer(OSError):
    """Git is not there, or did not answer in time."""


def ask(folder: str, *arguments: str, seconds: float) -> str | None:
    """Return what git answers in a folder, without the end of the line; None if it refuses."""
    reading, writing = os.pipe()
    try:
        try:
            process = os.posix_spawnp(
                "git",
                ["git", "-C", folder, *arguments],
                {name: value for name, value in os.environ.items() if name not in _ELSEWHERE},
                file_actions=[
                    (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
                    (os.POSIX_SPAWN_DUP2, writing, 1),
                    (os.POSIX_SPAWN_OPEN, 2, os.devnull, os.O_WRONLY, 0),
                ],
            )
        finally:
            os.close(writing)
        said = _read(reading, process, time.monotonic() + seconds)
    finally:
        os.close(reading)
    is_willing = _status(process) == 0
    return os.fsdecode(said).removesuffix("\n") if is_willing else None


def _read(reading: int, process: int, deadline: float) -> bytes:
    said = b""
    readable = select.poll()
    readable.register(reading, select.POLLIN)
    while True:
        left = deadline - time.monotonic()
        if left <= 0 or not readable.poll(left * 1_000):
            os.kill(process, 9)
            _status(process)
            raise NoAnswer("git did not answer in time")
        chunk = os.read(reading, _READ_BYTES)
        if not chunk:
            return said
        said += chunk


def _status(process: int) -> int:
    try:
        return os.waitpid(process, 0)[1]
    except ChildProcessError:  # This program lets nobody wait for its children, and what was said counts.
        return 0
