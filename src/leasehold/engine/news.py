"""How threads wait for something that other threads of this process bring about.

Promised: nobody who listens misses what is told after it has begun to. A thread that is interrupted (Ctrl-C)
at whatever moment leaves nothing behind; a condition variable would be left locked, or be unlocked twice.
"""

import queue
import time
from collections.abc import Callable


class News:
    """Tells all threads that listen to look again."""

    def __init__(self) -> None:
        self.listening: dict[queue.SimpleQueue[None], None] = {}
        """One queue for each thread that listens."""

    def wait_for(
        self, condition: Callable[[], bool], timeout: float, look_every: float = float("inf")
    ) -> bool:
        """Return True once a condition holds, or False after `timeout` seconds.

        It is looked at again whenever there are news, and after `look_every` seconds without any.
        """
        deadline = time.monotonic() + timeout
        told: queue.SimpleQueue[None] = queue.SimpleQueue()
        self.listening[told] = None  # Nothing is called between this and the next line: Ctrl-C cannot come.
        try:
            while not condition():
                left = deadline - time.monotonic()
                if left <= 0:
                    return False
                try:
                    told.get(timeout=min(left, look_every))
                except queue.Empty:
                    continue
            return True
        finally:
            del self.listening[told]

    def tell(self) -> None:
        """Let everybody who listens look again."""
        for told in list(self.listening):
            told.put(None)
