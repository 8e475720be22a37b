"""A desk that everything passes as bytes, on a line that repeats, delays and loses what is sent.

Whatever cannot be spelled, or reads back as something else, shows up here, long before there is a network.
The line keeps the promises of every desk: commands on one lease id stay in order, and what was lost is
*unknown*.
"""

import time
from collections import Counter
from collections.abc import Callable
from functools import reduce
from operator import or_
from random import Random
from typing import Any

import msgspec
from msgspec.structs import replace

from leasehold.engine.bells import Bells
from leasehold.engine.clock import Ids
from leasehold.engine.desk import Failure, JobStatus, Outcome
from leasehold.engine.jobs import Backup, Job, Prune, Rebuild, RetireKey, RotateKey, Verify, VouchForKey
from leasehold.engine.questions import Followed, FollowLedger, Question, ReadLedger
from leasehold.engine.registrar import Registrar
from leasehold.errors import LeaseholdError, StoreFailed
from leasehold.kernel.lease.commands import Acquire, Release
from leasehold.kernel.ledger.chain import Entry
from leasehold.kernel.ledger.commands import Command, Sweep, SweepDue
from leasehold.kernel.ledger.family import Families
from leasehold.kernel.ledger.refusals import Refusal
from leasehold.work.law.commands import Enqueue, Fail, GiveBack, Succeed, TryAcquire
from leasehold.workflows.law.family import workflow_family

JOBS = Verify | Prune | Rebuild | Backup | RotateKey | RetireKey | VouchForKey
QUESTIONS = reduce(or_, Question.__subclasses__())
_REPEATED: tuple[type[Command], ...] = (
    *(Acquire, Release),
    *(TryAcquire, Enqueue, Succeed, Fail, GiveBack),
    *workflow_family().commands,
)
"""Commands that arrive twice, or whose reply is lost: a repeat gets the same answer."""


_LOST = Failure.of(StoreFailed("the reply was lost on the line"))


class SpelledEntry(msgspec.Struct):
    """An entry on its way: its event is in its body, and is read from there."""

    position: int
    body: bytes
    hash: bytes
    seal: bytes | None


class SpelledStatus(msgspec.Struct, kw_only=True):
    """How a job stands, on its way: what its result is of, the job says."""

    job_id: str
    job: JOBS
    done: int = 0
    total: int = 0
    result: msgspec.Raw = msgspec.Raw(b"null")
    failure: Failure | None = None


