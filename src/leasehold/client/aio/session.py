"""What all parts of a client, and its faces, speak to the registrar through."""

import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any, TypeVar

from leasehold.client.aio.calls import AsyncCalls
from leasehold.client.inputs import callback
from leasehold.client.session import AnySession
from leasehold.engine.clock import Clock
from leasehold.engine.desk import Desk, Failure, JobStatus, Outcome
from leasehold.engine.jobs import Job
from leasehold.engine.port import Progress
from leasehold.engine.questions import AnswerType, Question
from leasehold.engine.trust import Trust
from leasehold.errors import ClientClosed, JobUnknown, LeaseholdError, StoreError
from leasehold.kernel.lease.answers import Ended
from leasehold.kernel.ledger.commands import Command

_RETRIES = 2
_LOOK_SECONDS = 10.0
"""How long one question for news of a job may take."""

_Result = TypeVar("_Result")


class AsyncSession(AnySession):
    """Sends commands, asks questions, and has jobs done."""

    def __init__(
        self,
        desk: Desk,
        *,
        tenant: str = "default",
        holder: str | None = None,
        clock: Clock | None = None,
        trust: Trust | None = None,
    ) -> None:
        super().__init__(desk, AsyncCalls.caller, tenant=tenant, holder=holder, clock=clock, trust=trust)
        self.calls = AsyncCalls(desk)

    async def send(self, command: Command) -> Outcome:
        """Run a command; where the outcome is unknown, ask again, which the request id makes safe.

        Unless it took as long as a command may take to find that out: then the desk itself has asked again.
        What may have been run stays unknown until the registrar answers, or refuses.
        """
        deadline = time.monotonic() + self.desk.timeout
        unknown: Failure | None = None
        for _ in range(1 + _RETRIES):
            outcome = await self.calls.call(command)
            if isinstance(outcome, Ended):
                self.hear_of_end(outcome.lease)
            if not isinstance(outcome, Failure) or outcome.code == ClientClosed.code:
                return outcome
            if not outcome.is_unknown:
                if unknown is None:
                    return outcome
                break
            unknown = outcome
            if time.monotonic() >= deadline:
                break
        assert unknown is not None
        # A copy: one failure of the store is the outcome of every command that was on board.
        return unknown.with_facts(request_id=command.request_id)

    async def ask(self, question: Question[AnswerType]) -> AnswerType:
        """Ask a question."""
        return await self.calls.ask(question)

    async def run(self, job: Job, kind: type[_Result], progress: Progress | None = None) -> _Result:
        """Have a job done, and return its result. Who is interrupted has it cancelled.

        `progress` is told how much of how much is done, from time to time.
        """
        callback("progress", progress)
        job_id = self.ids.new()
        try:
            status = await self._told(self.desk.start_job, job_id, job)
            while True:
                if progress is not None and status.total:
                    progress(status.done, status.total)
                if status.is_finished:
                    break
                seen = None if progress is None else status.done
                status = await self._told(self.desk.find_job, job_id, seen=seen, timeout=_LOOK_SECONDS)
        except BaseException:
            with suppress(LeaseholdError):  # It never began, or has ended, or nobody can be reached.
                await self.calls.aside(self.desk.cancel_job, job_id)
            raise
        if status.failure is not None:
            raise status.failure.error()
        assert isinstance(status.result, kind), "a job has a result of its own type"
        return status.result

    async def _told(self, ask: Callable[..., JobStatus], *given: Any, **named: Any) -> JobStatus:
        """Ask about a job; again if the reply was lost, which the id of the job makes safe."""
        deadline = time.monotonic() + self.desk.timeout
        for _ in range(_RETRIES):
            try:
                return await self.calls.aside(ask, *given, **named)
            except StoreError as error:
                is_late = time.monotonic() >= deadline
                if not error.outcome_unknown or isinstance(error, JobUnknown) or is_late:
                    raise
        return await self.calls.aside(ask, *given, **named)

    async def close(self) -> None:
        """Let go of the desk."""
        await self.calls.close()

    def after_fork_in_child(self) -> None:
        """Become another holder, in a process where nobody waits for anything yet."""
        self.holders.restart()
        self.forget_what_was_sent()
        self.calls = AsyncCalls(self.desk)
