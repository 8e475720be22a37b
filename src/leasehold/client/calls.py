"""How a blocking client waits for the registrar.

Everything else about a client is written once, as coroutines, and the blocking client is generated from it.
This and its counterpart in `async_calls` are the one place where waiting has a colour.
"""

import threading
import time
from collections.abc import Callable
from typing import Any, TypeVar

from leasehold.engine.desk import Desk, Outcome
from leasehold.engine.questions import FindWon, Question
from leasehold.kernel.lease.answers import Granted
from leasehold.kernel.ledger.commands import Command

_Returned = TypeVar("_Returned")

LOOK_EVERY_SECONDS = 0.002
_WATCH_POLL_SECONDS = 1.0


class BlockingCalls:
    """Waits by blocking the calling thread."""

    def __init__(self, desk: Desk) -> None:
        self._desk = desk

    @staticmethod
    def caller() -> object:
        """Return who is calling: a thread."""
        return threading.current_thread()

    def call(self, command: Command) -> Outcome:
        """Run a command and wait for its outcome."""
        return self._desk.call(command)

    def won(self, question: FindWon) -> Granted | None:
        """Return what a claim has won, if a look is enough to tell, which is quicker than asking."""
        won: Granted | None = self._desk.ask(question)
        return won

    def ask(self, question: Question) -> Any:
        """Ask a question."""
        return self._desk.ask(question)

    def aside(self, function: Callable[..., _Returned], *given: Any, **named: Any) -> _Returned:
        """Call something that blocks."""
        return function(*given, **named)

    def close(self) -> None:
        """Close the desk."""
        self._desk.close()

    def until(self, condition: Callable[[], bool], patience_seconds: float) -> None:
        """Wait for something that others bring about soon, but not longer than that."""
        deadline = time.monotonic() + patience_seconds
        while not condition() and time.monotonic() < deadline:
            time.sleep(LOOK_EVERY_SECONDS)

    def until_beyond(self, position: int) -> None:
        """Wait until the ledger goes beyond a position."""
        while not self._desk.wait(position, _WATCH_POLL_SECONDS):
            pass
