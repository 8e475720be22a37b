"""The pattern to the letter: its six best practices, five anti-patterns and six tests.

Doing it right works; doing it wrong is refused, and changes nothing.
"""

import logging
import subprocess
import sys
from datetime import UTC, datetime
from typing import Any
from uuid import uuid4

import pytest

from leasehold.errors import Held, InvalidInput
from leasehold.testing.clock import FakeClock
from leasehold.workflows import (
    Action,
    ActionType,
    Guard,
    LeaseMetadata,
    LeaseViolation,
    Result,
    StaleEpoch,
    WorkflowError,
    WorkflowLeaseExpired,
)


def an_action(lease_id: object, epoch: int, **more: Any) -> Action:
    return Action(action_type=ActionType.EXECUTE, lease_id=str(lease_id), epoch=epoch, **more)


# Best practices.


async def test_best_practice_1_every_orchestrator_has_a_lease_of_its_own(leases: Any, strangers: Any) -> None:
    one = await leases.workflows.claim("order-1")
    other = await strangers.workflows.claim("order-2")

    assert one.lease_id != other.lease_id
    assert (one.current_epoch, one.workflow_state) == (0, "initialized")
    with pytest.raises(Held):
        await strangers.workflows.claim("order-1")


def test_best_practice_2_the_lease_is_validated_before_anything_is_executed() -> None:
    guard, executed = Guard("order-1"), list[Action]()
    guard.set_lease("right")

    guard.process(an_action("right", 0), executed.append)
    with pytest.raises(LeaseViolation):
        guard.process(an_action("wrong", 1), executed.append)

    assert [action.lease_id for action in executed] == ["right"]


async def test_best_practice_3_the_epoch_rises_by_one_on_every_state_change(leases: Any) -> None:
    orchestrator = await leases.workflows.claim("order-1")
    epochs = [orchestrator.current_epoch]

    action = await orchestrator.emit(ActionType.COMPUTE)
    epochs.append(orchestrator.current_epoch)
    await orchestrator.transition("processing")
    epochs.append(orchestrator.current_epoch)
    await orchestrator.handle_result(Result(action_id=action.action_id, success=True))
    epochs.append(orchestrator.current_epoch)

    assert epochs == [0, 1, 2, 3]
    assert orchestrator.workflow_state == "step_completed"
    found = await leases.workflows.find("order-1")
    assert (found.workflow.epoch, found.workflow.state) == (3, "step_completed")


def test_best_practice_4_stale_actions_are_rejected() -> None:
    guard = Guard("order-1")
    guard.set_lease("lease")
    guard.process(an_action("lease", 5), str)

    with pytest.raises(StaleEpoch) as stale:
        guard.check(an_action("lease", 4))

    assert stale.value.error_code == "STALE_EPOCH"
    assert stale.value.context["action_epoch"] == 4
    assert stale.value.context["current_epoch"] == 5
    assert stale.value.context["recommendation"] == "Orchestrator should refresh state"
    assert guard.last_processed_epoch == 5


async def test_best_practice_5_a_lease_ends_after_its_time(
    clock: FakeClock, leases: Any, strangers: Any
) -> None:
    orphaned = await leases.workflows.claim("order-1", ttl=300)
    await orphaned.emit(ActionType.COMPUTE)
    clock.advance(301)

    successor = await strangers.workflows.claim("order-1")

    assert successor.current_epoch == 2  # One above.
    assert successor.token > orphaned.token


