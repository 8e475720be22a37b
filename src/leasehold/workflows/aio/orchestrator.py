"""The orchestrator of a workflow: who holds its lease, and may emit actions and change its state.

Each step is one commit, decided on the lease and the epoch, so it happens once or not at all. Steps of one
orchestrator are taken one after another. As a context manager it gives the lease back at the end of the
block, and the workflow is left to the next claim, unless it was completed or cancelled.
"""

import logging
from collections.abc import Iterable, Mapping
from types import TracebackType
from typing import Any, NamedTuple, Self, TypeVar
from uuid import UUID, uuid4

from leasehold.client.aio.lease import AsyncHeldLease
from leasehold.client.aio.loss import AsyncLoss
from leasehold.client.aio.session import AsyncSession
from leasehold.client.aio.terms import AsyncTerms
from leasehold.client.holdings import Holdings
from leasehold.client.inputs import Duration, duration_ns, mapping, several, text, whole_number
from leasehold.engine.desk import answer_of
from leasehold.errors import InvalidInput, LeaseholdError, LeaseLost, StoreError
from leasehold.kernel.ledger.commands import Command
from leasehold.workflows.aio.colour import AsyncLock
from leasehold.workflows.errors import (
    LeaseViolation,
    StaleEpoch,
    WorkflowError,
    WorkflowLeaseExpired,
    as_workflow_error,
)
from leasehold.workflows.law.commands import (
    AnswerAction,
    Emit,
    Emitted,
    Finish,
    HandedOff,
    HandOff,
    Stepped,
    Transition,
)
from leasehold.workflows.law.events import ActionFacts
from leasehold.workflows.law.ownership import CLAIM_AGAIN
from leasehold.workflows.law.records import CANCELLED, COMPLETED, Workflow
from leasehold.workflows.messages import action_of, metadata_of, transfer_action
from leasehold.workflows.models import Action, LeaseMetadata, Result
from leasehold.workflows.questions import FindWorkflow, Known

RENEW_BELOW_SECONDS = 60.0

_AnswerType = TypeVar("_AnswerType")

logger = logging.getLogger("leasehold.workflows")


class Handoff(NamedTuple):
    """A workflow that was given to another orchestrator."""

    new_lease_id: str
    """What the successor calls `claim_lease` with."""
    action: Action
    """The transfer action: the last one under the old lease."""


