"""A history that the law could not have written does not replay."""

from typing import Any

import pytest
from msgspec.structs import replace

from leasehold.kernel.lease.model import LeaseState
from leasehold.kernel.lease.records import LEASE
from leasehold.kernel.ledger.events import Event, IllegalTransition
from leasehold.kernel.ledger.state import State
from leasehold.kernel.ledger.tick import Tick
from leasehold.workflows.law.events import (
    SubscriptionClosed,
    SubscriptionMoved,
    SubscriptionOpened,
    WorkflowAnswered,
    WorkflowClaimed,
    WorkflowEmitted,
    WorkflowTakenOver,
    WorkflowTransitioned,
)
from leasehold.workflows.law.evolve import evolve
from leasehold.workflows.law.invariants import invariants
from leasehold.workflows.law.records import (
    WORKFLOW,
    EmittedAction,
    Mark,
    Record,
    Subscription,
    Workflow,
    action_key,
    own_key,
    subscription_key,
)
from tests.workflows.law.conftest import COMPUTE, Office

OWN, ACTION, READER = (
    own_key("default", "w"),
    action_key("default", "w", "a"),
    subscription_key("default", "r"),
)


def told(kind: type[Event], **more: Any) -> Any:
    facts: dict[str, Any] = {"tick": Tick(value=1), "at_ns": 1, "actor": "ann"}
    if issubclass(kind, SubscriptionOpened | SubscriptionMoved | SubscriptionClosed):
        return kind(**(facts | {"name": "r", "position": 1} | more))
    usual = {"workflow_id": "w", "lease_id": "L1", "holder": "ann", "token": 5, "epoch": 1}
    return kind(**(facts | usual | more))


RECORD = Workflow(
    workflow_id="w",
    state="busy",
    epoch=1,
    lease_id="L1",
    holder="ann",
    token=5,
    started_at_ns=0,
    changed_at_ns=0,
)
EMITTED = EmittedAction(action_id="a", workflow_id="w", lease_id="L1", epoch=0, at_ns=0)
READING = Subscription(name="r", position=5, due=Tick(value=9))


@pytest.mark.parametrize(
    ("record", "event", "key"),
    [
        (RECORD, told(WorkflowClaimed, epoch=0), OWN),
        (None, told(WorkflowClaimed, epoch=1), OWN),
        (None, told(WorkflowTransitioned, state="x"), OWN),
        (replace(RECORD, ended_at_ns=1), told(WorkflowTransitioned, state="x"), OWN),
        (RECORD, told(WorkflowTransitioned, state="x", epoch=0), OWN),
        (RECORD, told(WorkflowTransitioned, state="x", lease_id="L2"), OWN),
        (RECORD, told(WorkflowTakenOver, lease_id="L2", token=6), OWN),
        (replace(RECORD, lease_id="", holder=""), told(WorkflowTakenOver, lease_id="L2", token=5), OWN),
        (EMITTED, told(WorkflowEmitted, action_id="a", action=COMPUTE), ACTION),
        (replace(EMITTED, succeeded=True), told(WorkflowAnswered, action_id="a", success=True), ACTION),
        (READING, told(SubscriptionOpened, due=1), READER),
        (READING, told(SubscriptionMoved, position=4, due=1), READER),
        (None, told(SubscriptionMoved, due=1), READER),
        (None, told(SubscriptionClosed), READER),
    ],
)
def test_what_cannot_have_happened_is_refused(record: Record | None, event: Event, key: str) -> None:
    with pytest.raises(IllegalTransition):
        evolve(record, event, key)


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"epoch": -1}, "has epoch -1"),
        ({"ended_at_ns": 1, "lease_id": "", "holder": ""}, "is busy, and has ended"),
        ({"state": "completed"}, "has not ended"),
        ({"state": "completed", "ended_at_ns": 1}, "ann may act for it"),
        ({"holder": ""}, "orchestrator ''"),
        ({"accepted_by": "x"}, "was accepted, and not handed off"),
        ({"lease_id": "unknown"}, "which does not stand"),
        ({"token": 1}, "which is another's"),
        ({"workflow_id": "v"}, "is filed under"),
    ],
)
def test_the_invariants_notice_what_must_never_be(office: Office, change: dict[str, Any], says: str) -> None:
    office.claim()
    office.transition(0)
    with office.store.snapshot() as snapshot:
        state = snapshot.state()
    record = state.of(WORKFLOW)[OWN]
    assert list(invariants(state)) == []

    state.of(WORKFLOW)[OWN] = replace(record, **change)

    assert any(says in problem for problem in list(invariants(state)))


def test_the_invariants_notice_a_lease_that_has_ended(office: Office) -> None:
    office.claim()
    with office.store.snapshot() as snapshot:
        state = snapshot.state()

    state.of(LEASE)["L1"] = replace(state.of(LEASE)["L1"], state=LeaseState.EXPIRED)

    assert any("which does not stand" in problem for problem in list(invariants(state)))


def test_the_invariants_notice_other_records_that_are_wrong() -> None:
    state = State()
    records = state.of(WORKFLOW)
    records[ACTION] = EMITTED
    records[READER] = READING
    mark = Mark(name="node", workflow_id="w", lease_id="L1", token=1, epoch=0)
    records["default\x01mark\x01w\x01node"] = mark
    assert list(invariants(state)) == []

    records[action_key("default", "w", "b")] = EMITTED
    records[subscription_key("default", "s")] = READING
    records["default\x01mark\x01w\x01node"] = replace(mark, recent=tuple(map(str, range(65))))

    assert len(list(invariants(state))) == 3
