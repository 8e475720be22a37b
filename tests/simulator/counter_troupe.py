"""Those who play the counters of `tests/families` in a simulated world, and who judge what comes of it."""

from collections.abc import Sequence

from leasehold.engine.batch import Outcome
from leasehold.kernel.lease.events import LeaseReleased
from leasehold.kernel.ledger.commands import Command, Sweep, Swept
from leasehold.kernel.ledger.events import REGISTRAR, Event
from leasehold.kernel.ledger.family import Family
from leasehold.kernel.ledger.refusals import Refusal, RefusalCode
from leasehold.kernel.ledger.state import State
from simulator.asking import Asker
from simulator.cast import Cast
from simulator.troupe import Commit, Moment, Scene, Troupe
from simulator.true_lease import TrueLease
from tests.families.toy import (
    COUNTER,
    Bump,
    Close,
    Closed,
    CounterBumped,
    Finish,
    Value,
    counter_family,
    own_key,
)
from tests.simulator.true_counters import TrueCounters

NAMES = ("anvil", "bellows", "chisel", "drill", "file")
"""Few, so that actors meet at them."""


class CounterPlay:
    """Raises, closes and finishes counters, and judges what everybody is told of them."""

    def __init__(self, scene: Scene) -> None:
        self._scene = scene
        self._stage = scene.stage
        self._random = scene.random
        self._cast = Cast(scene, self._act, mortals="actor")
        self.noted = self._cast.noted
        self._sent: dict[str, Command] = {}
        self._true = self._new_truth()
        self._highest_number = 0
        """Of all that were ever drawn, also in history that was lost since."""

    def _new_truth(self) -> TrueCounters:
        return TrueCounters(self._scene.truth, self._sent, self._cast.note)

    # What actors do.

    def start(self) -> None:
        self._cast.start(3)

    def _act(self, actor: Asker) -> None:
        command = self._command()
        if command is not None:
            self._sent[command.request_id] = command
            actor.ask(command, lambda outcome, sent_ns: None)

    def _command(self) -> Command | None:
        random = self._random
        if self._sent and random.random() < 0.1:
            return random.choice(list(self._sent.values())[-5:])
        tenant, name = random.choice(self._stage.plan.tenants), random.choice(NAMES)
        request_id = self._stage.new_name("count")
        match random.choices(("raise", "bind", "close", "finish", "sweep"), (30, 40, 12, 12, 6))[0]:
            case "raise":
                return self._bump(tenant, name, request_id)
            case "bind":
                lease = self._some_lease()
                return None if lease is None else self._bump(lease.key[0], name, request_id, lease.lease_id)
            case "close":
                return Close(
                    tenant=tenant,
                    request_id=request_id,
                    holder=request_id,
                    most=random.randint(1, 3),
                    furthest=random.random() < 0.5,
                )
            case "finish":
                return self._finish(tenant, request_id)
            case _:
                return Sweep(tenant=tenant, family=COUNTER, key=own_key(tenant, name), request_id=request_id)

    def _some_lease(self) -> TrueLease | None:
        leases = [one for one in self._scene.truth().standing.values() if one.holder != REGISTRAR]
        return self._random.choice(leases) if leases else None

    def _bump(self, tenant: str, name: str, request_id: str, lease_id: str = "") -> Bump:
        ttl_ns = self._stage.plan.ttl_ns
        return Bump(
            tenant=tenant,
            request_id=request_id,
            name=name,
            by=self._random.randint(1, 9),
            ttl_ns=self._random.choice((None, ttl_ns // 2, 2 * ttl_ns)),
            lease_id=lease_id,
        )

    def _finish(self, tenant: str, request_id: str) -> Finish:
        """Finish a counter as the holder of its lease, or as somebody else; or one that has no lease."""
        bound = {one.name: one.bound for one in self._true.counting(tenant) if one.bound}
        name = self._random.choice([*bound] or NAMES)
        lease = self._scene.truth().standing.get(bound.get(name, ""))
        holder = "nobody" if lease is None or self._random.random() < 0.2 else lease.holder
        return Finish(tenant=tenant, request_id=request_id, name=name, holder=holder)

    # What the judge says.

    def saw(self, commit: Commit) -> str | None:
        for event in (entry.event for entry in commit.entries):
            if isinstance(event, CounterBumped) or (event.draws and event.is_number_new):
                if event.number <= self._highest_number:
                    return f"{event.type} drew {event.number} after {self._highest_number}"
                self._highest_number = event.number
        return self._true.take_in(commit)

    def start_over(self, history: Sequence[Commit]) -> None:
        self._true = self._new_truth()
        for commit in history:
            self._true.take_in(commit)
        self._cast.note("started over")

    def causes(self, event: Event, command: Command | None) -> bool:
        if not isinstance(event, LeaseReleased):
            return False
        if command is not None:
            who = (command.tenant, command.holder) if isinstance(command, Finish) else None
            return who == (event.tenant, event.holder)
        counter = self._true.bound_to(event.tenant, event.lease_id)
        return counter is not None and counter.is_over(event.tick.value)

    def told(self, command: Command, outcome: Outcome, moment: Moment) -> str | None:
        match command, outcome:
            case _, Refusal():
                self._cast.note("refused")
                wrong = moment.alone and not self._is_justified(command, outcome, moment)
                return f"{command} was refused without reason: {outcome}" if wrong else None
            case Bump(), Value():
                return self._told_value(command, outcome, moment)
            case Close(), Closed():
                return self._told_closed(command, outcome, moment)
            case Finish(), Value():
                counter = self._true.find(command.tenant, command.name)
                stands = moment.alone and counter is not None and counter.counts
                return f"{command} was told {outcome}, and it counts" if stands else None
            case Sweep(), Swept():
                return self._told_swept(command, outcome, moment)
            case _:
                return f"{command} was answered with {outcome}"

    def _told_value(self, command: Bump, told: Value, moment: Moment) -> str | None:
        position = self._true.bumps.get(command.request_id)
        if position is None:
            return f"{command} was answered with {told}, and is not in the ledger"
        if told.repeated:
            self._cast.note("repeated")
        elif position <= moment.position:
            return f"{command} was answered as if for the first time"
        counter = self._true.find(command.tenant, command.name)
        said = (0, 0) if counter is None else (counter.value, counter.fence)
        if moment.alone and said != (told.value, told.fence):
            return f"{command} was told {told}, and the counter says {said}"
        return None

    def _told_closed(self, command: Close, told: Closed, moment: Moment) -> str | None:
        if len(told.names) > command.most or (len(told.names) < command.most and told.left):
            return f"{command} closed {told.names}, and left {told.left}"
        if not moment.alone:
            return None
        left = len(self._true.counting(command.tenant))
        if self._true.unasked_position > moment.position:  # Then some were closed as well, by time.
            return None if told.left >= left else f"{command} left {told.left}, and there are {left}"
        asked = self._true.asked
        names = tuple(n for at, who, n in asked if at > moment.position and who == command.holder)
        if (told.names, told.left) != (names, left):
            return f"{command} was told {told}, and has closed {names} and left {left}"
        return None

    def _told_swept(self, command: Sweep, told: Swept, moment: Moment) -> str | None:
        counter = self._true.counters.get(command.key)
        if counter is None or not moment.alone:
            return None
        if counter.counts and (told.ended or counter.is_over(moment.first_tick)):
            return f"{counter.name} was swept, with {told}, and counts"
        return None

    def _is_justified(self, command: Command, refusal: Refusal, moment: Moment) -> bool:
        """A refusal has changed nothing, so its reason is still there, unless time has removed it since."""
        true, accounts = self._true, self._scene.truth().accounts
        if true.unasked_position > moment.position:
            return True
        assert isinstance(command, Bump | Finish)
        counter = true.find(command.tenant, command.name)
        bound = counter.bound if counter is not None and counter.counts else ""
        over = counter is not None and counter.is_over(moment.last_tick)
        match command, refusal.rule or refusal.code:
            case Bump(), "NO_SUCH_LEASE":
                # A counter whose time is over ends its lease, and with that all below it.
                ends = over and bound in (command.lease_id, *accounts.above(command.lease_id))
                return ends or not accounts.lives(command.lease_id, moment.last_tick)
            case Bump(), "BOUND":
                return bool(bound or true.bound_to(command.tenant, command.lease_id))
            case Finish(), "NOT_BOUND":
                return over or not bound
            case Finish(), RefusalCode.NOT_HOLDER:
                lease = self._scene.truth().standing.get(bound)
                return lease is not None and lease.holder != command.holder
            case _:
                return False

    def problem_at_end(self, state: State) -> str | None:
        return self._true.problem_of(state)


class CounterTroupe(Troupe[CounterPlay]):
    """Counters, played."""

    def __init__(self, family: Family | None = None) -> None:
        super().__init__(family or counter_family(), CounterPlay)
