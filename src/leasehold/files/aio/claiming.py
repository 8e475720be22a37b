"""How agents come by leases on files: what they hold is renewed, and the rest acquired, all or nothing."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from leasehold.client.aio.claims import AsyncClaims
from leasehold.client.aio.lease import AsyncHeldLease
from leasehold.client.aio.session import AsyncSession
from leasehold.client.aio.terms import AsyncTerms
from leasehold.client.holdings import Holdings
from leasehold.client.inputs import Duration, claim_ids, duration_ns, whole_number
from leasehold.client.waits import patience_ns
from leasehold.engine.questions import LeaseStatus
from leasehold.errors import (
    AlreadyHeld,
    Held,
    LeaseholdError,
    LeaseLost,
    RenewalDoesNotExtend,
    RenewalsExhausted,
)
from leasehold.files.aio.reader import AsyncFileReader
from leasehold.files.names import FileName
from leasehold.kernel.lease.commands import Acquire, Wanted
from leasehold.kernel.lease.model import Mode
from leasehold.kernel.lease.paths import includes
from leasehold.kernel.ledger.tick import NANOSECONDS_PER_SECOND


class ClaimTerms(NamedTuple):
    """On which terms files are claimed."""

    agent: str
    mode: Mode
    ttl: Duration
    wait: Duration | bool | None
    max_renewals: int = -1
    priority: int = 5
    metadata: Mapping[str, Any] = {}
    lock_delay: Duration = 0
    survives_reboot: bool = False


class AsyncPart(NamedTuple):
    """A lease that an agent has by a claim."""

    held: AsyncHeldLease
    is_new: bool
    """It was acquired by this claim, and ends with it."""
    is_kept_here: bool
    """It was known here before: whoever acquired it keeps it."""


class AsyncFileClaims:
    """How the agents of one client come by their leases."""

    def __init__(
        self, session: AsyncSession, holdings: Holdings, claims: AsyncClaims, terms: AsyncTerms
    ) -> None:
        self._session = session
        self._holdings = holdings
        self._claims = claims
        self._terms = terms
        self._reader = AsyncFileReader(session)

    async def claim(
        self,
        names: Sequence[FileName],
        terms: ClaimTerms,
        on_lost: Callable[[LeaseholdError], None] | None = None,
    ) -> list[AsyncPart]:
        """Own files, folders and patterns: all, or none. Who is refused is told by whom, and what next."""
        wanted = without_covered(names)
        try:
            return await self._claim(wanted, terms, on_lost)
        except (AlreadyHeld, LeaseLost):
            # Another process or task of this agent has acquired it since we looked, or what we saw has ended.
            return await self._claim(wanted, terms, on_lost)

    async def _claim(
        self, names: list[FileName], terms: ClaimTerms, on_lost: Callable[[LeaseholdError], None] | None
    ) -> list[AsyncPart]:
        had, missing = had_already(await self._reader.held_by(terms.agent), names, terms.mode)
        parts = await self._acquire(missing, terms, on_lost) if missing else []
        try:
            for status in had:
                parts.append(await self._renew(status, terms, on_lost))
        except BaseException:
            self.give_up(parts, terms.agent)
            raise
        return parts

    def give_up(self, parts: list[AsyncPart], agent: str) -> None:
        """Give back what was acquired by a claim that came to nothing, without waiting for it."""
        for part in parts:
            if not part.is_kept_here:
                self._holdings.forget(part.held)
        new = tuple(part.held.lease_id for part in parts if part.is_new)
        if new:
            self._holdings.give_back(new, agent)

    async def _acquire(
        self,
        names: list[FileName],
        terms: ClaimTerms,
        on_lost: Callable[[LeaseholdError], None] | None,
    ) -> list[AsyncPart]:
        patience = patience_ns(terms.wait)
        lease_id, request = claim_ids(self._session.ids, None)
        first, *others = names
        command = Acquire(
            tenant=self._session.tenant,
            lease_id=lease_id,
            resource=first.resource,
            mode=terms.mode,
            also=tuple(Wanted(resource=one.resource, mode=terms.mode) for one in others),
            holder=terms.agent,
            ttl_ns=duration_ns("ttl", terms.ttl),
            max_renewals=max(-1, whole_number("max_renewals", terms.max_renewals)),
            metadata=dict(terms.metadata),
            lock_delay_ns=duration_ns("lock_delay", terms.lock_delay),
            bound_to_boot=not terms.survives_reboot,
            wait=patience > 0,
            priority=whole_number("priority", terms.priority),
            request_id=request,
        )
        try:
            if others:
                held = (await self._claims.acquire_all(command, on_lost, patience)).parts()
            elif patience:
                held = [await self._claims.wait(command, on_lost, patience)]
            else:
                held = [await self._claims.acquire(command, lease_id, terms.agent, on_lost)]
        except Held as error:
            raise (await self._reader.explain(error, names, terms.agent, terms.mode)) from None
        return [AsyncPart(one, is_new=True, is_kept_here=False) for one in held]

    async def _renew(
        self, status: LeaseStatus, terms: ClaimTerms, on_lost: Callable[[LeaseholdError], None] | None
    ) -> AsyncPart:
        """Give a lease that the agent has more time, and what it lacks to be as it is claimed."""
        lease = status.lease
        if not lease.mode.conflicts_with(Mode.SHARED) and terms.mode is Mode.EXCLUSIVE:
            try:
                status = await self._terms.change_mode(
                    lease.lease_id, Mode.EXCLUSIVE, wait=terms.wait, holder=terms.agent
                )
            except Held as error:
                name = FileName(lease.resource, lease.resource)
                raise (await self._reader.explain(error, [name], terms.agent, Mode.EXCLUSIVE)) from None
        sent_ns = self._session.clock.tick_ns()
        try:
            status = await self._terms.renew(lease.lease_id, terms.ttl, terms.agent)
        except (RenewalDoesNotExtend, RenewalsExhausted):
            status = await self._terms.existing(lease.lease_id)  # It stands, and that is enough.
        known = self._holdings.held.get(lease.lease_id)
        if isinstance(known, AsyncHeldLease):
            return AsyncPart(known, is_new=False, is_kept_here=True)
        held = AsyncHeldLease(status.lease, self._holdings, self._claims, self._terms)
        left_ns = int(status.expires_in * NANOSECONDS_PER_SECOND)
        self._holdings.hold(held, left_ns, sent_ns, on_lost)
        return AsyncPart(held, is_new=False, is_kept_here=False)


def without_covered(names: Sequence[FileName]) -> list[FileName]:
    """Return names without those that others of them cover, each once."""
    found: list[FileName] = []
    for name in names:
        if any(includes(other.resource, name.resource) for other in found):
            continue
        found = [other for other in found if not includes(name.resource, other.resource)]
        found.append(name)
    return found


def had_already(
    own: list[LeaseStatus], names: Sequence[FileName], mode: Mode
) -> tuple[list[LeaseStatus], list[FileName]]:
    """Return which of an agent's leases make a claim needless, and what is left of it to be acquired."""
    had: dict[str, LeaseStatus] = {}
    missing: list[FileName] = []
    for name in names:
        found = _covering(own, name.resource, mode)
        if found is None:
            missing.append(name)
        else:
            had[found.lease.lease_id] = found
    return list(had.values()), missing


def _covering(own: list[LeaseStatus], resource: str, mode: Mode) -> LeaseStatus | None:
    """Return a lease that makes another needless; one on the very same resource, whatever its mode."""
    for status in own:
        lease = status.lease
        if lease.resource == resource:
            return status
        enough = lease.mode is Mode.EXCLUSIVE or mode is Mode.SHARED
        if enough and includes(lease.resource, resource):
            return status
    return None
