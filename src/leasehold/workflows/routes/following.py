"""Reading the bus over plain REST: at least once, and in order.

A subscription keeps its place for seven days after it was last heard of. What is read comes again until it is
acknowledged; to read on without acknowledging, ask with `after`.
"""

from typing import Annotated

from litestar.params import FromQuery, QueryParameter

from leasehold.client.aio.session import AsyncSession
from leasehold.client.inputs import name as checked_name
from leasehold.engine.questions import FindHead
from leasehold.errors import InvalidInput, error_of
from leasehold.kernel.ledger.limits import NUMBER_MAXIMUM
from leasehold.server.routing import Asking, Limit, get, post
from leasehold.workflows.aio.bus import AsyncBus, AsyncLedgerSource
from leasehold.workflows.law.following import not_found
from leasehold.workflows.law.records import Subscription
from leasehold.workflows.routes.bodies import (
    MESSAGE_EXAMPLE,
    AcknowledgeBody,
    MessagesBody,
    PositionBody,
    SubscribeBody,
    SubscriptionBody,
    SubscriptionsBody,
    UnsubscribeBody,
    messages_body,
)

_EXAMPLE = {"name": "charger", "position": 7}


@get("/subscriptions", "List subscriptions", answer={"subscriptions": [_EXAMPLE | {"workflow_id": None}]})
async def list_subscriptions(session: Asking) -> SubscriptionsBody:
    """Return who reads the bus, and how far each has come."""
    found = await AsyncBus(session).subscriptions()
    return SubscriptionsBody(
        subscriptions=[
            SubscriptionBody(name=one.name, position=one.position, workflow_id=one.workflow_id or None)
            for one in found
        ]
    )


@post(
    "/subscriptions",
    "Subscribe to the bus",
    409,
    body={"name": "charger", "holder": "charger-1", "after": 0},
    answer=_EXAMPLE,
)
async def subscribe(session: Asking, data: SubscribeBody) -> PositionBody:
    """Read the bus under a name that keeps its position. One that exists goes on where it has come to.

    409 SUBSCRIPTION_EXISTS: the one of that name reads another workflow.
    """
    bus = AsyncBus(session.acting_as(data.holder))
    subscription = await bus.subscribe(data.name, workflow_id=data.workflow_id, after=data.after)
    return PositionBody(name=data.name, position=subscription.position)


@get(
    "/subscriptions/messages",
    "Read the messages of a subscription",
    404,
    410,
    answer={"messages": [MESSAGE_EXAMPLE], "next": None},
)
async def read(
    session: Asking,
    name: FromQuery[str],
    after: Annotated[
        int | None,
        QueryParameter(ge=0, le=NUMBER_MAXIMUM, description="Continue after this; left out: what is next."),
    ] = None,
    limit: Limit = 100,
) -> MessagesBody:
    """Return the next messages that were not acknowledged, without waiting for more."""
    record = await _existing(session, name)
    source = AsyncLedgerSource(session, name, record.workflow_id)
    found, _ = await source.read(record.position if after is None else after, limit)
    return messages_body(found, limit)


@post(
    "/subscriptions/acknowledge",
    "Acknowledge messages",
    404,
    body={"name": "charger", "holder": "charger-1", "position": 7},
    answer=_EXAMPLE,
)
async def acknowledge(session: Asking, data: AcknowledgeBody) -> PositionBody:
    """Say that everything up to a position is done with: it does not come again. It never goes back."""
    head = await session.ask(FindHead(tenant=session.tenant))
    if data.position > head.position:
        raise InvalidInput(
            f"position must be one of a message, and the ledger ends at {head.position}", field="position"
        )
    source = AsyncLedgerSource(session.acting_as(data.holder), data.name, "")
    return PositionBody(name=data.name, position=await source.acknowledge(data.position))


@post(
    "/subscriptions/close",
    "Give a subscription up",
    404,
    body={"name": "charger", "holder": "charger-1"},
    answer=_EXAMPLE,
)
async def close(session: Asking, data: UnsubscribeBody) -> PositionBody:
    """Give a subscription up: its position is forgotten, and pruning does not wait for it."""
    record = await _existing(session, data.name)
    await AsyncLedgerSource(session.acting_as(data.holder), data.name, "").unsubscribe()
    return PositionBody(name=data.name, position=record.position)


async def _existing(session: AsyncSession, name: str) -> Subscription:
    wanted = checked_name("name", name)
    found = next((one for one in await AsyncBus(session).subscriptions() if one.name == wanted), None)
    if found is None:
        raise error_of(not_found(wanted))
    return found


HANDLERS = (list_subscriptions, subscribe, read, acknowledge, close)
