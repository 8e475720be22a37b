"""Looking at leases and their history, without waiting for anybody who writes."""

from collections.abc import AsyncIterator, Iterable
from datetime import datetime
from typing import TYPE_CHECKING, NoReturn

from leasehold.client.aio.session import AsyncSession
from leasehold.client.inputs import Page, entry_query, page_query, sought, wall_time_ns
from leasehold.engine.port import Head, LeaseQuery
from leasehold.engine.questions import (
    Certify,
    FindBeginning,
    FindChildren,
    FindHead,
    FindHolders,
    FindLease,
    FindWaiters,
    FollowLedger,
    LeaseStatus,
    ListKeys,
    ListLeases,
    PrunedHistory,
    ReadLedger,
    Waiter,
)
from leasehold.kernel.lease.model import LeaseState
from leasehold.kernel.ledger.chain import Entry
from leasehold.metrics.tally import TakeTally, Tally

if TYPE_CHECKING:
    from leasehold.certificates.keys import TrustedKeys


class AsyncReader:
    """Who can look at the leases of one tenant, and at what happens to them."""

    def __init__(self, session: AsyncSession) -> None:
        self._session = session

    def __repr__(self) -> str:
        return f"<{type(self).__name__} of {self._session.desk.url}, tenant {self._session.tenant}>"

    def __reduce__(self) -> NoReturn:
        self._session.__reduce__()

    @property
    def url(self) -> str:
        """The address of the store, under which it can be connected to again."""
        return self._session.desk.url

    async def get(self, lease_id: str) -> LeaseStatus | None:
        """Return a lease by its id, or None."""
        question = FindLease(tenant=self._session.tenant, lease_id=sought("lease_id", lease_id))
        return await self._session.ask(question)

    async def inspect(self, resource: str) -> list[LeaseStatus]:
        """Return who holds a resource now: since when, until when, under which token, how often renewed."""
        question = FindHolders(tenant=self._session.tenant, resource=sought("resource", resource))
        return await self._session.ask(question)

    async def certificate(self, lease_id: str, *, holder: str = "") -> str:
        """Return the registrar's signed word that a lease stands, for those who cannot ask the registrar.

        `verify_certificate` checks it, anywhere. It says nothing about a release or revocation since. With
        `holder`, only if that is who holds it: a key that is bound to holders has to name one of them.
        """
        question = Certify(
            tenant=self._session.tenant,
            lease_id=sought("lease_id", lease_id),
            holder=sought("holder", holder),
        )
        return await self._session.ask(question)

    async def certificate_keys(self) -> "TrustedKeys":
        """Return the public keys by which certificates of this registrar are checked."""
        from leasehold.certificates.issuing import trusted_keys_of

        return trusted_keys_of(await self._session.ask(ListKeys()))

    async def children(self, lease_id: str) -> list[LeaseStatus]:
        """Return the standing leases that were derived from a lease, at most 100, oldest token first."""
        question = FindChildren(tenant=self._session.tenant, lease_id=sought("lease_id", lease_id))
        return await self._session.ask(question)

    async def queue(self, resource: str) -> list[Waiter]:
        """Return who waits for a resource, first in line first: since when, and for how long it may be.

        For a path, those who wait for something above or below it are in the same queue.
        """
        question = FindWaiters(tenant=self._session.tenant, resource=sought("resource", resource))
        return await self._session.ask(question)

    async def history(
        self,
        *,
        lease_id: str | None = None,
        resource: str | None = None,
        holder: str | None = None,
        types: Iterable[str] = (),
        after: int = 0,
        limit: int = 1_000,
    ) -> list[Entry]:
        """Return what the ledger says, oldest first; continue with the last position as `after`.

        It begins with the first entry that was not pruned.
        """
        tenant = self._session.tenant
        query = entry_query(
            tenant, lease_id=lease_id, resource=resource, holder=holder, types=types, after=after, limit=limit
        )
        return await self._session.ask(ReadLedger(tenant=tenant, query=query))

    async def history_begins(self) -> PrunedHistory | None:
        """Return up to where history was pruned, when and by whom; None if it is there from the start."""
        return await self._session.ask(FindBeginning())

    async def held_at(
        self,
        moment: float | datetime,
        *,
        resource: str | None = None,
        holder: str | None = None,
        limit: int = 1_000,
        after: str | None = None,
    ) -> Page:
        """Return a page of the leases that stood at a moment: who held what then, under which token.

        `moment` is a time with its zone, or seconds since 1970. Wall times are for people: where a clock
        was set back or forth, history can only tell what it showed. `page.next` continues as `after`.
        """
        tenant, at_ns = self._session.tenant, wall_time_ns("moment", moment)
        query = page_query(
            tenant, resource=resource, holder=holder, held_at_ns=at_ns, after=after, limit=limit
        )
        return await self._page(query)

    async def position(self) -> int:
        """Return the position of the ledger's last entry."""
        return (await self.head()).position

    async def watch(
        self, *, after: int | None = None, resource: str | None = None, holder: str | None = None
    ) -> AsyncIterator[Entry]:
        """Yield ledger entries as they are committed, for ever: no gap, no repeat, in order.

        `after` is the position of the last entry already seen; None starts with what comes from now on, and 0
        with the first entry that was not pruned. Raises `HistoryPruned` if what comes after it is gone.
        """
        position = await self.position() if after is None else after
        while True:
            query = entry_query(self._session.tenant, resource=resource, holder=holder, after=position)
            followed = await self._session.ask(FollowLedger(tenant=self._session.tenant, query=query))
            for entry in followed.entries:
                yield entry
                position = entry.position
            if not followed.entries:
                position = max(position, followed.end)  # There is nothing of interest before.
                await self._session.calls.until_beyond(position)

    async def head(self) -> Head:
        """Return where the ledger ends. Keep it elsewhere, to `verify` later that nothing was cut off."""
        return await self._session.ask(FindHead())

    async def tally(self) -> Tally:
        """Return counts for monitoring: who holds how many leases, who waits, and how often what happened."""
        return await self._session.ask(TakeTally(tenant=self._session.tenant))

    async def list(
        self,
        *,
        prefix: str | None = None,
        resource: str | None = None,
        holder: str | None = None,
        states: Iterable[LeaseState | str] = (LeaseState.ACTIVE,),
        limit: int = 100,
        after: str | None = None,
    ) -> Page:
        """Return a page of leases; `page.next` continues it as `after`.

        They come in the order of their ids, which for one client is the order of their grants, and nearly
        so for several. Leases that are recorded as active but have expired are among them, with
        `expires_in` 0. Empty `states` means any state.
        """
        tenant = self._session.tenant
        query = page_query(
            tenant, resource=resource, prefix=prefix, holder=holder, states=states, after=after, limit=limit
        )
        return await self._page(query)

    async def _page(self, query: LeaseQuery) -> Page:
        statuses = await self._session.ask(ListLeases(tenant=query.tenant, query=query))
        full = len(statuses) == query.limit
        return Page(statuses=statuses, next=statuses[-1].lease.lease_id if full else None)
