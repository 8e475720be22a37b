"""Leases for programs: acquire, renew, release, look, follow.

Safe to use from many threads (the blocking client) or many tasks (the asynchronous one), and in a forked
child, which holds none of its parent's leases. A method puts what its caller means into a command, or a job;
the parts of the client carry that out.
"""

from collections.abc import Callable, Iterable, Mapping
from functools import cached_property
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from leasehold.client.aio.acquisition import AsyncAcquisition
from leasehold.client.aio.claims import AsyncClaims
from leasehold.client.aio.lease import AsyncHeldLease
from leasehold.client.aio.leases import AsyncHeldLeases
from leasehold.client.aio.reader import AsyncReader
from leasehold.client.aio.session import AsyncSession
from leasehold.client.aio.terms import AsyncTerms
from leasehold.client.aio.upkeep import AsyncUpkeep
from leasehold.client.aio.waiting_room import AsyncWaitingRoom
from leasehold.client.holdings import Holdings
from leasehold.client.inputs import (
    DEFAULT_TTL,
    Duration,
    callback,
    claim_ids,
    duration_ns,
    facts_of,
    granted,
    parse,
    sought,
    text,
    wanted_of,
    whole_number,
)
from leasehold.client.waits import FOREVER_NS, patience_ns
from leasehold.engine.clock import Clock
from leasehold.engine.desk import Desk
from leasehold.engine.questions import LeaseStatus
from leasehold.engine.trust import Trust
from leasehold.errors import Held, LeaseholdError
from leasehold.files.aio.face import AsyncFiles
from leasehold.kernel.lease.access import check_access
from leasehold.kernel.lease.budget import Budget
from leasehold.kernel.lease.commands import Acquire
from leasehold.kernel.lease.model import Mode, ReleaseReason
from leasehold.kernel.lease.scope import Scope
from leasehold.kernel.lease.ticket import PRIORITY_USUAL
from leasehold.kernel.ledger.tick import NANOSECONDS_PER_SECOND
from leasehold.settings.aio.settings import AsyncSettings

if TYPE_CHECKING:
    from leasehold.work.aio.face import AsyncWork
    from leasehold.workflows.aio.workflows import AsyncWorkflows


