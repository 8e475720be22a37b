"""What operators do with the leases of workflows."""

import logging

from leasehold.client.aio.claims import AsyncClaims
from leasehold.client.aio.session import AsyncSession
from leasehold.client.inputs import sought, text, whole_number
from leasehold.engine.desk import answer_of
from leasehold.engine.questions import FindLease, LeaseStatus
from leasehold.kernel.lease.answers import Ended
from leasehold.kernel.lease.commands import Revoke
from leasehold.workflows.errors import WorkflowLeaseNotFound
from leasehold.workflows.law.records import workflow_of
from leasehold.workflows.messages import metadata_of, moment_of
from leasehold.workflows.models import Event, EventType, LeaseMetadata
from leasehold.workflows.questions import FindWorkflow, Known, ListWorkflows, WorkflowStatus

_PAGE = 1_000

logger = logging.getLogger("leasehold.workflows")


class AsyncLeaseManager:
    """All leases on workflows of one tenant, in one hand."""

    def __init__(self, session: AsyncSession, claims: AsyncClaims) -> None:
        self._session = session
        self._claims = claims

    async def active_leases(self) -> dict[str, LeaseMetadata]:
        """Return every lease under which somebody may act for a workflow now, by its id."""
        leases: dict[str, LeaseMetadata] = {}
        after = ""
        while True:
            page: list[WorkflowStatus] = await self._session.ask(
                ListWorkflows(tenant=self._session.tenant, after=after, limit=_PAGE)
            )
            for status in page:
                if status.lease is not None and status.is_owned:
                    leases[status.lease.lease.lease_id] = metadata_of(status.lease.lease)
            if len(page) < _PAGE:
                return leases
            after = page[-1].workflow.workflow_id

    async def revoke_lease(self, lease_id: str, reason: str, *, operator: str | None = None) -> Event:
        """End the lease of a workflow's orchestrator; return the event that is on the bus by then.

        Raises WorkflowLeaseNotFound if it is no lease of a workflow, or was over already.
        """
        if not await self._is_active(sought("lease_id", lease_id)):
            raise _not_found(lease_id)
        command = Revoke(
            tenant=self._session.tenant,
            lease_id=lease_id,
            operator=self._session.holders.current() if operator is None else text("operator", operator),
            reason=text("reason", reason),
            request_id=self._session.ids.name(),
        )
        ended = answer_of(await self._session.send(command), Ended)
        if ended.already:
            raise _not_found(lease_id)
        logger.warning("revoked lease %s: %s", lease_id, reason)
        revoked_at = moment_of(ended.lease.terminated_at_ns or 0)
        return Event(
            event_type=EventType.LEASE_REVOKED,
            payload={"lease_id": lease_id, "reason": reason, "revoked_at": revoked_at.isoformat()},
            created_at=revoked_at,
        )

    async def _is_active(self, lease_id: str) -> bool:
        tenant = self._session.tenant
        found: LeaseStatus | None = await self._session.ask(FindLease(tenant=tenant, lease_id=lease_id))
        workflow_id = None if found is None else workflow_of(found.lease.resource)
        if workflow_id is None:
            return False
        known: Known = await self._session.ask(FindWorkflow(tenant=tenant, workflow_id=workflow_id))
        status = known.status
        return status is not None and status.is_owned and status.workflow.lease_id == lease_id

    async def expire_leases(self, limit: int = 1_000) -> int:
        """Record the end of leases whose time is over, so that the bus tells of it; return how many ended.

        Nobody has to: a lease that has expired blocks nobody, and every client records some in passing.
        """
        return await self._claims.sweep(whole_number("limit", limit, minimum=1))


def _not_found(lease_id: str) -> WorkflowLeaseNotFound:
    return WorkflowLeaseNotFound(f"Lease {lease_id} not found", lease_id=lease_id)
