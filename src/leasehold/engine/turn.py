"""Whose turn it is to write, among the threads of one process.

Promised: a thread that is interrupted (Ctrl-C) on its way in or out never leaves the turn taken for ever. A
signal can come right after a lock was taken and before the interpreter knows what to do if something goes
wrong; so this lock can be asked who has it.
"""

import threading

from leasehold.engine.port import WouldBlock


class Turn:
    """Taken by one thread at a time."""

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self.end = self._lock.release
        """Let the next thread in. Not a method of ours: Ctrl-C could come before its first line."""

    def begin(self, *, blocking: bool) -> None:
        """Take the turn; raise WouldBlock instead of waiting for it if not `blocking`."""
        try:
            taken = self._lock.acquire(blocking=blocking)
        except BaseException:
            if self._lock._is_owned():  # type: ignore[attr-defined]
                self._lock.release()
            raise
        if not taken:
            raise WouldBlock
