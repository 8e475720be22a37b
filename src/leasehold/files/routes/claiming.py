"""How agents elsewhere come by leases on files: what they have is renewed, the rest acquired, all or nothing.

It is what `files.aio.claiming` does for programs that keep their leases; here nothing is kept.
"""

from msgspec.structs import replace

from leasehold.client.inputs import claim_ids, duration_ns, facts_of
from leasehold.client.waits import undoing
from leasehold.engine.questions import LeaseStatus, lasting
from leasehold.errors import AlreadyHeld, Held, LeaseLost, RenewalDoesNotExtend, RenewalsExhausted
from leasehold.files.aio.claiming import had_already, without_covered
from leasehold.files.aio.reader import AsyncFileReader
from leasehold.files.names import FileName, name_elsewhere, shown
from leasehold.files.routes.bodies import AcquireFilesBody
from leasehold.kernel.lease.commands import Acquire, ChangeMode, Wanted
from leasehold.kernel.lease.model import Mode
from leasehold.server.terms import Terms
from leasehold.settings.questions import FindEffective

_ANYWHERE = "/"
"""Where who asks stands is not known here: from no project's folder, names are told that are good in each."""


class FileClaims:
    """What one request has to do with the file leases of agents."""

    def __init__(self, terms: Terms) -> None:
        self._terms = terms
        self._session = terms.session
        self._reader = AsyncFileReader(terms.session, folder=_ANYWHERE)

    async def acquire(self, data: AcquireFilesBody) -> list[LeaseStatus]:
        """Have an agent own files, folders and patterns; who is refused is told by whom, and what next."""
        names = without_covered([name_elsewhere(path, project=data.project) for path in data.paths])
        preferred = await self._session.ask(
            FindEffective(tenant=self._session.tenant, resource=names[0].resource)
        )
        data = replace(
            data,
            ttl=preferred.default_ttl_seconds if data.ttl is None else data.ttl,
            wait=data.wait if preferred.blocking_mode_enabled else 0.0,
            max_renewals=preferred.max_renewals if data.max_renewals is None else data.max_renewals,
        )
        try:
            return await self._acquire(names, data)
        except (AlreadyHeld, LeaseLost):
            # Another request of this agent has acquired it since we looked, or what we saw has ended.
            return await self._acquire(names, data)

    async def _acquire(self, names: list[FileName], data: AcquireFilesBody) -> list[LeaseStatus]:
        had, missing = had_already(await self._reader.held_by(data.agent), names, data.mode)
        command = None if not missing else self._command(missing, data)
        granted = [] if command is None else await self._claim(command, missing, data)
        try:
            return granted + [await self._renew(status, data) for status in had]
        except BaseException:
            if command is not None:  # By the id it has now: waiting may have made the claim anew.
                made = replace(command, lease_id=granted[0].lease.lease_id)
                self._session.send_blindly(undoing(made, self._session.ids.new()))
            raise

    def _command(self, names: list[FileName], data: AcquireFilesBody) -> Acquire:
        lease_id, request_id = claim_ids(self._session.ids, None)
        first, *others = names
        waits = data.wait > 0
        return Acquire(
            tenant=self._session.tenant,
            lease_id=lease_id,
            resource=first.resource,
            holder=data.agent,
            ttl_ns=duration_ns("ttl", data.ttl or 0),
            mode=data.mode,
            also=tuple(Wanted(resource=one.resource, mode=data.mode) for one in others),
            max_renewals=-1 if data.max_renewals is None else data.max_renewals,
            bound_to_boot=False,
            metadata=facts_of(data.metadata, data.reason),
            wait=waits,
            gives_up=waits,
            priority=data.priority,
            request_id=request_id,
        )

    async def _claim(
        self, command: Acquire, names: list[FileName], data: AcquireFilesBody
    ) -> list[LeaseStatus]:
        patience = self._terms.patience_ns(data.wait)
        try:
            granted = await self._terms.claim(command, patience)
        except Held as error:
            raise (await self._reader.explain(error, names, data.agent, data.mode)) from None
        return [lasting(lease, granted.expires_in_ns) for lease in (granted.lease, *granted.also)]

    async def _renew(self, status: LeaseStatus, data: AcquireFilesBody) -> LeaseStatus:
        """Give a lease that the agent has more time, and what it lacks to be as it is claimed."""
        lease = status.lease
        if lease.mode is Mode.SHARED and data.mode is Mode.EXCLUSIVE:
            status = await self.upgrade(lease.lease_id, data.agent, data.wait, lease.resource)
        try:
            return await self._terms.renew(lease.lease_id, data.agent, data.ttl)
        except (RenewalDoesNotExtend, RenewalsExhausted):
            return status  # It stands, and that is enough.

    async def upgrade(self, lease_id: str, agent: str, wait: float, resource: str = "") -> LeaseStatus:
        """Have a shared lease exclusively, before everybody who waits; wait for those who share it."""
        patience = self._terms.patience_ns(wait)
        command = ChangeMode(
            tenant=self._session.tenant,
            lease_id=lease_id,
            holder=agent,
            mode=Mode.EXCLUSIVE,
            wait=patience > 0,
            request_id=self._session.ids.new(),
        )
        try:
            granted = await self._terms.claim(command, patience)
        except Held as error:
            resource = resource or error.resource or ""
            name = FileName(resource, shown(resource))
            raise (await self._reader.explain(error, [name], agent, Mode.EXCLUSIVE)) from None
        return lasting(granted.lease, granted.expires_in_ns)
