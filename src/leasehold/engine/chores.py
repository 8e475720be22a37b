"""What a registrar does in the background without being asked: one thread, for as long as it is open.

Each chore is called again after as many seconds as it says, and fails alone: what it raises is logged, and it
is called again later. A forked child does no chores; its parent goes on with them.

The thread keeps nobody alive: when its owner is gone without having been closed, because the program dropped
it or Ctrl-C came before anybody had it, the thread ends by itself within half a minute.
"""

import logging
import queue
import random
import threading
import weakref
from collections.abc import Callable, Sequence
from typing import Any

from leasehold.errors import LeaseholdError

Chore = Callable[[Any], float]
"""Does what is due for the owner it is given, and returns after how many seconds there may be more to do."""

_FIRST_SECONDS = 30.0
"""Commands that are over sooner do no chores at all."""
_AFTER_FAILURE_SECONDS = 60.0
_JITTER = 0.5

_logger = logging.getLogger(__name__)


class Chores:
    """The thread that does them."""

    def __init__(
        self, owner: object, chores: Sequence[Chore], *, first_seconds: float = _FIRST_SECONDS
    ) -> None:
        self._owner = weakref.ref(owner)
        self._chores = chores
        self._first_seconds = first_seconds * (1 - _JITTER * random.random())
        # Not an event: its lock may be taken when a thread is interrupted, or a process forks.
        self._ends: queue.SimpleQueue[None] = queue.SimpleQueue()
        self._ended = False
        self._thread = threading.Thread(target=self._run, name="leasehold-chores", daemon=True)

    def start(self) -> None:
        """Begin, after a while."""
        self._thread.start()

    def stop(self) -> None:
        """Begin nothing more."""
        self._ended = True
        self._ends.put(None)

    def wait(self, timeout: float) -> bool:
        """Return whether nothing is being done any more, after waiting for that."""
        if self._thread.is_alive() and self._thread is not threading.current_thread():
            self._thread.join(timeout)
        return not self._thread.is_alive()

    def _run(self) -> None:
        delay = self._first_seconds
        while not self._is_ended_within(delay):
            owner = self._owner()
            if owner is None:
                return
            delay = min(self._done(chore, owner) for chore in self._chores)
            del owner  # Or it would live for as long as we wait.

    def _is_ended_within(self, seconds: float) -> bool:
        try:
            self._ends.get(timeout=max(0.0, seconds))
        except queue.Empty:
            return False
        return True

    def _done(self, chore: Chore, owner: object) -> float:
        try:
            return chore(owner)
        except LeaseholdError as error:
            if not self._ended:  # Else it is what any command is told by now.
                _logger.warning("a background chore will be tried again later: %s", str(error))
        except Exception:
            _logger.exception("a background chore failed, and will be tried again later")
        return _AFTER_FAILURE_SECONDS
