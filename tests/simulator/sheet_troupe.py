"""Those who play tally sheets in a simulated world, and who judge what comes of it."""

from collections.abc import Sequence
from functools import cached_property

from leasehold.engine.batch import Outcome
from leasehold.kernel.lease.events import LeaseReleased
from leasehold.kernel.ledger.commands import REQUEST_MEMORY_NS, Command, Sweep
from leasehold.kernel.ledger.events import REGISTRAR, EpochRaised, Event
from leasehold.kernel.ledger.family import Family
from leasehold.kernel.ledger.refusals import Refusal
from leasehold.kernel.ledger.state import State
from leasehold.kernel.ledger.tick import Tick
from simulator.asking import Asker
from simulator.troupe import Commit, Moment, Play, Scene
from simulator.true_lease import request_id_of
from tests.simulator.sheets import (
    SHEET,
    Finish,
    Mark,
    Marked,
    SheetClosed,
    SheetMarked,
    key_of,
    sheet_family,
)


class TrueSheet:
    """A sheet as it is in truth."""

    def __init__(self, event: SheetMarked) -> None:
        self.lease_id = event.lease_id
        self.holder = event.holder
        self.count = 0
        self.end_tick = event.tick.value + event.ttl_ns
        self.open = True


class SheetPlay:
    """Marks sheets of whoever holds a lease, and tells a second time what is on them."""

    def __init__(self, scene: Scene) -> None:
        self._scene = scene
        self._stage = scene.stage
        self._sheets: dict[str, TrueSheet] = {}
        self._marks: dict[str, Tick] = {}
        """When each request was counted."""
        self._pruned: set[str] = set()
        """Sheets that were let go of."""
        self._last_tick = Tick(value=0)
        self._sent: list[Command] = []
        self.noted: dict[str, int] = {}

    def start(self) -> None:
        for actor in (self._scene.new_actor(), self._scene.new_actor()):
            self._plan(actor)

    def _plan(self, actor: Asker) -> None:
        delay_ns = int(self._stage.plan.ttl_ns * self._scene.random.uniform(0.02, 0.4))
        actor.later(delay_ns, lambda: self._act(actor))

    def _act(self, actor: Asker) -> None:
        if self._stage.calm:
            return
        self._plan(actor)
        random = self._scene.random
        leases = [one for one in self._scene.truth().standing.values() if one.holder != REGISTRAR]
        if self._sent and random.random() < 0.1:
            command = random.choice(self._sent[-5:])
        elif not leases:
            return
        else:
            lease = random.choice(leases)
            tenant, holder, ttl_ns = lease.key[0], lease.holder, self._stage.plan.ttl_ns
            name = self._stage.new_name("mark")
            if random.random() < 0.1:
                command = Finish(tenant=tenant, request_id=name, holder=holder, lease_id=lease.lease_id)
            elif random.random() < 0.1:
                command = Sweep(family=SHEET, key=key_of(tenant, lease.lease_id), request_id=name)
            else:
                command = Mark(
                    tenant=tenant,
                    request_id=name,
                    holder=holder,
                    lease_id=lease.lease_id,
                    by=random.randint(1, 9),
                    ttl_ns=random.choice((ttl_ns // 2, 2 * ttl_ns)),
                )
            self._sent.append(command)
        actor.ask(command, lambda outcome, sent_ns: None)

    def saw(self, commit: Commit) -> str | None:
        problem = None
        for entry in commit.entries:
            problem = problem or self._take_in(entry.event)
            self._last_tick = entry.event.tick
        for key in commit.let_go.get(SHEET, ()):
            problem = problem or (f"an open sheet was let go of: {key}" if self._sheets[key].open else None)
            del self._sheets[key]
            self._note("let go of")
        standing = self._scene.truth().standing
        for sheet in self._sheets.values():
            if sheet.open and sheet.lease_id not in standing:
                problem = problem or f"the sheet of {sheet.lease_id} is open after its lease"
        return problem

    def _take_in(self, event: Event) -> str | None:
        if isinstance(event, EpochRaised) and event.tick.era != self._last_tick.era:
            for sheet in self._sheets.values():
                sheet.end_tick = event.tick.value + max(0, sheet.end_tick - self._last_tick.value)
        elif isinstance(event, SheetMarked):
            return self._take_in_mark(event)
        elif isinstance(event, SheetClosed):
            sheet = self._sheets[event.keys[0]]
            self._note("closed in time" if sheet.end_tick > event.tick.value else "closed by time")
            sheet.open = False
        return None

    def _take_in_mark(self, event: SheetMarked) -> str | None:
        sheet = self._sheets.setdefault(event.keys[0], TrueSheet(event))
        sheet.count += event.by
        self._note("marked")
        request_id = request_id_of(event)
        first = self._marks.setdefault(request_id, event.tick)
        self._marks[request_id] = event.tick
        if first is not event.tick and _is_known(first, event.tick):
            return f"{request_id} was counted twice"
        if not sheet.open or sheet.end_tick <= event.tick.value:
            return f"{event.lease_id} was marked after its sheet was closed"
        return None

    def told(self, command: Command, outcome: Outcome, moment: Moment) -> str | None:
        if isinstance(outcome, Refusal):
            self._note("refused")
        if not isinstance(command, Mark) or not isinstance(outcome, Marked):
            return None
        if command.request_id not in self._marks:
            return f"{command} was answered with {outcome}, and is not in the ledger"
        if outcome.repeated:
            self._note("repeated")
        sheet = self._sheets.get(key_of(command.tenant, command.lease_id))
        if moment.alone and sheet is not None and sheet.count != outcome.count:
            return f"{command} was told {outcome.count}, and the sheet says {sheet.count}"
        return None

    def start_over(self, history: Sequence[Commit]) -> None:
        self._sheets, self._marks, self._last_tick = {}, {}, Tick(value=0)
        for commit in history:
            self.saw(commit)
        self._note("started over")

    def causes(self, event: Event, command: Command | None) -> bool:
        if not isinstance(event, LeaseReleased):
            return False
        if isinstance(command, Finish):
            return (command.lease_id, command.holder) == (event.lease_id, event.holder)
        sheet = self._sheets.get(key_of(event.tenant, event.lease_id))
        return command is None and sheet is not None and sheet.end_tick <= event.tick.value

    def problem_at_end(self, state: State) -> str | None:
        counts = {key: sheet.count for key, sheet in state.of(SHEET).items()}
        expected = {key: sheet.count for key, sheet in self._sheets.items()}
        return None if counts == expected else f"the sheets say {counts}, and should {expected}"

    def _note(self, name: str) -> None:
        self.noted[name] = self.noted.get(name, 0) + 1


def _is_known(first: Tick, now: Tick) -> bool:
    """Whether a request must be remembered still: for an hour, and in another era for ever."""
    return first.era != now.era or now.value - first.value < REQUEST_MEMORY_NS


class SheetTroupe:
    """Tally sheets, played."""

    def __init__(self, family: Family | None = None) -> None:
        self._family = family
        self.plays: list[SheetPlay] = []

    @cached_property
    def family(self) -> Family:
        return self._family or sheet_family()

    def play(self, scene: Scene) -> Play:
        self.plays.append(SheetPlay(scene))
        return self.plays[-1]
