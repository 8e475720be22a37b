"""A desk whose registrar is at the other end of a network.

Nothing above can tell it from a registrar in this process, except by how long it takes, and by what a network
can do to a reply: it may be lost, and then it is asked for again, under the same request id, until the
timeout. If it is lost for good, the outcome is *unknown*, and the failure says so.

`timeout` is how long a call may take in all, with every attempt. A desk that is being closed spends no more
than that on giving back what was granted, also if the server is gone.

A forked child has a line of its own, with other connections, and rings under another name.
"""

import os
import queue
import time
import weakref
from collections.abc import Callable
from typing import Any

from leasehold.client.http.address import base_of
from leasehold.client.http.bells import RemoteBells
from leasehold.client.http.call import Call
from leasehold.client.http.growth import Growth
from leasehold.client.http.line import Line
from leasehold.engine.bells import Bells
from leasehold.engine.clock import Ids
from leasehold.engine.desk import Failure, JobStatus, Outcome
from leasehold.engine.jobs import Job
from leasehold.engine.questions import AnswerType, Question
from leasehold.engine.wire import CancelJob, FindJob, Item, StartJob
from leasehold.errors import ClientClosed, InvalidInput, ServerUnreachable
from leasehold.kernel.ledger.commands import Command
from leasehold.registry import FAMILIES, wire


class RemoteDesk:
    """The desk of a server."""

    def __init__(self, url: str, *, api_key: str | None = None, timeout: float = 30.0) -> None:
        """Nothing is sent before something is asked."""
        self.url = base_of(url)
        self.timeout = timeout
        self.ids = Ids()
        self._api_key = api_key
        self._wire = wire()
        self._grants = True
        self._closed = False
        self._reset()
        _desks.add(self)

    def _reset(self) -> None:
        self._line = Line(self.url, self._wire, self._api_key)
        self._growth = Growth(self._line)
        self._bells = RemoteBells(self._line)
        self._jobs: dict[str, None] = {}
        """What was begun here, and may still go on: it is cancelled when the client is closed."""

    def __repr__(self) -> str:
        return f"<{type(self).__name__} of {self.url}>"

    @property
    def bells(self) -> Bells:
        """Return where those are woken who wait for leases."""
        return self._bells

    @property
    def requests(self) -> int:
        """Return how many requests this desk has sent."""
        return self._line.requests

    def call(self, command: Command) -> Outcome:
        """Run a command, and wait for its outcome."""
        refusal = FAMILIES.check(command)
        if refusal is not None:
            return refusal  # Nothing at the other end could make it right, and it may not even be spelled.
        return self._wait_for(command, self.timeout)

    def submit(self, command: Command, deliver: Callable[[Outcome], None]) -> Call:
        """Run a command soon, and hand its outcome to `deliver`."""
        refusal = FAMILIES.check(command)
        if refusal is not None:
            call = Call(command, b"", 0.0, deliver, self._line.lock)
            call.resolve(refusal)
            return call
        call = self._call(command, self.timeout, deliver)
        self._line.send(call)
        return call

    def withdraw(self, call: Call) -> Failure | None:
        """Take a submitted command back and return why; None if it has left, or has its outcome."""
        if not call.withdraw():
            return None
        return Failure.of(
            ServerUnreachable(
                f"{self.url} could not be reached within {self.timeout:g} s; nothing was changed. "
                "Check that the server runs, and the address"
            )
        )

    def ask(self, question: Question[AnswerType]) -> AnswerType:
        """Answer a question as of one moment; raise why it cannot be."""
        found: AnswerType = self._told(question, self.timeout)
        return found

    def start_job(self, job_id: str, job: Job) -> JobStatus:
        """Begin a job under an id of the caller's choosing, unless it was begun already."""
        self._jobs[job_id] = None
        return self._stands(StartJob(job_id=job_id, job=job), self.timeout)

    def find_job(self, job_id: str, *, seen: int | None = None, timeout: float = 0.0) -> JobStatus:
        """Return how a job stands: once it has ended, or done another amount than `seen`, or time is up."""
        return self._stands(FindJob(job_id=job_id, seen=seen, timeout=timeout), self.timeout + timeout)

    def cancel_job(self, job_id: str) -> JobStatus:
        """Let a job end before its next step, if it has any left; return how it stands now."""
        return self._stands(CancelJob(job_id=job_id), self.timeout)

    def wait(self, position: int, timeout: float) -> bool:
        """Return True once the ledger goes beyond `position`, or False after `timeout` seconds."""
        if self._closed:
            raise ClientClosed("this client was closed; connect again")
        return self._growth.wait(position, timeout)

    def stop_granting(self) -> None:
        """Take no more claims; what was granted can still be given back, for as long as a call may take."""
        self._grants = False
        self._line.stop_granting(time.monotonic() + self.timeout)

    def close(self) -> None:
        """Stop taking commands, wait for those under way, and let go of all connections."""
        self.stop_granting()
        if not self._closed:
            for job_id in list(self._jobs):
                self._line.send(self._call(CancelJob(job_id=job_id), self.timeout, lambda outcome: None))
        self._closed = True
        self._bells.close()
        self._line.close()

    def after_fork_in_child(self) -> None:
        """Have nothing to do with the parent's connections, nor with what it has asked."""
        _parents.append(self._line.abandon())
        self._bells.close()
        self._reset()
        if not self._grants:
            self.stop_granting()
        if self._closed:
            self.close()

    def _stands(self, item: StartJob | FindJob | CancelJob, patience: float) -> JobStatus:
        status: JobStatus = self._told(item, patience)
        if status.is_finished:
            self._jobs.pop(item.job_id, None)
        return status

    def _told(self, item: Item, patience: float) -> Any:
        outcome = self._wait_for(item, patience)
        if isinstance(outcome, Failure):
            raise outcome.error()
        return outcome

    def _wait_for(self, item: Item, patience: float) -> Outcome:
        """Send an item, and wait for its outcome. Who is interrupted takes it back, if it has not left."""
        # Not an event: one that is set by a thread which Ctrl-C interrupts can stay locked for ever.
        arrived: queue.SimpleQueue[Outcome] = queue.SimpleQueue()
        call = self._call(item, patience, arrived.put)
        try:
            self._line.send(call)
            return arrived.get()
        except BaseException:
            call.withdraw()
            raise

    def _call(self, item: Item, patience: float, deliver: Callable[[Outcome], None]) -> Call:
        try:
            spelled = self._wire.spell(item)
        except UnicodeEncodeError as error:
            raise InvalidInput("what is asked holds characters that are not text") from error
        return Call(item, spelled, time.monotonic() + patience, deliver, self._line.lock)


_parents: list[object] = []
"""Of the processes that this one was forked from: event loops that run there, and must not be freed here."""

_desks: weakref.WeakSet[RemoteDesk] = weakref.WeakSet()


def _after_fork_in_child() -> None:
    for desk in list(_desks):
        desk.after_fork_in_child()


os.register_at_fork(after_in_child=_after_fork_in_child)
