"""Orchestrators, on every store, over every desk, in both colours."""

import asyncio
from typing import Any
from uuid import uuid4

import pytest

from leasehold.engine.desk import Failure
from leasehold.errors import (
    AlreadyHeld,
    Held,
    InvalidInput,
    LeaseholdError,
    LeaseLost,
    LimitExceeded,
    StoreFailed,
)
from leasehold.testing.clock import FakeClock
from leasehold.workflows import (
    ActionAnswered,
    ActionExists,
    ActionNotFound,
    ActionType,
    LeaseViolation,
    Result,
    StaleEpoch,
    WorkflowEnded,
    WorkflowLeaseExpired,
    WorkflowLeaseNotFound,
    WorkflowNotFound,
)
from tests.client.worlds import SIGNAL_SECONDS, World


async def kinds(leases: Any, workflow_id: str = "order-1") -> list[str]:
    """What happened in a workflow, in words."""
    told = []
    for one in await leases.workflows.actions(workflow_id):
        message = one.message
        told.append(getattr(message, "action_type", None) or message.event_type.value)
    return told


async def test_an_action_is_what_was_asked_for_with_lease_and_epoch(clock: FakeClock, leases: Any) -> None:
    orchestrator = await leases.workflows.claim("order-1")
    first, action_id = await orchestrator.emit("compute"), uuid4()

    action = await orchestrator.emit(
        "resize",
        {"width": 3},
        target_node_type="NodeImages",
        dependencies=[first.action_id],
        priority=9,
        timeout_ms=500,
        retry_count=2,
        action_id=action_id,
    )

    assert (action.action_id, action.action_type, action.payload) == (str(action_id), "resize", {"width": 3})
    assert (action.lease_id, action.epoch) == (orchestrator.lease_id, 1)
    assert (action.target_node_type, action.dependencies) == ("NodeImages", (first.action_id,))
    assert (action.priority, action.timeout_ms, action.retry_count) == (9, 500, 2)
    assert action.created_at.timestamp() == clock.wall_ns() / 1e9
    assert orchestrator.current_epoch == 2
    assert await kinds(leases) == ["lease_claimed", "compute", "resize"]
    assert (await leases.workflows.actions("order-1"))[-1].message == action


async def test_an_emission_that_is_asked_for_again_is_the_same_action(leases: Any) -> None:
    orchestrator = await leases.workflows.claim("order-1")
    first = await orchestrator.emit("compute", {"n": 1}, request_id="once")
    again = await orchestrator.emit("compute", {"n": 1}, request_id="once")

    assert first == again
    assert orchestrator.current_epoch == 1
    with pytest.raises(ActionExists):
        await orchestrator.emit("compute", action_id=first.action_id)


@pytest.mark.parametrize(
    ("arguments", "field"),
    [
        ({"action_type": ""}, "action_type"),
        ({"action_type": 7}, "action_type"),
        ({"action_type": "lease_transfer"}, "action_type"),
        ({"payload": [1]}, "payload"),
        ({"payload": {"x": {1, 2}}}, "payload"),
        ({"payload": {"x": "y" * 20_000}}, "payload"),
        ({"target_node_type": ""}, "target_node_type"),
        ({"target_node_type": "x" * 101}, "target_node_type"),
        ({"priority": 0}, "priority"),
        ({"priority": "5"}, "priority"),
        ({"timeout_ms": 99}, "timeout_ms"),
        ({"retry_count": 11}, "retry_count"),
        ({"dependencies": "abc"}, "dependencies"),
        ({"action_id": "me", "dependencies": ["me"]}, "dependencies"),
        ({"request_id": ""}, "request_id"),
    ],
)
async def test_an_action_that_cannot_be_right_is_refused_and_changes_nothing(
    leases: Any, arguments: dict[str, Any], field: str
) -> None:
    orchestrator = await leases.workflows.claim("order-1")
    given = {"action_type": "compute"} | arguments

    with pytest.raises((InvalidInput, LimitExceeded)) as refused:
        await orchestrator.emit(given.pop("action_type"), **given)

    assert refused.value.field == field
    assert await kinds(leases) == ["lease_claimed"]
    assert (await orchestrator.emit("compute")).epoch == 0


@pytest.mark.parametrize("workflow_id", ["", "x" * 129, "a\x00b", 7, None])
async def test_a_workflow_needs_a_name(leases: Any, workflow_id: Any) -> None:
    with pytest.raises((InvalidInput, LimitExceeded)):
        await leases.workflows.claim(workflow_id)
    with pytest.raises((InvalidInput, LimitExceeded)):
        await leases.workflows.find(workflow_id)


