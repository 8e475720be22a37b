"""Those who work on domains in a simulated world, and who judge what they are told.

Workers acquire, succeed, fail, keep alive, give back, queue and repeat themselves, also under tokens that are
long over; they pause past their TTL, die, and lose replies, as everybody in these worlds does.
"""

from collections.abc import Sequence
from typing import Any

from leasehold.engine.batch import Outcome
from leasehold.kernel.ledger.commands import Command, Sweep, Swept
from leasehold.kernel.ledger.events import Event
from leasehold.kernel.ledger.family import Family
from leasehold.kernel.ledger.refusals import Refusal
from leasehold.kernel.ledger.state import State
from leasehold.work.law.answers import (
    Acquired,
    Failed,
    FailOutcome,
    GivenBack,
    Kept,
    Queueing,
    Started,
    Succeeded,
)
from leasehold.work.law.commands import Enqueue, Fail, GiveBack, KeepAlive, StartAt, Succeed, TryAcquire
from leasehold.work.law.events import WorkAcquired
from leasehold.work.law.family import work_family
from leasehold.work.law.model import WORK, flight_key
from simulator.asking import Asker
from simulator.cast import Cast
from simulator.troupe import Commit, Moment, Scene, Troupe
from simulator.true_work import TrueDomain, TrueWork

DOMAINS = ("mail", "orders")
"""Few, so that workers meet there."""
OFFSETS = 12


