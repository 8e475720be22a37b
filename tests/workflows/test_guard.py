"""What a guard lets through, with and without asking the registrar."""

import threading
from collections.abc import Callable
from typing import Any

import pytest

from leasehold.errors import InvalidInput, LimitExceeded
from leasehold.testing.clock import FakeClock
from leasehold.workflows import (
    Action,
    ActionTimeout,
    AsyncGuard,
    Delivery,
    Event,
    EventType,
    FutureEpoch,
    Guard,
    LeaseMetadata,
    LeaseViolation,
    StaleEpoch,
    WorkflowLeaseExpired,
    WorkflowLeaseNotFound,
)
from leasehold.workflows.law.records import RECENT_ACTIONS, Mark
from leasehold.workflows.messages import moment_of


def act(epoch: int, lease_id: str = "lease", **more: Any) -> Action:
    return Action(action_type="execute", lease_id=lease_id, epoch=epoch, **more)


def told(kind: EventType, workflow_id: str = "w", **payload: Any) -> Delivery:
    return Delivery(position=1, workflow_id=workflow_id, message=Event(event_type=kind, payload=payload))


def granted(lease_id: str, token: int, epoch: int, kind: EventType = EventType.LEASE_TAKEN_OVER) -> Delivery:
    return told(kind, lease_id=lease_id, token=token, epoch=epoch)


@pytest.fixture(params=["monotonic", "strict"])
def guard(request: pytest.FixtureRequest) -> Guard:
    made = Guard("w", policy=request.param)
    made.set_lease("lease")
    return made


def test_only_two_policies_exist() -> None:
    with pytest.raises(InvalidInput):
        Guard("w", policy="lenient")
    assert Guard("w").policy == "monotonic"


def test_a_guard_that_expects_no_lease_lets_nothing_through() -> None:
    with pytest.raises(LeaseViolation):
        Guard("w").check(act(0))


def test_only_an_action_is_an_action(guard: Guard) -> None:
    for thing in (None, {"lease_id": "lease", "epoch": 0}, "lease"):
        with pytest.raises(InvalidInput):
            guard.check(thing)  # type: ignore[arg-type]


def test_monotonic_lets_an_equal_epoch_through_and_gaps_and_nothing_older() -> None:
    guard = Guard("w")
    guard.set_lease("lease")
    for epoch in (0, 0, 7, 7):
        guard.process(act(epoch), str)

    with pytest.raises(StaleEpoch):
        guard.check(act(6))


def test_strict_lets_only_the_next_epoch_through() -> None:
    guard = Guard("w", policy="strict")
    guard.set_lease("lease", epoch=5)
    guard.process(act(5), str)

    with pytest.raises(StaleEpoch) as second:
        guard.check(act(5))  # The second of two actions at one epoch.
    with pytest.raises(FutureEpoch) as future:
        guard.check(act(7))

    assert second.value.context["current_epoch"] == 6
    assert (future.value.error_code, future.value.context["action_epoch"]) == ("FUTURE_EPOCH", 7)
    assert future.value.context["recommendation"] == "Check for missed state updates"
    guard.advance(6)  # It went elsewhere.
    assert guard.check(act(7))


def test_advancing_never_goes_back(guard: Guard) -> None:
    guard.advance(5)
    guard.advance(3)

    assert guard.last_processed_epoch == 5
    for epoch in (-1, "5", 5.0, True):
        with pytest.raises(InvalidInput):
            guard.advance(epoch)  # type: ignore[arg-type]


def test_a_duplicate_is_recognised_and_passed_over(guard: Guard) -> None:
    calls: list[Action] = []
    first, second = act(0), act(1)
    guard.process(first, calls.append)
    guard.process(second, calls.append)

    assert guard.check(first) is False
    assert guard.process(first, calls.append) is None
    assert guard.process(second, calls.append) is None
    assert calls == [first, second]


def test_only_the_last_actions_are_recognised_and_older_ones_are_stale(guard: Guard) -> None:
    actions = [act(epoch) for epoch in range(RECENT_ACTIONS + 1)]
    for action in actions:
        guard.process(action, str)

    assert guard.check(actions[1]) is False
    with pytest.raises(StaleEpoch):
        guard.check(actions[0])


def test_the_position_moves_only_after_the_handler_has_succeeded(guard: Guard) -> None:
    def fail(action: Action) -> None:
        raise RuntimeError("on purpose")

    with pytest.raises(RuntimeError, match="on purpose"):
        guard.process(act(0), fail)

    assert guard.last_processed_epoch == -1
    assert guard.process(act(0), lambda action: action.epoch) == 0
    assert guard.last_processed_epoch == 0


