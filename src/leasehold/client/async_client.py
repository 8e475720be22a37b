"""Leases for programs: acquire, renew, release, look, follow.

Safe to use from many threads (the blocking client) or many tasks (the asynchronous one), and in a forked
child, which holds none of its parent's leases.
"""

import atexit
import os
import weakref
from collections.abc import Callable, Iterable, Mapping
from types import TracebackType
from typing import Any, Self

from leasehold.client.acquisition import AsyncAcquisition, awaitable
from leasehold.client.async_lease import AsyncHeldLease
from leasehold.client.async_reading import AsyncReading
from leasehold.client.calls import AwaitableCalls
from leasehold.client.holders import Holders
from leasehold.client.inputs import at_least_zero_ns, page_query, parse
from leasehold.client.loss import AsyncBody, AsyncLoss
from leasehold.engine.batch import Outcome
from leasehold.engine.clock import Clock, SystemClock
from leasehold.engine.keeper import Keeper, Kept, window_closed
from leasehold.engine.registrar import LeaseStatus, Registrar, answer_of
from leasehold.engine.trust import Trust
from leasehold.errors import Held, LeaseholdError, LeaseNotFound, LeaseTerminal, StoreError, error_of
from leasehold.kernel.answers import Ended, Granted, Released, Renewal, Renewed, Swept
from leasehold.kernel.commands import Acquire, Command, Release, Renew, Revoke, Sweep
from leasehold.kernel.lease import LeaseState, Mode, ReleaseReason
from leasehold.kernel.limits import BATCH_LEASES
from leasehold.kernel.refusals import Refusal
from leasehold.kernel.tick import NANOSECONDS_PER_SECOND

DEFAULT_TTL = 60.0
_RETRIES = 2