def test_a_violation_is_not_printed_where_no_logs_are_set_up() -> None:
    program = (
        "from leasehold.workflows import Action, Guard, LeaseViolation\n"
        "guard = Guard('order-1')\n"
        "guard.set_lease('right')\n"
        "try: guard.check(Action(action_type='pack', lease_id='wrong', epoch=7))\n"
        "except LeaseViolation: print('refused')\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert (done.stdout, done.stderr) == ("refused\n", "")


def test_best_practice_6_violations_are_logged_with_their_facts(caplog: pytest.LogCaptureFixture) -> None:
    guard = Guard("order-1")
    guard.set_lease("right")

    with caplog.at_level(logging.ERROR), pytest.raises(LeaseViolation) as violation:
        guard.check(an_action("wrong", 7))

    (record,) = caplog.records
    said = {name: getattr(record, name) for name in ("expected_lease", "received_lease", "action_epoch")}
    assert said == {"expected_lease": "right", "received_lease": "wrong", "action_epoch": 7}
    assert record.current_epoch == -1  # type: ignore[attr-defined]
    assert record.correlation_id == violation.value.correlation_id  # type: ignore[attr-defined]
    assert violation.value.message in record.getMessage()


# Anti-patterns.


async def test_anti_pattern_1_a_lease_that_is_shared_by_two_orchestrators(
    leases: Any, strangers: Any
) -> None:
    orchestrator = await leases.workflows.claim("order-1")
    handed = await orchestrator.handoff("bob")
    right = await strangers.workflows.claim_lease(handed.new_lease_id)

    for thief in (leases, strangers):
        with pytest.raises(LeaseViolation):
            await thief.workflows.claim_lease(handed.new_lease_id)

    await right.emit(ActionType.COMPUTE)
    assert right.current_epoch == 2


def test_anti_pattern_2_skipping_the_epoch() -> None:
    guard, executed = Guard("order-1", policy="strict"), list[Action]()
    guard.set_lease("lease", epoch=5)

    guard.process(an_action("lease", 5), executed.append)
    with pytest.raises(StaleEpoch):
        guard.process(an_action("lease", 5), executed.append)

    assert len(executed) == 1


async def test_anti_pattern_3_a_state_that_changes_without_the_epoch(leases: Any) -> None:
    orchestrator = await leases.workflows.claim("order-1")
    await orchestrator.transition("processing")
    states = [one.message.payload for one in await leases.workflows.actions("order-1")]

    assert [one["epoch"] for one in states] == [0, 0]
    assert (await leases.workflows.find("order-1")).workflow.epoch == 1
    with pytest.raises(InvalidInput):
        await orchestrator.transition("completed")  # That is for `complete` to say.
    assert orchestrator.current_epoch == 1


async def test_anti_pattern_4_going_on_with_an_expired_lease(
    clock: FakeClock, leases: Any, strangers: Any
) -> None:
    orchestrator = await leases.workflows.claim("order-1", ttl=60)
    clock.advance(61)
    before = len(await leases.workflows.actions("order-1"))

    with pytest.raises(WorkflowLeaseExpired):
        await orchestrator.emit(ActionType.COMPUTE)
    with pytest.raises(WorkflowLeaseExpired):
        await orchestrator.renew()  # Never: what has expired is acquired again.

    assert len(await leases.workflows.actions("order-1")) == before
    again = await strangers.workflows.claim("order-1")
    assert (await again.emit(ActionType.COMPUTE)).epoch == 1


def test_anti_pattern_5_an_action_without_a_lease() -> None:
    with pytest.raises(TypeError):
        Action(action_type=ActionType.EXECUTE, payload={"data": 1})  # type: ignore[call-arg]
    for lease_id in ("", None, 7):
        with pytest.raises(InvalidInput):
            Action(action_type=ActionType.EXECUTE, lease_id=lease_id, epoch=0)  # type: ignore[arg-type]
    with pytest.raises(InvalidInput):
        Action.from_json(b'{"action_type": "execute", "epoch": 0}')


# The pattern's own tests.


async def test_lease_validation_success(leases: Any) -> None:
    orchestrator = await leases.workflows.claim("order-1")
    guard = Guard("order-1")
    guard.set_lease(orchestrator.lease_id)

    assert guard.check(an_action(orchestrator.lease_id, orchestrator.current_epoch)) is True


async def test_lease_validation_wrong_lease(leases: Any) -> None:
    orchestrator = await leases.workflows.claim("order-1")
    guard = Guard("order-1")
    guard.set_lease(orchestrator.lease_id)

    with pytest.raises(WorkflowError) as refused:
        guard.check(an_action(uuid4(), 0))

    assert "LEASE_VIOLATION" in refused.value.error_code
    assert refused.value.context["expected_lease"] == orchestrator.lease_id


def test_epoch_validation_stale_action() -> None:
    guard, lease_id = Guard("order-1"), uuid4()
    guard.set_lease(lease_id)
    guard.advance(5)

    with pytest.raises(WorkflowError) as refused:
        guard.check(an_action(lease_id, 3))

    assert "STALE_EPOCH" in refused.value.error_code


async def test_epoch_increment_on_state_change(leases: Any) -> None:
    orchestrator = await leases.workflows.claim("order-1")
    initial = orchestrator.current_epoch

    await orchestrator.transition("processing")

    assert orchestrator.current_epoch == initial + 1


async def test_full_workflow_with_lease(leases: Any) -> None:
    async with leases.workflows.bus.subscribe("compute") as subscription:
        orchestrator = await leases.workflows.claim("order-1")
        guard = Guard("order-1")
        guard.set_lease(orchestrator.lease_id)

        await orchestrator.emit(ActionType.PROCESS_DATA, {"data": [1, 2, 3]})
        claimed, emitted = await subscription.poll()

        action = emitted.message
        assert action.lease_id == orchestrator.lease_id
        assert action.epoch == 0
        assert guard.process(action, lambda action: sum(action.payload["data"])) == 6
        assert guard.last_processed_epoch == 0
        assert orchestrator.current_epoch == 1
        await subscription.ack(emitted)
        assert claimed.position < emitted.position == subscription.position


async def test_lease_expiration(clock: FakeClock, leases: Any) -> None:
    orchestrator = await leases.workflows.claim("order-1", ttl=1)
    orchestrator.check_lease_validity()
    assert orchestrator.remaining_ttl == 1.0
    metadata = orchestrator.lease_metadata
    clock.advance(2)

    now = datetime.fromtimestamp(clock.wall_ns() / 1e9, UTC)
    assert metadata == LeaseMetadata(
        lease_id=orchestrator.lease_id, acquired_at=metadata.acquired_at, ttl_seconds=1.0
    )
    assert metadata.is_expired(now)
    assert metadata.remaining_ttl(now) == 0.0
    with pytest.raises(WorkflowLeaseExpired) as expired:
        orchestrator.check_lease_validity()
    assert expired.value.error_code == "LEASE_EXPIRED"
    assert expired.value.context["lease_id"] == orchestrator.lease_id
    assert expired.value.context["ttl_seconds"] == 1.0
    assert expired.value.context["acquired_at"] == metadata.acquired_at.isoformat()
