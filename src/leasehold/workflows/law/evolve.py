"""What events do to the records of workflows, and nothing else does."""

from msgspec.structs import replace

from leasehold.kernel.ledger.events import Event, IllegalTransition
from leasehold.kernel.ledger.key import split_key
from leasehold.workflows.law.events import (
    GuardMarked,
    SubscriptionCarried,
    SubscriptionClosed,
    SubscriptionMoved,
    SubscriptionOpened,
    WorkflowAccepted,
    WorkflowAnswered,
    WorkflowClaimed,
    WorkflowEmitted,
    WorkflowEvent,
    WorkflowFinished,
    WorkflowHandedOff,
    WorkflowTakenOver,
    WorkflowTransitioned,
)
from leasehold.workflows.law.records import (
    ACTION,
    INITIALIZED,
    MARK,
    OWN,
    RECENT_ACTIONS,
    STEP_COMPLETED,
    STEP_FAILED,
    EmittedAction,
    Mark,
    Record,
    Subscription,
    Workflow,
)


def evolve(record: Record | None, event: Event, key: str) -> Record | None:
    """Return a record after an event; refuse an event that the law could not have produced."""
    kind = split_key(key)[1]
    if kind == OWN:
        assert isinstance(event, WorkflowEvent)
        return _workflow(record, event)
    if kind == ACTION:
        return _action(record, event)
    if kind == MARK:
        return _mark(record, event)
    return _subscription(record, event)


def _workflow(record: Record | None, event: WorkflowEvent) -> Workflow:
    if isinstance(event, WorkflowClaimed):
        if record is not None or event.epoch != 0:
            raise IllegalTransition(
                f"{event.workflow_id} was claimed for the first time, and was there already"
            )
        return Workflow(
            workflow_id=event.workflow_id,
            state=INITIALIZED,
            epoch=0,
            lease_id=event.lease_id,
            holder=event.holder,
            token=event.token,
            started_at_ns=event.at_ns,
            changed_at_ns=event.at_ns,
        )
    if not isinstance(record, Workflow) or record.is_ended:
        raise IllegalTransition(f"{event.type} for {event.workflow_id}, which is not under way")
    if event.epoch != record.epoch:
        raise IllegalTransition(
            f"{event.type} at epoch {event.epoch}, and {event.workflow_id} has {record.epoch}"
        )
    if event.needs_lease and event.lease_id != record.lease_id:
        raise IllegalTransition(
            f"{event.type} under {event.lease_id}, which {event.workflow_id} is not held by"
        )
    after = replace(record, epoch=record.epoch + event.raises_epoch, changed_at_ns=event.at_ns)
    return _stepped(after, event)


def _stepped(record: Workflow, event: WorkflowEvent) -> Workflow:
    match event:
        case WorkflowTakenOver():
            if record.lease_id or event.token <= record.token:
                raise IllegalTransition(
                    f"{event.workflow_id} was taken over from {record.holder}, who has it"
                )
            return replace(record, lease_id=event.lease_id, holder=event.holder, token=event.token)
        case WorkflowEmitted():
            return record
        case WorkflowTransitioned(state=state):
            return replace(record, state=state)
        case WorkflowAnswered(success=success):
            return replace(record, state=STEP_COMPLETED if success else STEP_FAILED)
        case WorkflowHandedOff():
            return replace(
                record,
                lease_id=event.new_lease_id,
                holder=event.to,
                token=event.new_token,
                handed_off=True,
                accepted_by="",
            )
        case WorkflowAccepted(by=by):
            return replace(record, accepted_by=by)
        case WorkflowFinished(outcome=outcome):
            return replace(_vacant(record), state=outcome, ended_at_ns=event.at_ns)
        case _:
            return _vacant(record)


def _vacant(record: Workflow) -> Workflow:
    return replace(record, lease_id="", holder="", handed_off=False, accepted_by="")


def _action(record: Record | None, event: Event) -> EmittedAction | None:
    if isinstance(event, WorkflowEmitted):
        if record is not None:
            raise IllegalTransition(f"action {event.action_id} was emitted twice")
        return EmittedAction(
            action_id=event.action_id,
            workflow_id=event.workflow_id,
            lease_id=event.lease_id,
            epoch=event.epoch,
            at_ns=event.at_ns,
        )
    assert isinstance(event, WorkflowAnswered)
    if record is None:
        # A checkpoint lets go of old actions, also of one that is answered between what the checkpoint covers
        # and the checkpoint itself.
        return None
    assert isinstance(record, EmittedAction)
    if record.succeeded is not None:
        raise IllegalTransition(f"action {event.action_id} was answered twice")
    return replace(record, succeeded=event.success)


def _mark(record: Record | None, event: Event) -> Mark:
    assert isinstance(event, GuardMarked)
    recent = record.recent if isinstance(record, Mark) and record.token == event.token else ()
    if event.action_id:
        recent = (*recent, event.action_id)[-RECENT_ACTIONS:]
    return Mark(
        name=event.name,
        workflow_id=event.workflow_id,
        lease_id=event.lease_id,
        token=event.token,
        epoch=event.epoch,
        recent=recent,
    )


def _subscription(record: Record | None, event: Event) -> Subscription | None:
    if isinstance(event, SubscriptionOpened):
        if record is not None:
            raise IllegalTransition(f"subscription {event.name} was opened twice")
        return Subscription(
            name=event.name,
            position=event.position,
            workflow_id=event.workflow_id,
            due=event.tick.at(event.due),
        )
    if not isinstance(record, Subscription):
        raise IllegalTransition(f"{event.type} for a subscription that is not open")
    match event:
        case SubscriptionMoved(position=position, due=due):
            if position < record.position:
                raise IllegalTransition(f"subscription {record.name} went back to {position}")
            return replace(record, position=position, due=event.tick.at(due))
        case SubscriptionCarried(due=due):
            return replace(record, due=event.tick.at(due))
        case _:
            assert isinstance(event, SubscriptionClosed)
            return None
