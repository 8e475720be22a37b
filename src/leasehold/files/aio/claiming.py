"""How agents come by leases on files: what they hold is renewed, and the rest acquired, all or nothing."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from leasehold.client.aio.claims import AsyncClaims
from leasehold.client.aio.lease import AsyncHeldLease
from leasehold.client.aio.session import AsyncSession
from leasehold.client.aio.terms import AsyncTerms
from leasehold.client.held import AnyHeldLease
from leasehold.client.holdings import Holdings
from leasehold.client.inputs import Duration, claim_ids, duration_ns, whole_number
from leasehold.client.users import User
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
from leasehold.kernel.lease.model import Mode, ReleaseReason
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
    """It was acquired by this claim."""


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

    async def claim(self, names: Sequence[FileName], terms: ClaimTerms, user: User) -> list[AsyncPart]:
        """Own files, folders and patterns: all, or none. Who is refused is told by whom, and what next."""
        wanted = without_covered(names)
        seen = set()
        while True:
            try:
                return await self._claim(wanted, terms, user)
            except (AlreadyHeld, LeaseLost) as error:
                # Another process, thread or task of this agent has acquired it since we looked, or has
                # ended what we saw. The same twice is nobody's doing.
                if (type(error), error.lease_id) in seen:
                    raise
                seen.add((type(error), error.lease_id))

    async def _claim(self, names: list[FileName], terms: ClaimTerms, user: User) -> list[AsyncPart]:
        had, missing = had_already(await self._reader.held_by(terms.agent), names, terms.mode)
        parts = await self._acquire(missing, terms, user) if missing else []
        try:
            for status in had:
                parts.append(await self._renew(status, terms, user))
        except BaseException:
            self.give_up([part.held for part in parts], user)
            raise
        return parts

    async def release(
        self, leases: Sequence[AsyncHeldLease], user: User, reason: ReleaseReason | str
    ) -> bool:
        """Let go of what was claimed, and release what nobody else uses; False if any of that had ended."""
        ending = self._holdings.leave(leases, user)
        try:
            return await self._claims.release_together(ending, reason) if ending else True
        except LeaseholdError:
            raise
        except BaseException:
            self.give_up(leases, user)
            raise
        finally:
            self._holdings.users.over([one.lease_id for one in ending])

    def give_up(self, leases: Sequence[AnyHeldLease], user: User) -> None:
        """Let go of what was claimed, without waiting for it: the claim, or its block, came to nothing."""
        ending = self._holdings.leave(leases, user)
        held = [one for one in ending if one.kept is not None and one.belongs_elsewhere() is None]
        if held:
            self._holdings.give_back(tuple(one.lease_id for one in held), held[0].holder)
        self._holdings.users.over([one.lease_id for one in ending])

    def leave_standing(self, leases: Sequence[AsyncHeldLease], user: User) -> None:
        """Let go of what was claimed, so that it stays the agent's, also if others use it here."""
        self._holdings.leave(leases, user, stays=True)

    async def _acquire(
        self,
        names: list[FileName],
        terms: ClaimTerms,
        user: User,
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
        # Before they are there: others of this agent may come upon them at once.
        self._holdings.users.begin(command.lease_ids, user, to_end=True)
        try:
            if others:
                held = list((await self._claims.acquire_all(command, None, patience)).parts())
            elif patience:
                held = [await self._claims.wait(command, None, patience)]
            else:
                held = [await self._claims.acquire(command, lease_id, terms.agent, None)]
        except BaseException as error:
            self._holdings.users.over(command.lease_ids)
            if isinstance(error, Held):
                raise (await self._reader.explain(error, names, terms.agent, terms.mode)) from None
            raise
        lease_ids = tuple(one.lease_id for one in held)
        if lease_ids != command.lease_ids:  # Who lost its place while it waited has claimed anew.
            self._holdings.users.over(command.lease_ids)
            self._holdings.users.begin(lease_ids, user, to_end=True)
        for one in held:
            self._holdings.listen(one, user)
        return [AsyncPart(one, is_new=True) for one in held]

    async def _renew(self, status: LeaseStatus, terms: ClaimTerms, user: User) -> AsyncPart:
        """Use a lease that the agent has, with others that use it here, and give it what it lacks."""
        lease_id, holdings = status.lease.lease_id, self._holdings
        # Before anything is asked: nobody here gives it back while we rely on it.
        if not holdings.join(lease_id, user):
            await self._session.calls.until(
                lambda: not holdings.users.is_ending(lease_id), self._session.desk.timeout
            )
            raise _ended(status)
        known = holdings.held.get(lease_id)
        sent_ns = self._session.clock.tick_ns()
        try:
            status = await self._extend(status, terms)
            if known is not None and (known.kept is None or known.loss is not None):
                raise _ended(status)
        except BaseException:
            self._leave_unheard(known or holdings.held.get(lease_id), status, user)
            raise
        known = known or holdings.held.get(lease_id)
        if not isinstance(known, AsyncHeldLease):
            known = AsyncHeldLease(status.lease, holdings, self._claims, self._terms)
            holdings.hold(known, int(status.expires_in * NANOSECONDS_PER_SECOND), sent_ns, None)
        holdings.listen(known, user)
        return AsyncPart(known, is_new=False)

    def _leave_unheard(self, known: AnyHeldLease | None, status: LeaseStatus, user: User) -> None:
        """Let go of a lease that could not be extended; whoever used it with us may have left it to us."""
        if known is not None:
            self.give_up([known], user)
            return
        lease, users = status.lease, self._holdings.users
        if users.leave(lease.lease_id, user):
            if users.is_to_end(lease.lease_id):
                self._holdings.give_back((lease.lease_id,), lease.holder)
            users.over([lease.lease_id])

    async def _extend(self, status: LeaseStatus, terms: ClaimTerms) -> LeaseStatus:
        """Give a lease that the agent has more time, and what it lacks to be as it is claimed."""
        lease = status.lease
        if not lease.mode.conflicts_with(Mode.SHARED) and terms.mode is Mode.EXCLUSIVE:
            try:
                await self._terms.change_mode(
                    lease.lease_id, Mode.EXCLUSIVE, wait=terms.wait, holder=terms.agent
                )
            except Held as error:
                name = FileName(lease.resource, lease.resource)
                raise (await self._reader.explain(error, [name], terms.agent, Mode.EXCLUSIVE)) from None
        try:
            return await self._terms.renew(lease.lease_id, terms.ttl, terms.agent)
        except (RenewalDoesNotExtend, RenewalsExhausted):
            return await self._terms.existing(lease.lease_id)  # It stands, and that is enough.


def _ended(status: LeaseStatus) -> LeaseLost:
    lease = status.lease
    return LeaseLost(
        f"lease {lease.lease_id} on {lease.resource} has ended meanwhile; acquire it again",
        lease_id=lease.lease_id,
        resource=lease.resource,
    )


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
