"""A guard in front of a node's work, which lets only the right orchestrator's actions through."""

from collections.abc import Callable
from functools import wraps
from typing import TYPE_CHECKING, Any

from leasehold.engine.clock import Clock
from leasehold.errors import InvalidInput
from leasehold.workflows.aio.colour import AsyncLock, within
from leasehold.workflows.errors import ActionTimeout
from leasehold.workflows.guarding import MONOTONIC, NOTHING_PROCESSED, AnyGuard, OutOfTime, action_in
from leasehold.workflows.models import Action, ActionType, Delivery

if TYPE_CHECKING:
    from leasehold.workflows.aio.workflows import AsyncWorkflows


class AsyncGuard(AnyGuard):
    """Checks actions of one workflow. Without `workflows` it never asks anybody.

    `durable_as` names the guard: how far it has come is kept by the registrar, and a guard of the same name
    goes on from there. Use one name for one node.
    """

    def __init__(
        self,
        workflow_id: str,
        policy: str = MONOTONIC,
        *,
        workflows: "AsyncWorkflows | None" = None,
        durable_as: str | None = None,
        clock: Clock | None = None,
    ) -> None:
        super().__init__(workflow_id, policy, clock=clock)
        if durable_as is not None and workflows is None:
            raise InvalidInput("a durable position needs a registrar; pass workflows=", field="durable_as")
        self._workflows = workflows
        self._name = durable_as
        self._is_loaded = durable_as is None
        self._marked: tuple[str, int, int] | None = None
        """The position as it was kept last."""
        self._turn = AsyncLock()

    async def load(self) -> None:
        """Expect the workflow's present lease; and if the position is durable, go on where it was left.

        A guard that follows the bus need not be told: it hears of the leases there, one after another.
        """
        await self._load(present=True)

    async def _load(self, *, present: bool) -> None:
        if self._workflows is None:
            raise InvalidInput("this guard knows no registrar to ask; pass workflows=", field="workflows")
        known = await self._workflows.known(self.workflow_id, guard=self._name or "")
        if known.status is not None:
            self._hear_of(known.status.workflow.lease_id, known.status.workflow.token)
        if known.mark is not None:
            self.restore(known.mark)
        if known.status is not None and present:
            self.catch_up(known.status)
        self._is_loaded = True

    async def check(self, action: Action, *, authoritative: bool = False) -> bool:
        """Return True if an action may be processed, and False if it was before; raise why it must not be.

        Raises LeaseViolation, WorkflowLeaseExpired, StaleEpoch or FutureEpoch. `authoritative=True` asks the
        registrar first, and so sees a revocation of a moment ago; it may also raise WorkflowLeaseNotFound.
        """
        if not self._is_loaded:
            await self._load(present=True)
        if authoritative:
            await self._ask(action)
        return self.look(action)

    async def _ask(self, action: Action) -> None:
        if self._workflows is None:
            raise InvalidInput("this guard knows no registrar to ask; pass workflows=", field="authoritative")
        known = await self._workflows.known(
            self.workflow_id, action_id=action.action_id, lease_id=action.lease_id
        )
        self.believe(action, known)

    async def process(
        self,
        message: Action | Delivery,
        handler: Callable[[Action], Any],
        *,
        authoritative: bool = False,
    ) -> Any:
        """Have an action processed, one at a time; return what the handler returns.

        The position moves only after the handler has succeeded, within the action's `timeout_ms`. An action
        that was processed before is passed over: None. So is an event of the bus, which tells the guard of
        another lease.
        """
        if not callable(handler):
            raise InvalidInput("handler must be a function of an action", field="handler")
        async with self._turn:
            if isinstance(message, Delivery) and not self._is_loaded:
                await self._load(present=False)  # What is behind in the backlog was right in its time.
            action = action_in(message)
            if action is None:
                await self._follow(message)  # type: ignore[arg-type]
                return None
            if isinstance(message, Delivery) and action.action_type == ActionType.LEASE_TRANSFER:
                if self.look(action):
                    await self._follow(message)
                return None
            if not await self.check(action, authoritative=authoritative):
                return None
            token = self.token  # Another lease may be expected by the time the handler returns.
            try:
                result = await within(action.timeout_ms / 1000, handler, action)
            except OutOfTime:
                raise ActionTimeout(
                    f"action {action.action_id} took longer than {action.timeout_ms} ms, and does not count",
                    action_id=action.action_id,
                    timeout_ms=action.timeout_ms,
                    action_epoch=action.epoch,
                    current_epoch=self.current_epoch,
                ) from None
            await self._mark(action.lease_id, token, action.epoch, action.action_id)
            self.note(action)  # After the mark, so that what is kept here is never ahead of that.
            return result

    async def _follow(self, delivery: Delivery) -> None:
        """Follow the bus; what that has moved is kept, because the bus will not tell it a second time."""
        self.follow(delivery)
        lease_id, token, epoch = self.position
        if lease_id is not None and self.position != self._marked and epoch > NOTHING_PROCESSED:
            await self._mark(lease_id, token, epoch)

    async def _mark(self, lease_id: str, token: int, epoch: int, action_id: str = "") -> None:
        """Keep the position, if it is durable."""
        if self._name is not None and self._workflows is not None:
            await self._workflows.mark_guard(
                self._name, self.workflow_id, lease_id, token=token, epoch=epoch, action_id=action_id
            )
            self._marked = (lease_id, token, epoch)

    def __call__(self, handler: Callable[[Action], Any]) -> Callable[[Action | Delivery], Any]:
        """Put the guard in front of a handler, as a decorator."""

        @wraps(handler)
        async def guarded(message: Action | Delivery) -> Any:
            return await self.process(message, handler)

        return guarded
