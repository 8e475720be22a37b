"""Workflows as they are in truth: what becomes of them, told a second time from the ledger's events alone.

Who may act for a workflow is taken from what is true about leases, and not from what the workflows' own
records say: whoever takes a step has to hold a lease on the workflow that has not run out, at that moment.
"""

from collections.abc import Callable

from leasehold.kernel.ledger.chain import Entry
from leasehold.kernel.ledger.events import EpochRaised
from leasehold.kernel.ledger.state import State
from leasehold.kernel.ledger.tick import Tick
from leasehold.workflows.law import events as told
from leasehold.workflows.law.records import WORKFLOW, EmittedAction, Mark, Subscription, Workflow
from simulator.troupe import Commit
from simulator.true_lease import request_id_of
from simulator.truth import Truth

Name = tuple[str, str]
"""Tenant and workflow."""

_WEEK_NS = 7 * 24 * 3600 * 1_000_000_000
_STATES = {True: "step_completed", False: "step_failed"}


class TrueWorkflow:
    """One workflow."""

    def __init__(self, name: Name) -> None:
        self.name = name
        self.epoch = 0
        self.state = "initialized"
        self.lease = ""
        self.token = 0
        self.ended = False
        self.offered = False
        """Whether it was handed off, and the successor has not taken it."""


