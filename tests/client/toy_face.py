"""A face that leasehold knows nothing of, as small as one can be: the counters of `tests/families/toy.py`."""

from leasehold.client.aio.lease import AsyncHeldLease
from leasehold.client.aio.session import AsyncSession
from leasehold.engine.desk import answer_of
from tests.client.toy_question import FindCounter
from tests.families.toy import Bump, Value


class AsyncCounters:
    """Counters that count until the lease ends which they were begun under."""

    def __init__(self, session: AsyncSession) -> None:
        self._session = session

    async def begin(self, name: str, lease: AsyncHeldLease) -> int:
        """Begin to count, in the name of whoever holds the lease."""
        command = Bump(
            tenant=self._session.tenant,
            request_id=self._session.ids.name(),
            name=name,
            holder=self._session.holders.of(lease, None),
            lease_id=lease.lease_id,
        )
        return answer_of(await self._session.send(command), Value).value

    async def value(self, name: str) -> int | None:
        """Return how far a counter has come; None if it does not count."""
        value: int | None = await self._session.ask(FindCounter(tenant=self._session.tenant, name=name))
        return value
