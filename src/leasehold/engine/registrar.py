"""The authority itself: kernel, engine and store, as a desk in this process.

Questions do not wait for writers. They are answered as of one moment, with what each lease has left at that
moment by the authority's clock.
"""

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from copy import copy
from typing import Any

from msgspec.structs import replace

from leasehold.engine.admission import admit
from leasehold.engine.batch import Done
from leasehold.engine.bells import Bells
from leasehold.engine.call import Call
from leasehold.engine.chores import Chore, Chores
from leasehold.engine.clock import Ids
from leasehold.engine.committer import Committer
from leasehold.engine.desk import Failure, JobStatus, Outcome
from leasehold.engine.job_runner import JobRunner
from leasehold.engine.jobs import Job, Verify
from leasehold.engine.port import Snapshot, Store
from leasehold.engine.questions import AnswerType, FindHead, Question
from leasehold.engine.recording import open_epoch
from leasehold.engine.replies import reply
from leasehold.engine.sealing import NoKeyAtHand
from leasehold.engine.signing import SigningKey
from leasehold.errors import NotPermitted
from leasehold.kernel.ledger.commands import LOCAL, Caller, Command

Reply = Callable[["Registrar", Any, Snapshot], Any]
"""Answers a question as of a snapshot, or returns what makes the answer when that is closed."""

_FINDING_A_JOB = Verify()
_WAITING = FindHead()
"""What to know of a job that one names, and that the ledger has grown, takes no less than this does."""


