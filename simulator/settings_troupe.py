"""Those who change settings in a simulated world, and who judge what they are told.

The judge keeps the values that should be in force in a plain dictionary, told from the ledger's events alone,
with a list of its own of what can be set and by default is. A request counts once, however often and late it
arrives; what somebody is answered is in the ledger; nothing that is set is let go of when history is pruned.
"""

from collections.abc import Sequence
from typing import Any

from leasehold.engine.batch import Outcome
from leasehold.kernel.ledger.chain import Entry
from leasehold.kernel.ledger.commands import Command
from leasehold.kernel.ledger.events import Event
from leasehold.kernel.ledger.family import Family
from leasehold.kernel.ledger.refusals import Refusal
from leasehold.kernel.ledger.state import State
from leasehold.settings.law import FAMILY, Changed, ChangeSetting, SettingChanged, settings_family
from simulator.asking import Asker
from simulator.cast import Cast
from simulator.troupe import Commit, Moment, Scene, Troupe
from simulator.true_lease import request_id_of

DEFAULTS: dict[str, Any] = {"max_renewals": -1, "acquisition_timeout_ms": 30_000, "auto_expire_enabled": True}
STORE_WIDE = "auto_expire_enabled"
IMPOSSIBLE = 10**12
RESOURCES = ("", "door", "wall")

Place = tuple[str, str, str]
"""A tenant (empty for the whole store), a resource (empty for all of them), and a setting."""


class SettingsPlay:
    """Changes settings, and judges what everybody is told of them."""

    def __init__(self, scene: Scene) -> None:
        self._scene = scene
        self._stage = scene.stage
        self._random = scene.random
        self._cast = Cast(scene, self._act)
        self.noted = self._cast.noted
        self._sent: dict[str, ChangeSetting] = {}
        self._values: dict[Place, Any] = {}
        self._changes: dict[str, tuple[int, SettingChanged]] = {}
        """What each request has changed, and at which position of the ledger."""

    # What actors do.

    def start(self) -> None:
        """Let three actors begin."""
        self._cast.start(3)

    def _act(self, actor: Asker) -> None:
        command = self._command()
        self._sent[command.request_id] = command
        actor.ask(command, lambda outcome, sent_ns: None)

    def _command(self) -> ChangeSetting:
        random = self._random
        if self._sent and random.random() < 0.15:
            return random.choice(list(self._sent.values())[-20:])
        key = random.choice(list(DEFAULTS))
        values: tuple[Any, ...] = (None, True, False) if key == STORE_WIDE else (None, 1, 2, IMPOSSIBLE)
        return ChangeSetting(
            tenant=random.choice(self._stage.plan.tenants),
            request_id=self._stage.new_name("set"),
            holder=f"setter-{random.randint(1, 3)}",
            key=key,
            value=random.choice(values),
            resource="" if key == STORE_WIDE else random.choice(RESOURCES),
        )

    # What the judge says.

    def saw(self, commit: Commit) -> str | None:
        """Take in what was committed."""
        for entry in commit.entries:
            if isinstance(entry.event, SettingChanged):
                problem = self._saw_change(entry, entry.event)
                if problem is not None:
                    return problem
        gone = commit.let_go.get(FAMILY)
        return f"{gone} were let go of, and are set" if gone else None

    def _saw_change(self, entry: Entry, event: SettingChanged) -> str | None:
        request_id = request_id_of(event)
        command = self._sent.get(request_id)
        place = (event.tenant, event.resource, event.key)
        earlier, before = self._changes.get(request_id), self._values.get(place)
        self._take_in(entry.position, event)
        if command is None or (_place(command), command.value, command.holder) != (
            place,
            event.value,
            event.actor,
        ):
            return f"{request_id} set {place} to {event.value}, which nobody asked for"
        if earlier is not None and self._scene.truth().is_known(earlier[0], event.tick):
            return f"{request_id} was carried out twice"
        if event.before != before:
            return f"{place} was changed from {event.before}, and was {before}"
        return None

    def _take_in(self, position: int, event: SettingChanged) -> None:
        self._changes[request_id_of(event)] = (position, event)
        place = (event.tenant, event.resource, event.key)
        self._cast.note("reset" if event.value is None else "set")
        if event.value is None:
            self._values.pop(place, None)
        else:
            self._values[place] = event.value

    def start_over(self, history: Sequence[Commit]) -> None:
        """Believe only what is left of the history."""
        self._values, self._changes = {}, {}
        for commit in history:
            for entry in commit.entries:
                if isinstance(entry.event, SettingChanged):
                    self._take_in(entry.position, entry.event)
        self._cast.note("started over")

    def causes(self, event: Event, command: Command | None) -> bool:
        """Settings cause no events of leases."""
        del event, command
        return False

    def told(self, command: Command, outcome: Outcome, moment: Moment) -> str | None:
        """Judge an answer."""
        if not isinstance(command, ChangeSetting):
            return f"{command} is not about settings"
        if isinstance(outcome, Refusal):
            self._cast.note("refused")
            return None if command.value == IMPOSSIBLE else f"{command} was refused without reason: {outcome}"
        if not isinstance(outcome, Changed) or command.value == IMPOSSIBLE:
            return f"{command} was answered with {outcome}"
        position, event = self._changes.get(command.request_id, (0, None))
        if event is None:
            return f"{command} was answered with {outcome}, and is not in the ledger"
        if position <= moment.position:
            self._cast.note("repeated")
        general = DEFAULTS[command.key]
        if command.resource:
            general = self._values.get((command.tenant, "", command.key), general)
        said = [general if value is None else value for value in (event.before, event.value)]
        if moment.alone and [outcome.before, outcome.value] != said:
            return f"{command} was told {outcome}, and it was and is {said}"
        return None

    def problem_at_end(self, state: State) -> str | None:
        """Compare the records with what should be set."""
        said = {tuple(key.split("\x01")): record.value for key, record in state.of(FAMILY).items()}
        return None if said == self._values else f"settings are {said}, and should be {self._values}"


def _place(command: ChangeSetting) -> Place:
    return ("" if command.key == STORE_WIDE else command.tenant, command.resource, command.key)


class SettingsTroupe(Troupe[SettingsPlay]):
    """Settings, played."""

    def __init__(self, family: Family | None = None) -> None:
        super().__init__(family or settings_family(), SettingsPlay)
