"""Those who play workflows in a simulated world, and who judge what comes of it.

Orchestrators claim, emit, hand off and finish, go by what they were last told, and are paused and killed at
any moment; so many of them come back with a lease that is another's by then. None of what they do may count.
"""

from collections.abc import Sequence
from typing import Any

import msgspec

from leasehold.engine.batch import Outcome
from leasehold.kernel.lease.answers import Granted
from leasehold.kernel.lease.commands import Renew, Revoke
from leasehold.kernel.lease.events import LeaseIssued, LeaseReleased
from leasehold.kernel.ledger.commands import Command
from leasehold.kernel.ledger.events import Event
from leasehold.kernel.ledger.family import Family
from leasehold.kernel.ledger.refusals import Refusal, RefusalCode
from leasehold.kernel.ledger.state import State
from leasehold.kernel.ledger.tick import Tick
from leasehold.workflows.law.commands import (
    Accept,
    Acknowledge,
    AnswerAction,
    Claim,
    Emit,
    Emitted,
    Finish,
    HandedOff,
    HandOff,
    MarkGuard,
    Step,
    Stepped,
    Subscribe,
    Transition,
    Unsubscribe,
)
from leasehold.workflows.law.events import ActionFacts
from leasehold.workflows.law.family import workflow_family
from simulator.asking import Asker
from simulator.cast import Cast
from simulator.troupe import Commit, Moment, Scene, Troupe
from simulator.true_workflows import TrueWorkflow, TrueWorkflows

IDS = ("order", "refund", "shipment")
"""Few, so that orchestrators meet at them."""
_ACTORS = 4
_STEPS = Emit | Transition | AnswerAction | HandOff | Finish


class Belief(msgspec.Struct):
    """What an orchestrator believes of a workflow, right or not."""

    tenant: str
    workflow_id: str
    lease_id: str
    epoch: int = 0
    actions: list[str] = msgspec.field(default_factory=list)


