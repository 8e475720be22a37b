"""A bus in the process, with the interface of the real one, for tests of nodes.

It keeps nothing: positions and messages are gone with it.
"""

from leasehold.client.aio.acquisition import AsyncAcquisition
from leasehold.errors import InvalidInput
from leasehold.workflows.aio.bus import AsyncSubscription
from leasehold.workflows.aio.colour import AsyncGrowth
from leasehold.workflows.models import Action, Delivery, Event


class _Source:
    """A local bus, for one subscription."""

    def __init__(self, bus: "AsyncLocalBus", name: str, workflow_id: str | None) -> None:
        self._bus = bus
        self._name = name
        self._workflow_id = workflow_id

    async def read(self, after: int, limit: int) -> tuple[list[Delivery], int]:
        """Return the next messages, and where the bus ends."""
        published, only = self._bus.published, self._workflow_id
        end = len(published)  # First: what is published meanwhile comes the next time.
        found = [one for one in published[after:end] if only is None or one.workflow_id == only]
        return found[:limit], end

    async def acknowledge(self, position: int) -> int:
        """Move the subscription; return where it stands."""
        positions = self._bus.positions
        positions[self._name] = max(position, positions.get(self._name, 0))
        return positions[self._name]

    async def unsubscribe(self) -> None:
        """Give the subscription up."""
        self._bus.positions.pop(self._name, None)

    async def until_beyond(self, position: int, seconds: float) -> None:
        """Wait until there is more, or for so long."""
        published = self._bus.published
        await self._bus.growth.until(lambda: len(published) > position, seconds)


class AsyncLocalBus:
    """Messages that a test publishes, for those who subscribe."""

    def __init__(self) -> None:
        self.published: list[Delivery] = []
        self.positions: dict[str, int] = {}
        self.growth = AsyncGrowth()

    async def publish(self, workflow_id: str, message: Action | Event, *, token: int = 0) -> Delivery:
        """Put a message on the bus."""
        if not isinstance(message, Action | Event):
            raise InvalidInput("message must be an Action or an Event", field="message")
        delivery = Delivery(
            position=len(self.published) + 1, workflow_id=workflow_id, message=message, token=token
        )
        self.published.append(delivery)
        self.growth.grow()
        return delivery

    def subscribe(
        self, name: str, *, workflow_id: str | None = None, after: int | None = None
    ) -> AsyncAcquisition[AsyncSubscription]:
        """Read under a name that keeps its position, as on the real bus."""
        return AsyncAcquisition(self._subscribe(name, workflow_id, after))

    async def _subscribe(self, name: str, workflow_id: str | None, after: int | None) -> AsyncSubscription:
        start = len(self.published) if after is None else after
        position = self.positions.setdefault(name, start)
        return AsyncSubscription(_Source(self, name, workflow_id), name, position)
