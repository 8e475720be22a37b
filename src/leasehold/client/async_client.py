"""Leases for programs: acquire, renew, release, look, follow.

Safe to use from many threads (the blocking client) or many tasks (the asynchronous one), and in a forked
child, which holds none of its parent's leases.
"""

from collections.abc import Callable, Mapping
from contextlib import suppress
from types import TracebackType
from typing import Any, Self

from leasehold.client.acquisition import AsyncAcquisition, awaitable
from leasehold.client.async_changing import AsyncChanging
from leasehold.client.async_delegating import AsyncDelegating
from leasehold.client.async_lease import AsyncHeldLease
from leasehold.client.async_loss import AsyncBody
from leasehold.client.async_upkeep import AsyncUpkeep
from leasehold.client.inputs import (
    DEFAULT_TTL,
    Duration,
    callback,
    claim_ids,
    duration_ns,
    granted,
    lease_id_of,
    mapping,
    page_query,
    parse,
    text,
    whole_number,
)
from leasehold.client.waits import Claim, ended_since, patience_ns
from leasehold.engine.desk import answer_of
from leasehold.engine.questions import IsAnythingDue, LeaseStatus, ListLeases
from leasehold.errors import ClientClosed, Held, LeaseholdError, LeaseNotFound, error_of
from leasehold.kernel.lease.answers import (
    Ended,
    Granted,
    Released,
)
from leasehold.kernel.lease.budget import Budget
from leasehold.kernel.lease.commands import (
    Acquire,
    Derive,
    Release,
    Revoke,
)
from leasehold.kernel.lease.model import LeaseState, Mode, ReleaseReason
from leasehold.kernel.lease.scope import Scope
from leasehold.kernel.lease.ticket import PRIORITY_USUAL
from leasehold.kernel.ledger.commands import SweepDue, SweptDue
from leasehold.kernel.ledger.limits import BATCH_LEASES
from leasehold.kernel.ledger.refusals import RefusalCode
from leasehold.kernel.ledger.tick import NANOSECONDS_PER_SECOND