class WireDesk:
    """A registrar at the other end of a bad line."""

    def __init__(self, inner: Registrar, seed: str, *, is_steady: bool = False) -> None:
        """`seed` decides what the line does: the same for the same test, whatever ran before.

        A steady line repeats and loses nothing: for what is true only of who need not ask again.
        """
        self.inner = inner
        self._families: Families = inner.store.families
        self._random = Random(seed)
        commands = reduce(or_, self._families.of_command, Sweep | SweepDue)
        self._commands: msgspec.json.Decoder[Command] = msgspec.json.Decoder(commands)
        self._lost_in_a_row = 0
        self._lost: Counter[str] = Counter()
        """How many replies to a request were lost, by its id."""
        self._is_steady = is_steady

    @property
    def timeout(self) -> float:
        return self.inner.timeout

    @property
    def ids(self) -> Ids:
        return self.inner.ids

    @property
    def url(self) -> str:
        return self.inner.url

    @property
    def bells(self) -> Bells:
        return self.inner.bells

    def call(self, command: Command) -> Outcome:
        """Send a command; some arrive twice, and some replies never do."""
        refusal = self._families.check(command)
        if refusal is not None:
            return refusal  # Nothing at the other end could make it right, and it may not even be spelled.
        sent = msgspec.json.encode(command)
        outcome = self._received(command, lambda: self.inner.call(self._commands.decode(sent)))
        if self._random.random() < 0.2:
            time.sleep(0.0005)
        if self._repeats(command):
            self._received(command, lambda: self.inner.call(self._commands.decode(sent)))
        return _LOST if self._loses(command) else outcome

    def submit(self, command: Command, deliver: Callable[[Outcome], None]) -> Any:
        """Send a command, in its turn; some arrive twice, and some replies never do."""
        if self._families.check(command) is not None:
            return [self.inner.submit(command, deliver)]  # It is refused at once, here as there.
        sent = self._commands.decode(msgspec.json.encode(command))
        is_lost = self._loses(command)

        def arrive(outcome: Outcome) -> None:
            deliver(_LOST if is_lost else self._through(type(command), outcome))

        calls = [self.inner.submit(sent, arrive)]
        if self._repeats(command):
            calls.append(self.inner.submit(sent, lambda outcome: None))
        return calls

    def withdraw(self, call: Any) -> Failure | None:
        """Take back a command, and before it what repeats it: that is behind it in the queue."""
        busy = [self.inner.withdraw(one) for one in reversed(call)][-1]
        return None if busy is None else _spelled(busy, Failure)

    def _repeats(self, command: Command) -> bool:
        """Decide whether a command arrives twice."""
        return self._is_bad_for(command) and self._random.random() < 0.1

    def _loses(self, command: Command) -> bool:
        """Decide whether the reply to a command is lost; a client that asks three times gets one."""
        times = self._lost[command.request_id]
        if not self._is_bad_for(command) or times == 2 or self._random.random() >= 0.1:
            return False
        self._lost[command.request_id] = times + 1
        return True

    def _is_bad_for(self, command: Command) -> bool:
        return isinstance(command, _REPEATED) and not self._is_steady

    def ask(self, question: Question) -> Any:
        """Ask; what is answered is read as what the question says it is."""
        sent = msgspec.json.decode(msgspec.json.encode(question), type=QUESTIONS)
        answer = self._asked(lambda: self.inner.ask(sent))
        if isinstance(question, ReadLedger):
            return self._entries(answer)
        if isinstance(question, FollowLedger):
            return Followed(entries=self._entries(answer.entries), end=answer.end)
        return msgspec.json.decode(msgspec.json.encode(answer), type=type(question).answer)

    def start_job(self, job_id: str, job: Job) -> JobStatus:
        """Start a job; some starts arrive twice, and some replies never do."""
        sent = msgspec.json.decode(msgspec.json.encode(job), type=JOBS)
        if self._random.random() < 0.2:
            self._asked(lambda: self.inner.start_job(job_id, sent))
        return self._status(lambda: self.inner.start_job(job_id, sent))

    def find_job(self, job_id: str, *, seen: int | None = None, timeout: float = 0.0) -> JobStatus:
        return self._status(lambda: self.inner.find_job(job_id, seen=seen, timeout=timeout))

    def cancel_job(self, job_id: str) -> JobStatus:
        return self._status(lambda: self.inner.cancel_job(job_id))

    def _status(self, ask: Callable[[], JobStatus]) -> JobStatus:
        """Read how a job stands from what was sent of it, if that arrives."""
        status: JobStatus = self._asked(ask)
        if status.failure is not None:
            status = replace(status, failure=replace(status.failure, cause=None))
        if self._random.random() < 0.3 and self._lost_in_a_row < 2:
            self._lost_in_a_row += 1
            raise StoreFailed("the reply was lost on the line")
        self._lost_in_a_row = 0
        read = msgspec.json.decode(msgspec.json.encode(status), type=SpelledStatus)
        result = type(read.job).result if bytes(read.result) != b"null" else None
        return JobStatus(
            job_id=read.job_id,
            job=read.job,
            done=read.done,
            total=read.total,
            result=msgspec.json.decode(read.result, type=result),
            failure=read.failure,
        )

    def wait(self, position: int, timeout: float) -> bool:
        return self.inner.wait(position, timeout)

    def stop_granting(self) -> None:
        self.inner.stop_granting()

    def close(self) -> None:
        self.inner.close()

    def _entries(self, entries: list[Entry]) -> list[Entry]:
        spelled = [SpelledEntry(one.position, one.body, one.hash, one.seal) for one in entries]
        read = msgspec.json.decode(msgspec.json.encode(spelled), type=list[SpelledEntry])
        return [
            Entry(
                position=one.position,
                event=self._families.decode_event(one.body),
                body=one.body,
                hash=one.hash,
                seal=one.seal,
            )
            for one in read
        ]

    def _through(self, kind: type[Command], outcome: Outcome) -> Outcome:
        """Read an outcome as what a command of that kind may be answered."""
        return _spelled(outcome, kind.answer | Refusal | Failure)

    def _received(self, command: Command, call: Callable[[], Outcome]) -> Outcome:
        return self._through(type(command), self._asked(call))

    def _asked(self, ask: Callable[[], Any]) -> Any:
        """Raise what was raised at the other end, as far as it can be told over a line."""
        try:
            return ask()
        except LeaseholdError as error:
            raise _spelled(Failure.of(error), Failure).error() from None


def _spelled(outcome: Outcome, kinds: Any) -> Outcome:
    """Return what arrives of an outcome."""
    if isinstance(outcome, Failure):
        outcome = replace(outcome, cause=None)
    return msgspec.json.decode(msgspec.json.encode(outcome), type=kinds)
