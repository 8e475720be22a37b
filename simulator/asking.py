"""Whoever asks something of the engines, and asks again until there is an answer.

A request whose outcome is unknown is repeated under the same id. Whoever has given up takes no answer any
more.
"""

from collections.abc import Callable

from msgspec.structs import replace

from leasehold.engine.batch import Outcome
from leasehold.errors import StoreBusy, StoreError
from leasehold.kernel.lease.commands import Acquire, Derive
from leasehold.kernel.ledger.commands import LOCAL, Caller, Command
from simulator.clocks import HolderClock
from simulator.post import Envelope, Pending, Post
from simulator.stage import Process, Stage

_TRIES = 4


class Asker(Process):
    """A process that sends requests."""

    def __init__(self, stage: Stage, post: Post, clock: HolderClock) -> None:
        super().__init__(stage)
        self.post = post
        self.clock = clock

    def ask(
        self,
        command: Command,
        deliver: Callable[[Outcome, int], None],
        tries: int = _TRIES,
        caller: Caller = LOCAL,
    ) -> None:
        """Send a command until there is an outcome; give up after some tries, not knowing."""
        self.post.senders[command.request_id] = command
        self._attempt(Pending(command, deliver, tries, caller))

    def _attempt(self, pending: Pending) -> None:
        pending.tries_left -= 1
        pending.attempts += 1
        command = pending.command
        named = isinstance(command, Acquire | Derive) and not command.is_its_own_request
        if named and pending.attempts > 1 and self.stage.random.random() < 0.3:
            command = replace(command, lease_id=self.stage.new_name("lease"))
        self.post.send(Envelope(self, pending, command, self.clock.tick_ns()))
        patience_ns = 3 * self.stage.plan.latency_ns + self.stage.up_to(self.stage.plan.ttl_ns)
        attempt = pending.attempts
        self.later(patience_ns, lambda: self._lose_patience(pending, attempt))

    def _lose_patience(self, pending: Pending, attempt: int) -> None:
        if pending.open and pending.attempts == attempt:
            self._ask_again(pending, StoreBusy("no answer"), self.clock.tick_ns())

    def _ask_again(self, pending: Pending, error: StoreError, sent_ns: int) -> None:
        if pending.tries_left:
            self._attempt(pending)
            return
        self.stage.tally.note("request given up")
        self._answer(pending, error, sent_ns)

    def receive(self, envelope: Envelope, outcome: Outcome) -> None:
        """Take an answer, unless the request was answered or given up before."""
        pending = envelope.pending
        if not pending.open:
            self.stage.tally.note("reply came too late")
            return
        if isinstance(outcome, StoreError) and outcome.outcome_unknown:
            self._ask_again(pending, outcome, envelope.sent_ns)
            return
        if pending.attempts > 1:
            self.stage.tally.note("request answered after a retry")
        self._answer(pending, outcome, envelope.sent_ns)

    def _answer(self, pending: Pending, outcome: Outcome, sent_ns: int) -> None:
        pending.open = False
        pending.deliver(outcome, sent_ns)
