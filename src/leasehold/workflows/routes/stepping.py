"""What an orchestrator does, over plain REST: each step is one commit, decided on the lease and the epoch."""

from typing import Annotated, Any, TypeVar
from uuid import uuid4

from litestar import post
from litestar.params import Body

from leasehold.client.aio.session import AsyncSession
from leasehold.client.inputs import duration_ns
from leasehold.engine.desk import answer_of
from leasehold.errors import LeaseholdError
from leasehold.server import terms
from leasehold.server.routing import Asking, JsonRequest, answers, ask_for
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


def _step(session: AsyncSession, data: StepBody) -> dict[str, Any]:
    """Return what every step says."""
    return {
        "tenant": session.tenant,
        "request_id": session.ids.name() if data.request_id is None else data.request_id,
        "workflow_id": data.workflow_id,
        "lease_id": data.lease_id,
        "holder": data.holder,
        "epoch": data.epoch,
    }


async def _send(
    request: JsonRequest, session: AsyncSession, command: Step, kind: type[_AnswerType]
) -> _AnswerType:
    terms.about(request, command.lease_id)
    try:
        return answer_of(await session.send(command), kind)
    except LeaseholdError as error:
        raise as_workflow_error(error, command.request_id) from None


async def _take(
    request: JsonRequest, session: AsyncSession, command: Transition | AnswerAction | Finish
) -> SteppedBody:
    stepped = await _send(request, session, command, Stepped)
    return SteppedBody(
        workflow_id=command.workflow_id,
        state=stepped.state,
        epoch=stepped.current_epoch,
        repeated=stepped.repeated,
    )


@post(
    "/emit",
    summary="Emit an action",
    status_code=200,
    responses=answers(200, EmittedBody, STEPPED_EXAMPLE | {"action": ACTION_EXAMPLE}, 404, 409, 410),
)
async def emit(
    request: JsonRequest,
    session: Asking,
    data: Annotated[
        EmitBody, Body(examples=ask_for(**_STEP, action_type="charge_card", payload={"amount": 12}))
    ],
) -> EmittedBody:
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
    command = Emit(**_step(session, data), action_id=action_id, action=facts)
    emitted = await _send(request, session, command, Emitted)
    return EmittedBody(
        workflow_id=data.workflow_id,
        state=emitted.state,
        epoch=emitted.current_epoch,
        repeated=emitted.repeated,
        action=action_body(action_of(emitted)),
    )


@post(
    "/transition",
    summary="Set the state of a workflow",
    status_code=200,
    responses=answers(200, SteppedBody, STEPPED_EXAMPLE, 404, 409, 410),
)
async def transition(
    request: JsonRequest,
    session: Asking,
    data: Annotated[TransitionBody, Body(examples=ask_for(**_STEP, state="charging"))],
) -> SteppedBody:
    """Set another state; the epoch rises by one."""
    return await _take(request, session, Transition(**_step(session, data), state=data.state))


@post(
    "/result",
    summary="Take in the result of an action",
    status_code=200,
    responses=answers(200, SteppedBody, STEPPED_EXAMPLE | {"state": "step_completed"}, 404, 409, 410),
)
async def result(
    request: JsonRequest,
    session: Asking,
    data: Annotated[
        ResultBody, Body(examples=ask_for(**_STEP, action_id=ACTION_EXAMPLE["action_id"], success=True))
    ],
) -> SteppedBody:
    """Take in a result: the state is `step_completed` or `step_failed` then.

    404 ACTION_NOT_FOUND: the workflow has emitted no such action. 409 ACTION_ANSWERED: another came first.
    """
    command = AnswerAction(
        **_step(session, data),
        action_id=data.action_id,
        success=data.success,
        payload=data.payload,
        error=data.error,
    )
    return await _take(request, session, command)


@post(
    "/handoff",
    summary="Hand a workflow off",
    status_code=200,
    responses=answers(
        200,
        HandedOffBody,
        {
            "workflow_id": "order-7",
            "lease_id": "01999b2b00007b0e8f3a6c1d2e4f5a6b",
            "holder": "orchestrator-2",
            "token": 229613453148170,
            "epoch": 3,
            "repeated": False,
        },
        404,
        409,
        410,
    ),
)
async def handoff(
    request: JsonRequest,
    session: Asking,
    data: Annotated[HandoffBody, Body(examples=ask_for(**_STEP, to="orchestrator-2"))],
) -> HandedOffBody:
    """Give a workflow to another orchestrator in one commit; from then on the old one is refused."""
    command = HandOff(
        **_step(session, data),
        action_id=str(uuid4()),
        to=data.to,
        new_lease_id=session.ids.new(),
        ttl_ns=None if data.ttl is None else duration_ns("ttl", data.ttl),
    )
    handed_off = await _send(request, session, command, HandedOff)
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
    "/complete",
    summary="Complete a workflow",
    status_code=200,
    responses=answers(200, SteppedBody, STEPPED_EXAMPLE | {"state": COMPLETED}, 404, 409, 410),
)
async def complete(
    request: JsonRequest,
    session: Asking,
    data: Annotated[StepBody, Body(examples=ask_for(**_STEP))],
) -> SteppedBody:
    """Complete a workflow, for good, and give the lease back, in one commit."""
    return await _take(request, session, Finish(**_step(session, data), outcome=COMPLETED))


@post(
    "/cancel",
    summary="Cancel a workflow",
    status_code=200,
    responses=answers(200, SteppedBody, STEPPED_EXAMPLE | {"state": CANCELLED}, 404, 409, 410),
)
async def cancel(
    request: JsonRequest,
    session: Asking,
    data: Annotated[CancelBody, Body(examples=ask_for(**_STEP, reason="the order was withdrawn"))],
) -> SteppedBody:
    """Cancel a workflow, for good, and give the lease back, in one commit."""
    command = Finish(**_step(session, data), outcome=CANCELLED, reason=data.reason)
    return await _take(request, session, command)


HANDLERS = (emit, transition, result, handoff, complete, cancel)