@pytest.mark.parametrize(("success", "state"), [(True, "step_completed"), (False, "step_failed")])
async def test_a_result_moves_the_workflow_once(leases: Any, success: bool, state: str) -> None:
    orchestrator = await leases.workflows.claim("order-1")
    action = await orchestrator.emit("compute")
    result = Result(action_id=action.action_id, success=success, payload={"n": 1}, error=None)

    assert await orchestrator.handle_result(result) == 2
    assert await orchestrator.handle_result(result) == 2  # Delivered twice.

    assert orchestrator.workflow_state == state
    with pytest.raises(ActionAnswered):
        await orchestrator.handle_result(Result(action_id=action.action_id, success=not success))
    with pytest.raises(ActionNotFound):
        await orchestrator.handle_result(Result(action_id=str(uuid4()), success=True))
    with pytest.raises(InvalidInput):
        await orchestrator.handle_result({"action_id": action.action_id, "success": True})
    assert orchestrator.current_epoch == 2


async def test_the_lease_is_renewed_below_a_threshold_and_never_above_it(
    clock: FakeClock, leases: Any
) -> None:
    orchestrator = await leases.workflows.claim("order-1", ttl=300)

    assert not await orchestrator.renew()
    clock.advance(241)
    assert await orchestrator.renew()
    assert orchestrator.remaining_ttl == 300
    assert await orchestrator.renew(always=True)
    eager = await leases.workflows.claim("order-2", ttl=30, renew_below=20)
    clock.advance(11)
    assert await eager.renew()


async def test_the_keeper_renews_the_lease_in_the_background(
    world: World, clock: FakeClock, leases: Any
) -> None:
    orchestrator = await leases.workflows.claim("order-1", ttl=30)
    for _ in range(10):
        clock.advance(12)
        world.keep()
        while orchestrator.remaining_ttl < 30:  # The keeper's renewal is under way.
            await asyncio.sleep(0)

    assert (await orchestrator.emit("compute")).epoch == 0


async def test_a_revoked_orchestrator_learns_it_from_its_next_step(leases: Any, strangers: Any) -> None:
    orchestrator = await leases.workflows.claim("order-1")
    await strangers.workflows.manager.revoke_lease(orchestrator.lease_id, "hangs")

    with pytest.raises(LeaseViolation) as refused:
        await orchestrator.emit("compute")

    assert refused.value.error_code == "LEASE_VIOLATION"
    assert "hangs" in str(refused.value)
    assert orchestrator.lost
    for step in (orchestrator.emit("compute"), orchestrator.transition("x"), orchestrator.renew(always=True)):
        with pytest.raises(LeaseViolation):
            await step
    assert await kinds(leases) == ["lease_claimed", "lease_revoked"]


async def test_an_orchestrator_that_was_replaced_unawares_is_refused(
    clock: FakeClock, leases: Any, strangers: Any
) -> None:
    # Its own clock stands still, as that of a process that was stopped: it still believes in its lease.
    orchestrator = await leases.workflows.claim("order-1", ttl=60)
    target = getattr(orchestrator, "target", orchestrator)
    clock.advance(61)
    target._held.kept.deadline_ns += 10**12
    successor = await strangers.workflows.claim("order-1")
    before = await kinds(leases)

    with pytest.raises(LeaseViolation) as refused:
        await orchestrator.emit("compute")

    assert refused.value.context["expected_lease"] == successor.lease_id
    assert refused.value.context["received_lease"] == orchestrator.lease_id
    assert refused.value.correlation_id
    assert await kinds(leases) == before
    assert (await successor.emit("compute")).epoch == 1


