"""A desk that everything passes as bytes, on a line that repeats, delays and loses what is sent.

Whatever cannot be spelled, or reads back as something else, shows up here, without a network.
The line keeps the promises of every desk: commands on one lease id stay in order, and what was lost is
*unknown*.
"""

import time
from collections import Counter
from collections.abc import Callable
from random import Random
from typing import Any

from leasehold.engine.bells import Bells
from leasehold.engine.clock import Ids
from leasehold.engine.desk import Failure, JobStatus, Outcome
from leasehold.engine.jobs import Job
from leasehold.engine.questions import AnswerType, Question
from leasehold.engine.registrar import Registrar
from leasehold.engine.wire import CancelJob, FindJob, Item, StartJob
from leasehold.errors import LeaseholdError, StoreFailed
from leasehold.kernel.lease.commands import Acquire, Release
from leasehold.kernel.ledger.commands import Command
from leasehold.kernel.ledger.family import Families
from leasehold.registry import wire
from leasehold.work.law.commands import Enqueue, Fail, GiveBack, Succeed, TryAcquire
from leasehold.workflows.law.family import workflow_family

_REPEATED: tuple[type[Command], ...] = (
    *(Acquire, Release),
    *(TryAcquire, Enqueue, Succeed, Fail, GiveBack),
    *workflow_family().rules,
)
"""Commands that arrive twice, or whose reply is lost: a repeat gets the same answer."""


_LOST = Failure.of(StoreFailed("the reply was lost on the line"))


class WireDesk:
    """A registrar at the other end of a bad line."""

    def __init__(self, inner: Registrar, seed: str, *, is_steady: bool = False) -> None:
        """`seed` decides what the line does: the same for the same test, whatever ran before.

        A steady line repeats and loses nothing: for what is true only of who need not ask again.
        """
        self.inner = inner
        self._wire = wire()
        self._families: Families = inner.store.families
        self._random = Random(seed)
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
        sent = self._sent(command)
        outcome = self._received(command, lambda: self.inner.call(sent))
        if self._random.random() < 0.2:
            time.sleep(0.0005)
        if self._repeats(command):
            self._received(command, lambda: self.inner.call(sent))
        return _LOST if self._loses(command) else outcome

    def submit(self, command: Command, deliver: Callable[[Outcome], None]) -> Any:
        """Send a command, in its turn; some arrive twice, and some replies never do."""
        if self._families.check(command) is not None:
            return [self.inner.submit(command, deliver)]  # It is refused at once, here as there.
        sent = self._sent(command)
        is_lost = self._loses(command)

        def arrive(outcome: Outcome) -> None:
            deliver(_LOST if is_lost else self._through(command, outcome))

        calls = [self.inner.submit(sent, arrive)]
        if self._repeats(command):
            calls.append(self.inner.submit(sent, lambda outcome: None))
        return calls

    def withdraw(self, call: Any) -> Failure | None:
        """Take back a command, and before it what repeats it: that is behind it in the queue."""
        busy = [self.inner.withdraw(one) for one in reversed(call)][-1]
        return None if busy is None else self._through(FindJob(job_id=""), busy)

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

    def ask(self, question: Question[AnswerType]) -> AnswerType:
        """Ask; what is answered is read as what the question says it is."""
        found: AnswerType = self._received(question, lambda: self.inner.ask(self._sent(question)))
        return found

    def start_job(self, job_id: str, job: Job) -> JobStatus:
        """Start a job; some starts arrive twice, and some replies never do."""
        start = StartJob(job_id=job_id, job=job)
        sent = self._sent(start)
        if self._random.random() < 0.2:
            self._received(start, lambda: self.inner.start_job(sent.job_id, sent.job))
        return self._status(start, lambda: self.inner.start_job(sent.job_id, sent.job))

    def find_job(self, job_id: str, *, seen: int | None = None, timeout: float = 0.0) -> JobStatus:
        sent = self._sent(FindJob(job_id=job_id, seen=seen, timeout=timeout))
        return self._status(sent, lambda: self.inner.find_job(job_id, seen=sent.seen, timeout=sent.timeout))

    def cancel_job(self, job_id: str) -> JobStatus:
        sent = self._sent(CancelJob(job_id=job_id))
        return self._status(sent, lambda: self.inner.cancel_job(sent.job_id))

    def _status(self, call: Item, ask: Callable[[], JobStatus]) -> JobStatus:
        """Read how a job stands from what was sent of it, if that arrives."""
        status: JobStatus = self._received(call, ask)
        if self._random.random() < 0.3 and self._lost_in_a_row < 2:
            self._lost_in_a_row += 1
            raise StoreFailed("the reply was lost on the line")
        self._lost_in_a_row = 0
        return status

    def wait(self, position: int, timeout: float) -> bool:
        return self.inner.wait(position, timeout)

    def stop_granting(self) -> None:
        self.inner.stop_granting()

    def close(self) -> None:
        self.inner.close()

    def _sent(self, item: Item) -> Any:
        """Return what arrives of an item."""
        return self._wire.read(self._wire.spell(item))

    def _through(self, item: Item, outcome: Outcome) -> Outcome:
        """Return what arrives of an outcome, read as what such an item may be answered."""
        return self._wire.read_outcome(item, self._wire.spell_outcome(outcome))

    def _received(self, item: Item, call: Callable[[], Outcome]) -> Outcome:
        """Return what arrives of an answer; raise what was raised there, as far as it can be told."""
        try:
            outcome = call()
        except LeaseholdError as error:
            raise self._through(item, Failure.of(error)).error() from None
        return self._through(item, outcome)
