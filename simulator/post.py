"""How requests and replies travel: late, twice, or not at all."""

from collections.abc import Callable
from typing import TYPE_CHECKING

from leasehold.engine.batch import Outcome
from leasehold.kernel.ledger.commands import Caller, Command
from simulator.stage import Action, Stage

if TYPE_CHECKING:
    from simulator.asking import Asker
    from simulator.engine import SimulatedEngine


class Pending:
    """A request that somebody waits for."""

    __slots__ = ("attempts", "caller", "command", "deliver", "open", "tries_left")

    def __init__(
        self, command: Command, deliver: Callable[[Outcome, int], None], tries: int, caller: Caller
    ) -> None:
        self.command = command
        self.caller = caller
        self.deliver = deliver
        self.tries_left = tries
        self.attempts = 0
        self.open = True


class Envelope:
    """One attempt at a request, on its way."""

    __slots__ = ("client", "command", "life", "pending", "sent_ns")

    def __init__(self, client: "Asker", pending: Pending, command: Command, sent_ns: int) -> None:
        self.client = client
        self.life = client.life
        self.pending = pending
        self.command = command
        self.sent_ns = sent_ns
        """What the client's clock said before the attempt was sent."""


class Post:
    """The way between clients and engines."""

    def __init__(self, stage: Stage, senders: dict[str, Command]) -> None:
        self._stage = stage
        self.senders = senders
        """Every request that was ever sent, by its id."""
        self.engines: list[SimulatedEngine] = []
        self.sent: list[Envelope] = []
        """Some of what was ever sent, for those who like to hear things twice."""
        self.bells: dict[str, Action] = {}
        """Where waiters want to be rung for."""

    def send(self, envelope: Envelope) -> None:
        """Take a request to one of the engines."""
        stage = self._stage
        if len(self.sent) < 20:
            self.sent.append(envelope)
        if stage.strikes("request duplicated"):
            self._carry_request(envelope)
        if not stage.strikes("request lost"):
            self._carry_request(envelope)

    def _carry_request(self, envelope: Envelope) -> None:
        engine = self._stage.random.choice(self.engines)
        delay_ns = self._delay_ns("request delayed")
        self._stage.after(delay_ns, lambda: engine.receive(envelope))

    def reply(self, envelope: Envelope, outcome: Outcome) -> None:
        """Take an outcome back to the client."""
        stage = self._stage
        if stage.strikes("reply duplicated"):
            self._carry_reply(envelope, outcome)
        if not stage.strikes("reply lost"):
            self._carry_reply(envelope, outcome)

    def ring(self, addresses: frozenset[str]) -> None:
        """Wake waiters; nobody relies on it."""
        for address in sorted(addresses):
            bell = self.bells.get(address)
            if bell is not None and not self._stage.strikes("ring lost"):
                self._stage.after(self._stage.up_to(self._stage.plan.latency_ns), bell)

    def _carry_reply(self, envelope: Envelope, outcome: Outcome) -> None:
        client = envelope.client
        if client.life == envelope.life:
            client.later(self._delay_ns("reply delayed"), lambda: client.receive(envelope, outcome))

    def _delay_ns(self, fault: str) -> int:
        delay_ns = self._stage.up_to(2 * self._stage.plan.latency_ns)
        if self._stage.strikes(fault):
            delay_ns += self._stage.up_to(4 * self._stage.plan.ttl_ns)
        return delay_ns