class WorkflowPlay:
    """Leads workflows, and judges what everybody is told of them."""

    def __init__(self, scene: Scene) -> None:
        self._scene = scene
        self._stage = scene.stage
        self._random = scene.random
        self._cast = Cast(scene, self._act, pace=(0.02, 0.3), mortals="actor", forget=self._forget)
        self.noted = self._cast.noted
        self._sent: list[Command] = []
        self._beliefs: dict[Asker, list[Belief]] = {}
        self._names: dict[Asker, str] = {}
        self._offers: list[tuple[str, str, str]] = []
        """Handed-off leases: tenant, lease, and who is to take it."""
        self._true = self._new_truth()

    def _new_truth(self) -> TrueWorkflows:
        return TrueWorkflows(self._scene.truth, self._cast.note)

    # What actors do.

    def start(self) -> None:
        for number, actor in enumerate(self._cast.start(_ACTORS, most=0.4)):
            self._names[actor], self._beliefs[actor] = f"orchestrator-{number}", []

    def _forget(self, actor: Asker) -> None:
        self._beliefs[actor] = []  # Whoever comes back knows nothing of what it has led.

    def _act(self, actor: Asker) -> None:
        command, belief = self._command(actor)
        if command is not None:
            self._sent.append(command)
            actor.ask(command, lambda outcome, sent_ns: self._hear(actor, command, belief, outcome))

    def _command(self, actor: Asker) -> tuple[Command | None, Belief | None]:
        random, beliefs = self._random, self._beliefs[actor]
        if self._sent and random.random() < 0.08:
            return random.choice(self._sent[-6:]), None
        if not beliefs or random.random() < 0.15:
            return self._claim(actor), None
        belief = random.choice(beliefs[-3:])
        kind = random.choices(
            (
                "emit",
                "transition",
                "answer",
                "hand off",
                "finish",
                "renew",
                "revoke",
                "accept",
                "read",
                "mark",
            ),
            (34, 12, 10, 8, 2, 14, 2, 8, 6, 4),
        )[0]
        step: dict[str, Any] = {
            "tenant": belief.tenant,
            "request_id": self._stage.new_name("step"),
            "workflow_id": belief.workflow_id,
            "lease_id": belief.lease_id,
            "holder": self._names[actor],
            "epoch": max(0, belief.epoch + random.choice((0,) * 18 + (-1, 1))),
        }
        match kind:
            case "emit":
                facts = ActionFacts(action_type=random.choice(("compute", "effect")))
                return Emit(**step, action_id=self._stage.new_name("action"), action=facts), belief
            case "transition":
                return Transition(**step, state=random.choice(("packing", "paying"))), belief
            case "answer":
                action_id = random.choice(belief.actions or ["never-emitted"])
                return AnswerAction(**step, action_id=action_id, success=random.random() < 0.7), belief
            case "hand off":
                heir = random.choice([*self._names.values()])
                ids: dict[str, Any] = {
                    "action_id": self._stage.new_name("action"),
                    "new_lease_id": self._stage.new_name("lease"),
                }
                return HandOff(**step, **ids, to=heir), belief
            case "finish":
                return Finish(**step, outcome=random.choice(("completed", "cancelled"))), belief
            case _:
                return self._other(actor, kind, belief), None

    def _other(self, actor: Asker, kind: str, belief: Belief) -> Command | None:
        random, holder, request_id = self._random, self._names[actor], self._stage.new_name("ask")
        match kind:
            case "renew":
                return Renew(
                    tenant=belief.tenant, request_id=request_id, lease_ids=(belief.lease_id,), holder=holder
                )
            case "revoke":
                return Revoke(
                    tenant=belief.tenant,
                    request_id=request_id,
                    lease_id=belief.lease_id,
                    operator="op",
                    reason="hangs",
                )
            case "accept":
                return self._accept(holder, request_id)
            case "read":
                return self._read(belief.tenant, holder, request_id)
            case _:
                return MarkGuard(
                    tenant=belief.tenant,
                    request_id=request_id,
                    name="node",
                    workflow_id=belief.workflow_id,
                    lease_id=belief.lease_id,
                    token=random.randint(1, 3),
                    epoch=belief.epoch,
                    action_id=self._stage.new_name("action"),
                    holder=holder,
                )

    def _claim(self, actor: Asker) -> Claim:
        lease_id = self._stage.new_name("lease")
        return Claim(
            tenant=self._random.choice(self._stage.plan.tenants),
            request_id=lease_id,
            workflow_id=self._random.choice(IDS),
            lease_id=lease_id,
            holder=self._names[actor],
            ttl_ns=self._stage.plan.ttl_ns,
            bound_to_boot=self._random.random() < 0.5,
        )

    def _accept(self, holder: str, request_id: str) -> Accept | None:
        if not self._offers:
            return None
        tenant, lease_id, to = self._random.choice(self._offers[-3:])
        name = holder if self._random.random() < 0.2 else to
        return Accept(tenant=tenant, request_id=request_id, lease_id=lease_id, holder=name)

    def _read(self, tenant: str, holder: str, request_id: str) -> Command:
        fields: dict[str, Any] = {
            "tenant": tenant,
            "request_id": request_id,
            "name": "reader",
            "holder": holder,
        }
        position, dice = self._scene.truth().pruned + self._random.randint(0, 50), self._random.random()
        if dice < 0.4:
            return Subscribe(**fields, position=position)
        return Acknowledge(**fields, position=position) if dice < 0.9 else Unsubscribe(**fields)

    def _hear(self, actor: Asker, command: Command, belief: Belief | None, outcome: Outcome) -> None:
        beliefs = self._beliefs[actor]
        match command, outcome:
            case Claim(), Granted() if not outcome.ended and command.holder == self._names[actor]:
                true = self._true.workflows.get((command.tenant, command.workflow_id))
                epoch = 0 if true is None else true.epoch
                beliefs.append(Belief(command.tenant, command.workflow_id, command.lease_id, epoch))
            case Accept(), Granted() if command.holder == self._names[actor]:
                workflow_id = outcome.lease.resource.removeprefix("workflow:")
                true = self._true.workflows.get((command.tenant, workflow_id))
                epoch = 0 if true is None else true.epoch
                beliefs.append(Belief(command.tenant, workflow_id, command.lease_id, epoch))
            case HandOff(), HandedOff():
                self._offers.append((command.tenant, outcome.lease.lease_id, outcome.lease.holder))
            case _, Emitted() | Stepped() if belief is not None:
                belief.epoch = outcome.current_epoch
                if isinstance(outcome, Emitted):
                    belief.actions.append(outcome.action_id)
            case _, Refusal() if belief is not None and "current_epoch" in outcome.facts:
                belief.epoch = outcome.facts["current_epoch"]

    # What the judge says.

    def saw(self, commit: Commit) -> str | None:
        return self._true.take_in(commit)

    def start_over(self, history: Sequence[Commit]) -> None:
        self._true = self._new_truth()
        for commit in history:
            self._true.take_in(commit)
        self._cast.note("started over")

    def causes(self, event: Event, command: Command | None) -> bool:
        match command, event:
            case Claim(), LeaseIssued():
                asked = (command.tenant, command.lease_id, f"workflow:{command.workflow_id}", command.holder)
                return asked == (event.tenant, event.lease_id, event.resource, event.holder)
            case HandOff(), LeaseIssued():
                return (event.lease_id, event.holder) == (command.new_lease_id, command.to)
            case HandOff() | Finish(), LeaseReleased():
                return (event.tenant, event.lease_id, event.holder) == (
                    command.tenant,
                    command.lease_id,
                    command.holder,
                )
            case _:
                return False

    def told(self, command: Command, outcome: Outcome, moment: Moment) -> str | None:
        if isinstance(outcome, Refusal):
            self._cast.note(f"refused {outcome.rule or outcome.code}")
            if isinstance(command, _STEPS) and self._was_carried_out(command, moment):
                return f"{command} was carried out before, and refused: {outcome}"
            wrong = moment.alone and not self._is_justified(command, outcome, moment)
            return f"{command} was refused without reason: {outcome}" if wrong else None
        if isinstance(outcome, Emitted | Stepped | HandedOff):
            position = self._true.steps.get(command.request_id)
            if position is None:
                return f"{command} was answered with {outcome}, and is not in the ledger"
            if outcome.repeated:
                self._cast.note("repeated")
            elif position <= moment.position:
                return f"{command} was answered as if for the first time"
            elif isinstance(command, _STEPS) and command.epoch != outcome.epoch:
                return f"{command} was carried out at another epoch: {outcome}"
        if isinstance(outcome, Granted) and not outcome.ended:
            lease = self._scene.truth().leases.get(outcome.lease.lease_id)
            if lease is None or outcome.expires_in_ns > lease.end_tick - moment.first_tick:
                return f"{command} was promised {outcome}"
        return None

    def _was_carried_out(self, command: Command, moment: Moment) -> bool:
        """Say whether the registrar must still know that it has done what a command asks for."""
        position, truth = self._true.steps.get(command.request_id), self._scene.truth()
        if position is None or position > moment.position:
            return False
        return truth.is_known(position, Tick(value=moment.last_tick, era=truth.ticks[-1].era))

    def _is_justified(self, command: Command, refusal: Refusal, moment: Moment) -> bool:
        """A refusal has changed nothing, so its reason is still there, unless time has removed it since."""
        if isinstance(command, Subscribe | Acknowledge | Unsubscribe):
            stands = (command.tenant, command.name) in self._true.readers
            return refusal.rule == "SUBSCRIPTION_NOT_FOUND" and not stands
        if isinstance(command, MarkGuard):
            one = self._true.workflows.get((command.tenant, command.workflow_id))
            return refusal.rule == ("WORKFLOW_NOT_FOUND" if one is None else "STALE_EPOCH")
        if isinstance(command, _STEPS):
            one = self._true.workflows.get((command.tenant, command.workflow_id))
            return self._is_step_refused(command, refusal, one, moment)
        assert isinstance(command, Claim | Accept)
        return self._is_claim_refused(command, refusal, moment)

    def _is_step_refused(
        self, command: Step, refusal: Refusal, one: TrueWorkflow | None, moment: Moment
    ) -> bool:
        truth, rule = self._scene.truth(), refusal.rule
        lease = truth.leases.get(command.lease_id)
        ran_out = lease is not None and (lease.rebooted or lease.end_tick <= moment.last_tick)
        over = lease is not None and (ran_out or lease.ended_position is not None)
        if one is None or one.ended:
            return rule == ("WORKFLOW_NOT_FOUND" if one is None else "WORKFLOW_ENDED")
        match rule:
            case "LEASE_NOT_FOUND":
                return lease is None or command.lease_id in truth.let_go or lease.key[0] != command.tenant
            case "LEASE_EXPIRED":
                return over and one.lease in ("", command.lease_id)
            case "LEASE_VIOLATION":
                return (
                    over or one.lease != command.lease_id or lease is None or lease.holder != command.holder
                )
            case "STALE_EPOCH":
                return command.epoch < one.epoch
            case "FUTURE_EPOCH":
                return command.epoch > one.epoch
            case "ACTION_EXISTS":
                return isinstance(command, Emit) and (one.name, command.action_id) in self._true.actions
            case "ACTION_NOT_FOUND" | "ACTION_ANSWERED":
                assert isinstance(command, AnswerAction)
                answered = self._true.actions.get((one.name, command.action_id), False)
                return answered is not None
            case _:
                # By the law of leases: whoever is to get the workflow has too many, or one of that name.
                return isinstance(command, HandOff) and refusal.code in _BY_LEASES

    def _is_claim_refused(self, command: Claim | Accept, refusal: Refusal, moment: Moment) -> bool:
        truth = self._scene.truth()
        if isinstance(command, Accept):
            lease = truth.leases.get(command.lease_id)
            if refusal.rule == "LEASE_NOT_FOUND":
                return lease is None or command.lease_id in truth.let_go
            return refusal.rule in ("LEASE_VIOLATION", "LEASE_EXPIRED")
        one = self._true.workflows.get((command.tenant, command.workflow_id))
        if refusal.rule == "WORKFLOW_ENDED":
            return one is not None and one.ended
        if refusal.code in (RefusalCode.HELD, RefusalCode.ALREADY_HELD):
            key = (command.tenant, f"workflow:{command.workflow_id}")
            return any(other.key == key for other in truth.standing.values())
        return refusal.code in _BY_LEASES

    def problem_at_end(self, state: State) -> str | None:
        return self._true.problem_of(state)


_BY_LEASES = (
    RefusalCode.LIMIT_EXCEEDED,
    RefusalCode.LEASE_EXISTS,
    RefusalCode.LEASE_PENDING,
    RefusalCode.ALREADY_HELD,
)


class WorkflowTroupe(Troupe[WorkflowPlay]):
    """Workflows, played."""

    def __init__(self, family: Family | None = None) -> None:
        super().__init__(family or workflow_family(), WorkflowPlay)