class AsyncOrchestrator:
    """The single writer of one workflow."""

    def __init__(
        self,
        session: AsyncSession,
        holdings: Holdings,
        terms: AsyncTerms,
        held: AsyncHeldLease,
        workflow: Workflow,
        *,
        renew_below_ns: int,
    ) -> None:
        self._session = session
        self._holdings = holdings
        self._terms = terms
        self._held = held
        self._renew_below_ns = renew_below_ns
        self._turn = AsyncLock()
        self._is_doubtful = False
        """Whether the epoch may be another than we know, because a reply was lost."""
        self._end: tuple[str, str] | None = None
        """How this orchestrator has ended its own part, and what to do instead."""
        self.workflow_id = workflow.workflow_id
        self.current_epoch = workflow.epoch
        """The epoch of whatever this orchestrator does next."""
        self.workflow_state = workflow.state

    def __repr__(self) -> str:
        return f"<orchestrator of {self.workflow_id}, epoch {self.current_epoch}, {self._held!r}>"

    @property
    def lease_id(self) -> str:
        """The lease: every action has it, to prove who emitted it."""
        return self._held.lease_id

    @property
    def token(self) -> int:
        """The fencing token of the lease; a successor's is higher."""
        return self._held.token

    @property
    def holder(self) -> str:
        """The name that the lease is held under."""
        return self._held.holder

    @property
    def lost(self) -> AsyncLoss:
        """Fires once when the lease is lost."""
        return self._held.lost

    @property
    def lease_metadata(self) -> LeaseMetadata:
        """The lease as others may know it, by wall clock."""
        return metadata_of(self._held.lease)

    @property
    def remaining_ttl(self) -> float:
        """Seconds for which this orchestrator may believe in its lease."""
        return self._held.remaining

    def check_lease_validity(self) -> None:
        """Return if the lease can be trusted now; raise WorkflowLeaseExpired or LeaseViolation if not.

        It asks the clock, not the registrar; every step is checked by the registrar again.
        """
        if self._end is not None:
            how, step = self._end
            raise self._violation(
                f"workflow {self.workflow_id} was {how} by this orchestrator; {step}", recommendation=step
            )
        try:
            self._held.ensure()
        except LeaseLost as loss:
            raise self._lost_error(loss) from None

    def _lost_error(self, loss: LeaseLost) -> LeaseholdError:
        if isinstance(loss, WorkflowError):
            return as_workflow_error(loss)
        lease = self._held.lease
        if loss.code == WorkflowLeaseExpired.code:
            return WorkflowLeaseExpired(
                f"lease {self.lease_id} on workflow {self.workflow_id} has expired; {CLAIM_AGAIN}",
                lease_id=self.lease_id,
                acquired_at_ns=lease.last_renewed_at_ns or lease.issued_at_ns,
                ttl_seconds=lease.ttl_ns / 1_000_000_000,
                current_epoch=self.current_epoch,
                recommendation=CLAIM_AGAIN,
            )
        return self._violation(
            f"lease {self.lease_id} does not allow acting for workflow {self.workflow_id} any more: {loss}",
            recommendation=CLAIM_AGAIN,
        )

    def _violation(self, message: str, *, recommendation: str) -> LeaseViolation:
        return LeaseViolation(
            message,
            received_lease=self.lease_id,
            current_epoch=self.current_epoch,
            recommendation=recommendation,
        )

    async def emit(
        self,
        action_type: str,
        payload: Mapping[str, Any] | None = None,
        *,
        target_node_type: str | None = None,
        dependencies: Iterable[str | UUID] = (),
        priority: int = 5,
        timeout_ms: int = 30_000,
        retry_count: int = 0,
        action_id: str | UUID | None = None,
        request_id: str | None = None,
    ) -> Action:
        """Emit an action, under this lease and at the current epoch, which then rises by one.

        Raises WorkflowLeaseExpired or LeaseViolation if this is not the workflow's orchestrator any more;
        then nothing was written. `request_id` makes a later call with the same arguments a retry of this
        one.
        """
        facts = ActionFacts(
            action_type=str(text("action_type", action_type)),
            payload={} if payload is None else mapping("payload", payload),
            target_node_type=None if target_node_type is None else text("target_node_type", target_node_type),
            dependencies=tuple(str(one) for one in several("dependencies", dependencies)),
            priority=whole_number("priority", priority),
            timeout_ms=whole_number("timeout_ms", timeout_ms),
            retry_count=whole_number("retry_count", retry_count),
        )
        async with self._turn:
            await self._begin()
            command = Emit(**self._step(request_id), action_id=str(action_id or uuid4()), action=facts)
            emitted = await self._send(command, Emitted)
            self._moved(emitted.current_epoch, emitted.state)
        action = action_of(emitted)
        logger.debug("emitted %s with lease %s at epoch %d", action.action_type, self.lease_id, action.epoch)
        return action

    async def transition(self, new_state: str, *, request_id: str | None = None) -> int:
        """Set another state; return the epoch after it."""
        state = text("new_state", new_state)
        async with self._turn:
            await self._begin()
            self._took(await self._send(Transition(**self._step(request_id), state=state), Stepped))
        return self.current_epoch

    async def handle_result(self, result: Result) -> int:
        """Take in the result of an action: the state is `step_completed` or `step_failed` then.

        A result that was taken in before changes nothing. Raises ActionNotFound if this workflow has emitted
        no such action, and ActionAnswered if another result came first.
        """
        if not isinstance(result, Result):
            raise InvalidInput(f"result must be a Result, not {type(result).__name__}", field="result")
        async with self._turn:
            await self._begin()
            command = AnswerAction(
                **self._step(f"result:{result.result_id}"),
                action_id=result.action_id,
                success=result.success,
                payload=result.payload,
                error=result.error,
            )
            self._took(await self._send(command, Stepped))
        return self.current_epoch

    async def renew(self, *, always: bool = False) -> bool:
        """Renew the lease if less than the threshold is left of it; return whether it was.

        The keeper renews it in the background as well. A lease that has expired is never renewed.
        """
        self.check_lease_validity()
        if not always and self.remaining_ttl * 1_000_000_000 >= self._renew_below_ns:
            return False
        try:
            await self._held.renew()
        except LeaseLost as loss:
            raise self._lost_error(loss) from None
        return True

    async def handoff(self, to: str, *, ttl: Duration | None = None) -> Handoff:
        """Give the workflow to another orchestrator, in one commit.

        The transfer action is the last one under this lease; the successor, `to`, calls `claim_lease` with
        the new lease id, and starts one epoch above. From then on this orchestrator is refused, everywhere.
        """
        to, ttl_ns = text("to", to), None if ttl is None else duration_ns("ttl", ttl)
        async with self._turn:
            await self._begin()
            await self._terms.confirm(self.lease_id)
            command = HandOff(
                **self._step(None),
                action_id=str(uuid4()),
                to=to,
                new_lease_id=self._session.ids.new(),
                ttl_ns=ttl_ns,
            )
            handed_off = await self._send_last(command, HandedOff)
            self._moved(handed_off.epoch + 1, self.workflow_state)
            self._end = (f"handed off to {to}", f"leave it to {to}")
        action = transfer_action(
            handed_off.action_id,
            old_lease_id=self.lease_id,
            new_lease_id=handed_off.lease.lease_id,
            epoch=handed_off.epoch,
            at_ns=handed_off.at_ns,
            to=to,
            new_token=handed_off.lease.token,
        )
        return Handoff(new_lease_id=handed_off.lease.lease_id, action=action)

    async def complete(self) -> None:
        """Complete the workflow, for good, and give the lease back, in one commit."""
        await self._finish(COMPLETED, "")

    async def cancel(self, reason: str = "") -> None:
        """Cancel the workflow, for good, and give the lease back, in one commit."""
        await self._finish(CANCELLED, text("reason", reason))

    async def _finish(self, outcome: str, reason: str) -> None:
        async with self._turn:
            await self._begin()
            command = Finish(**self._step(None), outcome=outcome, reason=reason)
            self._took(await self._send_last(command, Stepped))
            self._end = (outcome, "start another workflow, under another id")

    async def refresh(self) -> None:
        """Ask the registrar for the epoch and the state."""
        question = FindWorkflow(tenant=self._session.tenant, workflow_id=self.workflow_id)
        known: Known = await self._session.ask(question)
        status = known.status
        if status is not None and status.workflow.lease_id == self.lease_id:
            self._moved(status.workflow.epoch, status.workflow.state)
        self._is_doubtful = False

    async def release(self) -> bool:
        """Give the lease back without ending the workflow; the next claim takes it over."""
        return await self._held.release()

    async def __aenter__(self) -> Self:
        await self._held.__aenter__()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._held.__aexit__(kind, error, trace)

    async def _begin(self) -> None:
        self.check_lease_validity()
        if self._is_doubtful:
            await self.refresh()

    def _step(self, request_id: str | None) -> dict[str, Any]:
        """Return what every step says: whose it is, and that it is the next."""
        return {
            "tenant": self._session.tenant,
            "request_id": self._session.ids.name() if request_id is None else text("request_id", request_id),
            "workflow_id": self.workflow_id,
            "lease_id": self.lease_id,
            "holder": self.holder,
            "epoch": self.current_epoch,
        }

    def _took(self, stepped: Stepped) -> None:
        self._moved(stepped.current_epoch, stepped.state)
        logger.info(
            "workflow %s changed to %s (epoch %d)", self.workflow_id, stepped.state, self.current_epoch
        )

    def _moved(self, epoch: int, state: str) -> None:
        self.current_epoch, self.workflow_state = epoch, state

    async def _send_last(self, command: Command, kind: type[_AnswerType]) -> _AnswerType:
        """Send what ends the lease, which is not kept meanwhile: the keeper would take its end for a loss."""
        kept = self._held.kept
        self._holdings.forget(self._held)
        try:
            return await self._send(command, kind)
        except BaseException:
            if kept is not None:
                self._holdings.keep_again(self._held, kept)  # It is still ours, or the next renewal tells.
            raise

    async def _send(self, command: Command, kind: type[_AnswerType]) -> _AnswerType:
        try:
            return answer_of(await self._session.send(command), kind)
        except LeaseholdError as error:
            told = as_workflow_error(error, command.request_id)
            if isinstance(told, StaleEpoch) or (isinstance(told, StoreError) and told.outcome_unknown):
                self._is_doubtful = True
            if isinstance(told, LeaseLost) and self._held.kept is not None:
                self._holdings.keeper.lose(self._held.kept, told)
            raise told from None
        except BaseException:
            self._is_doubtful = True  # Interrupted: it may have happened, and nobody will hear of it.
            raise
