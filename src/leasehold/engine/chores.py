"""What a registrar does in the background without being asked: one thread, for as long as it is open.

Each chore is called again after as many seconds as it says, and fails alone: what it raises is logged, and it
is called again later. A forked child does no chores; its parent goes on with them.
"""

import logging
import random
import threading
from collections.abc import Callable, Sequence

from leasehold.errors import LeaseholdError

Chore = Callable[[], float]
"""Does what is due, and returns after how many seconds there may be more to do."""

_FIRST_SECONDS = 30.0
"""Commands that are over sooner do no chores at all."""
_AFTER_FAILURE_SECONDS = 60.0
_JITTER = 0.5

_logger = logging.getLogger(__name__)


class Chores:
    """The thread that does them."""

    def __init__(self, chores: Sequence[Chore], *, first_seconds: float = _FIRST_SECONDS) -> None:
        self._chores = chores
        self._first_seconds = first_seconds * (1 - _JITTER * random.random())
        self._closed = threading.Event()
        self._thread = threading.Thread(target=self._run, name="leasehold-chores", daemon=True)

    def start(self) -> None:
        """Begin, after a while."""
        self._thread.start()

    def close(self, timeout: float) -> bool:
        """Do nothing more; return whether nothing is being done any more."""
        self._closed.set()
        if self._thread.is_alive() and self._thread is not threading.current_thread():
            self._thread.join(timeout)
        return not self._thread.is_alive()

    def _run(self) -> None:
        delay = self._first_seconds
        while not self._closed.wait(delay):
            delay = min(_done(chore) for chore in self._chores)


def _done(chore: Chore) -> float:
    try:
        return chore()
    except LeaseholdError as error:
        _logger.warning("a background chore will be tried again later: %s", error)
    except Exception:
        _logger.exception("a background chore failed, and will be tried again later")
    return _AFTER_FAILURE_SECONDS
