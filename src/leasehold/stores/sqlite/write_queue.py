"""A fair queue in front of SQLite's write lock.

SQLite's own waiting is a sleep and a retry, in which a process that commits in a loop starves the others.
Here a writer first passes a turnstile and then takes the writer's lock, both advisory locks on files
beside the store:

    lock the turnstile → lock the writer → unlock the turnstile → … write … → unlock the writer

Who has just written and wants to write again finds the next writer already in the turnstile and has to
queue behind it. The kernel frees both locks when a process dies, however it dies.

Not promised: strict first-come-first-served among those who wait for the turnstile; the kernel wakes them
in about that order. A process that is stopped while it writes keeps everybody waiting until it goes on or
dies; `holder` names it.
"""

import fcntl
import os
from pathlib import Path

from leasehold.engine.port import WouldBlock


class WriteQueue:
    """One process's place in the queue. Used by one thread at a time."""

    def __init__(self, path: str, mode: int) -> None:
        self._turnstile = _open_lock(f"{path}-turnstile", mode)
        self._writer = _open_lock(f"{path}-writer", mode)

    def enter(self, *, blocking: bool) -> None:
        """Take the writer's lock; raise WouldBlock instead of waiting if not `blocking`."""
        operation = fcntl.LOCK_EX if blocking else fcntl.LOCK_EX | fcntl.LOCK_NB
        try:
            fcntl.flock(self._turnstile, operation)
        except BlockingIOError:
            raise WouldBlock from None
        try:
            fcntl.flock(self._writer, operation)
        except BlockingIOError:
            raise WouldBlock from None
        finally:
            fcntl.flock(self._turnstile, fcntl.LOCK_UN)

    def leave(self) -> None:
        """Let the next writer in."""
        fcntl.flock(self._writer, fcntl.LOCK_UN)

    def holder(self) -> int | None:
        """Return the id of the process that has the writer's lock, as far as the kernel tells."""
        status = os.fstat(self._writer)
        device = f"{os.major(status.st_dev):02x}:{os.minor(status.st_dev):02x}:{status.st_ino}"
        for line in Path("/proc/locks").read_text().splitlines():
            words = line.split()
            if words[1] == "FLOCK" and words[5] == device:
                return int(words[4])
        return None

    def close(self) -> None:
        """Close both lock files, which frees what this process holds of them."""
        os.close(self._turnstile)
        os.close(self._writer)


def _open_lock(path: str, mode: int) -> int:
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, mode)
    if os.fstat(descriptor).st_uid == os.geteuid():
        os.fchmod(descriptor, mode)
    return descriptor