class AsyncClient(AsyncDelegating, AsyncChanging, AsyncUpkeep):
    """A connection to a registrar. Made by `connect` or `connect_async`; close it when you are done."""

    @property
    def url(self) -> str:
        """The address of the store, under which it can be connected to again."""
        return self._desk.url

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
        if self._closed:
            return
        self._closed = True
        try:
            self._desk.stop_granting()
            await self._listeners.dismiss(self._desk.timeout)
            self._keeper.close()
            held = list(self._held.values())
            self._take_from_others(held)
            for command in self._releases_of(held):
                with suppress(LeaseholdError):  # These expire by themselves; the others can be released.
                    await self._send(command)
            # Whoever was granted something meanwhile gives it back, for which there has to be a registrar.
            await self._calls.until(self._is_settled, self._desk.timeout)
        finally:
            await self._calls.close()

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

        If somebody else holds it, wait in line for at most `wait` seconds (`True`, or `math.inf`: as long as
        it takes; None, or 0: not at all), before those of lower `priority` (1 to 10) who came no more than
        10 s per level earlier. Raises `Held` if it is held, `WaitTimeout` (a kind of it) if it still is after
        that time, `Deadlock` if waiting would never end, and `AlreadyHeld` if this holder holds it and
        `adopt` is not set. `lock_delay` keeps it closed to others for so many seconds after the lease has
        expired or was revoked. `request_id` makes a later call with the same arguments a retry of this one.
        `on_lost` is called once, from a background thread, if the lease is lost. A lease with a `scope` or a
        `budget` can be derived from; without a scope it allows nothing.
        """
        patience = patience_ns(wait)
        lease_id, request = claim_ids(self._desk.ids, request_id)
        command = Acquire(
            tenant=self._tenant,
            lease_id=lease_id,
            resource=text("resource", resource),
            holder=self._name_or_own("holder", holder),
            ttl_ns=duration_ns("ttl", ttl),
            mode=mode if mode is Mode.EXCLUSIVE else parse("mode", Mode, mode),
            adopt=adopt,
            max_renewals=-1 if max_renewals == -1 else whole_number("max_renewals", max_renewals),
            metadata={} if metadata is None else mapping("metadata", metadata),
            config_version=text("config_version", config_version),
            zone_version=text("zone_version", zone_version),
            bound_to_boot=not survives_reboot,
            scope=None if scope is None else granted("scope", Scope, scope),
            budget=None if budget is None else granted("budget", Budget, budget),
            wait=patience > 0,
            priority=whole_number("priority", priority),
            lock_delay_ns=duration_ns("lock_delay", lock_delay),
            request_id=request,
        )
        return awaitable(self._acquire(command, callback("on_lost", on_lost), patience))

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
        deriving = self._holder_of(parent)
        command = Derive(
            tenant=self._tenant,
            parent_id=lease_id_of(parent),
            holder=deriving,
            lease_id=self._desk.ids.new(),
            resource=text("resource", resource),
            child_holder=deriving if holder is None else text("holder", holder),
            ttl_ns=None if ttl is None else duration_ns("ttl", ttl),
            scope=Scope() if scope is None else granted("scope", Scope, scope),
            budget=Budget() if budget is None else granted("budget", Budget, budget),
            mode=parse("mode", Mode, mode),
            max_renewals=whole_number("max_renewals", max_renewals),
            metadata={} if metadata is None else mapping("metadata", metadata),
            bound_to_boot=not survives_reboot,
            request_id=self._desk.ids.name() if request_id is None else text("request_id", request_id),
        )
        return awaitable(self._derive(command, callback("on_lost", on_lost)))

    async def _derive(
        self, command: Derive, on_lost: Callable[[LeaseholdError], None] | None
    ) -> AsyncHeldLease:
        await self._confirm(command.parent_id)
        return await self._acquire(command, on_lost)

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
        status = await self.get(lease_id)
        if status is None:
            raise LeaseNotFound(f"there is no lease {lease_id}; list the leases to find the right id")
        lease = status.lease
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

    async def _acquire(
        self,
        command: Acquire | Derive,
        on_lost: Callable[[LeaseholdError], None] | None,
        patience: int = 0,
    ) -> AsyncHeldLease:
        if patience > 0 and isinstance(command, Acquire):
            return (await self._acquire_together(Claim(command), on_lost, patience, AsyncBody()))[0]
        step, sent_ns = self._begin(), self._clock.tick_ns()
        try:
            self._ensure_open()
            granted = answer_of(await self._send(command), Granted)
            if granted.ended:
                raise ended_since(granted, command.request_id)
            held = self._hold(granted.lease, granted.expires_in_ns, sent_ns, on_lost, AsyncBody())
            if self._closed:
                # By another thread or task, which may have looked for leases to release before this.
                raise ClientClosed("this client was closed while it acquired a lease, which was given back")
            return held
        except LeaseholdError as error:
            if isinstance(error, ClientClosed):
                # Perhaps before the second try, where the first was granted and its reply was lost.
                self.give_back((command.lease_id,), _holder_to_be(command))
            raise
        except BaseException:
            # Interrupted or cancelled: whatever was granted, nobody will ever hear of it.
            self.give_back((command.lease_id,), _holder_to_be(command))
            raise
        finally:
            del self._under_way[step]

    async def release(
        self,
        lease: AsyncHeldLease | str,
        *,
        reason: ReleaseReason | str = ReleaseReason.VOLUNTARY,
        holder: str | None = None,
    ) -> bool:
        """Give a lease back. Return False if it was over already; raise NotHolder if it is another's."""
        command = Release(
            tenant=self._tenant,
            lease_ids=(lease_id_of(lease),),
            holder=self._holder_of(lease) if holder is None else text("holder", holder),
            reason=parse("reason", ReleaseReason, reason),
            request_id=self._desk.ids.name(),
        )
        held = self._held.get(lease) if isinstance(lease, str) else lease
        if held is not None and held.belongs_elsewhere() is not None:
            return False  # It is the parent's, and stays the parent's.
        ours = [held] if held is not None and held.holder == command.holder else []
        (outcome,) = answer_of(await self._release(command, ours), Released).outcomes
        if isinstance(outcome, Ended):
            return not outcome.already
        if held is not None and outcome.code is RefusalCode.LEASE_NOT_FOUND:
            return False  # The store was put back to a time before the grant: so it is gone, too.
        raise error_of(outcome)

    async def release_all(
        self, holder: str | None = None, *, reason: ReleaseReason | str = ReleaseReason.VOLUNTARY
    ) -> int:
        """Give back every lease that a holder has; return how many those were."""
        name, why = self._name_or_own("holder", holder), parse("reason", ReleaseReason, reason)
        count = 0
        after: str | None = None
        while True:
            query = page_query(self._tenant, holder=name, states=[LeaseState.ACTIVE], after=after)
            page: list[LeaseStatus] = await self._ask(ListLeases(tenant=self._tenant, query=query))
            if not page:
                return count
            count += await self._release_batch(tuple(status.lease.lease_id for status in page), name, why)
            after = page[-1].lease.lease_id

    async def _release_batch(self, lease_ids: tuple[str, ...], holder: str, reason: ReleaseReason) -> int:
        ours = [self._held[lease_id] for lease_id in lease_ids if lease_id in self._held]
        command = Release(
            tenant=self._tenant,
            lease_ids=lease_ids,
            holder=holder,
            reason=reason,
            request_id=self._desk.ids.name(),
        )
        outcomes = answer_of(await self._release(command, ours), Released).outcomes
        return sum(isinstance(outcome, Ended) and not outcome.already for outcome in outcomes)

    async def revoke(self, lease_id: str, *, reason: str, operator: str | None = None) -> bool:
        """End a lease over its holder's head. Return False if it was over already."""
        command = Revoke(
            tenant=self._tenant,
            lease_id=text("lease_id", lease_id),
            operator=self._name_or_own("operator", operator),
            reason=text("reason", reason),
            request_id=self._desk.ids.name(),
        )
        return not answer_of(await self._send(command), Ended).already

    async def sweep(self, limit: int = 1_000) -> int:
        """Record the end of leases, and of anything else, whose time is over; return how many ended.

        It looks at `limit` at most.

        Nobody has to: expired leases block nobody, and every client sweeps some in passing.
        """
        left = whole_number("limit", limit, minimum=1)
        count = 0
        while left > 0:
            most = min(left, BATCH_LEASES)
            if not await self._ask(IsAnythingDue()):
                break  # So that who has nothing to do need not wait for a writer.
            command = SweepDue(tenant=self._tenant, limit=most, request_id=self._desk.ids.name())
            swept = answer_of(await self._send(command), SweptDue).ended
            count, left = count + swept, left - swept
            if swept < most:
                break  # That was all, or the rest is of a time that nobody knows.
        return count


def _holder_to_be(command: Acquire | Derive) -> str:
    return command.child_holder if isinstance(command, Derive) else command.holder
