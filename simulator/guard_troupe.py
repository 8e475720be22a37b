"""Those who go past guards in a simulated world, and who judge what history keeps of it.

A bypass that was answered is in the ledger, whole and once, however often and late its request arrives, and
says what was asked: who, past whom, and why. Nothing else is recorded, and no record is kept.
"""

from collections.abc import Sequence

from leasehold.engine.batch import Outcome
from leasehold.guards.law import FAMILY, GuardBypassed, Passed, RecordBypass, Recorded, guard_family
from leasehold.kernel.ledger.commands import Command
from leasehold.kernel.ledger.events import Event
from leasehold.kernel.ledger.family import Family
from leasehold.kernel.ledger.refusals import Refusal
from leasehold.kernel.ledger.state import State
from leasehold.kernel.ledger.tick import Tick
from simulator.asking import Asker
from simulator.cast import Cast
from simulator.troupe import Commit, Moment, Scene, Troupe
from simulator.true_lease import request_id_of

PATHS = ("/src/app.py", "/src/**", "/docs/guide.md")


class GuardPlay:
    """Goes past guards, and judges what is recorded of it."""

    def __init__(self, scene: Scene) -> None:
        self._scene = scene
        self._stage = scene.stage
        self._random = scene.random
        self._cast = Cast(scene, self._act, pace=(0.05, 0.5))
        self.noted = self._cast.noted
        self._sent: dict[str, RecordBypass] = {}
        self._recorded: dict[str, int] = {}
        """The position of what each request has had recorded."""

    # What actors do.

    def start(self) -> None:
        """Let two actors begin."""
        self._cast.start(2)

    def _act(self, actor: Asker) -> None:
        command = self._command()
        self._sent[command.request_id] = command
        actor.ask(command, lambda outcome, sent_ns: None)

    def _command(self) -> RecordBypass:
        random = self._random
        if self._sent and random.random() < 0.2:
            return random.choice(list(self._sent.values())[-20:])
        paths = random.sample(PATHS, random.randint(1, len(PATHS)))
        return RecordBypass(
            tenant=random.choice(self._stage.plan.tenants),
            request_id=self._stage.new_name("bypass"),
            holder=f"agent-{random.randint(1, 3)}",
            reason=random.choice(("it burns", "nobody answers", "")),
            passed=tuple(Passed(resource=path, held_by="somebody") for path in paths),
        )

    # What the judge says.

    def saw(self, commit: Commit) -> str | None:
        """Take in what was committed: all of a request together."""
        told: dict[str, list[GuardBypassed]] = {}
        for entry in commit.entries:
            if isinstance(entry.event, GuardBypassed):
                told.setdefault(request_id_of(entry.event), []).append(entry.event)
        for request_id, events in told.items():
            problem = self._saw_bypass(request_id, events)
            if problem is not None:
                return problem
        self._take_in(commit)
        return None

    def _saw_bypass(self, request_id: str, events: Sequence[GuardBypassed]) -> str | None:
        command = self._sent.get(request_id)
        if command is None or [_said(event) for event in events] != _asked(command):
            return f"{request_id} had {[_said(event) for event in events]} recorded, and asked for {command}"
        if self._is_known(request_id, events[0].tick):
            return f"{request_id} was recorded twice"
        return None

    def _is_known(self, request_id: str, tick: Tick) -> bool:
        earlier = self._recorded.get(request_id)
        return earlier is not None and self._scene.truth().is_known(earlier, tick)

    def _take_in(self, commit: Commit) -> None:
        for entry in commit.entries:
            if isinstance(entry.event, GuardBypassed):
                self._recorded[request_id_of(entry.event)] = entry.position
                self._cast.noted["recorded"] += 1

    def start_over(self, history: Sequence[Commit]) -> None:
        """Believe only what is left of the history."""
        self._recorded = {}
        for commit in history:
            self._take_in(commit)
        self._cast.noted["started over"] += 1

    def causes(self, event: Event, command: Command | None) -> bool:
        """Bypasses cause no events of leases."""
        del event, command
        return False

    def told(self, command: Command, outcome: Outcome, moment: Moment) -> str | None:
        """Judge an answer."""
        if not isinstance(command, RecordBypass):
            return f"{command} is not about guards"
        if isinstance(outcome, Refusal):
            self._cast.noted["refused"] += 1
            return f"{command} was refused without reason: {outcome}" if command.reason else None
        if not isinstance(outcome, Recorded) or not command.reason:
            return f"{command} was answered with {outcome}"
        position = self._recorded.get(command.request_id)
        if position is None:
            return f"{command} was answered with {outcome}, and is not in the ledger"
        if position <= moment.position:
            self._cast.noted["repeated"] += 1
        return None

    def problem_at_end(self, state: State) -> str | None:
        """Find a record where there should be none."""
        found = state.of(FAMILY)
        return f"guards have the records {found}" if found else None


def _said(event: GuardBypassed) -> tuple[str, ...]:
    return (event.tenant, event.actor, event.reason, event.resource, event.held_by)


def _asked(command: RecordBypass) -> list[tuple[str, ...]]:
    asked = (command.tenant, command.holder, command.reason)
    return [(*asked, one.resource, one.held_by) for one in command.passed]


class GuardTroupe(Troupe[GuardPlay]):
    """Guards, played."""

    def __init__(self, family: Family | None = None) -> None:
        super().__init__(family or guard_family(), GuardPlay)
