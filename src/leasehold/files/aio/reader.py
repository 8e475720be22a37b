"""What agents hold, and who is in whose way."""

from collections.abc import Sequence
from typing import Any

from leasehold.client.aio.session import AsyncSession
from leasehold.client.inputs import page_query
from leasehold.engine.questions import FindWaiters, LeaseStatus, ListLeases
from leasehold.errors import Held
from leasehold.files.names import FileName
from leasehold.files.questions import FindAround
from leasehold.files.refusals import Asked, explained
from leasehold.kernel.lease.model import LeaseState, Mode

_PAGE = 1_000


class AsyncFileReader:
    """Looks at the file leases of one tenant, for who stands in a folder, or where this process does."""

    def __init__(self, session: AsyncSession, *, folder: str | None = None) -> None:
        self._session = session
        self._folder = folder

    async def held_by(self, agent: str) -> list[LeaseStatus]:
        """Return every lease that an agent has and that stands."""
        return [one for one in await self.find(holder=agent, states=[LeaseState.ACTIVE]) if one.is_live]

    async def find(self, **query: Any) -> list[LeaseStatus]:
        """Return all leases that a query asks for, page by page."""
        found: list[LeaseStatus] = []
        after = None
        while True:
            asked = page_query(self._session.tenant, after=after, limit=_PAGE, **query)
            page = await self._session.ask(ListLeases(tenant=asked.tenant, query=asked))
            found += page
            if len(page) < _PAGE:
                return found
            after = page[-1].lease.lease_id

    async def explain(self, error: Held, names: Sequence[FileName], agent: str, mode: Mode) -> Held:
        """Return a refusal with all that its reader needs for the next step."""
        blocker, waiting = None, 0
        for name in names:
            tenant = self._session.tenant
            around = await self._session.ask(FindAround(tenant=tenant, resource=name.resource, against=mode))
            others = [status for status in around if status.lease.holder != agent]
            if others:
                blocker = max(others, key=lambda status: status.expires_in)
                waiters = await self._session.ask(FindWaiters(tenant=tenant, resource=name.resource))
                waiting = len(waiters)
                break
        asked = Asked([name.resource for name in names], agent, mode, self._folder)
        return explained(error, blocker, waiting, asked)
