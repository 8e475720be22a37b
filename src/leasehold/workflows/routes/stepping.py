"""What an orchestrator does, over plain REST: each step is one commit, decided on the lease and the epoch."""

from typing import Any, TypeVar
from uuid import uuid4

from leasehold.client.inputs import duration_ns
from leasehold.engine.desk import answer_of
from leasehold.errors import LeaseholdError
from leasehold.server.routing import GONE, post
from leasehold.server.terms import Holding, Terms
from leasehold.workflows.errors import as_workflow_error
from leasehold.workflows.law.commands import (
    AnswerAction,
    Emit,
    Emitted,
    Finish,
    HandedOff,
    HandOff,
    Step,
    Stepped,
    Transition,
)
from leasehold.workflows.law.events import ActionFacts
from leasehold.workflows.law.records import CANCELLED, COMPLETED
from leasehold.workflows.messages import action_of
from leasehold.workflows.routes.bodies import (
    ACTION_EXAMPLE,
    HELD_EXAMPLE,
    STEPPED_EXAMPLE,
    CancelBody,
    EmitBody,
    EmittedBody,
    HandedOffBody,
    HandoffBody,
    ResultBody,
    StepBody,
    SteppedBody,
    TransitionBody,
    action_body,
)

_AnswerType = TypeVar("_AnswerType")
_STEP = {
    "workflow_id": "order-7",
    "lease_id": HELD_EXAMPLE["lease_id"],
    "holder": HELD_EXAMPLE["holder"],
    "epoch": 1,
}


def _step(terms: Terms, data: StepBody) -> dict[str, Any]:
    """Return what every step says."""
    return {
        "tenant": terms.session.tenant,
        "request_id": terms.session.ids.name() if data.request_id is None else data.request_id,
        "workflow_id": data.workflow_id,
        "lease_id": data.lease_id,
        "holder": data.holder,
        "epoch": data.epoch,
    }


async def _send(terms: Terms, command: Step, kind: type[_AnswerType]) -> _AnswerType:
    terms.about(command.lease_id)
    try:
        return answer_of(await terms.session.send(command), kind)
    except LeaseholdError as error:
        raise as_workflow_error(error, command.request_id) from None


async def _take(terms: Terms, command: Transition | AnswerAction | Finish) -> SteppedBody:
    stepped = await _send(terms, command, Stepped)
    return SteppedBody(
        workflow_id=command.workflow_id,
        state=stepped.state,
        epoch=stepped.current_epoch,
        repeated=stepped.repeated,
    )


@post(
    "/emit",
    "Emit an action",
    *GONE,
    body={**_STEP, "action_type": "charge_card", "payload": {"amount": 12}},
    answer=STEPPED_EXAMPLE | {"action": ACTION_EXAMPLE},
)
async def emit(terms: Holding, data: EmitBody) -> EmittedBody:
    """Emit an action under the lease and at the epoch that are shown; the epoch rises by one.

    409 STALE_EPOCH or FUTURE_EPOCH: look at the workflow. LEASE_VIOLATION: it is somebody else's.
    """
    facts = ActionFacts(
        action_type=data.action_type,
        payload=data.payload,
        target_node_type=data.target_node_type,
        dependencies=tuple(data.dependencies),
        priority=data.priority,
        timeout_ms=data.timeout_ms,
        retry_count=data.retry_count,
    )
    action_id = str(uuid4()) if data.action_id is None else data.action_id
    command = Emit(**_step(terms, data), action_id=action_id, action=facts)
    emitted = await _send(terms, command, Emitted)
    return EmittedBody(
        workflow_id=data.workflow_id,
        state=emitted.state,
        epoch=emitted.current_epoch,
        repeated=emitted.repeated,
        action=action_body(action_of(emitted)),
    )


@post(
    "/transition",
    "Set the state of a workflow",
    *GONE,
    body={**_STEP, "state": "charging"},
    answer=STEPPED_EXAMPLE,
)
async def transition(terms: Holding, data: TransitionBody) -> SteppedBody:
    """Set another state; the epoch rises by one."""
    return await _take(terms, Transition(**_step(terms, data), state=data.state))


@post(
    "/result",
    "Take in the result of an action",
    *GONE,
    body={**_STEP, "action_id": ACTION_EXAMPLE["action_id"], "success": True},
    answer=STEPPED_EXAMPLE | {"state": "step_completed"},
)
async def result(terms: Holding, data: ResultBody) -> SteppedBody:
    """Take in a result: the state is `step_completed` or `step_failed` then.

    404 ACTION_NOT_FOUND: the workflow has emitted no such action. 409 ACTION_ANSWERED: another came first.
    """
    command = AnswerAction(
        **_step(terms, data),
        action_id=data.action_id,
        success=data.success,
        payload=data.payload,
        error=data.error,
    )
    return await _take(terms, command)


@post(
    "/handoff",
    "Hand a workflow off",
    *GONE,
    body={**_STEP, "to": "orchestrator-2"},
    answer={
        "workflow_id": "order-7",
        "lease_id": "01999b2b-0000-7b0e-8f3a-6c1d2e4f5a6b",
        "holder": "orchestrator-2",
        "token": 229613453148170,
        "epoch": 3,
        "repeated": False,
    },
)
async def handoff(terms: Holding, data: HandoffBody) -> HandedOffBody:
    """Give a workflow to another orchestrator in one commit; from then on the old one is refused."""
    command = HandOff(
        **_step(terms, data),
        action_id=str(uuid4()),
        to=data.to,
        new_lease_id=terms.session.ids.new(),
        ttl_ns=None if data.ttl is None else duration_ns("ttl", data.ttl),
    )
    handed_off = await _send(terms, command, HandedOff)
    lease = handed_off.lease
    return HandedOffBody(
        workflow_id=data.workflow_id,
        lease_id=lease.lease_id,
        holder=lease.holder,
        token=lease.token,
        epoch=handed_off.epoch + 1,
        repeated=handed_off.repeated,
    )


@post(
    "/complete", "Complete a workflow", *GONE, body={**_STEP}, answer=STEPPED_EXAMPLE | {"state": COMPLETED}
)
async def complete(terms: Holding, data: StepBody) -> SteppedBody:
    """Complete a workflow, for good, and give the lease back, in one commit."""
    return await _take(terms, Finish(**_step(terms, data), outcome=COMPLETED))


@post(
    "/cancel",
    "Cancel a workflow",
    *GONE,
    body={**_STEP, "reason": "the order was withdrawn"},
    answer=STEPPED_EXAMPLE | {"state": CANCELLED},
)
async def cancel(terms: Holding, data: CancelBody) -> SteppedBody:
    """Cancel a workflow, for good, and give the lease back, in one commit."""
    command = Finish(**_step(terms, data), outcome=CANCELLED, reason=data.reason)
    return await _take(terms, command)


HANDLERS = (emit, transition, result, handoff, complete, cancel)
