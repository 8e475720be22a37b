"""Leases on files, for agents and people who work in the same tree.

`lease` is the pleasant way: a block that owns what it names, renewed as long as it runs. The other methods
are those of a lease manager, for agents that live longer than one process: what they acquire outlives the
client, is renewed by nobody but them, and ends after its TTL.
"""

import os
from collections.abc import Callable, Mapping
from typing import Any

from leasehold.client.aio.acquisition import AsyncAcquisition
from leasehold.client.aio.claims import AsyncClaims
from leasehold.client.aio.session import AsyncSession
from leasehold.client.aio.terms import AsyncTerms
from leasehold.client.holdings import Holdings
from leasehold.client.inputs import Duration, callback, facts_of, parse, text
from leasehold.client.users import User
from leasehold.engine.desk import answer_of
from leasehold.engine.questions import FindLease, LeaseStatus
from leasehold.errors import Held, InvalidInput, LeaseholdError, LeaseLost, Refused
from leasehold.files.aio.claiming import AsyncFileClaims, ClaimTerms
from leasehold.files.aio.lease import AsyncHeldFiles
from leasehold.files.aio.reader import AsyncFileReader
from leasehold.files.inputs import check_request, named, patience_of
from leasehold.files.names import AnyPath, FileName, is_file_name, name_of
from leasehold.files.questions import FindAround
from leasehold.files.refusals import OVER, text_of
from leasehold.files.values import (
    FileLease,
    LeaseAcquisitionRequest,
    LeaseAcquisitionResponse,
    LeaseEvent,
    LeaseReleaseRequest,
    LeaseReleaseResponse,
    LeaseRenewalRequest,
    LeaseRenewalResponse,
    LeaseTransferRequest,
    LeaseUpgradeRequest,
    file_lease,
)
from leasehold.kernel.lease.answers import Ended
from leasehold.kernel.lease.commands import Revoke
from leasehold.kernel.lease.model import LeaseState, Mode, ReleaseReason
from leasehold.kernel.lease.paths import includes
from leasehold.kernel.lease.ticket import PRIORITY_USUAL
from leasehold.settings.questions import Effective, FindEffective

AGENT_VARIABLE = "LEASEHOLD_AGENT"
FORCED = "force release"
"""The reason that is recorded for a lease which was taken from its agent."""

_PAGE = 1_000
_MILLISECOND_NS = 1_000_000