async def test_a_lost_reply_leaves_no_doubt_about_the_epoch(
    leases: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    orchestrator = await leases.workflows.claim("order-1")
    target = getattr(orchestrator, "target", orchestrator)
    session = target._session
    send, blocking = session.send, target is not orchestrator

    def lose(command: Any) -> Any:
        if blocking:
            send(command)
            return Failure.of(StoreFailed("the reply was lost"))
        return _lost(send, command)

    monkeypatch.setattr(session, "send", lose)
    with pytest.raises(StoreFailed):
        await orchestrator.emit("compute")
    monkeypatch.setattr(session, "send", send)

    assert (await orchestrator.emit("effect")).epoch == 1
    assert await kinds(leases) == ["lease_claimed", "compute", "effect"]


async def _lost(send: Any, command: Any) -> Any:
    await send(command)
    return Failure.of(StoreFailed("the reply was lost"))


async def test_an_orchestrator_with_a_stale_epoch_is_refused_once_and_then_knows_better(leases: Any) -> None:
    orchestrator = await leases.workflows.claim("order-1")
    await orchestrator.emit("compute")
    getattr(orchestrator, "target", orchestrator).current_epoch = 0

    with pytest.raises(StaleEpoch):
        await orchestrator.emit("effect")

    assert (await orchestrator.emit("effect")).epoch == 1


async def test_a_handoff_gives_the_workflow_to_the_successor_at_once(leases: Any, strangers: Any) -> None:
    primary = await leases.workflows.claim("order-1")
    await primary.emit("compute")

    handed = await primary.handoff("bob", ttl=120)
    secondary = await strangers.workflows.claim_lease(handed.new_lease_id)

    assert handed.action.action_type == ActionType.LEASE_TRANSFER
    assert (handed.action.lease_id, handed.action.epoch) == (primary.lease_id, 1)
    assert handed.action.payload["old_lease_id"] == primary.lease_id
    assert handed.action.payload["new_lease_id"] == secondary.lease_id == handed.new_lease_id
    assert handed.action.payload["transfer_epoch"] == 1
    assert secondary.current_epoch == 2
    assert secondary.token > primary.token
    assert secondary.lease_metadata.ttl_seconds == 120
    with pytest.raises(LeaseViolation, match="was handed off to bob by this orchestrator; leave it to bob"):
        await primary.emit("compute")
    assert (await secondary.emit("compute")).epoch == 2
    await secondary.complete()
    assert await kinds(leases) == [
        "lease_claimed",
        "compute",
        "lease_transfer",
        "lease_accepted",
        "compute",
        "workflow_completed",
    ]


async def test_a_handoff_that_fails_leaves_everything_as_it_was(leases: Any) -> None:
    orchestrator = await leases.workflows.claim("order-1")
    with pytest.raises((InvalidInput, LimitExceeded)):
        await orchestrator.handoff("")
    with pytest.raises(InvalidInput):
        await orchestrator.handoff(7)

    assert (await orchestrator.emit("compute")).epoch == 0
    assert orchestrator.remaining_ttl > 0


async def test_an_operator_hands_a_workflow_off_for_its_holder(leases: Any, strangers: Any) -> None:
    await leases.workflows.claim("order-1")

    with pytest.raises(LeaseViolation):
        await strangers.workflows.handoff("order-1", to="bob")
    lease = await strangers.workflows.handoff("order-1", to="bob", holder="ann")
    secondary = await strangers.workflows.claim_lease(lease.lease_id)

    assert secondary.current_epoch == 1
    with pytest.raises(WorkflowNotFound):
        await leases.workflows.handoff("unknown", to="bob")
    await secondary.release()
    with pytest.raises(WorkflowLeaseNotFound):
        await leases.workflows.handoff("order-1", to="bob")


async def test_a_lease_that_was_not_handed_to_us_cannot_be_claimed(
    clock: FakeClock, leases: Any, strangers: Any
) -> None:
    primary = await leases.workflows.claim("order-1", ttl=60)
    handed = await primary.handoff("bob")

    with pytest.raises(LeaseViolation):
        await leases.workflows.claim_lease(handed.new_lease_id)
    with pytest.raises(WorkflowLeaseNotFound) as unknown:
        await strangers.workflows.claim_lease(uuid4())
    assert unknown.value.error_code == "LEASE_NOT_FOUND"
    clock.advance(61)
    with pytest.raises(WorkflowLeaseExpired):
        await strangers.workflows.claim_lease(handed.new_lease_id)


@pytest.mark.parametrize("end", ["complete", "cancel"])
async def test_a_workflow_that_ended_is_over_for_good(leases: Any, strangers: Any, end: str) -> None:
    orchestrator = await leases.workflows.claim("order-1")
    await getattr(orchestrator, end)()

    assert orchestrator.workflow_state == {"complete": "completed", "cancel": "cancelled"}[end]
    assert await leases.inspect("workflow:order-1") == []
    with pytest.raises(WorkflowEnded):
        await strangers.workflows.claim("order-1")
    ended = f"workflow order-1 was {orchestrator.workflow_state} by this orchestrator; start another workflow"
    with pytest.raises(LeaseLost, match=ended):
        await orchestrator.emit("compute")
    with pytest.raises(LeaseLost, match=ended):
        await getattr(orchestrator, end)()


async def test_the_block_gives_the_lease_back_and_not_the_workflow_up(leases: Any, strangers: Any) -> None:
    async with leases.workflows.claim("order-1") as orchestrator:
        await orchestrator.transition("half-way")

    successor = await strangers.workflows.claim("order-1")

    assert (successor.current_epoch, successor.workflow_state) == (2, "half-way")
    assert await kinds(leases) == ["lease_claimed", "state_changed", "lease_released", "lease_taken_over"]


async def test_a_block_that_completes_its_workflow_ends_well(leases: Any) -> None:
    async with leases.workflows.claim("order-1") as orchestrator:
        await orchestrator.complete()

    with pytest.raises(ValueError, match="on purpose"):
        async with leases.workflows.claim("order-2"):
            raise ValueError("on purpose")
    assert await leases.inspect("workflow:order-2") == []


async def test_a_block_whose_lease_was_lost_says_so(leases: Any, strangers: Any) -> None:
    async def lose() -> None:
        async with leases.workflows.claim("order-1") as orchestrator:
            await strangers.workflows.manager.revoke_lease(orchestrator.lease_id, "hangs")
            with pytest.raises(LeaseViolation):
                await orchestrator.emit("compute")

    with pytest.raises(LeaseLost):
        await lose()


async def test_who_waits_for_a_workflow_gets_it_when_it_is_released(real_world: World) -> None:
    primary_client, standby_client = real_world.connect(holder="ann"), real_world.connect(holder="bob")
    primary = await primary_client.workflows.claim("order-1")

    async def stand_by() -> Any:
        if real_world.blocking:
            target = standby_client.target.workflows
            return await asyncio.to_thread(target.claim, "order-1", wait=SIGNAL_SECONDS)
        return await standby_client.workflows.claim("order-1", wait=SIGNAL_SECONDS)

    waiting = asyncio.create_task(stand_by())
    while not await primary_client.queue("workflow:order-1"):
        await asyncio.sleep(0)
    await primary.release()
    standby = await waiting

    assert standby.current_epoch == 1
    with pytest.raises(Held):
        await primary_client.workflows.claim("order-1")


async def test_who_waited_for_a_workflow_that_ended_gives_the_lease_back(leases: Any, strangers: Any) -> None:
    orchestrator = await leases.workflows.claim("order-1")
    await orchestrator.complete()

    with pytest.raises(WorkflowEnded):
        await strangers.workflows.claim("order-1", wait=1)

    # It is given back without waiting for that; the next claim of the name waits for its turn.
    lease = await strangers.acquire("workflow:order-1", wait=SIGNAL_SECONDS)
    await lease.release()


async def test_workflows_are_listed_page_by_page(leases: Any) -> None:
    for number in range(5):
        await leases.workflows.claim(f"order-{number}")

    first = await leases.workflows.page(limit=3)
    rest = await leases.workflows.page(limit=3, after=first[-1].workflow.workflow_id)

    assert [one.workflow.workflow_id for one in first + rest] == [f"order-{number}" for number in range(5)]
    assert all(one.is_owned for one in first)
    for limit in (0, 10_001, "5"):
        with pytest.raises(InvalidInput):
            await leases.workflows.page(limit=limit)


async def test_what_another_tenant_has_does_not_exist(world: World, leases: Any) -> None:
    acme = world.connect(tenant="acme", holder="ann")
    orchestrator = await leases.workflows.claim("order-1")
    await orchestrator.emit("compute")

    assert await acme.workflows.find("order-1") is None
    assert await acme.workflows.page() == []
    assert await acme.workflows.actions("order-1") == []
    assert await acme.workflows.manager.active_leases() == {}
    with pytest.raises(WorkflowLeaseNotFound):
        await acme.workflows.manager.revoke_lease(orchestrator.lease_id, "mine")
    with pytest.raises(WorkflowLeaseNotFound):
        await acme.workflows.claim_lease(orchestrator.lease_id)
    assert (await acme.workflows.claim("order-1")).current_epoch == 0


async def test_an_orchestrator_says_what_it_is(leases: Any) -> None:
    orchestrator = await leases.workflows.claim("order-1", metadata={"region": "eu"})

    assert "order-1" in repr(orchestrator)
    assert orchestrator.holder == "ann"
    assert not orchestrator.lost
    status = (await leases.workflows.find("order-1")).lease
    assert status.lease.metadata == {"region": "eu"}
    assert issubclass(LeaseViolation, LeaseholdError)


@pytest.mark.parametrize("wait", [None, 1])
async def test_who_leads_a_workflow_already_is_told_so(world: World, wait: int | None) -> None:
    client = world.connect(holder="ann")
    orchestrator = await client.workflows.claim("order-7")
    with pytest.raises(AlreadyHeld, match=r"workflow order-7 is already led by you \(ann\)") as refused:
        await client.workflows.claim("order-7", wait=wait)
    assert refused.value.facts["lease_id"] == orchestrator.lease_id
    assert "adopt" not in str(refused.value)
