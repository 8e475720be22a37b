"""The authority itself: kernel, engine and store, as a desk in this process.

Questions do not wait for writers. They are answered as of one moment, with what each lease has left at that
moment by the authority's clock.
"""

from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any

from leasehold.engine import jobs
from leasehold.engine.bells import Bells
from leasehold.engine.call import Call
from leasehold.engine.clock import Ids
from leasehold.engine.committer import Committer
from leasehold.engine.desk import Failure, Outcome
from leasehold.engine.port import Store
from leasehold.engine.questions import Question
from leasehold.engine.recording import open_epoch
from leasehold.engine.replies import reply
from leasehold.engine.sealing import NoKeyAtHand
from leasehold.engine.signing import SigningKey
from leasehold.engine.walking import Progress
from leasehold.kernel.ledger.commands import LOCAL, Caller, Command

Reply = Callable[["Registrar", Any], Any]
"""Answers a question that needs more than a look at the store."""


class Registrar:
    """A desk for one caller, with everything behind it."""

    def __init__(
        self,
        store: Store,
        *,
        timeout: float = 30.0,
        caller: Caller = LOCAL,
        also: Mapping[type[Question], Reply] | None = None,
    ) -> None:
        """`also` answers questions that the engine knows nothing of."""
        self.store = store
        self.timeout = timeout
        """How many seconds a command waits for another process to finish writing."""
        self.ids = Ids()
        self._caller = caller
        self._also = also or {}
        open_epoch(store)
        self._committer = Committer(store, timeout=timeout)

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
        outcome = self._committer.call(command, self._caller)
        return Failure.of(outcome) if isinstance(outcome, Exception) else outcome

    def submit(self, command: Command, deliver: Callable[[Outcome], None]) -> Call:
        """Run a command soon, and hand its outcome to `deliver`."""

        def deliver_value(outcome: Outcome) -> None:
            deliver(Failure.of(outcome) if isinstance(outcome, Exception) else outcome)

        return self._committer.submit(command, deliver_value, self._caller)

    def withdraw(self, call: Call) -> Failure | None:
        """Take a submitted command back and return why; None if it is too late for that."""
        busy = self._committer.withdraw(call)
        return None if busy is None else Failure.of(busy)

    def ask(self, question: Question) -> Any:
        """Answer a question as of one moment."""
        also = self._also.get(type(question))
        if also is not None:
            return also(self, question)
        with self.store.snapshot() as snapshot:
            return reply(question, snapshot)

    def run(self, job: jobs.Job, progress: Progress | None = None) -> Any:
        """Do a job to its end, and return its result."""
        return jobs.run(job, self.store, progress)

    def wait(self, position: int, timeout: float) -> bool:
        """Return True once the ledger goes beyond `position`, or False after `timeout` seconds."""
        return self.store.wait(position, timeout)

    def signing_key(self) -> SigningKey:
        """Return the key that this process signs with; it is enrolled first if need be."""
        while True:
            with suppress(NoKeyAtHand), self.store.snapshot() as snapshot:
                return self.store.sealer.key_for(snapshot.authority, snapshot.signing_keys)
            open_epoch(self.store, to_write=True)

    def stop_granting(self) -> None:
        """Take no more claims; what was granted can still be given back."""
        self._committer.stop_granting()

    def close(self) -> None:
        """Stop taking commands, and let go of the store."""
        if self._committer.close():
            self.store.close()