class AsyncClient(AsyncReader, AsyncUpkeep):
    """A connection to a registrar. Made by `connect` or `connect_async`; close it when you are done."""

    def __init__(
        self,
        desk: Desk,
        *,
        tenant: str = "default",
        holder: str | None = None,
        clock: Clock | None = None,
        trust: Trust | None = None,
    ) -> None:
        session = AsyncSession(desk, tenant=tenant, holder=holder, clock=clock, trust=trust)
        super().__init__(session)
        self._holdings = Holdings(session)
        waiting_room = AsyncWaitingRoom(session)
        self._terms = AsyncTerms(session, self._holdings, waiting_room)
        self._claims = AsyncClaims(session, self._holdings, waiting_room, self._terms)
        self.settings = AsyncSettings(session)
        self.files = AsyncFiles(session, self._holdings, self._claims, self._terms)

    @cached_property
    def work(self) -> "AsyncWork":
        """Messages that are processed one at a time, and in order; loaded when it is first asked for."""
        from leasehold.work.aio.face import AsyncWork

        return AsyncWork(self._session)

    @cached_property
    def workflows(self) -> "AsyncWorkflows":
        """Workflows, each led by one orchestrator at a time; loaded when it is first asked for."""
        from leasehold.workflows.aio.workflows import AsyncWorkflows

        return AsyncWorkflows(self._session, self._holdings, self._terms, self._claims)

    @property
    def holder(self) -> str:
        """The name under which the calling thread or task holds leases, unless it says another."""
        return self._session.holders.current()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        del kind, error, trace
        await self.close()

    async def close(self) -> None:
        """Release every lease this client still keeps, and let go of the store. Closing twice is fine.

        A block that still runs under one of them in another thread or task has lost it, as by a revocation.
        """
        if self._session.is_closed:
            return
        self._session.is_closed = True
        try:
            await self._claims.close()
        finally:
            await self._session.close()

    def acquire(
        self,
        resource: str,
        *,
        ttl: Duration = DEFAULT_TTL,
        mode: Mode | str = Mode.EXCLUSIVE,
        holder: str | None = None,
        adopt: bool = False,
        max_renewals: int = -1,
        metadata: Mapping[str, Any] | None = None,
        reason: str = "",
        config_version: str = "",
        zone_version: str = "",
        survives_reboot: bool = False,
        scope: Scope | None = None,
        budget: Budget | None = None,
        wait: Duration | bool | None = None,
        priority: int = PRIORITY_USUAL,
        lock_delay: Duration = 0,
        on_lost: Callable[[LeaseholdError], None] | None = None,
        request_id: str | None = None,
    ) -> AsyncAcquisition[AsyncHeldLease]:
        """Own a resource for `ttl` seconds, renewed in the background until it is released.

        If somebody else holds it, wait for up to `wait` seconds in the queue (`True`, or `math.inf`: as long
        as it takes; None, or 0: not at all), before those of lower `priority` (1 to 10) who came no more than
        10 s per level earlier. Raises `Held` if it is held, `WaitTimeout` (a kind of it) if it still is after
        that time, `Deadlock` if waiting would never end, and `AlreadyHeld` if this holder holds it and
        `adopt` is not set. `lock_delay` keeps it closed to others for so many seconds after the lease has
        expired or was revoked. `request_id` makes a later call with the same arguments a retry of this one.
        `on_lost` is called once, from a background thread, if the lease is lost. `reason` is told to who is
        refused. A lease with a `scope` or a `budget` can be derived from; without a scope it allows nothing.
        """
        patience = 0 if wait is None else patience_ns(wait)
        lease_id, request = claim_ids(self._session.ids, request_id)
        command = Acquire(
            tenant=self._session.tenant,
            lease_id=lease_id,
            resource=text("resource", resource),
            holder=self._session.holders.current() if holder is None else text("holder", holder),
            ttl_ns=duration_ns("ttl", ttl),
            mode=mode if mode is Mode.EXCLUSIVE else parse("mode", Mode, mode),
            adopt=adopt,
            max_renewals=whole_number("max_renewals", max_renewals),
            metadata=facts_of(metadata, reason),
            config_version=text("config_version", config_version),
            zone_version=text("zone_version", zone_version),
            bound_to_boot=not survives_reboot,
            scope=None if scope is None else granted("scope", Scope, scope),
            budget=None if budget is None else granted("budget", Budget, budget),
            wait=patience > 0,
            gives_up=0 < patience < FOREVER_NS,
            priority=whole_number("priority", priority),
            lock_delay_ns=duration_ns("lock_delay", lock_delay),
            request_id=request,
        )
        hearer = callback("on_lost", on_lost)
        if patience == 0:
            return AsyncAcquisition(self._claims.acquire(command, lease_id, command.holder, hearer))
        return AsyncAcquisition(self._claims.wait(command, hearer, patience))

    def acquire_all(
        self,
        resources: Iterable[str] | Mapping[str, Mode | str],
        *,
        ttl: Duration = DEFAULT_TTL,
        mode: Mode | str = Mode.EXCLUSIVE,
        holder: str | None = None,
        metadata: Mapping[str, Any] | None = None,
        reason: str = "",
        survives_reboot: bool = False,
        wait: Duration | bool | None = None,
        priority: int = PRIORITY_USUAL,
        lock_delay: Duration = 0,
        on_lost: Callable[[LeaseholdError], None] | None = None,
    ) -> AsyncAcquisition[AsyncHeldLeases]:
        """Own several resources at once: all of them, or none.

        They are given as names, all in the same `mode`, or as a mapping from names to modes. The other
        arguments are those of `acquire`, and hold for each. Nobody can wait for ever here, in whatever order
        others ask for the same resources.
        """
        patience = patience_ns(wait)
        first, *others = wanted_of(resources, parse("mode", Mode, mode))
        lease_id, request = claim_ids(self._session.ids, None)
        command = Acquire(
            tenant=self._session.tenant,
            lease_id=lease_id,
            resource=first.resource,
            mode=first.mode,
            also=tuple(others),
            holder=self._session.holders.current() if holder is None else text("holder", holder),
            ttl_ns=duration_ns("ttl", ttl),
            metadata=facts_of(metadata, reason),
            bound_to_boot=not survives_reboot,
            wait=patience > 0,
            gives_up=0 < patience < FOREVER_NS,
            priority=whole_number("priority", priority),
            lock_delay_ns=duration_ns("lock_delay", lock_delay),
            request_id=request,
        )
        return AsyncAcquisition(self._claims.acquire_all(command, callback("on_lost", on_lost), patience))

    def derive(
        self,
        parent: AsyncHeldLease | str,
        resource: str,
        *,
        scope: Scope | None = None,
        budget: Budget | None = None,
        ttl: Duration | None = None,
        holder: str | None = None,
        mode: Mode | str = Mode.EXCLUSIVE,
        max_renewals: int = -1,
        metadata: Mapping[str, Any] | None = None,
        survives_reboot: bool = False,
        on_lost: Callable[[LeaseholdError], None] | None = None,
        request_id: str | None = None,
    ) -> AsyncAcquisition[AsyncHeldLease]:
        """Hand on a part of a lease: a child on a `resource` of its own, with a part of scope and budget.

        The child lasts as long as its parent unless `ttl` is shorter, ends with it at the latest, and gives
        back what it did not spend. Asking for more than the parent has raises `ScopeExceeded`,
        `BudgetExceeded` or `OutlivesParent`. `holder` will hold the child; by default who holds the parent.
        """
        return self._claims.derive(
            parent,
            resource,
            scope=scope,
            budget=budget,
            ttl=ttl,
            holder=holder,
            mode=mode,
            max_renewals=max_renewals,
            metadata=metadata,
            survives_reboot=survives_reboot,
            on_lost=on_lost,
            request_id=request_id,
        )

    async def try_acquire(self, resource: str, **claim: Any) -> AsyncHeldLease | None:
        """Do as `acquire` does with the same arguments, but return None if somebody else (still) holds it."""
        try:
            return await self.acquire(resource, **claim)
        except Held:
            return None

    async def adopt(self, lease_id: str, *, holder: str) -> AsyncHeldLease:
        """Take over a lease that `holder` left behind, under a new id and a higher token.

        Whoever still uses the old lease is fenced off. `holder` must be the name it is held under.
        """
        lease = (await self._terms.existing(sought("lease_id", lease_id))).lease
        return await self.acquire(
            lease.resource,
            ttl=lease.ttl_ns / NANOSECONDS_PER_SECOND,
            mode=lease.mode,
            holder=holder,
            adopt=True,
            max_renewals=lease.max_renewals,
            metadata=lease.metadata,
            config_version=lease.config_version,
            zone_version=lease.zone_version,
            survives_reboot=not lease.bound_to_boot,
        )

    async def renew(
        self, lease: AsyncHeldLease | str, *, ttl: Duration | None = None, holder: str | None = None
    ) -> LeaseStatus:
        """Extend a lease from now, for `ttl` seconds or its own TTL again; return how it stands."""
        return await self._terms.renew(lease, ttl, holder)

    async def renew_many(
        self,
        leases: Iterable[AsyncHeldLease | str],
        *,
        ttl: Duration | None = None,
        holder: str | None = None,
    ) -> list[LeaseStatus | LeaseholdError]:
        """Extend many leases; return for each how it stands, or why it was not extended.

        Leases given as objects are renewed for their own holders; those given by id for `holder`.
        """
        return await self._terms.renew_many(leases, ttl, holder)

    async def upgrade(
        self,
        lease: AsyncHeldLease | str,
        *,
        wait: Duration | bool | None = None,
        holder: str | None = None,
    ) -> LeaseStatus:
        """Have a shared lease exclusively, under a higher token; return how it stands.

        It goes before everybody who waits, but has to wait for the others who share: at most `wait` seconds,
        as for `acquire`. Raises `Held` if they do not release in time, and `Deadlock` if one of them waits
        for the same. The lease is held as before then.
        """
        return await self._terms.change_mode(lease, Mode.EXCLUSIVE, wait=wait, holder=holder)

    async def downgrade(self, lease: AsyncHeldLease | str, *, holder: str | None = None) -> LeaseStatus:
        """Let others share an exclusive lease, under the same token; return how it stands."""
        return await self._terms.change_mode(lease, Mode.SHARED, holder=holder)

    async def transfer(
        self,
        lease: AsyncHeldLease | str,
        *,
        to: str,
        ttl: Duration | None = None,
        holder: str | None = None,
    ) -> LeaseStatus:
        """Hand a lease to another holder, under a new id and a higher token; return the new lease.

        The old one ends in the same commit, so nobody can come in between. The new one lasts `ttl` seconds,
        or as long as the old one's TTL, and nobody renews it until its holder does, or adopts it.
        """
        return await self._terms.transfer(lease, to, ttl, holder)

    async def spend(
        self,
        lease: AsyncHeldLease | str,
        *,
        episodes: int = 0,
        tool_calls: int = 0,
        tokens: int = 0,
        duration_ms: int = 0,
        holder: str | None = None,
        request_id: str | None = None,
    ) -> Budget:
        """Use up some of a lease's budget, all of it or nothing; return what remains.

        Raises `BudgetExceeded` if there is less of anything than asked for, and `BudgetExhausted` if any
        part is used up already. `request_id` makes a later call with the same arguments a retry of this
        one, which spends nothing more.
        """
        spent = {"episodes": episodes, "tool_calls": tool_calls, "tokens": tokens, "duration_ms": duration_ms}
        return await self._terms.spend(lease, holder, request_id, **spent)

    async def remaining_budget(self, lease: AsyncHeldLease | str) -> Budget:
        """Return what can still be spent from a lease, or handed on; None in it means no limit."""
        return await self._terms.remaining_budget(lease)

    async def allows(
        self,
        lease: AsyncHeldLease | str,
        *,
        work_id: str | None = None,
        tool: str | None = None,
        namespace: str | None = None,
    ) -> bool:
        """Ask the registrar whether a lease stands, with all above it, and allows every part of an access."""
        status = await self._terms.existing(lease)
        refusal = check_access(status.lease, work_id=work_id, tool=tool, namespace=namespace)
        return status.is_live and refusal is None

    async def release(
        self,
        lease: AsyncHeldLease | str,
        *,
        reason: ReleaseReason | str = ReleaseReason.VOLUNTARY,
        holder: str | None = None,
    ) -> bool:
        """Give a lease back. Return False if it had already ended; raise NotHolder if it is another's."""
        return await self._claims.release(lease, reason, holder)

    async def release_all(
        self, holder: str | None = None, *, reason: ReleaseReason | str = ReleaseReason.VOLUNTARY
    ) -> int:
        """Give back every lease that a holder has; return how many those were."""
        name = self.holder if holder is None else text("holder", holder)
        return await self._claims.release_all(name, parse("reason", ReleaseReason, reason))

    async def sweep(self, limit: int = 1_000) -> int:
        """Record the end of leases, and of anything else, whose time is over; return how many ended.

        It looks at `limit` at most. Nobody has to call it: expired leases block nobody, and every client
        sweeps some in passing.
        """
        return await self._claims.sweep(whole_number("limit", limit, minimum=1))