def test_a_handler_that_takes_too_long_does_not_count(guard: Guard) -> None:
    hang = threading.Event()

    with pytest.raises(ActionTimeout) as late:
        guard.process(act(0, timeout_ms=100), lambda action: hang.wait(10))

    hang.set()
    assert isinstance(late.value, TimeoutError)
    assert late.value.context["timeout_ms"] == 100
    assert guard.last_processed_epoch == -1
    assert guard.process(act(0), lambda action: "again") == "again"


def test_a_timeout_of_the_handlers_own_is_told_apart(guard: Guard) -> None:
    def refuse(action: Action) -> None:
        raise TimeoutError("its own")

    with pytest.raises(TimeoutError, match="its own") as late:
        guard.process(act(0), refuse)

    assert not isinstance(late.value, ActionTimeout)


def test_a_guard_is_a_decorator(guard: Guard) -> None:
    @guard
    def double(action: Action) -> int:
        """Say twice what it was told."""
        value: int = action.payload["n"] * 2
        return value

    assert double(act(0, payload={"n": 4})) == 8
    assert double.__name__ == "double"
    with pytest.raises(LeaseViolation):
        double(act(1, "other"))


async def test_an_asynchronous_guard_awaits_its_handler_and_cancels_it_in_time() -> None:
    import asyncio

    guard, cancelled = AsyncGuard("w"), list[Action]()
    guard.set_lease("lease")

    async def hang(action: Action) -> None:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            cancelled.append(action)
            raise

    @guard
    async def echo(action: Action) -> int:
        return action.epoch

    with pytest.raises(ActionTimeout):
        await guard.process(act(0, timeout_ms=100), hang)
    assert len(cancelled) == 1
    assert await echo(act(0)) == 0
    assert await guard.process(act(1), lambda action: "in a thread") == "in a thread"
    with pytest.raises(TimeoutError, match="its own") as late:
        await guard.process(act(2), lambda action: _fail())
    assert not isinstance(late.value, ActionTimeout)
    assert await guard.process(act(2), lambda action: _later(action.epoch)) == 2


async def _later(value: int) -> int:
    return value


async def _fail() -> None:
    raise TimeoutError("its own")


def test_two_actions_are_never_processed_at_once() -> None:
    guard = Guard("w", policy="strict")
    guard.set_lease("lease")
    inside, go_on, outcomes = threading.Event(), threading.Event(), list[str]()

    def slow(action: Action) -> None:
        inside.set()
        go_on.wait(10)

    def second() -> None:
        try:
            guard.process(act(0), str)
        except StaleEpoch as error:
            outcomes.append(error.error_code)

    threads = [threading.Thread(target=guard.process, args=(act(0), slow)), threading.Thread(target=second)]
    threads[0].start()
    inside.wait(10)
    threads[1].start()
    go_on.set()
    for thread in threads:
        thread.join(10)

    assert outcomes == ["STALE_EPOCH"]


def test_a_lease_whose_time_is_over_is_refused_without_asking(clock: FakeClock) -> None:
    from datetime import UTC, datetime

    guard = Guard("w", clock=clock)
    metadata = LeaseMetadata(lease_id="lease", acquired_at=datetime.now(UTC), ttl_seconds=100)
    guard.set_lease(metadata)
    clock.advance(98)
    assert guard.check(act(0))
    clock.advance(3)

    with pytest.raises(WorkflowLeaseExpired) as expired:
        guard.check(act(0))

    context = expired.value.context
    assert (context["lease_id"], context["ttl_seconds"]) == ("lease", 100)
    assert context["acquired_at"] == metadata.acquired_at.isoformat()
    guard.set_lease(LeaseMetadata(lease_id="lease", acquired_at=datetime.now(UTC)))  # It was renewed.
    assert guard.check(act(0))


def test_the_bus_switches_a_guard_to_the_successor_and_only_to_a_higher_token(guard: Guard) -> None:
    guard.set_lease("lease", token=1)
    guard.process(granted("first", 10, 0, EventType.LEASE_CLAIMED), str)
    assert guard.check(act(0, "first"))
    guard.process(granted("second", 20, 4), str)

    for late in (granted("first", 10, 0), granted("third", 19, 9), granted("fourth", 20, 9)):
        guard.process(late, str)

    assert (guard.expected_lease_id, guard.last_processed_epoch) == ("second", 3)
    with pytest.raises(LeaseViolation):
        guard.check(act(4, "first"))
    assert guard.check(act(4, "second"))
    with pytest.raises(LeaseViolation):
        guard.set_lease("first", token=10)


