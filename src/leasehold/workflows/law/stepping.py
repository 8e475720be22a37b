"""Everything that an orchestrator does with its workflow, and that raises the epoch by one.

Each is a compare-and-set on the lease and the epoch: who has another lease, or believes in another epoch, is
refused, and nothing is written.
"""

from collections.abc import Callable
from typing import TypeVar

from leasehold.kernel.lease.commands import Release
from leasehold.kernel.lease.model import ReleaseReason
from leasehold.kernel.ledger.draft import Draft
from leasehold.kernel.ledger.events import Event
from leasehold.kernel.ledger.refusals import Refusal
from leasehold.workflows.law.commands import (
    AnswerAction,
    Emit,
    Emitted,
    Finish,
    Step,
    Stepped,
    Transition,
)
from leasehold.workflows.law.events import (
    WorkflowAnswered,
    WorkflowEmitted,
    WorkflowFinished,
    WorkflowTransitioned,
)
from leasehold.workflows.law.ownership import (
    ACTION_ANSWERED,
    ACTION_EXISTS,
    ACTION_NOT_FOUND,
    owned,
    refuse,
    step,
    workflow,
)
from leasehold.workflows.law.records import (
    COMPLETED,
    STEP_COMPLETED,
    STEP_FAILED,
    WORKFLOW,
    EmittedAction,
    Workflow,
    action_key,
)

_AnswerType = TypeVar("_AnswerType")


def emit(command: Emit, draft: Draft) -> Refusal | Callable[[], Emitted]:
    """Put an action into the ledger, which is the outbox."""
    record = _begin(command, draft, WorkflowEmitted, _emitted)
    if not isinstance(record, Workflow):
        return record
    if draft.get(WORKFLOW, action_key(command.tenant, command.workflow_id, command.action_id)) is not None:
        return refuse(
            ACTION_EXISTS,
            f"action {command.action_id} was emitted before; give each action an id of its own",
            action_id=command.action_id,
        )
    event = WorkflowEmitted(
        **step(command, record, draft.now), action_id=command.action_id, action=command.action
    )
    draft.append(event)
    return _emitted(event, draft)


def _emitted(event: WorkflowEmitted, draft: Draft, *, repeated: bool = False) -> Callable[[], Emitted]:
    def answer() -> Emitted:
        epoch, state = _stands(event, draft)
        return Emitted(
            action_id=event.action_id,
            action=event.action,
            lease_id=event.lease_id,
            epoch=event.epoch,
            current_epoch=epoch,
            state=state,
            at_ns=event.at_ns,
            repeated=repeated,
        )

    return answer


def transition(command: Transition, draft: Draft) -> Refusal | Callable[[], Stepped]:
    """Set another state."""
    record = _begin(command, draft, WorkflowTransitioned, _stepped)
    if not isinstance(record, Workflow):
        return record
    event = WorkflowTransitioned(**step(command, record, draft.now), state=command.state)
    draft.append(event)
    return _stepped(event, draft)


def answer_action(command: AnswerAction, draft: Draft) -> Refusal | Callable[[], Stepped]:
    """Take in the result of an action of this workflow, once."""
    record = _begin(command, draft, WorkflowAnswered, _stepped)
    if not isinstance(record, Workflow):
        return record
    key = action_key(command.tenant, command.workflow_id, command.action_id)
    action: EmittedAction | None = draft.get(WORKFLOW, key)
    if action is None:
        return refuse(
            ACTION_NOT_FOUND,
            f"workflow {command.workflow_id} has emitted no action {command.action_id}",
            action_id=command.action_id,
        )
    if action.succeeded is not None:
        how = STEP_COMPLETED if action.succeeded else STEP_FAILED
        return refuse(
            ACTION_ANSWERED,
            f"action {command.action_id} was answered before: {how}",
            action_id=command.action_id,
        )
    event = WorkflowAnswered(
        **step(command, record, draft.now),
        action_id=command.action_id,
        success=command.success,
        payload=command.payload,
        error=command.error,
    )
    draft.append(event)
    return _stepped(event, draft)


def finish(command: Finish, draft: Draft) -> Refusal | Callable[[], Stepped]:
    """Complete or cancel a workflow, and give its lease back in the same commit."""
    record = _begin(command, draft, WorkflowFinished, _stepped)
    if not isinstance(record, Workflow):
        return record
    event = WorkflowFinished(
        **step(command, record, draft.now), outcome=command.outcome, reason=command.reason
    )
    draft.append(event)
    done = command.outcome == COMPLETED
    draft.call(
        Release(
            tenant=command.tenant,
            request_id=command.request_id,
            lease_ids=(command.lease_id,),
            holder=command.holder,
            reason=ReleaseReason.COMPLETED if done else ReleaseReason.ABORTED,
        )
    )
    return _stepped(event, draft)


def _begin(
    command: Step, draft: Draft, kind: type[Event], answer: Callable[..., Callable[[], _AnswerType]]
) -> Workflow | Refusal | Callable[[], _AnswerType]:
    """Return the workflow that a step is to be taken in; or why not; or the answer of the first time."""
    earlier = draft.remembered(command)
    if isinstance(earlier, kind):
        return answer(earlier, draft, repeated=True)
    return owned(command, draft)


_Remembered = WorkflowEmitted | WorkflowTransitioned | WorkflowAnswered | WorkflowFinished


def _stepped(event: _Remembered, draft: Draft, *, repeated: bool = False) -> Callable[[], Stepped]:
    def answer() -> Stepped:
        epoch, state = _stands(event, draft)
        return Stepped(
            epoch=event.epoch, current_epoch=epoch, state=state, at_ns=event.at_ns, repeated=repeated
        )

    return answer


def _stands(event: _Remembered, draft: Draft) -> tuple[int, str]:
    """Return the epoch and the state of now; as of the event, if the workflow was pruned since."""
    record = workflow(event.tenant, event.workflow_id, draft)
    return (event.epoch + 1, "") if record is None else (record.epoch, record.state)
