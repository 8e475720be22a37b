"""Workflow leases, as they hang on a client: `leases.workflows`."""

from collections.abc import Callable, Mapping
from typing import Any
from uuid import UUID

from msgspec.structs import replace

from leasehold.client.aio.acquisition import AsyncAcquisition
from leasehold.client.aio.claims import AsyncClaims
from leasehold.client.aio.lease import AsyncHeldLease
from leasehold.client.aio.session import AsyncSession
from leasehold.client.aio.terms import AsyncTerms
from leasehold.client.holdings import Holdings
from leasehold.client.inputs import Duration, callback, duration_ns, mapping, name, sought, text, whole_number
from leasehold.client.waits import patience_ns
from leasehold.engine.desk import answer_of
from leasehold.engine.port import EntryQuery
from leasehold.engine.questions import ReadLedger
from leasehold.errors import AlreadyHeld, InvalidInput, LeaseholdError
from leasehold.kernel.lease.answers import Granted
from leasehold.kernel.lease.model import Lease
from leasehold.kernel.lease.ticket import PRIORITY_USUAL
from leasehold.kernel.ledger.chain import Entry
from leasehold.kernel.ledger.limits import NUMBER_MAXIMUM
from leasehold.workflows.aio.bus import AsyncBus
from leasehold.workflows.aio.guard import AsyncGuard
from leasehold.workflows.aio.manager import AsyncLeaseManager
from leasehold.workflows.aio.orchestrator import RENEW_BELOW_SECONDS, AsyncOrchestrator
from leasehold.workflows.errors import (
    LeaseViolation,
    WorkflowEnded,
    WorkflowLeaseNotFound,
    WorkflowNotFound,
    as_workflow_error,
)
from leasehold.workflows.guarding import MONOTONIC
from leasehold.workflows.law.claiming import queueing
from leasehold.workflows.law.commands import Accept, Claim, HandedOff, HandOff, Marked, MarkGuard
from leasehold.workflows.law.records import resource_of, workflow_of
from leasehold.workflows.messages import PUBLISHED_TYPES, delivery_of
from leasehold.workflows.models import Delivery
from leasehold.workflows.questions import FindWorkflow, Known, ListWorkflows, WorkflowStatus

DEFAULT_TTL = 300.0

_OnLost = Callable[[LeaseholdError], None]