def test_news_of_the_lease_that_is_expected_already_never_take_a_guard_back(guard: Guard) -> None:
    for epoch in range(3):
        guard.process(act(epoch), str)

    guard.follow(granted("lease", 10, 0, EventType.LEASE_CLAIMED))  # Delivered late.

    assert (guard.expected_lease_id, guard.token, guard.last_processed_epoch) == ("lease", 10, 2)
    guard.follow(granted("older", 9, 7))
    assert guard.check(act(3))
    guard.follow(granted("lease", 10, 9))
    assert guard.check(act(9))


@pytest.mark.parametrize(
    "kind",
    [
        EventType.LEASE_REVOKED,
        EventType.LEASE_EXPIRED,
        EventType.LEASE_RELEASED,
        EventType.WORKFLOW_COMPLETED,
        EventType.WORKFLOW_CANCELLED,
    ],
)
def test_a_lease_that_ended_allows_nothing_until_the_next_claim(guard: Guard, kind: EventType) -> None:
    guard.follow(told(kind, lease_id="another", token=1, epoch=0))
    assert guard.check(act(0))
    guard.follow(told(kind, lease_id="lease", token=1, epoch=0))

    with pytest.raises(LeaseViolation):
        guard.check(act(0))
    guard.follow(granted("next", 2, 1))
    assert guard.check(act(1, "next"))


def test_a_guard_that_was_told_no_token_is_not_taken_back_by_what_the_bus_tells_from_before(
    guard: Guard,
) -> None:
    for epoch in (0, 1, 2):
        guard.process(act(epoch), str)
    payload = {"old_lease_id": "first", "new_lease_id": "second", "transfer_epoch": 0, "new_token": 5}
    transfer = Action(action_type="lease_transfer", lease_id="first", epoch=0, payload=payload)

    guard.follow(granted("first", 4, 0, EventType.LEASE_CLAIMED))
    guard.follow(Delivery(position=2, workflow_id="w", message=transfer, token=4))

    assert guard.position == ("lease", 0, 2)
    guard.follow(granted("lease", 7, 1))
    assert guard.position == ("lease", 7, 2)
    guard.follow(granted("next", 9, 1))
    assert guard.position == ("next", 9, 2), "the position never goes back"


@pytest.mark.parametrize(("token", "expected"), [(7, "next"), (0, "lease")])
def test_a_guard_that_knows_its_token_from_its_mark_follows_the_bus(
    guard: Guard, token: int, expected: str
) -> None:
    # It was told the id alone; without a token, the grant may be one from before that lease.
    guard.restore(Mark(name="node", workflow_id="w", lease_id="lease", token=token, epoch=3))
    guard.follow(granted("next", token=8, epoch=4))

    assert guard.expected_lease_id == expected


def test_a_transfer_action_on_the_bus_switches_to_the_new_lease(guard: Guard) -> None:
    payload = {"old_lease_id": "lease", "new_lease_id": "next", "transfer_epoch": 0, "new_token": 9}
    transfer = Action(action_type="lease_transfer", lease_id="lease", epoch=0, payload=payload)
    forged = Action(action_type="lease_transfer", lease_id="forged", epoch=0, payload=payload)

    guard.process(transfer, str)  # Not from the bus: an action like any other.
    assert guard.expected_lease_id == "lease"
    guard.last_processed_epoch = -1
    guard._recent.clear()
    with pytest.raises(LeaseViolation):
        guard.process(Delivery(position=1, workflow_id="w", message=forged), str)
    guard.process(Delivery(position=2, workflow_id="w", message=transfer), str)

    assert (guard.expected_lease_id, guard.last_processed_epoch) == ("next", 0)
    assert guard.check(act(1, "next"))
    with pytest.raises(LeaseViolation):
        guard.check(act(1))


def test_what_happens_to_other_workflows_means_nothing(guard: Guard) -> None:
    guard.follow(told(EventType.LEASE_TAKEN_OVER, "other", lease_id="theirs", token=99, epoch=3))
    guard.follow(told(EventType.LEASE_ACCEPTED, lease_id="lease", token=9, epoch=3))
    guard.follow(Delivery(position=1, workflow_id="w", message=act(0)))

    assert guard.check(act(0))