class AsyncClient(AsyncReading):
    """A connection to a registrar. Made by `connect` or `connect_async`; close it when you are done."""

    def __init__(
        self,
        registrar: Registrar,
        *,
        tenant: str = "default",
        holder: str | None = None,
        clock: Clock | None = None,
        trust: Trust | None = None,
    ) -> None:
        super().__init__(registrar, AwaitableCalls(registrar), tenant)
        self._holders = Holders(holder, AwaitableCalls.caller)
        self._clock = clock or SystemClock()
        self._trust = trust or Trust()
        self._keeper = Keeper(registrar, self._clock, self._trust)
        self._held: dict[str, AsyncHeldLease] = {}
        self._closed = False
        _clients.add(self)

    @property
    def url(self) -> str:
        """The address of the store, under which it can be connected to again."""
        return self._registrar.store.url

    @property
    def holder(self) -> str:
        """The name under which the calling thread or task holds leases, unless it says another."""
        return self._holders.current()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        del kind, error, trace
        await self.close()

    async def close(self) -> None:
        """Release every lease this client still keeps, and let go of the store. Closing twice is fine."""
        if self._closed:
            return
        self._closed = True
        self._keeper.close()
        for held in list(self._held.values()):
            try:
                await self.release(held)
            except StoreError:
                continue  # It expires by itself; the others can still be released.
        await self._calls.read(self._registrar.close)

    def acquire(
        self,
        resource: str,
        *,
        ttl: float = DEFAULT_TTL,
        mode: Mode | str = Mode.EXCLUSIVE,
        holder: str | None = None,
        adopt: bool = False,
        max_renewals: int = -1,
        metadata: Mapping[str, Any] | None = None,
        config_version: str = "",
        zone_version: str = "",
        survives_reboot: bool = False,
        on_lost: Callable[[LeaseholdError], None] | None = None,
        request_id: str | None = None,
    ) -> AsyncAcquisition[AsyncHeldLease]:
        """Own a resource for `ttl` seconds, renewed in the background until it is released.

        Raises `Held` if somebody else holds it, and `AlreadyHeld` if this holder does and `adopt` is not
        set. `request_id` makes a later call with the same arguments a retry of this one. `on_lost` is
        called once, from a background thread, if the lease is lost.
        """
        return awaitable(
            self._acquire(
                Acquire(
                    tenant=self._tenant,
                    lease_id=self._registrar.ids.new(),
                    resource=resource,
                    holder=holder or self.holder,
                    ttl_ns=at_least_zero_ns("ttl", ttl),
                    mode=parse("mode", Mode, mode),
                    adopt=adopt,
                    max_renewals=max_renewals,
                    metadata=dict(metadata or {}),
                    config_version=config_version,
                    zone_version=zone_version,
                    bound_to_boot=not survives_reboot,
                    request_id=request_id or self._registrar.ids.new(),
                ),
                on_lost,
            )
        )

    async def try_acquire(self, resource: str, **claim: Any) -> AsyncHeldLease | None:
        """Do as `acquire` does with the same arguments, but return None if somebody else holds it."""
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
        self, command: Acquire, on_lost: Callable[[LeaseholdError], None] | None
    ) -> AsyncHeldLease:
        sent_ns = self._clock.tick_ns()
        try:
            granted = answer_of(await self._send(command), Granted)
        except Exception:
            raise
        except BaseException:
            # Interrupted or cancelled: whatever was granted, nobody will ever hear of it.
            self._give_back(command)
            raise
        if granted.ended:
            raise LeaseTerminal(
                f"request {command.request_id} was granted lease {granted.lease.lease_id}, which has ended "
                "since; ask again with a new request id",
                lease_id=granted.lease.lease_id,
                state=granted.lease.state,
                request_id=command.request_id,
            )
        return self._hold(granted, sent_ns, on_lost)

    def _hold(
        self, granted: Granted, sent_ns: int, on_lost: Callable[[LeaseholdError], None] | None
    ) -> AsyncHeldLease:
        lost, body = AsyncLoss(), AsyncBody()
        held = AsyncHeldLease(self, granted.lease, lost, body)

        def lose(error: LeaseholdError) -> None:
            self._held.pop(held.lease_id, None)
            lost.fire(error)
            body.interrupt()
            if on_lost is not None:
                on_lost(error)

        deadline_ns = self._trust.deadline_ns(sent_ns, granted.expires_in_ns)
        held.kept = Kept(granted.lease, deadline_ns, self._clock, on_lost=lose)
        self._held[held.lease_id] = held
        self._keeper.keep(held.kept)
        return held

    def _give_back(self, command: Acquire) -> None:
        release = Release(
            tenant=command.tenant,
            lease_ids=(command.lease_id,),
            holder=command.holder,
            reason=ReleaseReason.ABORTED,
            request_id=self._registrar.ids.new(),
        )
        self._registrar.submit(release, lambda outcome: None)

    async def renew(
        self, lease: AsyncHeldLease | str, *, ttl: float | None = None, holder: str | None = None
    ) -> LeaseStatus:
        """Extend a lease from now, for `ttl` seconds or its own TTL again; return how it stands."""
        (result,) = await self.renew_many([lease], ttl=ttl, holder=holder)
        if isinstance(result, LeaseholdError):
            raise result
        return result

    async def renew_many(
        self,
        leases: Iterable[AsyncHeldLease | str],
        *,
        ttl: float | None = None,
        holder: str | None = None,
    ) -> list[LeaseStatus | LeaseholdError]:
        """Extend many leases of one holder; return for each how it stands, or why it was not extended."""
        wanted = list(leases)
        results: list[LeaseStatus | LeaseholdError] = []
        for start in range(0, len(wanted), BATCH_LEASES):
            results += await self._renew_batch(wanted[start : start + BATCH_LEASES], ttl, holder)
        return results

    async def _renew_batch(
        self, leases: list[AsyncHeldLease | str], ttl: float | None, holder: str | None
    ) -> list[LeaseStatus | LeaseholdError]:
        command = Renew(
            tenant=self._tenant,
            lease_ids=tuple(_lease_id_of(lease) for lease in leases),
            holder=holder or self._holder_of(leases[0]),
            ttl_ns=None if ttl is None else at_least_zero_ns("ttl", ttl),
            request_id=self._registrar.ids.new(),
        )
        sent_ns = self._clock.tick_ns()
        outcomes = answer_of(await self._send(command), Renewed).outcomes
        return [self._renewed(outcome, sent_ns) for outcome in outcomes]

    def _renewed(self, outcome: Renewal | Refusal, sent_ns: int) -> LeaseStatus | LeaseholdError:
        """Take in one result of a renewal, also for the keeper if the lease is kept here."""
        if isinstance(outcome, Renewal):
            held = self._held.get(outcome.lease.lease_id)
            if held is not None and held.kept is not None:
                self._keeper.renewed(held.kept, outcome.lease, sent_ns, outcome.expires_in_ns)
            return LeaseStatus(lease=outcome.lease, expires_in=outcome.expires_in_ns / NANOSECONDS_PER_SECOND)
        error = error_of(outcome)
        held = self._held.get(outcome.lease_id or "")
        if held is not None and held.kept is not None and outcome.code.means_loss:
            self._keeper.lose(held.kept, error)
        return error

    async def release(
        self,
        lease: AsyncHeldLease | str,
        *,
        reason: ReleaseReason | str = ReleaseReason.VOLUNTARY,
        holder: str | None = None,
    ) -> bool:
        """Give a lease back. Return False if it was over already; raise NotHolder if it is another's."""
        if not isinstance(lease, str):
            if lease.process_id != os.getpid():
                return False  # It is the parent's, and stays the parent's.
            self.forget(lease)
        command = Release(
            tenant=self._tenant,
            lease_ids=(_lease_id_of(lease),),
            holder=holder or self._holder_of(lease),
            reason=parse("reason", ReleaseReason, reason),
            request_id=self._registrar.ids.new(),
        )
        (outcome,) = answer_of(await self._send(command), Released).outcomes
        if isinstance(outcome, Refusal):
            raise error_of(outcome)
        return not outcome.already

    async def release_all(
        self, holder: str | None = None, *, reason: ReleaseReason | str = ReleaseReason.VOLUNTARY
    ) -> int:
        """Give back every lease that a holder has; return how many those were."""
        name = holder or self.holder
        count = 0
        after: str | None = None
        while True:
            query = page_query(self._tenant, holder=name, states=[LeaseState.ACTIVE], after=after)
            page = await self._calls.read(self._registrar.page, query)
            if not page:
                return count
            count += await self._release_batch(tuple(status.lease.lease_id for status in page), name, reason)
            after = page[-1].lease.lease_id

    async def _release_batch(
        self, lease_ids: tuple[str, ...], holder: str, reason: ReleaseReason | str
    ) -> int:
        for lease_id in lease_ids:
            held = self._held.get(lease_id)
            if held is not None:
                self.forget(held)
        command = Release(
            tenant=self._tenant,
            lease_ids=lease_ids,
            holder=holder,
            reason=parse("reason", ReleaseReason, reason),
            request_id=self._registrar.ids.new(),
        )
        outcomes = answer_of(await self._send(command), Released).outcomes
        return sum(isinstance(outcome, Ended) and not outcome.already for outcome in outcomes)

    async def revoke(self, lease_id: str, *, reason: str, operator: str | None = None) -> bool:
        """End a lease over its holder's head. Return False if it was over already."""
        command = Revoke(
            tenant=self._tenant,
            lease_id=lease_id,
            operator=operator or self.holder,
            reason=reason,
            request_id=self._registrar.ids.new(),
        )
        return not answer_of(await self._send(command), Ended).already

    async def sweep(self, limit: int = 1_000) -> int:
        """Record the end of leases whose time is over; return how many.

        Nobody has to: expired leases block nobody, and every client sweeps some in passing.
        """
        overdue = tuple(await self._calls.read(self._registrar.overdue, min(limit, BATCH_LEASES)))
        if not overdue:
            return 0
        command = Sweep(tenant=self._tenant, lease_ids=overdue, request_id=self._registrar.ids.new())
        return len(answer_of(await self._send(command), Swept).leases)

    def lose(self, kept: Kept) -> None:
        """Take a lease whose trust window has closed for lost."""
        self._keeper.lose(kept, window_closed(kept.lease))

    def forget(self, held: AsyncHeldLease) -> None:
        """Stop keeping a lease."""
        self._held.pop(held.lease_id, None)
        kept, held.kept = held.kept, None
        if kept is not None:
            self._keeper.drop(kept)

    def _holder_of(self, lease: AsyncHeldLease | str) -> str:
        return self.holder if isinstance(lease, str) else lease.holder

    async def _send(self, command: Command) -> Outcome:
        """Run a command; where the outcome is unknown, ask again, which the request id makes safe."""
        for _ in range(_RETRIES):
            outcome = await self._calls.call(command)
            if not (isinstance(outcome, StoreError) and outcome.outcome_unknown):
                return outcome
        outcome = await self._calls.call(command)
        if isinstance(outcome, StoreError):
            outcome.request_id = command.request_id
        return outcome

    def release_at_exit(self) -> None:
        """Release what is still held when the program ends without closing, so that others need not wait."""
        if self._closed:
            return
        for held in list(self._held.values()):
            self.forget(held)
            release = Release(
                tenant=self._tenant,
                lease_ids=(held.lease_id,),
                holder=held.holder,
                request_id=self._registrar.ids.new(),
            )
            self._registrar.call(release)

    def after_fork_in_child(self) -> None:
        """Become another holder, with none of the parent's leases."""
        self._holders.restart()
        self._keeper.restart()
        self._held = {}
        self._calls = AwaitableCalls(self._registrar)


def _lease_id_of(lease: AsyncHeldLease | str) -> str:
    return lease if isinstance(lease, str) else lease.lease_id


_clients: weakref.WeakSet[AsyncClient] = weakref.WeakSet()


def _after_fork_in_child() -> None:
    for client in list(_clients):
        client.after_fork_in_child()


def _release_at_exit() -> None:
    for client in list(_clients):
        client.release_at_exit()


os.register_at_fork(after_in_child=_after_fork_in_child)
atexit.register(_release_at_exit)