class AsyncFiles:
    """Leases on paths, folders and patterns, the same in every clone and work tree of a repository."""

    def __init__(
        self, session: AsyncSession, holdings: Holdings, claims: AsyncClaims, terms: AsyncTerms
    ) -> None:
        self._session = session
        self._claims = claims
        self._terms = terms
        self._file_claims = AsyncFileClaims(session, holdings, claims, terms)
        self._reader = AsyncFileReader(session)
        self._hearers: list[Callable[[LeaseEvent], None]] = []

    def __repr__(self) -> str:
        return self._session.face("file leases")

    def name(self, path: AnyPath) -> FileName:
        """Return what a path is called in the store, and for people."""
        return name_of(path)

    def lease(
        self,
        *paths: AnyPath | FileName,
        agent: str | None = None,
        mode: Mode | str = Mode.EXCLUSIVE,
        ttl: Duration | None = None,
        wait: Duration | bool | None = None,
        max_renewals: int | None = None,
        priority: int = PRIORITY_USUAL,
        reason: str = "",
        metadata: Mapping[str, Any] | None = None,
        lock_delay: Duration = 0,
        survives_reboot: bool = False,
        on_lost: Callable[[LeaseholdError], None] | None = None,
    ) -> AsyncAcquisition[AsyncHeldFiles]:
        """Own files, folders and patterns as long as a block runs: all of them, or none.

        `agent` is who holds them: by default $LEASEHOLD_AGENT, else this thread or task. What that agent has
        already, or something that covers it, is renewed; what it has by another block of this client is given
        back with the last of these blocks, and anything else stays the agent's. `wait` is how long to
        wait, by default 30 s; False: not at all. Who is refused is told who holds it, why, since when and
        until when. `reason` is what others see.
        """
        terms = {
            "agent": self.agent(agent),
            "mode": mode,
            "ttl": ttl,
            "wait": wait,
            "max_renewals": max_renewals,
            "priority": priority,
            "reason": reason,
            "metadata": metadata,
            "lock_delay": lock_delay,
            "survives_reboot": survives_reboot,
        }
        return AsyncAcquisition(self._lease(paths, terms, callback("on_lost", on_lost)))

    async def _lease(
        self,
        paths: tuple[AnyPath | FileName, ...],
        terms: dict[str, Any],
        on_lost: Callable[[LeaseholdError], None] | None,
    ) -> AsyncHeldFiles:
        if not paths:
            raise InvalidInput("paths must name at least one; name what to own", field="paths")

        def lose(loss: LeaseholdError) -> None:
            self._tell("lost", None, str(loss))
            if on_lost is not None:
                on_lost(loss)

        names = [named(path) for path in paths]
        user = User(lose)
        parts = await self._file_claims.claim(names, await self._terms_of(names[0], **terms), user)
        return AsyncHeldFiles([part.held for part in parts], user, self._session, self._file_claims)

    async def _terms_of(
        self,
        name: FileName,
        *,
        agent: str,
        mode: Mode | str,
        ttl: Duration | None,
        wait: Duration | bool | None,
        max_renewals: int | None,
        priority: int,
        reason: str,
        metadata: Mapping[str, Any] | None = None,
        lock_delay: Duration = 0,
        survives_reboot: bool = False,
    ) -> ClaimTerms:
        """Return on which terms something is claimed: as it is said, or else as it is preferred for it."""
        preferred = await self._preferred(name.resource)
        patience = preferred.acquisition_timeout_ms / 1_000 if wait is None else wait
        return ClaimTerms(
            agent=agent,
            mode=parse("mode", Mode, mode),
            ttl=preferred.default_ttl_seconds if ttl is None else ttl,
            wait=patience if preferred.blocking_mode_enabled else None,
            max_renewals=preferred.max_renewals if max_renewals is None else max_renewals,
            priority=priority,
            metadata=facts_of(metadata, reason),
            lock_delay=lock_delay,
            survives_reboot=survives_reboot,
        )

    async def _preferred(self, resource: str) -> Effective:
        """Return which settings are in force for a resource: the one place where defaults come from."""
        return await self._session.ask(FindEffective(tenant=self._session.tenant, resource=resource))

    def agent(self, agent: str | None = None) -> str:
        """Return under which name files are held: the given one, $LEASEHOLD_AGENT, or this thread or task."""
        if agent is not None:
            return text("agent", agent)
        return os.environ.get(AGENT_VARIABLE) or self._session.holders.current()

    def on(self, hearer: Callable[[LeaseEvent], None]) -> None:
        """Have a function called after everything that happens to file leases through this client.

        What others do is in the history: see `watch`. What the function raises is logged, and no more.
        """
        if not callable(hearer):
            raise InvalidInput(f"hearer must be something to call, not {hearer!r:.80}", field="hearer")
        self._hearers.append(hearer)

    def _tell(self, kind: str, lease: FileLease | None, detail: str = "") -> None:
        for hearer in self._hearers:
            try:
                hearer(LeaseEvent(kind=kind, lease=lease, detail=detail))
            except Exception:
                import logging  # Only here: few programs need it.

                logging.getLogger("leasehold").exception("a callback for file leases has failed")

    async def acquire_lease(self, request: LeaseAcquisitionRequest) -> LeaseAcquisitionResponse:
        """Claim a file, a folder or a pattern for an agent; renew what the agent has of it already."""
        started_ns = self._session.clock.tick_ns()
        check_request(request, LeaseAcquisitionRequest)
        try:
            name = name_of(request.file_path)
            terms = await self._terms_of(
                name,
                agent=text("agent_id", request.agent_id),
                mode=request.mode,
                ttl=request.ttl_seconds,
                wait=patience_of(request.timeout_ms, request.blocking),
                max_renewals=request.max_renewals,
                priority=request.priority,
                reason=request.reason,
                survives_reboot=True,
            )
            user = User()
            (part,) = await self._file_claims.claim([name], terms, user)
            try:
                await self._terms.confirm(part.held.lease_id)
                lease = file_lease(await self._terms.existing(part.held))
                self._file_claims.leave_standing([part.held], user)
            except BaseException:
                self._file_claims.give_up([part.held], user)
                raise
        except (Refused, LeaseLost) as error:
            waited_ms = (self._session.clock.tick_ns() - started_ns) // _MILLISECOND_NS
            self._tell("failed", None, str(error))
            return LeaseAcquisitionResponse(
                success=False,
                error=text_of(error),
                waited_ms=waited_ms if isinstance(error, Held) else 0,
                holder=error.holder if isinstance(error, Held) else None,
                facts=error.facts,
            )
        self._tell("acquired" if part.is_new else "renewed", lease)
        waited_ms = (self._session.clock.tick_ns() - started_ns) // _MILLISECOND_NS
        return LeaseAcquisitionResponse(success=True, lease=lease, waited_ms=waited_ms)

    async def renew_lease(self, request: LeaseRenewalRequest) -> LeaseRenewalResponse:
        """Give a lease more time, from now on. A lease that is over is never renewed."""
        check_request(request, LeaseRenewalRequest)
        try:
            agent = text("agent_id", request.agent_id)
            status = await self._terms.renew(request.lease_id, request.new_ttl_seconds, agent)
        except (Refused, LeaseLost) as error:
            return LeaseRenewalResponse(success=False, error=text_of(error))
        lease = file_lease(status)
        self._tell("renewed", lease)
        return LeaseRenewalResponse(success=True, lease=lease)

    async def release_lease(self, request: LeaseReleaseRequest) -> LeaseReleaseResponse:
        """Give a lease back. It succeeds once."""
        check_request(request, LeaseReleaseRequest)
        try:
            agent = text("agent_id", request.agent_id)
            released = await self._claims.release(request.lease_id, ReleaseReason.VOLUNTARY, agent)
        except (Refused, LeaseLost) as error:
            return LeaseReleaseResponse(success=False, error=text_of(error))
        if not released:
            return LeaseReleaseResponse(
                success=False, error=f"{OVER}: lease {request.lease_id} has ended already"
            )
        self._tell("released", await self.get_lease(request.lease_id))
        return LeaseReleaseResponse(success=True)

    async def upgrade_lease(self, request: LeaseUpgradeRequest) -> LeaseAcquisitionResponse:
        """Have a shared lease exclusively, before everybody who waits; wait for the others who share it."""
        started_ns = self._session.clock.tick_ns()
        check_request(request, LeaseUpgradeRequest)
        try:
            found = await self._terms.existing(request.lease_id)
            preferred = await self._preferred(found.lease.resource)
            patience = patience_of(request.timeout_ms, request.blocking)
            if patience is None:
                patience = preferred.acquisition_timeout_ms / 1_000
            status = await self._terms.change_mode(
                request.lease_id,
                Mode.EXCLUSIVE,
                wait=patience if preferred.blocking_mode_enabled else None,
                holder=text("agent_id", request.agent_id),
            )
        except (Refused, LeaseLost) as error:
            return LeaseAcquisitionResponse(
                success=False, error=text_of(error), holder=error.holder, facts=error.facts
            )
        lease = file_lease(status)
        self._tell("upgraded", lease)
        waited_ms = (self._session.clock.tick_ns() - started_ns) // _MILLISECOND_NS
        return LeaseAcquisitionResponse(success=True, lease=lease, waited_ms=waited_ms)

    async def transfer_lease(self, request: LeaseTransferRequest) -> LeaseAcquisitionResponse:
        """Hand a lease to another agent in one step; the response has the new lease."""
        check_request(request, LeaseTransferRequest)
        try:
            agent = text("agent_id", request.agent_id)
            status = await self._terms.transfer(
                request.lease_id, request.to_agent_id, request.ttl_seconds, agent
            )
        except (Refused, LeaseLost) as error:
            return LeaseAcquisitionResponse(
                success=False, error=text_of(error), holder=error.holder, facts=error.facts
            )
        lease = file_lease(status)
        self._tell("transferred", lease)
        return LeaseAcquisitionResponse(success=True, lease=lease)

    async def heartbeat(self, agent: str | None = None) -> "list[FileLease]":
        """Renew everything that an agent holds, and return it: say so from time to time while it works."""
        name = self.agent(agent)
        own = [one.lease.lease_id for one in await self._reader.held_by(name)]
        renewed: list[FileLease] = []
        for result in await self._terms.renew_many(own, None, name):
            if isinstance(result, LeaseStatus):
                renewed.append(file_lease(result))
                self._tell("renewed", renewed[-1])
        return renewed

    async def get_lease(self, lease_id: str) -> FileLease | None:
        """Return a lease by its id, whatever has become of it."""
        question = FindLease(tenant=self._session.tenant, lease_id=text("lease_id", lease_id))
        found = await self._session.ask(question)
        return None if found is None else file_lease(found)

    async def get_file_leases(self, file_path: AnyPath | FileName) -> "list[FileLease]":
        """Return the active leases on a path, above it, below it, and on patterns that can match it."""
        question = FindAround(tenant=self._session.tenant, resource=named(file_path).resource)
        return [file_lease(one) for one in await self._session.ask(question)]

    async def get_agent_leases(self, agent_id: str) -> "list[FileLease]":
        """Return the active file leases of an agent."""
        own = await self._reader.held_by(text("agent_id", agent_id))
        return [file_lease(one) for one in own if is_file_name(one.lease.resource)]

    async def get_all_leases(self) -> "list[FileLease]":
        """Return every active file lease."""
        found = await self._reader.find(states=[LeaseState.ACTIVE])
        return [file_lease(one) for one in found if one.is_live and is_file_name(one.lease.resource)]

    async def is_file_locked(self, file_path: AnyPath) -> bool:
        """Say whether anybody holds a path, or anything that keeps others from owning it alone."""
        return bool(await self.in_the_way(file_path))

    async def in_the_way(
        self, path: AnyPath | FileName, mode: Mode | str = Mode.EXCLUSIVE
    ) -> "list[FileLease]":
        """Return some of the leases that keep others from owning a path in a mode; none only if none does."""
        question = FindAround(
            tenant=self._session.tenant,
            resource=named(path).resource,
            against=parse("mode", Mode, mode),
        )
        return [file_lease(one) for one in await self._session.ask(question)]

    async def has_agent_lease(self, agent_id: str, file_path: AnyPath) -> bool:
        """Say whether an agent holds a path, or something that covers it."""
        wanted = named(file_path).resource
        own = await self._reader.held_by(text("agent_id", agent_id))
        return any(includes(one.lease.resource, wanted) for one in own)

    async def cleanup_expired_leases(self) -> int:
        """Record the end of leases whose time is over; return how many. Nobody has to: they block nobody."""
        return await self._claims.sweep(_PAGE)

    async def force_release_agent_leases(self, agent_id: str, reason: str = FORCED) -> int:
        """End every file lease, and every wait, of an agent that does not answer; return how many."""
        holder = text("agent_id", agent_id)
        count = 0
        unended = await self._reader.find(holder=holder, states=[LeaseState.ACTIVE, LeaseState.PENDING])
        for status in unended:
            if not is_file_name(status.lease.resource):
                continue
            command = Revoke(
                tenant=self._session.tenant,
                lease_id=status.lease.lease_id,
                operator=self._session.holders.current(),
                reason=text("reason", reason),
                request_id=self._session.ids.name(),
            )
            ended = answer_of(await self._session.send(command), Ended)
            if not ended.already:
                count += 1
                self._tell("released", await self.get_lease(status.lease.lease_id), reason)
        return count
