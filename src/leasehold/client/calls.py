"""How a blocking client waits for the registrar.

Everything else about a client is written once, as coroutines, and the blocking client is generated from it.
This and its counterpart in `async_calls` are the one place where waiting has a colour.
"""

import threading
import time
from collections.abc import Callable
from typing import ParamSpec, TypeVar

from leasehold.engine.batch import Outcome
from leasehold.engine.registrar import Registrar
from leasehold.kernel.lease.answers import Granted
from leasehold.kernel.ledger.commands import Command

_Parameters = ParamSpec("_Parameters")
_Result = TypeVar("_Result")

LOOK_EVERY_SECONDS = 0.002
_WATCH_POLL_SECONDS = 1.0


class BlockingCalls:
    """Waits by blocking the calling thread."""

    def __init__(self, registrar: Registrar) -> None:
        self._registrar = registrar

    @staticmethod
    def caller() -> object:
        """Return who is calling: a thread."""
        return threading.current_thread()

    def call(self, command: Command) -> Outcome:
        """Run a command and wait for its outcome."""
        return self._registrar.call(command)

    def won(self, lease_ids: tuple[str, ...]) -> Granted | None:
        """Return what a claim has won, if a look is enough to tell, which is quicker than asking."""
        return self._registrar.won(lease_ids)

    def read(
        self,
        function: Callable[_Parameters, _Result],
        *arguments: _Parameters.args,
        **named: _Parameters.kwargs,
    ) -> _Result:
        """Run something that reads the store."""
        return function(*arguments, **named)

    def until(self, condition: Callable[[], bool], patience_seconds: float) -> None:
        """Wait for something that others bring about soon, but not longer than that."""
        deadline = time.monotonic() + patience_seconds
        while not condition() and time.monotonic() < deadline:
            time.sleep(LOOK_EVERY_SECONDS)

    def until_beyond(self, position: int) -> None:
        """Wait until the ledger goes beyond a position."""
        while not self._registrar.store.wait(position, _WATCH_POLL_SECONDS):
            pass
