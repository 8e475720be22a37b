"""A desk: what a client talks to, and nothing of what is behind it.

Commands, questions, jobs and outcomes are plain values that cross a wire as they are, so nothing above a desk
can tell whether the registrar is in this process or far away.

Promised of every desk: commands on one lease id are run in the order in which they were submitted, so that
what takes a claim back never overtakes it. A command that was withdrawn has changed nothing; one that cannot
be withdrawn any more is under way, and its outcome still comes. A failure says whether the command may have
been run all the same: then sending it again, under the same request id, finds out.
"""

from collections.abc import Callable
from typing import Any, Protocol, TypeVar

import msgspec

from leasehold.engine.bells import Bells
from leasehold.engine.clock import Ids
from leasehold.engine.jobs import Job
from leasehold.engine.questions import AnswerType, Question
from leasehold.errors import LeaseholdError, StoreError, StoreFailed, error_of, error_with
from leasehold.kernel.ledger.commands import Command
from leasehold.kernel.ledger.refusals import Refusal

_AnswerType = TypeVar("_AnswerType")

DEFECT = "DEFECT"
"""The code of a failure that nobody has foreseen, so that nobody can tell what had happened before it."""


class Failure(msgspec.Struct, frozen=True, kw_only=True, gc=False, omit_defaults=True, tag=True):
    """What kept a command from being answered, or refused."""

    code: str
    message: str
    facts: dict[str, Any] = {}
    is_unknown: bool = False
    """Whether the command may have been run all the same."""
    cause: Any = None
    """The exception itself, where it happened in this process; it does not cross a wire."""

    @staticmethod
    def of(error: Exception) -> "Failure":
        """Put an exception into a value."""
        if isinstance(error, LeaseholdError):
            unknown = isinstance(error, StoreError) and error.outcome_unknown
            return Failure(
                code=error.code, message=str(error), facts=error.facts, is_unknown=unknown, cause=error
            )
        return Failure(code=DEFECT, message=f"{type(error).__name__}: {error}", is_unknown=True, cause=error)

    def error(self) -> Exception:
        """Return the exception that this is for callers in this language."""
        if self.cause is not None:
            cause: Exception = self.cause
            return cause
        known = error_with(self.code)
        if known.code != self.code or (self.is_unknown and not issubclass(known, StoreError)):
            # Of a face, or a release, that is not known here, or a defect, which the command line knows under
            # that code. A refusal would say that nothing changed.
            known = StoreFailed if self.is_unknown else StoreError
        return known(self.message, **self.facts)

    def with_facts(self, **facts: object) -> "Failure":
        """Return a copy that knows more; one failure can be the outcome of several commands."""
        cause = self.cause.with_facts(**facts) if isinstance(self.cause, LeaseholdError) else self.cause
        return msgspec.structs.replace(self, facts=self.facts | facts, cause=cause)


Outcome = Any
"""An answer, a `Refusal`, or a `Failure`."""


def answer_of(outcome: Outcome, kind: type[_AnswerType]) -> _AnswerType:
    """Return the answer in an outcome; raise what it was refused with, or what went wrong."""
    if isinstance(outcome, kind):
        return outcome
    if isinstance(outcome, Refusal):
        raise error_of(outcome)
    if isinstance(outcome, Failure):
        raise outcome.error()
    raise TypeError(f"expected {kind.__name__}, got {type(outcome).__name__}")


class JobStatus(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """How far a job has come, and what became of it. Its result is of the type that the job names."""

    job_id: str
    job: Job
    done: int = 0
    total: int = 0
    """How much there is to do in all; 0 while nobody knows."""
    result: Any = None
    failure: Failure | None = None

    @property
    def is_finished(self) -> bool:
        """Say whether the job has ended, well or not."""
        return self.result is not None or self.failure is not None


class Desk(Protocol):
    """Where commands, questions and jobs are handed in."""

    timeout: float
    """How many seconds a command waits for another process to finish writing."""
    ids: Ids

    @property
    def url(self) -> str:
        """Return the address under which this desk can be reached again."""
        ...

    @property
    def bells(self) -> Bells:
        """Return where those are woken who wait for leases."""
        ...

    def call(self, command: Command) -> Outcome:
        """Run a command, and wait for its outcome; raise StoreBusy if its turn does not come in time."""
        ...

    def submit(self, command: Command, deliver: Callable[[Outcome], None]) -> Any:
        """Run a command soon, hand its outcome to `deliver`, and return what it can be withdrawn by."""
        ...

    def withdraw(self, call: Any) -> Failure | None:
        """Take a submitted command back and return why; None if it is too late for that."""
        ...

    def ask(self, question: Question[AnswerType]) -> AnswerType:
        """Answer a question as of one moment; raise why it cannot be."""
        ...

    def start_job(self, job_id: str, job: Job) -> JobStatus:
        """Begin a job under an id of the caller's choosing, unless it was begun already.

        Raises NotPermitted for callers that may not, and StoreBusy if another has to end first.
        """
        ...

    def find_job(self, job_id: str, *, seen: int | None = None, timeout: float = 0.0) -> JobStatus:
        """Return how a job stands: once it has ended, or done another amount than `seen`, or time is up.

        Raises JobUnknown if nobody knows (any more) what became of it.
        """
        ...

    def cancel_job(self, job_id: str) -> JobStatus:
        """Let a job end before its next step, if it has any left; return how it stands now."""
        ...

    def wait(self, position: int, timeout: float) -> bool:
        """Return True once the ledger goes beyond `position`, or False after `timeout` seconds."""
        ...

    def stop_granting(self) -> None:
        """Take no more claims; what was granted can still be given back."""
        ...

    def close(self) -> None:
        """Stop taking commands, and let go of what is behind the desk."""
        ...
