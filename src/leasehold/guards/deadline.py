"""An end for a process that must answer in time, whatever it waits for.

A thread ends the process with an answer: it does not matter where the main thread is stuck, in a lock, in
SQLite or reading a pipe. If even that thread cannot run, because something keeps the interpreter to itself,
the kernel ends the process half a second later, by SIGALRM; whoever started it must not take that for an
answer.
"""

import os
import signal
import threading
from collections.abc import Callable
from typing import NoReturn

_GRACE_SECONDS = 0.5


class Deadline:
    """Lets only one answer out: that of the main thread, or the one for being late."""

    def __init__(self, seconds: float, late: Callable[[], int]) -> None:
        """Begin to count. `late` says what there is to say, and returns the exit code; it must not wait."""
        self._once = threading.Lock()
        self._late = late
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGALRM])  # A parent may have it blocked.
        signal.setitimer(signal.ITIMER_REAL, seconds + _GRACE_SECONDS)
        timer = threading.Timer(seconds, self._end)
        timer.daemon = True
        timer.start()

    def _end(self) -> None:
        self._once.acquire()  # For good: if the main thread has it, that thread is about to end the process.
        os._exit(self._late())

    def answer(self, finish: Callable[[], int]) -> NoReturn:
        """Give the main thread's answer, and end the process with the exit code that it returns."""
        self._once.acquire()
        os._exit(finish())