def test_changes_of_state_are_epochs_that_went_elsewhere(guard: Guard) -> None:
    guard.process(act(0), str)
    guard.process(told(EventType.STATE_CHANGED, lease_id="lease", token=1, epoch=1, state="x"), str)

    assert guard.check(act(2))


# With a registrar.


async def test_the_registrar_knows_of_a_revocation_of_a_moment_ago(leases: Any, strangers: Any) -> None:
    orchestrator = await leases.workflows.claim("order-1")
    guard = strangers.workflows.guard("order-1")
    await guard.load()
    action = await orchestrator.emit("compute")
    await leases.workflows.manager.revoke_lease(orchestrator.lease_id, "hangs")

    assert await guard.check(action) is True
    with pytest.raises(LeaseViolation):
        await guard.check(action, authoritative=True)
    with pytest.raises(LeaseViolation):
        await guard.check(action)  # Once told, it remembers.


async def test_a_handler_is_not_run_for_what_the_registrar_refuses(leases: Any, strangers: Any) -> None:
    orchestrator = await leases.workflows.claim("order-1")
    guard = strangers.workflows.guard("order-1")
    await guard.load()
    first, second = await orchestrator.emit("compute"), await orchestrator.emit("compute")
    processed: list[Any] = []
    await guard.process(first, processed.append, authoritative=True)
    await leases.workflows.manager.revoke_lease(orchestrator.lease_id, "hangs")

    with pytest.raises(LeaseViolation):
        await guard.process(second, processed.append, authoritative=True)
    assert processed == [first]


async def test_the_registrar_knows_of_an_expiry(clock: FakeClock, leases: Any) -> None:
    orchestrator = await leases.workflows.claim("order-1", ttl=10)
    action = await orchestrator.emit("compute")
    guard = leases.workflows.guard("order-1")
    assert await guard.check(action, authoritative=True)
    clock.advance(10)

    for swept in (False, True):
        if swept:
            await leases.sweep()
        with pytest.raises(WorkflowLeaseExpired):
            await guard.check(action, authoritative=True)


async def test_the_registrar_knows_which_lease_is_the_present_one(
    clock: FakeClock, leases: Any, strangers: Any
) -> None:
    first = await leases.workflows.claim("order-1", ttl=10)
    old = await first.emit("compute")
    clock.advance(10)
    second = await strangers.workflows.claim("order-1")
    new = await second.emit("compute")
    guard = leases.workflows.guard("order-1")

    with pytest.raises(LeaseViolation) as refused:
        await guard.check(old, authoritative=True)
    assert refused.value.context["expected_lease"] == second.lease_id
    assert await guard.check(new, authoritative=True)
    assert (guard.expected_lease_id, guard.token) == (second.lease_id, second.token)


async def test_the_registrar_knows_what_was_never_emitted(leases: Any) -> None:
    orchestrator = await leases.workflows.claim("order-1")
    await orchestrator.emit("compute")
    guard = leases.workflows.guard("order-1")

    with pytest.raises(FutureEpoch):
        await guard.check(act(1, orchestrator.lease_id), authoritative=True)
    with pytest.raises(LeaseViolation):
        await guard.check(act(0, orchestrator.lease_id), authoritative=True)
    with pytest.raises(WorkflowLeaseNotFound) as missing:
        await guard.check(act(0, "unknown"), authoritative=True)
    assert missing.value.error_code == "LEASE_NOT_FOUND"
    with pytest.raises(WorkflowLeaseNotFound):
        await leases.workflows.guard("unknown").check(act(0, orchestrator.lease_id), authoritative=True)


async def test_an_authoritative_check_renews_what_a_guard_knows_of_a_lease(
    clock: FakeClock, leases: Any
) -> None:
    orchestrator = await leases.workflows.claim("order-1", ttl=100)
    action = await orchestrator.emit("compute")
    guard = leases.workflows.guard("order-1")
    target = getattr(guard, "target", guard)
    target.set_lease(orchestrator.lease_metadata)
    target._deadline_ns = clock.tick_ns() + 10**9
    clock.advance(2)

    with pytest.raises(WorkflowLeaseExpired):
        await guard.check(action)
    assert await guard.check(action, authoritative=True)
    assert await guard.check(action)


def test_a_guard_without_a_registrar_cannot_ask_it() -> None:
    guard = Guard("w")
    guard.set_lease("lease")

    with pytest.raises(InvalidInput):
        guard.check(act(0), authoritative=True)
    with pytest.raises(InvalidInput):
        guard.load()
    with pytest.raises(InvalidInput):
        Guard("w", durable_as="node")


