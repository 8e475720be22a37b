"""The bus: the ledger is the outbox, and a subscriber reads it from a position that is kept for it.

A message is delivered in order, at least once: whatever was not acknowledged comes again, to whoever
subscribes under the same name next. Nothing is lost between an emission and the bus, because they are the
same commit.
"""

import time
from collections import deque
from collections.abc import AsyncIterator
from types import TracebackType
from typing import Protocol, Self

from leasehold.client.aio.acquisition import AsyncAcquisition
from leasehold.client.aio.session import AsyncSession
from leasehold.client.inputs import name as checked_name
from leasehold.client.inputs import whole_number
from leasehold.engine.desk import answer_of
from leasehold.engine.port import EntryQuery, Head
from leasehold.engine.questions import FindHead, Followed, FollowLedger, check_limit
from leasehold.errors import InvalidInput
from leasehold.kernel.ledger.commands import Command
from leasehold.workflows.law.commands import Acknowledge, Subscribe, Subscribed, Unsubscribe, Unsubscribed
from leasehold.workflows.law.records import Subscription as SubscriptionRecord
from leasehold.workflows.law.records import resource_of
from leasehold.workflows.messages import PUBLISHED_TYPES, delivery_of
from leasehold.workflows.models import Delivery
from leasehold.workflows.questions import ListSubscriptions

_PAGE = 100
_HEARD_OF_SECONDS = 24 * 3600.0
"""How often a subscriber who has nothing to acknowledge says that it is there."""
_FALLEN_BEHIND = 1_000
"""After so many entries that did not concern it a subscriber moves on, so that they can be pruned."""


class AsyncSource(Protocol):
    """What a subscription reads from."""

    async def read(self, after: int, limit: int) -> tuple[list[Delivery], int]:
        """Return the next messages, and where the source ends."""
        ...

    async def acknowledge(self, position: int) -> int:
        """Move the subscription; return where it stands."""
        ...

    async def unsubscribe(self) -> None:
        """Give the subscription up."""
        ...

    async def until_beyond(self, position: int, seconds: float) -> None:
        """Wait until there may be more, or for so long."""
        ...


