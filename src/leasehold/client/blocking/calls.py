"""How a blocking client waits for the registrar: in the desk itself, which blocks the calling thread.

Nearly everything else about a client is written once, as coroutines, and the blocking client is generated
from it. This, `listening` and `loss` are written twice: here waiting has a colour.
"""

import math
import threading
import time
from collections.abc import Callable

from leasehold.client.waits import LOOK_EVERY_SECONDS
from leasehold.engine.desk import Desk
from leasehold.engine.questions import FindWon
from leasehold.kernel.lease.answers import Granted

_WATCH_POLL_SECONDS = 1.0


class Calls:
    """Waits by blocking the calling thread."""

    caller = staticmethod(threading.current_thread)

    def __init__(self, desk: Desk) -> None:
        self._desk = desk

    def won(self, question: FindWon) -> Granted | None:
        """Return what a claim has won, if a look is enough to tell, which is quicker than asking."""
        won: Granted | None = self._desk.ask(question)
        return won

    def until(self, condition: Callable[[], bool], patience_seconds: float) -> None:
        """Wait for something that others bring about soon, but not longer than that."""
        deadline = time.monotonic() + patience_seconds
        while not condition() and time.monotonic() < deadline:
            time.sleep(LOOK_EVERY_SECONDS)

    def until_beyond(self, position: int, patience_seconds: float = math.inf) -> None:
        """Wait until the ledger goes beyond a position, but not longer than that."""
        deadline = time.monotonic() + patience_seconds
        while not self._desk.wait(position, _WATCH_POLL_SECONDS) and time.monotonic() < deadline:
            pass