async def test_a_durable_position_survives_the_guard(leases: Any) -> None:
    orchestrator = await leases.workflows.claim("order-1")
    actions = [await orchestrator.emit("compute", {"n": number}) for number in range(3)]
    processed: list[int] = []

    def handle(action: Action) -> None:
        processed.append(action.payload["n"])

    first = leases.workflows.guard("order-1", policy="strict", durable_as="node")
    for action in actions[:2]:
        await first.process(action, handle)
    second = leases.workflows.guard("order-1", policy="strict", durable_as="node")
    for action in actions:
        await second.process(action, handle)
    other = leases.workflows.guard("order-1", durable_as="another")
    await other.process(actions[0], handle)

    assert processed == [0, 1, 2, 0]
    assert second.last_processed_epoch == 2


async def test_a_durable_position_follows_the_workflow_to_its_successor(leases: Any, strangers: Any) -> None:
    first = await leases.workflows.claim("order-1")
    guard = leases.workflows.guard("order-1", durable_as="node")
    await guard.process(await first.emit("compute"), str)
    await first.release()
    second = await strangers.workflows.claim("order-1")
    later = await second.emit("compute")

    successor = leases.workflows.guard("order-1", durable_as="node")

    assert await successor.check(later)
    assert successor.last_processed_epoch == 0


async def test_a_durable_guard_processes_what_an_earlier_orchestrator_has_left_on_the_bus(
    leases: Any, strangers: Any
) -> None:
    subscription = await leases.workflows.bus.subscribe("node")
    first = await leases.workflows.claim("order-1")
    early = await first.emit("compute")
    await first.release()
    second = await strangers.workflows.claim("order-1")
    later = await second.emit("compute")
    guard, processed = leases.workflows.guard("order-1", durable_as="node"), list[Action]()

    for delivery in await subscription.poll():
        await guard.process(delivery, processed.append)

    assert processed == [early, later]


@pytest.mark.parametrize("policy", ["monotonic", "strict"])
async def test_what_a_durable_guard_was_told_by_the_bus_survives_it(
    leases: Any, strangers: Any, policy: str
) -> None:
    """What was acknowledged is not delivered again: not the next lease, and no epoch that went elsewhere."""
    subscription = await leases.workflows.bus.subscribe("node")
    first = await leases.workflows.claim("order-1")
    await first.emit("compute")
    await first.release()
    second = await strangers.workflows.claim("order-1")
    await second.transition("half done")
    guard = leases.workflows.guard("order-1", policy=policy, durable_as="node")
    for delivery in await subscription.poll():
        await guard.process(delivery, str)
        await subscription.ack(delivery)
    later = await second.emit("compute")

    restarted = leases.workflows.guard("order-1", policy=policy, durable_as="node")
    processed = list[Action]()
    for delivery in await subscription.poll():
        await restarted.process(delivery, processed.append)

    assert processed == [later]


@pytest.mark.parametrize("durable_as", [None, "node"])
async def test_a_guard_that_was_told_only_the_id_of_its_lease_stays_with_it_whatever_came_before(
    leases: Any, strangers: Any, durable_as: str | None
) -> None:
    subscription = await leases.workflows.bus.subscribe("node")
    first = await leases.workflows.claim("order-1")
    early = await first.emit("compute")
    if durable_as is not None:
        await leases.workflows.guard("order-1", durable_as=durable_as).process(early, str)
    await leases.workflows.manager.revoke_lease(first.lease_id, "hangs")
    second = await strangers.workflows.claim("order-1")
    later = [await second.emit("compute") for _ in range(2)]
    guard, processed = leases.workflows.guard("order-1", durable_as=durable_as), list[Action]()
    guard.set_lease(second.lease_id, epoch=later[0].epoch)

    for delivery in await subscription.poll():
        if delivery.message == early:
            with pytest.raises(LeaseViolation):
                await guard.process(delivery, processed.append)
        else:
            await guard.process(delivery, processed.append)

    assert processed == later
    assert guard.position == (second.lease_id, second.token, later[1].epoch)
    third = await _after(second, leases)
    await guard.process((await subscription.poll())[-1], str)
    assert guard.expected_lease_id == third.lease_id


async def _after(orchestrator: Any, leases: Any) -> Any:
    """Let somebody else lead its workflow."""
    await orchestrator.release()
    return await leases.workflows.claim(orchestrator.workflow_id)