class WorkPlay:
    """Works on domains, and judges what everybody is told of them."""

    def __init__(self, scene: Scene) -> None:
        self._scene = scene
        self._stage = scene.stage
        self._random = scene.random
        self._cast = Cast(scene, self._act, pace=(0.02, 0.3), mortals="worker")
        self.noted = self._cast.noted
        self._sent: dict[str, Command] = {}
        self._true = self._new_truth()
        self._highest_fence = 0
        """Of all that were ever given out, also in history that was lost since."""
        self._tokens: list[tuple[str, str, str]] = []
        """Tenant, domain and token of what was acquired, the last ones."""

    def _new_truth(self) -> TrueWork:
        return TrueWork(self._scene.truth, self._sent, self._cast.note)

    # What workers do.

    def start(self) -> None:
        """Let three workers begin."""
        self._cast.start(3)

    def _act(self, worker: Asker) -> None:
        command = self._command()
        self._sent[command.request_id] = command
        # What is answered matters to the judge only: workers find their tokens in the ledger.
        worker.ask(command, lambda outcome, sent_ns: None)

    def _command(self) -> Command:
        random = self._random
        if self._sent and random.random() < 0.1:
            return self._repeated()
        said: dict[str, Any] = {
            "tenant": random.choice(self._stage.plan.tenants),
            "domain": random.choice(DOMAINS),
            "holder": random.choice(("ann", "bob")),
            "request_id": self._stage.new_name("work"),
        }
        verbs = ("acquire", "end", "keep", "back", "queue", "start", "sweep")
        match random.choices(verbs, (40, 36, 6, 3, 8, 1, 6))[0]:
            case "acquire":
                return self._acquire(said)
            case "queue":
                count = random.randint(1, 3)
                return Enqueue(offsets=tuple(random.choices(range(OFFSETS), k=count)), **said)
            case "start":
                return StartAt(offset=random.randint(0, 3), **said)
            case "sweep":
                key = flight_key(said["tenant"], said["domain"])
                return Sweep(tenant=said["tenant"], family=WORK, key=key, request_id=said["request_id"])
            case verb:
                return self._end(verb, said)

    def _repeated(self) -> Command:
        """Return what was sent a moment ago, or a hand-off of a while ago, which may have ended since."""
        handing_off = [one for one in self._sent.values() if getattr(one, "hand_off", False)]
        if handing_off and self._random.random() < 0.3:
            return self._random.choice(handing_off[-3:])
        return self._random.choice(list(self._sent.values())[-6:])

    def _acquire(self, said: dict[str, Any]) -> TryAcquire:
        """Ask for the head of the backlog, mostly: anything else is refused, or queued."""
        random, domain = self._random, self._true.find(said["tenant"], said["domain"])
        offset = random.randrange(OFFSETS)
        if domain.backlog and random.random() < 0.7:
            offset = domain.backlog[0]
        ttl_ns = self._stage.plan.ttl_ns
        return TryAcquire(
            offset=offset,
            ttl_ns=random.choice((0, ttl_ns // 2, ttl_ns, ttl_ns, 2 * ttl_ns)),
            max_retries=random.randint(0, 3),
            **said,
        )

    def _end(self, verb: str, said: dict[str, Any]) -> Command:
        """Do something under a token: that of what is in flight, or one that is over."""
        random = self._random
        if self._tokens and random.random() < 0.9:
            said["tenant"], said["domain"], token = random.choice(self._tokens[-3:])
        else:
            token = "7"
        if verb == "keep":
            return KeepAlive(token=token, **said)
        if verb == "back":
            return self._give_back(token, said)
        hand_off = random.random() < 0.3
        if random.random() < 0.6:
            return Succeed(token=token, hand_off=hand_off, **said)
        return Fail(token=token, hand_off=hand_off, reason="as planned", **said)

    def _give_back(self, token: str, said: dict[str, Any]) -> GiveBack:
        """Give back what a token is for, or what a request has acquired of which nobody has heard."""
        acquiring = [one for one in self._sent.values() if isinstance(one, TryAcquire | Succeed | Fail)]
        if not acquiring or self._random.random() < 0.5:
            return GiveBack(token=token, **said)
        unheard = self._random.choice(acquiring[-3:])
        said |= {"tenant": unheard.tenant, "domain": unheard.domain}
        return GiveBack(acquired_by=unheard.request_key, **said)

    # What the judge says.

    def saw(self, commit: Commit) -> str | None:
        """Judge a commit; whoever is given a token gets one above all others."""
        for event in (entry.event for entry in commit.entries):
            if isinstance(event, WorkAcquired):
                if event.fence <= self._highest_fence:
                    return f"{event.domain} was given token {event.fence} after {self._highest_fence}"
                self._highest_fence = event.fence
                self._tokens.append((event.tenant, event.domain, str(event.fence)))
        return self._true.take_in(commit)

    def start_over(self, history: Sequence[Commit]) -> None:
        """Believe only what is left of the history."""
        self._true = self._new_truth()
        for commit in history:
            self._true.take_in(commit)
        self._cast.note("started over")

    def causes(self, event: Event, command: Command | None) -> bool:
        """Say no: work has nothing to do with leases."""
        del event, command
        return False

    def told(self, command: Command, outcome: Outcome, moment: Moment) -> str | None:
        """Judge an answer."""
        if isinstance(command, Sweep):
            return None if isinstance(outcome, Swept) else f"{command} was answered with {outcome}"
        assert isinstance(command, TryAcquire | Enqueue | Succeed | Fail | GiveBack | KeepAlive | StartAt)
        domain = self._true.find(command.tenant, command.domain)
        if isinstance(outcome, Refusal):
            self._cast.note(f"refused: {outcome.rule or outcome.code}")
            wrong = moment.alone and not self._is_justified(command, outcome, domain, moment)
            return f"{command} was refused without reason: {outcome}" if wrong else None
        problem = self._told_of_request(command, outcome)
        if problem is None and moment.alone:
            problem = self._told_of_domain(command, outcome, domain, moment)
        return None if problem is None else f"{command} was told {outcome}: {problem}"

    def _told_of_request(self, command: Command, outcome: Outcome) -> str | None:
        """Hold an answer against what the request has caused."""
        caused = self._true.caused.get(command.request_id)
        event: Any = None if caused is None else caused[1]
        acquired = outcome if isinstance(outcome, Acquired) else getattr(outcome, "acquired", None)
        match outcome:
            case Acquired(outcome="ACQUIRED"):
                pass
            case Succeeded() | Failed() | GivenBack():
                if event is None:
                    return "it is not in the ledger"
                if not isinstance(event, WorkAcquired) and str(event.fence) != self._token_of(command):
                    return "that was another's token"
                if isinstance(command, GiveBack) and command.acquired_by:
                    self._cast.note("given back unheard")
            case Kept() | Queueing() | Started() | Acquired():
                return None
            case _:
                return "that is no answer"
        if acquired is not None and not (
            isinstance(event, WorkAcquired) and acquired.token == str(event.fence)
        ):
            return "that token was not given out for it"
        if isinstance(outcome, Failed) and outcome.outcome == FailOutcome.RETRY_SCHEDULED:
            return None if event.retry_count == outcome.retry_count else "that is another count"
        return None

    def _token_of(self, command: Any) -> str:
        """Return the token that a command is about."""
        if isinstance(command, GiveBack) and command.acquired_by:
            _, event = self._true.caused.get(command.acquired_by.partition(":")[0], (0, None))
            return str(event.fence) if isinstance(event, WorkAcquired) else ""
        return str(command.token)

    def _told_of_domain(
        self, command: Command, outcome: Outcome, domain: TrueDomain, moment: Moment
    ) -> str | None:
        """Hold an answer, that nobody else came between, against the domain as it is."""
        if self._true.unasked_position > moment.position:
            return None
        if isinstance(outcome, Succeeded | Failed):
            return self._told_of_hand_off(command, outcome, domain)
        if not isinstance(outcome, Acquired):
            return None
        assert isinstance(command, TryAcquire)
        if command.request_id in self._true.caused and outcome.outcome != "ACQUIRED":
            return None  # It may be repeated, and be told what it was told before.
        flight, offset = domain.flight, command.offset
        match outcome.outcome:
            case "ACQUIRED":
                flying = flight is not None and str(flight.fence) == outcome.token
                return None if flying != outcome.ended else "it is in flight, or is not, against that"
            case "ALREADY_ACQUIRED":
                right = flight is not None and (flight.offset, str(flight.fence)) == (offset, outcome.token)
            case "ENQUEUED":
                right = offset in domain.backlog
            case "ALREADY_FAILED":
                right = offset in domain.failed
            case _:
                right = domain.is_terminal(offset) and offset not in domain.failed
        return None if right else "that is not so"

    def _told_of_hand_off(
        self, command: Command, outcome: Succeeded | Failed, domain: TrueDomain
    ) -> str | None:
        """Hold what was handed off, perhaps long ago, against what is in flight."""
        _, event = self._true.caused[command.request_id]
        if not isinstance(event, WorkAcquired):
            return None
        flying = domain.flight is not None and domain.flight.fence == event.fence
        if not flying:
            self._cast.note("hand-off repeated after its end")
        return (
            None if flying == (outcome.acquired is not None) else "it is in flight, or is not, against that"
        )

    def _is_justified(self, command: Any, refusal: Refusal, domain: TrueDomain, moment: Moment) -> bool:
        """A refusal has changed nothing, so its reason is still there, unless time has removed it since."""
        if self._true.unasked_position > moment.position:
            return True
        flight = domain.flight
        over = flight is not None and flight.is_over(moment.last_tick)
        match refusal.rule:
            case "BACKLOG_ORDERING":
                heads = [flight.offset] if over and flight is not None else domain.backlog[:1]
                return (flight is None or over) and heads != [command.offset]
            case "NO_LEASE":
                return flight is None or over
            case "TOKEN_MISMATCH":
                return flight is not None and str(flight.fence) != self._token_of(command)
            case "WORK_BELOW_START":
                to_do = [*domain.backlog, *([flight.offset] if flight is not None else [])]
                return any(offset < command.offset for offset in to_do)
            case _:
                return False

    def problem_at_end(self, state: State) -> str | None:
        """Return what is wrong once everything is over."""
        return self._true.problem_of(state)


class WorkTroupe(Troupe[WorkPlay]):
    """Work, played."""

    def __init__(self, family: Family | None = None) -> None:
        super().__init__(family or work_family(), WorkPlay)
