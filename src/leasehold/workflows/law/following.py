"""Readers of the bus, and how far they and the guards have come.

A subscription keeps a position in the ledger that pruning does not pass. It is kept for a week after it was
last heard of; then it loses its place, so that a reader who never comes back cannot stop pruning for ever.
"""

from collections.abc import Callable

from leasehold.kernel.ledger.draft import Draft
from leasehold.kernel.ledger.events import stamp
from leasehold.kernel.ledger.key import split_key
from leasehold.kernel.ledger.limits import over_limit
from leasehold.kernel.ledger.refusals import Refusal
from leasehold.kernel.ledger.tick import Tick
from leasehold.workflows.law.commands import (
    Acknowledge,
    Marked,
    MarkGuard,
    Subscribe,
    Subscribed,
    Unsubscribe,
    Unsubscribed,
)
from leasehold.workflows.law.events import (
    GuardMarked,
    SubscriptionCarried,
    SubscriptionClosed,
    SubscriptionMoved,
    SubscriptionOpened,
)
from leasehold.workflows.law.limits import SUBSCRIPTIONS
from leasehold.workflows.law.ownership import (
    REFRESH,
    STALE_EPOCH,
    SUBSCRIPTION_EXISTS,
    SUBSCRIPTION_NOT_FOUND,
    refuse,
    workflow,
    workflow_not_found,
)
from leasehold.workflows.law.records import (
    SUBSCRIPTION,
    WORKFLOW,
    Mark,
    Record,
    Subscription,
    all_of,
    mark_key,
    subscription_key,
)

_DAY_NS = 24 * 3600 * 1_000_000_000
KEPT_NS = 7 * _DAY_NS
"""How long a subscription keeps its place without being heard of."""


def subscribe(command: Subscribe, draft: Draft) -> Refusal | Callable[[], Subscribed]:
    """Open a subscription, or go on with the one that is there."""
    record = _subscription(command.tenant, command.name, draft)
    if record is not None:
        if record.workflow_id != command.workflow_id:
            reads = f"workflow {record.workflow_id}" if record.workflow_id else "all workflows"
            return refuse(
                SUBSCRIPTION_EXISTS,
                f"subscription {command.name} reads {reads}; use another name, or unsubscribe it first",
                workflow_id=record.workflow_id,
            )
        _move(record, record.position, command, draft)
        return _subscribed(command, draft)
    low, high = all_of(command.tenant, SUBSCRIPTION)
    if draft.count(WORKFLOW, low, high) >= SUBSCRIPTIONS:
        return over_limit(
            "subscriptions", SUBSCRIPTIONS, f"{SUBSCRIPTIONS} are open already; close some first"
        )
    draft.append(
        SubscriptionOpened(
            **stamp(draft.now, command.tenant, command.holder),
            request=command.request_id,
            name=command.name,
            position=command.position,
            workflow_id=command.workflow_id,
            due=draft.now.tick.value + KEPT_NS,
        )
    )
    return _subscribed(command, draft)


def acknowledge(command: Acknowledge, draft: Draft) -> Refusal | Callable[[], Subscribed]:
    """Move a subscription on. One that has come further stays where it is."""
    record = _subscription(command.tenant, command.name, draft)
    if record is None:
        return not_found(command.name)
    _move(record, max(command.position, record.position), command, draft)
    return _subscribed(command, draft)


def unsubscribe(command: Unsubscribe, draft: Draft) -> Refusal | Unsubscribed:
    """Give a subscription up."""
    earlier = draft.remembered(command)
    if isinstance(earlier, SubscriptionClosed):
        return Unsubscribed(position=earlier.position)
    record = _subscription(command.tenant, command.name, draft)
    if record is None:
        return not_found(command.name)
    draft.append(
        SubscriptionClosed(
            **stamp(draft.now, command.tenant, command.holder),
            request=command.request_key,
            name=command.name,
            position=record.position,
        )
    )
    return Unsubscribed(position=record.position)


def _subscription(tenant: str, name: str, draft: Draft) -> Subscription | None:
    record: Subscription | None = draft.get(WORKFLOW, subscription_key(tenant, name))
    return record


def _subscribed(command: Subscribe | Acknowledge, draft: Draft) -> Callable[[], Subscribed]:
    record = _subscription(command.tenant, command.name, draft)
    assert record is not None, "it was opened, or is there"
    position = record.position
    return lambda: Subscribed(position=position)


def _move(record: Subscription, position: int, command: Subscribe | Acknowledge, draft: Draft) -> None:
    """Note how far a reader has come. That it is there is noted once a day, if it has come no further."""
    heard_of = draft.now.tick.value + KEPT_NS
    if position == record.position and heard_of - record.due.value < _DAY_NS:
        return
    draft.append(
        SubscriptionMoved(
            **stamp(draft.now, command.tenant, command.holder),
            request=command.request_id,
            name=command.name,
            position=position,
            due=heard_of,
        )
    )


def not_found(name: str) -> Refusal:
    """Refuse to do anything with a subscription that there is not."""
    days = KEPT_NS // _DAY_NS
    return refuse(
        SUBSCRIPTION_NOT_FOUND,
        f"subscription {name} does not exist, or lost its place because it was not heard of for {days} days; "
        "subscribe again",
        subscription=name,
    )


def mark(command: MarkGuard, draft: Draft) -> Refusal | Marked:
    """Keep how far a guard has come. It never goes back."""
    if workflow(command.tenant, command.workflow_id, draft) is None:
        return workflow_not_found(command.workflow_id)
    record: Mark | None = draft.get(WORKFLOW, mark_key(command.tenant, command.workflow_id, command.name))
    if record is not None and command.action_id in record.recent:
        return Marked(epoch=record.epoch)
    if record is not None and (command.token, command.epoch) < (record.token, record.epoch):
        return refuse(
            STALE_EPOCH,
            f"guard {command.name} has come further, to epoch {record.epoch}",
            action_epoch=command.epoch,
            current_epoch=record.epoch,
            recommendation=REFRESH,
        )
    draft.append(
        GuardMarked(
            **stamp(draft.now, command.tenant, command.holder),
            request=command.request_id,
            name=command.name,
            workflow_id=command.workflow_id,
            lease_id=command.lease_id,
            token=command.token,
            epoch=command.epoch,
            action_id=command.action_id,
        )
    )
    return Marked(epoch=command.epoch)


def due(record: Record) -> Tick | None:
    """Return when a subscription loses its place; time does nothing to the other records."""
    return record.due if isinstance(record, Subscription) else None


def age(key: str, record: Subscription, draft: Draft) -> None:
    """Close a subscription after its time; give one of an earlier era what it had left."""
    tick, tenant = record.due, split_key(key)[0]
    if tick.era != draft.now.tick.era:
        carried = draft.carried(tick)
        if carried is None:
            return
        draft.append(
            SubscriptionCarried(
                **stamp(draft.now, tenant),
                name=record.name,
                due=carried.value,
            )
        )
        tick = carried
    if tick.value <= draft.now.tick.value:
        draft.append(
            SubscriptionClosed(
                **stamp(draft.now, tenant),
                name=record.name,
                position=record.position,
                lost=True,
            )
        )