class AsyncSubscription:
    """A reader of the bus, at its position. For one reader at a time."""

    def __init__(self, source: AsyncSource, name: str, position: int) -> None:
        self._source = source
        self.name = name
        self.position = position
        """Everything up to here is acknowledged."""
        self._delivered = position
        self._looked = position
        self._ahead: deque[Delivery] = deque()
        """What was read, and not delivered yet."""
        self._heard_of = time.monotonic()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Stop reading. The subscription stays, and whatever was not acknowledged comes again."""
        del kind, error, trace

    async def poll(self, limit: int = _PAGE) -> list[Delivery]:
        """Return the next messages that are there, up to a limit, without waiting for more."""
        check_limit(whole_number("limit", limit))
        if not self._ahead:
            await self._read(limit)
        found = [self._ahead.popleft() for _ in range(min(limit, len(self._ahead)))]
        if found:
            self._delivered = found[-1].position
        return found

    async def _read(self, limit: int) -> None:
        found, end = await self._source.read(self._looked, limit)
        self._ahead.extend(found)
        if found:
            self._looked = found[-1].position
        else:
            self._looked = max(self._looked, end)
            await self._move_on()

    async def _move_on(self) -> None:
        """Say that this subscriber is there, and pass by what does not concern it."""
        if self.position < self._delivered:
            return
        late = time.monotonic() - self._heard_of >= _HEARD_OF_SECONDS
        if late or self._looked - self.position >= _FALLEN_BEHIND:
            self._delivered = self._looked
            await self._acknowledge(self._looked)

    async def messages(self) -> AsyncIterator[Delivery]:
        """Yield messages in order, for ever; wait where there are none."""
        while True:
            if not self._ahead:
                await self._read(_PAGE)
            if self._ahead:
                delivery = self._ahead.popleft()
                self._delivered = delivery.position
                yield delivery
            else:
                await self._source.until_beyond(self._looked, _HEARD_OF_SECONDS)

    def __aiter__(self) -> AsyncIterator[Delivery]:
        return self.messages()

    async def ack(self, delivery: Delivery | int) -> None:
        """Acknowledge a message, and all before it: they will not be delivered again."""
        position = delivery.position if isinstance(delivery, Delivery) else whole_number("position", delivery)
        if position > self._delivered:
            raise InvalidInput(
                f"position {position} was not delivered here; acknowledge what was, up to {self._delivered}",
                field="position",
            )
        if position > self.position:
            await self._acknowledge(position)

    async def _acknowledge(self, position: int) -> None:
        self.position = await self._source.acknowledge(position)
        self._heard_of = time.monotonic()

    def rewind(self) -> None:
        """Have everything delivered again that was not acknowledged."""
        self._delivered = self._looked = self.position
        self._ahead.clear()

    async def unsubscribe(self) -> None:
        """Give the subscription up: its position is forgotten, and pruning does not wait for it."""
        await self._source.unsubscribe()


class AsyncLedgerSource:
    """The ledger, for one subscription."""

    def __init__(self, session: AsyncSession, name: str, workflow_id: str) -> None:
        self._session = session
        self._name = name
        self._resource = resource_of(workflow_id) if workflow_id else None

    async def read(self, after: int, limit: int) -> tuple[list[Delivery], int]:
        """Return the next messages, and where the ledger ends."""
        tenant = self._session.tenant
        query = EntryQuery(
            after=after, limit=limit, tenant=tenant, resource=self._resource, types=PUBLISHED_TYPES
        )
        followed: Followed = await self._session.ask(FollowLedger(tenant=tenant, query=query))
        return [delivery_of(entry) for entry in followed.entries], followed.end

    async def acknowledge(self, position: int) -> int:
        """Move the subscription; return where it stands."""
        command = Acknowledge(
            tenant=self._session.tenant,
            request_id=self._session.ids.name(),
            name=self._name,
            position=position,
            holder=self._session.holders.current(),
        )
        return answer_of(await self._session.send(command), Subscribed).position

    async def unsubscribe(self) -> None:
        """Give the subscription up."""
        command: Command = Unsubscribe(
            tenant=self._session.tenant,
            request_id=self._session.ids.name(),
            name=self._name,
            holder=self._session.holders.current(),
        )
        answer_of(await self._session.send(command), Unsubscribed)

    async def until_beyond(self, position: int, seconds: float) -> None:
        """Wait until the ledger goes beyond a position, or for so long."""
        await self._session.calls.until_beyond(position, seconds)


class AsyncBus:
    """Where orchestrators' actions can be read, with what happens to their leases among them."""

    def __init__(self, session: AsyncSession) -> None:
        self._session = session

    def subscribe(
        self, name: str, *, workflow_id: str | None = None, after: int | None = None
    ) -> AsyncAcquisition[AsyncSubscription]:
        """Read under a name that keeps its position: where it has come to, or for a new one after `after`.

        None: with what comes from now on; 0: with the first message that was not pruned. `workflow_id` reads
        one workflow only. A subscription that is not heard of for 7 days loses its place.
        """
        checked_name("name", name)
        only = "" if workflow_id is None else checked_name("workflow_id", workflow_id)
        start = None if after is None else whole_number("after", after, minimum=0)
        return AsyncAcquisition(self._subscribe(name, only, start))

    async def _subscribe(self, name: str, workflow_id: str, after: int | None) -> AsyncSubscription:
        head: Head = await self._session.ask(FindHead())
        if after is not None and after > head.position:
            raise InvalidInput(
                f"after must be a position of the ledger, which ends at {head.position}", field="after"
            )
        command = Subscribe(
            tenant=self._session.tenant,
            request_id=self._session.ids.name(),
            name=name,
            position=head.position if after is None else after,
            workflow_id=workflow_id,
            holder=self._session.holders.current(),
        )
        position = answer_of(await self._session.send(command), Subscribed).position
        return AsyncSubscription(AsyncLedgerSource(self._session, name, workflow_id), name, position)

    async def subscriptions(self) -> list[SubscriptionRecord]:
        """Return who reads the bus, and how far each has come."""
        found: list[SubscriptionRecord] = await self._session.ask(
            ListSubscriptions(tenant=self._session.tenant)
        )
        return found
