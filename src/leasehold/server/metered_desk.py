"""A desk whose commands and questions are counted, with how long they took; else it is the one behind it.

Questions for whole pages are refused where there is no room for their answers.
"""

import time
from collections.abc import Callable
from functools import cache
from typing import Any

from leasehold.engine.bells import Bells
from leasehold.engine.desk import Desk, Failure, JobStatus, Outcome
from leasehold.engine.jobs import Job
from leasehold.engine.questions import AnswerType, Question
from leasehold.kernel.ledger.commands import Command
from leasehold.server.meters import Meters


class MeteredDesk:
    """Counts what goes over a desk."""

    def __init__(self, desk: Desk, meters: Meters, refuse_more: Callable[[], None]) -> None:
        """`refuse_more` is called before each question for a page, and raises why it is not answered now."""
        self._desk = desk
        self._refuse_more = refuse_more
        self._meters = meters
        self.timeout = desk.timeout
        self.ids = desk.ids

    @property
    def url(self) -> str:
        """Return the address of the store."""
        return self._desk.url

    @property
    def bells(self) -> Bells:
        """Return where those are woken who wait for leases."""
        return self._desk.bells

    def call(self, command: Command) -> Outcome:
        """Run a command, and wait for its outcome."""
        began = time.perf_counter()
        outcome = self._desk.call(command)
        self._meters.operation(_kind(command), outcome, time.perf_counter() - began)
        return outcome

    def submit(self, command: Command, deliver: Callable[[Outcome], None]) -> Any:
        """Run a command soon, and hand its outcome to `deliver`."""
        began = time.perf_counter()

        def count_and_deliver(outcome: Outcome) -> None:
            self._meters.operation(_kind(command), outcome, time.perf_counter() - began)
            deliver(outcome)

        return self._desk.submit(command, count_and_deliver), command, began

    def withdraw(self, call: Any) -> Failure | None:
        """Take a submitted command back and return why; None if it is too late for that."""
        behind, command, began = call
        failure = self._desk.withdraw(behind)
        if failure is not None:
            self._meters.operation(_kind(command), failure, time.perf_counter() - began)
        return failure

    def ask(self, question: Question[AnswerType]) -> AnswerType:
        """Answer a question as of one moment."""
        began = time.perf_counter()
        outcome: Outcome = None
        try:
            if _is_for_a_page(type(question)):
                self._refuse_more()
            return self._desk.ask(question)
        except Exception as error:
            outcome = Failure.of(error)
            raise
        finally:
            self._meters.operation(_kind(question), outcome, time.perf_counter() - began)

    def start_job(self, job_id: str, job: Job) -> JobStatus:
        """Begin a job, unless it was begun already."""
        return self._desk.start_job(job_id, job)

    def find_job(self, job_id: str, *, seen: int | None = None, timeout: float = 0.0) -> JobStatus:
        """Return how a job stands."""
        return self._desk.find_job(job_id, seen=seen, timeout=timeout)

    def cancel_job(self, job_id: str) -> JobStatus:
        """Let a job end before its next step."""
        return self._desk.cancel_job(job_id)

    def wait(self, position: int, timeout: float) -> bool:
        """Return True once the ledger goes beyond `position`, or False after `timeout` seconds."""
        return self._desk.wait(position, timeout)

    def stop_granting(self) -> None:
        """Take no more claims; what was granted can still be given back."""
        self._desk.stop_granting()

    def close(self) -> None:
        """Let go of the desk behind this one."""
        self._desk.close()


@cache
def _is_for_a_page(kind: type[Question[Any]]) -> bool:
    """Say whether such a question is for as much as its caller likes."""
    return not {"limit", "query"}.isdisjoint(kind.__struct_fields__)


def _kind(asked: Command | Question[Any]) -> str:
    return str(asked.__struct_config__.tag)