class AsyncWorkflows:
    """Claims workflows, and has what nodes and operators need."""

    def __init__(
        self, session: AsyncSession, holdings: Holdings, terms: AsyncTerms, claims: AsyncClaims
    ) -> None:
        self._session = session
        self._holdings = holdings
        self._terms = terms
        self._claims = claims
        self.bus = AsyncBus(session)
        """Where actions can be read."""
        self.manager = AsyncLeaseManager(session, claims)
        """What operators do."""

    def __repr__(self) -> str:
        return self._session.face("workflow leases")

    @property
    def tenant(self) -> str:
        """Whose workflows these are."""
        return self._session.tenant

    def claim(
        self,
        workflow_id: str,
        *,
        ttl: Duration = DEFAULT_TTL,
        holder: str | None = None,
        wait: Duration | bool | None = None,
        priority: int = PRIORITY_USUAL,
        renew_below: Duration = RENEW_BELOW_SECONDS,
        metadata: Mapping[str, Any] | None = None,
        survives_reboot: bool = False,
        on_lost: Callable[[LeaseholdError], None] | None = None,
    ) -> AsyncAcquisition[AsyncOrchestrator]:
        """Be the orchestrator of a workflow: begin it, or take it over if nobody has it any more.

        Raises `Held` if another orchestrator has it (see `wait` of `acquire`), and WorkflowEnded if it was
        completed or cancelled. The lease lasts `ttl` seconds, and is renewed in the background.
        """
        patience = patience_ns(wait)
        lease_id = self._session.ids.new()
        command = Claim(
            tenant=self._session.tenant,
            request_id=lease_id,
            workflow_id=name("workflow_id", workflow_id),
            lease_id=lease_id,
            holder=self._session.holders.current() if holder is None else text("holder", holder),
            ttl_ns=duration_ns("ttl", ttl),
            bound_to_boot=not survives_reboot,
            metadata={} if metadata is None else mapping("metadata", metadata),
        )
        urgency = whole_number("priority", priority)
        hearer = callback("on_lost", on_lost)
        threshold_ns = duration_ns("renew_below", renew_below)
        return AsyncAcquisition(self._claim(command, hearer, patience, urgency, threshold_ns))

    async def _claim(
        self, command: Claim, on_lost: _OnLost | None, patience: int, priority: int, renew_below_ns: int
    ) -> AsyncOrchestrator:
        try:
            if patience == 0:
                held = await self._claims.acquire(command, command.lease_id, command.holder, on_lost)
            else:
                held = await self._claims.wait(queueing(command, priority), on_lost, patience)
                await self._claim_under(held, command)
        except AlreadyHeld as error:
            raise AlreadyHeld(
                f"workflow {command.workflow_id} is already led by you ({command.holder}) under lease "
                f"{error.lease_id}; use that orchestrator, or release it first",
                **error.facts,
            ) from None
        except WorkflowEnded as error:
            raise as_workflow_error(error, command.request_id) from None
        return await self._orchestrator(held, command.workflow_id, renew_below_ns)

    async def _claim_under(self, held: AsyncHeldLease, command: Claim) -> None:
        """Claim a workflow under the lease on it that was won by waiting, perhaps by a later claim."""
        command = replace(command, lease_id=held.lease_id, request_id=held.lease_id)
        try:
            answer_of(await self._session.send(command), Granted)
        except BaseException:
            self._give_back(held)
            raise

    def claim_lease(
        self,
        new_lease_id: str | UUID,
        *,
        holder: str | None = None,
        renew_below: Duration = RENEW_BELOW_SECONDS,
        on_lost: Callable[[LeaseholdError], None] | None = None,
    ) -> AsyncAcquisition[AsyncOrchestrator]:
        """Be the orchestrator of a workflow that was handed off to this holder, under the new lease.

        Raises LeaseViolation if it was handed to somebody else, or was taken already.
        """
        command = Accept(
            tenant=self._session.tenant,
            request_id=self._session.ids.new(),
            lease_id=str(new_lease_id),
            holder=self._session.holders.current() if holder is None else text("holder", holder),
        )
        threshold_ns = duration_ns("renew_below", renew_below)
        return AsyncAcquisition(self._accept(command, callback("on_lost", on_lost), threshold_ns))

    async def _accept(
        self, command: Accept, on_lost: _OnLost | None, renew_below_ns: int
    ) -> AsyncOrchestrator:
        try:
            held = await self._claims.acquire(command, command.lease_id, command.holder, on_lost)
        except LeaseholdError as error:
            raise as_workflow_error(error, command.request_id) from None
        orchestrator = await self._orchestrator(held, workflow_of(held.resource) or "", renew_below_ns)
        await orchestrator.renew(always=True)
        return orchestrator

    async def _orchestrator(
        self, held: AsyncHeldLease, workflow_id: str, renew_below_ns: int
    ) -> AsyncOrchestrator:
        try:
            status = await self.find(workflow_id)
            if status is None or status.workflow.lease_id != held.lease_id:
                raise LeaseViolation(
                    f"workflow {workflow_id} was lost as soon as it was claimed; claim it again",
                    received_lease=held.lease_id,
                )
            parts = (self._session, self._holdings, self._terms)
            return AsyncOrchestrator(*parts, held, status.workflow, renew_below_ns=renew_below_ns)
        except BaseException:
            self._give_back(held)
            raise

    def _give_back(self, held: AsyncHeldLease) -> None:
        self._holdings.give_back((held.lease_id,), held.holder)

    def guard(
        self, workflow_id: str, policy: str = MONOTONIC, *, durable_as: str | None = None
    ) -> AsyncGuard:
        """Return a guard that can ask this registrar; `load` it to expect the workflow's present lease."""
        workflow_id = name("workflow_id", workflow_id)
        if durable_as is not None:
            name("durable_as", durable_as)
        return AsyncGuard(
            workflow_id, policy, workflows=self, durable_as=durable_as, clock=self._session.clock
        )

    async def find(self, workflow_id: str) -> WorkflowStatus | None:
        """Return how a workflow stands: its epoch, its state, and whose it is; None if there is none."""
        return (await self.known(workflow_id)).status

    async def known(
        self, workflow_id: str, *, action_id: str = "", guard: str = "", lease_id: str = ""
    ) -> Known:
        """Return what the registrar knows of a workflow, and of an action, a guard, or a lease."""
        question = FindWorkflow(
            tenant=self._session.tenant,
            workflow_id=name("workflow_id", workflow_id),
            action_id=action_id,
            guard=guard,
            lease_id=lease_id,
        )
        known: Known = await self._session.ask(question)
        return known

    async def page(self, *, after: str = "", limit: int = 100) -> list[WorkflowStatus]:
        """Return a page of workflows, in the order of their ids; continue with the last id as `after`."""
        question = ListWorkflows(
            tenant=self._session.tenant, after=sought("after", after), limit=whole_number("limit", limit)
        )
        found: list[WorkflowStatus] = await self._session.ask(question)
        return found

    async def actions(self, workflow_id: str, *, after: int = 0, limit: int = 1_000) -> list[Delivery]:
        """Return what happened in a workflow, oldest first, as the bus tells it."""
        tenant, position = self._session.tenant, whole_number("after", after, minimum=0)
        if position > NUMBER_MAXIMUM:
            raise InvalidInput(f"after must be at most {NUMBER_MAXIMUM}", field="after")
        query = EntryQuery(
            tenant=tenant,
            resource=resource_of(name("workflow_id", workflow_id)),
            types=PUBLISHED_TYPES,
            after=position,
            limit=whole_number("limit", limit),
        )
        entries: list[Entry] = await self._session.ask(ReadLedger(tenant=tenant, query=query))
        return [delivery_of(entry) for entry in entries]

    async def handoff(
        self, workflow_id: str, *, to: str, holder: str | None = None, ttl: Duration | None = None
    ) -> Lease:
        """Give a workflow that `holder` has to another orchestrator, and return the new lease.

        For who is not the orchestrator object itself; that has a `handoff` of its own.
        """
        status = await self.find(workflow_id)
        if status is None:
            raise WorkflowNotFound(f"workflow {workflow_id} does not exist", workflow_id=workflow_id)
        if not status.workflow.lease_id:
            raise WorkflowLeaseNotFound(
                f"nobody has workflow {workflow_id}; claim it", workflow_id=workflow_id
            )
        command = HandOff(
            tenant=self._session.tenant,
            request_id=self._session.ids.name(),
            workflow_id=workflow_id,
            lease_id=status.workflow.lease_id,
            holder=self._session.holders.current() if holder is None else text("holder", holder),
            epoch=status.workflow.epoch,
            action_id=self._session.ids.new(),
            to=text("to", to),
            new_lease_id=self._session.ids.new(),
            ttl_ns=None if ttl is None else duration_ns("ttl", ttl),
        )
        try:
            return answer_of(await self._session.send(command), HandedOff).lease
        except LeaseholdError as error:
            raise as_workflow_error(error, command.request_id) from None

    async def mark_guard(
        self, guard: str, workflow_id: str, lease_id: str, *, token: int, epoch: int, action_id: str
    ) -> None:
        """Keep how far a guard has come."""
        command = MarkGuard(
            tenant=self._session.tenant,
            request_id=self._session.ids.name(),
            name=guard,
            workflow_id=workflow_id,
            lease_id=lease_id,
            token=token,
            epoch=epoch,
            action_id=action_id,
            holder=self._session.holders.current(),
        )
        answer_of(await self._session.send(command), Marked)
