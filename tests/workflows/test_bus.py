"""The bus: in order, at least once, from a position that is kept."""

import asyncio
from typing import Any

import pytest

from leasehold.errors import HistoryPruned, InvalidInput, LimitExceeded
from leasehold.testing.clock import FakeClock
from leasehold.workflows import (
    Action,
    AsyncLocalBus,
    Delivery,
    Event,
    EventType,
    Guard,
    LeaseViolation,
    LocalBus,
    SubscriptionExists,
    SubscriptionNotFound,
)
from tests.client.worlds import SIGNAL_SECONDS, World

DAY = 24 * 3600


def words(deliveries: list[Any]) -> list[str]:
    return [getattr(one.message, "action_type", None) or one.message.event_type.value for one in deliveries]


async def test_a_new_subscription_reads_from_now_on_or_from_the_start(leases: Any) -> None:
    orchestrator = await leases.workflows.claim("order-1")
    await orchestrator.emit("before")
    late = await leases.workflows.bus.subscribe("late")
    early = await leases.workflows.bus.subscribe("early", after=0)
    await orchestrator.emit("after")

    assert words(await late.poll()) == ["after"]
    assert words(await early.poll()) == ["lease_claimed", "before", "after"]
    assert await early.poll() == []


async def test_what_was_not_acknowledged_is_delivered_again(leases: Any) -> None:
    orchestrator = await leases.workflows.claim("order-1")
    subscription = await leases.workflows.bus.subscribe("node")
    for number in range(4):
        await orchestrator.emit(f"step-{number}")
    first, second, *_ = await subscription.poll()
    await subscription.ack(second)
    await subscription.ack(first)  # An acknowledgement never goes back.

    again = await leases.workflows.bus.subscribe("node", after=0)

    assert again.position == second.position
    assert words(await again.poll()) == ["step-2", "step-3"]
    again_here = subscription
    again_here.rewind()
    assert words(await again_here.poll(1)) == ["step-2"]


async def test_only_what_was_delivered_can_be_acknowledged(leases: Any) -> None:
    orchestrator = await leases.workflows.claim("order-1")
    subscription = await leases.workflows.bus.subscribe("node")
    await orchestrator.emit("one")
    await orchestrator.emit("two")
    (one,) = await subscription.poll(1)

    for position in (one.position + 1, 10**9, "1", None):
        with pytest.raises(InvalidInput):
            await subscription.ack(position)
    assert subscription.position < one.position


async def test_a_subscription_to_one_workflow_reads_nothing_else(leases: Any) -> None:
    only = await leases.workflows.bus.subscribe("node", workflow_id="order-2")
    one, two = await leases.workflows.claim("order-1"), await leases.workflows.claim("order-2")
    await one.emit("first")
    await two.emit("second")

    assert words(await only.poll()) == ["lease_claimed", "second"]
    with pytest.raises(SubscriptionExists):
        await leases.workflows.bus.subscribe("node")


async def test_what_happens_to_the_lease_travels_among_the_actions(
    clock: FakeClock, leases: Any, strangers: Any
) -> None:
    subscription = await leases.workflows.bus.subscribe("node")
    first = await leases.workflows.claim("order-1", ttl=10)
    action = await first.emit("one")
    clock.advance(10)
    second = await strangers.workflows.claim("order-1")
    handed = await second.handoff("ann")
    third = await leases.workflows.claim_lease(handed.new_lease_id)
    await third.emit("three")
    await strangers.workflows.manager.revoke_lease(third.lease_id, "why not")
    fourth = await leases.workflows.claim("order-1")
    await fourth.cancel("enough")

    guard, executed, deliveries = Guard("order-1"), list[Action](), await subscription.poll()
    for delivery in deliveries:
        guard.process(delivery, executed.append)

    assert words(deliveries) == [
        "lease_claimed",
        "one",
        "lease_expired",
        "lease_taken_over",
        "lease_transfer",
        "lease_accepted",
        "three",
        "lease_revoked",
        "lease_taken_over",
        "workflow_cancelled",
    ]
    assert [one.action_type for one in executed] == ["one", "three"]
    assert guard.expected_lease_id == fourth.lease_id
    with pytest.raises(LeaseViolation):
        guard.check(action)


async def test_a_subscriber_that_waits_is_woken_by_the_next_message(real_world: World) -> None:
    leases = real_world.connect(holder="ann")
    orchestrator = await leases.workflows.claim("order-1")
    subscription = await leases.workflows.bus.subscribe("node")
    messages = subscription.messages()

    waiting = asyncio.ensure_future(anext(messages))
    await asyncio.sleep(0)
    await orchestrator.emit("one")
    delivery = await asyncio.wait_for(waiting, SIGNAL_SECONDS)
    await orchestrator.emit("two")

    assert words([delivery, await anext(messages)]) == ["one", "two"]
    await messages.aclose()