class Registrar:
    """A desk for one caller, with everything behind it."""

    def __init__(
        self,
        store: Store,
        *,
        timeout: float = 30.0,
        caller: Caller = LOCAL,
        also: Mapping[type[Question[Any]], Reply] | None = None,
        jobs: JobRunner | None = None,
        as_is: bool = False,
        chores: Sequence[Callable[[], Chore]] = (),
        observe: Callable[[Done], None] | None = None,
    ) -> None:
        """`also` answers questions that the engine knows nothing of; `chores` are done in the background.

        `observe` is told what became of every batch of commands.

        `as_is` leaves a store alone until somebody changes something, or asks what a lease has left: so a
        damaged one can be looked at, and nothing is recorded for that.
        """
        self.store = store
        self.timeout = timeout
        """How many seconds a command waits for another process to finish writing."""
        self.ids = Ids()
        self.caller = caller
        """Who asks at this desk."""
        self._is_guest = False
        self._also = also or {}
        self._jobs = jobs or JobRunner(store)
        self._is_epoch_open = not as_is
        if not as_is:
            open_epoch(store)
        self._committer = Committer(store, timeout=timeout, observe=observe)
        self._chores = None if as_is or not chores else Chores(self, [make() for make in chores])
        if self._chores is not None:
            self._chores.start()

    def for_caller(self, caller: Caller) -> "Registrar":
        """Return a desk for another caller, on the same store and with the same commands, jobs and chores.

        To close it closes nothing, and it grants for as long as this one does.
        """
        guest = copy(self)
        guest.caller, guest._is_guest = caller, True
        return guest

    @property
    def url(self) -> str:
        """Return the address of the store."""
        return self.store.url

    @property
    def bells(self) -> Bells:
        """Return where those are woken who wait for leases."""
        return self.store.bells

    def call(self, command: Command) -> Outcome:
        """Run a command, and wait for its outcome."""
        outcome = self._committer.call(command, self.caller)
        return Failure.of(outcome) if isinstance(outcome, Exception) else outcome

    def submit(self, command: Command, deliver: Callable[[Outcome], None]) -> Call:
        """Run a command soon, and hand its outcome to `deliver`."""

        def deliver_value(outcome: Outcome) -> None:
            deliver(Failure.of(outcome) if isinstance(outcome, Exception) else outcome)

        return self._committer.submit(command, deliver_value, self.caller)

    def withdraw(self, call: Call) -> Failure | None:
        """Take a submitted command back and return why; None if it is too late for that."""
        busy = self._committer.withdraw(call)
        return None if busy is None else Failure.of(busy)

    def ask(self, question: Question[AnswerType]) -> AnswerType:
        """Answer a question as of one moment; a caller bound to a tenant learns nothing of any other."""
        if self.caller.tenant is not None:
            question = self._narrowed(question, self.caller.tenant)
        also = self._also.get(type(question))
        if question.tells_time and also is None and not self._is_epoch_open:
            open_epoch(self.store)  # Commands see to it themselves, in every batch.
            self._is_epoch_open = True
        with self.store.snapshot() as snapshot:
            admit(self.caller, question, snapshot)
            answer: Any = reply(question, snapshot) if also is None else also(self, question, snapshot)
        found: AnswerType = answer() if callable(answer) else answer
        return found

    def _narrowed(self, question: Question[Any], tenant: str) -> Question[Any]:
        """Return a question as it is about one tenant only; refuse one that is about any other."""
        if question.for_operators:
            raise NotPermitted(
                f"this is about all tenants, and this caller is bound to tenant {tenant}; ask an operator"
            )
        if question.tenant not in (None, tenant):
            raise NotPermitted(
                f"this access key cannot ask about tenant {question.tenant}: it {self.caller.bound}"
            )
        return replace(question, tenant=tenant)

    def start_job(self, job_id: str, job: Job) -> JobStatus:
        """Begin a job under an id of the caller's choosing, unless it was begun already."""
        return self._jobs_for(job).start(job_id, job)

    def find_job(self, job_id: str, *, seen: int | None = None, timeout: float = 0.0) -> JobStatus:
        """Return how a job stands: once it has ended, or done another amount than `seen`, or time is up."""
        return self._jobs_with(job_id).find(job_id, seen=seen, timeout=timeout)

    def cancel_job(self, job_id: str) -> JobStatus:
        """Let a job end before its next step, if it has any left; return how it stands now."""
        return self._jobs_with(job_id).cancel(job_id)

    def _jobs_with(self, job_id: str) -> JobRunner:
        """Refuse a job to a caller that may not have it done; who may have none learns not even of it."""
        if self.caller is LOCAL:
            return self._jobs
        return self._jobs_for(self._jobs_for(_FINDING_A_JOB).find(job_id).job)

    def _jobs_for(self, job: Job) -> JobRunner:
        """Refuse a job to a caller that may not have it done, or is bound to a tenant: jobs are about all."""
        if self.caller.tenant is not None:
            raise NotPermitted(
                f"this is about the whole store, and this caller is bound to tenant {self.caller.tenant}; "
                "ask an operator, or use an access key for all tenants"
            )
        self._admit(job)
        return self._jobs

    def _admit(self, asked: Question[Any] | Job) -> None:
        """Refuse what the caller may not ask, by what is known of it now."""
        if self.caller is not LOCAL:
            with self.store.snapshot() as snapshot:
                admit(self.caller, asked, snapshot)

    def wait(self, position: int, timeout: float) -> bool:
        """Return True once the ledger goes beyond `position`, or False after `timeout` seconds."""
        self._admit(_WAITING)
        return self.store.wait(position, timeout)

    def signing_key(self) -> SigningKey:
        """Return the key that this process signs with; it is enrolled first if need be."""
        while True:
            with suppress(NoKeyAtHand), self.store.snapshot() as snapshot:
                return self.store.sealer.key_for(snapshot.authority, snapshot.signing_keys)
            open_epoch(self.store, to_write=True)

    def stop_granting(self) -> None:
        """Take no more claims; what was granted can still be given back. Guests go on."""
        if not self._is_guest:
            self._committer.stop_granting()

    def close(self) -> None:
        """Stop taking commands, and let go of the store; a guest lets go of nothing."""
        if self._is_guest:
            return
        if self._chores is not None:
            self._chores.stop()
        jobs_ended = self._jobs.close(self.timeout)
        is_left_alone = self._committer.close() and jobs_ended
        # Last: what a chore was waiting for has been answered now.
        if self._chores is not None and not self._chores.wait(self.timeout):
            is_left_alone = False
        if is_left_alone:
            self.store.close()
