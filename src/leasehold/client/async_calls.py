"""How an asynchronous client waits for the registrar; the counterpart of `calls`."""

import asyncio
import threading
from collections.abc import Callable
from typing import ParamSpec, TypeVar

from leasehold.engine.batch import Outcome
from leasehold.engine.committer import Call
from leasehold.engine.registrar import Registrar
from leasehold.kernel.commands import Command

_Parameters = ParamSpec("_Parameters")
_Result = TypeVar("_Result")
_Arrival = tuple["asyncio.Future[Outcome]", Outcome]


class AwaitableCalls:
    """Waits by suspending the calling task. Outcomes of one batch wake the event loop once."""

    def __init__(self, registrar: Registrar) -> None:
        self._registrar = registrar
        self._lock = threading.Lock()
        self._arrived: dict[asyncio.AbstractEventLoop, list[_Arrival]] = {}
        """By event loop: a client may outlive the loop it was first used in."""

    @staticmethod
    def caller() -> object:
        """Return who is calling: a task, or a thread outside of any event loop."""
        try:
            return asyncio.current_task() or threading.current_thread()
        except RuntimeError:
            return threading.current_thread()

    async def call(self, command: Command) -> Outcome:
        """Run a command and wait for its outcome.

        A task that is cancelled meanwhile does not take the command back: it may have been run already.
        """
        loop = asyncio.get_running_loop()
        future: asyncio.Future[Outcome] = loop.create_future()
        call = self._registrar.submit(command, lambda outcome: self._arrive(loop, future, outcome))
        out_of_patience = loop.call_later(self._registrar.timeout, self._withdraw, call, future)
        try:
            return await future
        finally:
            out_of_patience.cancel()

    def _withdraw(self, call: Call, future: "asyncio.Future[Outcome]") -> None:
        """Stop waiting for another process to finish writing, unless the command is under way."""
        busy = self._registrar.withdraw(call)
        if busy is not None and not future.done():
            future.set_result(busy)

    def _arrive(
        self, loop: asyncio.AbstractEventLoop, future: "asyncio.Future[Outcome]", outcome: Outcome
    ) -> None:
        with self._lock:
            arrived = self._arrived.setdefault(loop, [])
            arrived.append((future, outcome))
            if len(arrived) > 1:
                return
        try:
            loop.call_soon_threadsafe(self._deliver, loop)
        except RuntimeError:  # the loop was closed: nobody waits any more
            with self._lock:
                del self._arrived[loop]

    def _deliver(self, loop: asyncio.AbstractEventLoop) -> None:
        with self._lock:
            arrived = self._arrived.pop(loop)
        for future, outcome in arrived:
            if not future.done():
                future.set_result(outcome)

    async def read(
        self,
        function: Callable[_Parameters, _Result],
        *arguments: _Parameters.args,
        **named: _Parameters.kwargs,
    ) -> _Result:
        """Run something that reads the store, without holding up the event loop."""
        return await asyncio.to_thread(function, *arguments, **named)