async def test_a_subscription_can_be_given_up(leases: Any) -> None:
    subscription = await leases.workflows.bus.subscribe("node")
    assert [one.name for one in await leases.workflows.bus.subscriptions()] == ["node"]

    await subscription.unsubscribe()

    assert await leases.workflows.bus.subscriptions() == []
    with pytest.raises(SubscriptionNotFound):
        await subscription.unsubscribe()


@pytest.mark.parametrize(
    "arguments",
    [
        {"name": ""},
        {"name": "x" * 129},
        {"name": 7},
        {"after": -1},
        {"after": "0"},
        {"after": 10**9},
        {"workflow_id": ""},
    ],
)
async def test_a_subscription_that_cannot_be_right_is_refused(leases: Any, arguments: Any) -> None:
    given = {"name": "node"} | arguments
    with pytest.raises((InvalidInput, LimitExceeded)):
        await leases.workflows.bus.subscribe(given.pop("name"), **given)
    subscription = await leases.workflows.bus.subscribe("node")
    for limit in (0, 10_001, None):
        with pytest.raises(InvalidInput):
            await subscription.poll(limit)


async def test_a_subscriber_that_is_caught_up_lets_pruning_pass(
    leases: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    for half in ("aio", "blocking"):
        monkeypatch.setattr(f"leasehold.workflows.{half}.bus._FALLEN_BEHIND", 4)
    subscription = await leases.workflows.bus.subscribe("node")
    before = subscription.position
    for number in range(3):
        await (await leases.acquire(f"door-{number}")).release()

    assert await subscription.poll() == []

    assert subscription.position >= before + 6
    assert subscription.position <= await leases.position()


async def test_a_subscriber_that_waits_for_nothing_says_once_a_day_that_it_is_there(
    leases: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    subscription = await leases.workflows.bus.subscribe("node")
    target = getattr(subscription, "target", subscription)
    before = subscription.position
    orchestrator = await leases.workflows.claim("order-1")
    await subscription.poll()
    target._heard_of -= DAY

    await subscription.poll()
    assert subscription.position == before  # What it has not acknowledged, it may want again.
    await subscription.ack(target._delivered)
    target._heard_of -= DAY
    await orchestrator.renew(always=True)
    await subscription.poll()

    assert subscription.position > before


async def test_pruning_waits_for_a_slow_subscriber_and_after_a_week_it_loses_its_place(
    clock: FakeClock, leases: Any
) -> None:
    orchestrator = await leases.workflows.claim("order-1", ttl=29 * DAY)
    subscription = await leases.workflows.bus.subscribe("slow")
    await orchestrator.emit("one")
    clock.advance(2 * 3600)

    await leases.prune(keep=3600)
    assert words(await subscription.poll()) == ["one"]

    clock.advance(7 * DAY)
    await leases.sweep()
    clock.advance(2 * 3600)
    await leases.prune(keep=3600)
    subscription.rewind()
    with pytest.raises(HistoryPruned):
        await subscription.poll()
    with pytest.raises(SubscriptionNotFound):
        await subscription.unsubscribe()


# In the process.


async def test_the_local_bus_has_the_interface_of_the_real_one() -> None:
    bus = AsyncLocalBus()
    early = await bus.subscribe("early", after=0)
    await bus.publish("w", Action(action_type="one", lease_id="lease", epoch=0))
    await bus.publish("v", Event(event_type=EventType.STATE_CHANGED))
    only = await bus.subscribe("only", workflow_id="v", after=0)
    waiting = asyncio.ensure_future(anext((await bus.subscribe("late")).messages()))
    await asyncio.sleep(0)
    await bus.publish("w", Action(action_type="two", lease_id="lease", epoch=1))

    assert words(await early.poll()) == ["one", "state_changed", "two"]
    assert words(await only.poll()) == ["state_changed"]
    assert words([await waiting]) == ["two"]
    await early.ack(2)
    assert words(await (await bus.subscribe("early")).poll()) == ["two"]
    await early.unsubscribe()
    assert (await bus.subscribe("early")).position == 3
    with pytest.raises(InvalidInput):
        await bus.publish("w", "no message")  # type: ignore[arg-type]


def test_the_blocking_local_bus_is_followed_like_the_real_one() -> None:
    bus = LocalBus()
    with bus.subscribe("node", after=0) as subscription:
        bus.publish("w", Action(action_type="one", lease_id="lease", epoch=0))
        for delivery in subscription:
            subscription.ack(delivery)
            break
        assert subscription.position == 1


def test_what_is_published_while_somebody_reads_comes_the_next_time() -> None:
    class Growing(list[Delivery]):
        """Grows as soon as somebody has looked at it."""

        def __getitem__(self, place: Any) -> Any:
            found = super().__getitem__(place)
            if not self:
                bus.publish("w", message)
            return found

    bus, message = LocalBus(), Action(action_type="compute", lease_id="lease", epoch=0)
    bus.published = Growing()
    subscription = bus.subscribe("node", after=0)

    assert subscription.poll() == []
    assert [one.message for one in subscription.poll()] == [message]