async def test_loading_never_takes_back_what_the_bus_has_told(leases: Any) -> None:
    orchestrator = await leases.workflows.claim("order-1")
    guard = leases.workflows.guard("order-1", durable_as="node")
    target = getattr(guard, "target", guard)
    await guard.process(await orchestrator.emit("compute"), str)
    action = await orchestrator.emit("compute")
    said = {"lease_id": orchestrator.lease_id, "token": orchestrator.token, "epoch": 7}
    target.follow(told(EventType.STATE_CHANGED, "order-1", **said))
    target.follow(told(EventType.LEASE_REVOKED, "order-1", **said))

    await guard.load()

    assert target.last_processed_epoch == 7
    with pytest.raises(LeaseViolation):
        await guard.check(action)


@pytest.mark.parametrize("ends", ["released", "expired", "completed"])
async def test_a_guard_that_is_loaded_hears_that_nobody_has_the_workflow(
    clock: FakeClock, leases: Any, ends: str
) -> None:
    orchestrator = await leases.workflows.claim("order-1", ttl=10)
    guard = leases.workflows.guard("order-1", durable_as="node")
    await guard.process(await orchestrator.emit("compute"), str)
    action = await orchestrator.emit("compute")
    if ends == "expired":
        clock.advance(10)
    else:
        await (orchestrator.release() if ends == "released" else orchestrator.complete())

    restarted = leases.workflows.guard("order-1", durable_as="node")

    with pytest.raises(LeaseViolation, match="nobody has the workflow"):
        await restarted.check(action)


async def test_an_answer_of_the_registrar_that_comes_late_takes_no_guard_back(
    leases: Any, strangers: Any
) -> None:
    """It was on its way while the bus told the guard of the successor."""
    first = await leases.workflows.claim("order-1")
    stale = await first.emit("compute")
    known = await leases.workflows.known("order-1", action_id=stale.action_id, lease_id=first.lease_id)
    guard = Guard("order-1")
    guard.set_lease(first.lease_id, token=first.token)
    await first.release()
    second = await strangers.workflows.claim("order-1")
    guard.follow(
        told(EventType.LEASE_TAKEN_OVER, "order-1", lease_id=second.lease_id, token=second.token, epoch=2)
    )

    with pytest.raises(LeaseViolation):
        guard.believe(stale, known)
    assert guard.expected_lease_id == second.lease_id


async def test_the_mark_of_an_action_is_that_of_its_own_lease(leases: Any, strangers: Any) -> None:
    """Also if the guard was told of the next lease while the handler ran."""
    first = await leases.workflows.claim("order-1")
    action = await first.emit("compute")
    guard = leases.workflows.guard("order-1", durable_as="node")
    target = getattr(guard, "target", guard)

    def handle(action: Action) -> None:
        said = {"lease_id": "next", "token": first.token + 1, "epoch": 2}
        target.follow(told(EventType.LEASE_TAKEN_OVER, "order-1", **said))

    await guard.process(action, handle)

    mark = (await leases.workflows.known("order-1", guard="node")).mark
    assert (mark.lease_id, mark.token) == (first.lease_id, first.token)


async def test_a_durable_strict_guard_hears_from_the_bus_which_epochs_went_elsewhere(
    leases: Any, strangers: Any
) -> None:
    subscription = await leases.workflows.bus.subscribe("node")
    first = await leases.workflows.claim("order-1")
    await first.emit("compute")
    guard = leases.workflows.guard("order-1", policy="strict", durable_as="node")
    for delivery in await subscription.poll():
        await guard.process(delivery, str)
        await subscription.ack(delivery)
    await first.release()
    second = await strangers.workflows.claim("order-1")
    later = await second.emit("compute")

    restarted, processed = (
        leases.workflows.guard("order-1", policy="strict", durable_as="node"),
        list[Action](),
    )
    for delivery in await subscription.poll():
        await restarted.process(delivery, processed.append)

    assert processed == [later]
    assert restarted.last_processed_epoch == 2


@pytest.mark.parametrize(
    "make",
    [
        lambda workflows: workflows.guard(""),
        lambda workflows: workflows.guard("w", durable_as=""),
        lambda workflows: workflows.guard("w", policy="none"),
    ],
)
async def test_a_guard_that_cannot_be_right_is_refused(leases: Any, make: Callable[[Any], Any]) -> None:
    with pytest.raises((InvalidInput, LimitExceeded)):
        make(leases.workflows)


def test_wall_times_have_a_time_zone() -> None:
    assert moment_of(0).tzinfo is not None