class TrueWorkflows:
    """All workflows of a ledger, with their actions and subscriptions."""

    def __init__(self, truth: Callable[[], Truth], note: Callable[[str], None]) -> None:
        self._truth = truth
        self._note = note
        self.workflows: dict[Name, TrueWorkflow] = {}
        self.actions: dict[tuple[Name, str], bool | None] = {}
        self.steps: dict[str, int] = {}
        """The position of what each request has brought about."""
        self.readers: dict[Name, tuple[int, int]] = {}
        """Subscriptions: how far they have come, and the tick at which each loses its place."""
        self.marks: dict[tuple[Name, str], tuple[int, int]] = {}
        self._last_tick = Tick(value=0)

    def take_in(self, commit: Commit) -> str | None:
        """Take in what was committed together; return what is wrong with it, if anything is."""
        problem = None
        for entry in commit.entries:
            found = self._take_in(entry)  # Whatever is wrong: who starts over has to know all of it.
            problem = problem or found
            self._last_tick = entry.event.tick
        for key in commit.let_go.get(WORKFLOW, ()):
            problem = problem or self._let_go(key.split("\x01"))
        return problem or self._problem_of_leases()

    def _problem_of_leases(self) -> str | None:
        standing = self._truth().standing
        for one in self.workflows.values():
            if one.lease and one.lease not in standing:
                return f"{one.name} is led under {one.lease}, which has ended"
        return None

    def _take_in(self, entry: Entry) -> str | None:
        event = entry.event
        match event:
            case EpochRaised():
                self._carry_over(event)
            case told.SubscriptionOpened() | told.SubscriptionMoved():
                return self._read(event)
            case told.SubscriptionClosed():
                return self._stop_reading(event)
            case told.GuardMarked():
                return self._mark(event)
            case told.WorkflowEvent():
                return self._happen(event, entry.position)
            case _:
                pass
        return None

    def _carry_over(self, event: EpochRaised) -> None:
        if event.tick.era == self._last_tick.era:
            return
        for name, (position, due) in self.readers.items():
            left = max(0, due - self._last_tick.value)
            self.readers[name] = (position, event.tick.value + left)

    def _read(self, event: told.SubscriptionOpened | told.SubscriptionMoved) -> str | None:
        name = (event.tenant, event.name)
        before = self.readers.get(name)
        if isinstance(event, told.SubscriptionOpened) == (before is not None):
            return f"{event} of a subscription that {'stands' if before else 'does not stand'}"
        if before is not None and event.position < before[0]:
            return f"{event} goes back from {before[0]}"
        self._note("read")
        self.readers[name] = (event.position, event.tick.value + _WEEK_NS)
        return None

    def _stop_reading(self, event: told.SubscriptionClosed) -> str | None:
        _, due = self.readers.pop((event.tenant, event.name), (0, None))
        self._note("lost its place" if event.lost else "stopped reading")
        if due is None or (event.lost and event.tick.value < due):
            return f"{event} before its time"
        return None

    def _mark(self, event: told.GuardMarked) -> str | None:
        key = ((event.tenant, event.workflow_id), event.name)
        if (event.token, event.epoch) < self.marks.get(key, (0, 0)):
            return f"{event} goes back from {self.marks[key]}"
        self.marks[key] = (event.token, event.epoch)
        self._note("marked")
        return None

    def _happen(self, event: told.WorkflowEvent, position: int) -> str | None:
        name, kind = (event.tenant, event.workflow_id), type(event).__name__
        self._note(kind)
        if isinstance(event, told.WorkflowClaimed):
            if name in self.workflows:
                return f"{name} was begun twice"
            self.workflows[name] = TrueWorkflow(name)
        one = self.workflows.get(name)
        if one is None or one.ended:
            return f"{kind} in {name}, which is not under way"
        if event.epoch != one.epoch:
            return f"{kind} in {name} at epoch {event.epoch}, and it is {one.epoch}"
        if isinstance(event, told.WorkflowVacated):
            return self._vacate(one, event)
        request_id = request_id_of(event)
        first, self.steps[request_id] = self.steps.get(request_id), position
        problem = self._step(one, event)
        if first is not None and self._truth().is_known(first, event.tick):
            return f"request {request_id} was carried out twice"
        return problem

    def _vacate(self, one: TrueWorkflow, event: told.WorkflowVacated) -> str | None:
        wrong = event.lease_id != one.lease or event.lease_id in self._truth().standing
        one.lease, one.offered = "", False
        return (
            f"{one.name} was taken from {event.lease_id}, which is not its lease, or stands"
            if wrong
            else None
        )

    def _step(self, one: TrueWorkflow, event: told.WorkflowEvent) -> str | None:
        problem = self._problem_with_actor(one, event)
        match event:
            case told.WorkflowClaimed() | told.WorkflowTakenOver():
                one.lease, one.token = event.lease_id, event.token
            case told.WorkflowEmitted():
                if (one.name, event.action_id) in self.actions:
                    problem = problem or f"{event.action_id} was emitted twice"
                self.actions[(one.name, event.action_id)] = None
            case told.WorkflowAnswered():
                if self.actions.get((one.name, event.action_id), False) is not None:
                    problem = problem or f"{event.action_id} was answered, and was not waited for"
                self.actions[(one.name, event.action_id)] = event.success
                one.state = _STATES[event.success]
            case told.WorkflowTransitioned():
                one.state = event.state
            case told.WorkflowHandedOff():
                one.lease, one.token, one.offered = event.new_lease_id, event.new_token, True
            case told.WorkflowAccepted():
                if not one.offered:
                    problem = problem or f"{one.name} was taken twice, or was not handed off"
                one.offered = False
            case told.WorkflowFinished():
                one.lease, one.state, one.ended, one.offered = "", event.outcome, True, False
            case _:
                problem = f"{event} is nothing that happens to workflows"
        if not isinstance(event, told.WorkflowClaimed | told.WorkflowAccepted):
            one.epoch += 1
        return problem

    def _problem_with_actor(self, one: TrueWorkflow, event: told.WorkflowEvent) -> str | None:
        """Say what is wrong if whoever takes a step does not hold the workflow at this moment."""
        leases, resource = self._truth().leases, f"workflow:{event.workflow_id}"
        begins = isinstance(event, told.WorkflowClaimed | told.WorkflowTakenOver)
        if begins == bool(one.lease) or (not begins and event.lease_id != one.lease):
            return f"{event} under {event.lease_id}, and {one.name} has {one.lease!r}"
        if begins and event.token <= one.token:
            return f"{one.name} was taken over under token {event.token}, after {one.token}"
        lease = leases.get(event.lease_id)
        mine = lease is not None and (lease.key, lease.holder) == ((event.tenant, resource), event.actor)
        if lease is None or not mine or lease.token != event.token:
            return f"{event} by {event.actor}, who has no such lease on {resource}"
        if event.tick.value >= lease.end_tick:
            return f"{event} after its lease had run out"
        if isinstance(event, told.WorkflowHandedOff):
            heir = leases.get(event.new_lease_id)
            if heir is None or heir.holder != event.to or heir.token <= event.token:
                return f"{event} without a lease for {event.to}"
        return None

    def _let_go(self, key: list[str]) -> str | None:
        tenant, kind, first, *rest = key
        self._note("let go of")
        name = (tenant, first)
        if kind == "own":
            one = self.workflows.pop(name, None)
            return None if one is not None and one.ended else f"{name} was let go of, and is under way"
        if kind == "action":
            self.actions.pop((name, rest[0]), None)
        elif kind == "mark":
            self.marks.pop((name, rest[0]), None)
        else:
            return f"subscription {name} was let go of"
        return None

    def problem_of(self, state: State) -> str | None:
        """Return what is wrong with the records that a ledger has come to."""
        said: dict[object, object] = {}
        for key, record in state.of(WORKFLOW).items():
            tenant = key.split("\x01")[0]
            match record:
                case Workflow():
                    name = (tenant, record.workflow_id)
                    said[name] = (record.epoch, record.state, record.lease_id, record.token, record.is_ended)
                case EmittedAction():
                    said[((tenant, record.workflow_id), record.action_id)] = record.succeeded
                case Subscription():
                    said[("reader", tenant, record.name)] = record.position
                case Mark():
                    said[("mark", (tenant, record.workflow_id), record.name)] = (record.token, record.epoch)
                case _:
                    return f"{record} is nothing that is kept of workflows"
        expected: dict[object, object] = {
            name: (one.epoch, one.state, one.lease, one.token, one.ended)
            for name, one in self.workflows.items()
        }
        expected |= self.actions
        expected |= {("reader", *name): position for name, (position, _) in self.readers.items()}
        expected |= {("mark", *key): mark for key, mark in self.marks.items()}
        return None if said == expected else f"workflows are {said}, and should be {expected}"
