"""What a guard decides without asking anybody: whether an action may be processed.

A node (Compute, Effect, Reducer) puts a guard in front of its work. The guard knows which lease allows
acting for the workflow, and how far the node has come, and refuses everything else. Two disciplines, by
name:

- `monotonic`: an action from an epoch before the last processed one is stale.
- `strict`: an action has to be the very next one. `advance` tells the guard of epochs that went elsewhere.

Not promised: a guard that only looks cannot know of a revocation of a moment ago. It hears of that from the
bus, or asks the registrar (`authoritative=True`). An action that was processed before is recognised by its
id, as long as it is among the last ones, and is passed over in silence.
"""

import logging
from typing import NoReturn
from uuid import UUID

from leasehold.client.inputs import name, whole_number
from leasehold.engine.clock import Clock, SystemClock
from leasehold.errors import InvalidInput
from leasehold.kernel.lease.model import LeaseState
from leasehold.workflows.errors import (
    FutureEpoch,
    LeaseViolation,
    StaleEpoch,
    WorkflowError,
    WorkflowLeaseExpired,
    WorkflowLeaseNotFound,
)
from leasehold.workflows.law.ownership import CHECK_MISSED, CLAIM_AGAIN, REFRESH
from leasehold.workflows.law.records import RECENT_ACTIONS, Mark
from leasehold.workflows.models import Action, ActionType, Delivery, EventType, LeaseMetadata
from leasehold.workflows.questions import Known, WorkflowStatus

MONOTONIC, STRICT = "monotonic", "strict"
NOTHING_PROCESSED = -1
_NANOSECONDS = 1_000_000_000

_GRANTS = (EventType.LEASE_CLAIMED, EventType.LEASE_TAKEN_OVER)
_ENDS = {
    EventType.LEASE_REVOKED: "it was revoked",
    EventType.LEASE_RELEASED: "it was released",
    EventType.LEASE_EXPIRED: "it has expired",
    EventType.WORKFLOW_COMPLETED: "the workflow was completed",
    EventType.WORKFLOW_CANCELLED: "the workflow was cancelled",
}

logger = logging.getLogger("leasehold.workflows")
logger.addHandler(
    logging.NullHandler()
)  # A refusal is raised as well: who has set up no logs need not see both.


class OutOfTime(Exception):
    """A handler has taken longer than it may; a timeout of its own is something else."""


class AnyGuard:
    """What guards of both colours know, and decide."""

    def __init__(self, workflow_id: str, policy: str = MONOTONIC, *, clock: Clock | None = None) -> None:
        if policy not in (MONOTONIC, STRICT):
            raise InvalidInput(f"policy must be {MONOTONIC} or {STRICT}, not {policy!r}", field="policy")
        self.workflow_id = name("workflow_id", workflow_id)
        self.policy = policy
        self.expected_lease_id: str | None = None
        self.token = 0
        """Of the expected lease, or 0 while it is not known; the bus switches only to a higher one."""
        self.last_processed_epoch = NOTHING_PROCESSED
        self._is_replaceable = True
        """Whether a grant on the bus replaces the expected lease: else it may be one from before that."""
        self._strict = policy == STRICT
        self._clock = clock or SystemClock()
        self._metadata: LeaseMetadata | None = None
        self._deadline_ns: int | None = None
        self._over = ""
        """Why the expected lease allows nothing any more, though no other has come."""
        self._recent: dict[str, None] = {}
        """The last actions that were processed, oldest first."""

    @property
    def position(self) -> tuple[str | None, int, int]:
        """How far the guard has come: the lease that it expects, its token, and the last processed epoch."""
        return self.expected_lease_id, self.token, self.last_processed_epoch

    @property
    def current_epoch(self) -> int:
        """The epoch to compare with: the next one for `strict`, the last processed one for `monotonic`."""
        return self.last_processed_epoch + 1 if self._strict else self.last_processed_epoch

    def set_lease(
        self, lease: str | UUID | LeaseMetadata, *, token: int = 0, epoch: int | None = None
    ) -> None:
        """Expect this lease from now on.

        `token` makes sure that nothing but a later lease replaces it, or is replaced by it. Without it, no
        grant on the bus replaces the lease before the bus has told of this one. `epoch` is the first one
        under it. With `LeaseMetadata`, the lease is refused once its time is over, unless it is
        set again.
        """
        if not isinstance(lease, str | UUID | LeaseMetadata):
            raise InvalidInput(
                f"lease must be an id or its metadata, not {type(lease).__name__}", field="lease"
            )
        whole_number("token", token, minimum=0)
        if epoch is not None:
            whole_number("epoch", epoch, minimum=0)
        metadata = lease if isinstance(lease, LeaseMetadata) else None
        lease_id = str(lease) if metadata is None else metadata.lease_id
        if token and token < self.token:
            self._refuse(
                LeaseViolation(
                    f"lease {lease_id} is older than the one that is expected; set the present one",
                    expected_lease=self.expected_lease_id,
                    received_lease=lease_id,
                    recommendation="set the workflow's present lease",
                )
            )
        self._expect(lease_id, token)
        self._metadata = metadata
        if metadata is not None:
            self._deadline_ns = self._clock.tick_ns() + int(metadata.remaining_ttl() * _NANOSECONDS)
        if epoch is not None:
            self.last_processed_epoch = epoch - 1
        logger.info("lease of workflow %s set to %s", self.workflow_id, lease_id)

    def advance(self, epoch: int) -> None:
        """Take note that everything up to an epoch was processed, or went elsewhere. It never goes back."""
        whole_number("epoch", epoch, minimum=0)
        self.last_processed_epoch = max(self.last_processed_epoch, epoch)

    def look(self, action: Action) -> bool:
        """Return True if an action may be processed, and False if it was before; raise why it must not be."""
        if not isinstance(action, Action):
            raise InvalidInput(f"action must be an Action, not {type(action).__name__}", field="action")
        if action.lease_id != self.expected_lease_id or self._over:
            self._refuse(self._violation(action, self._over or "it comes from another orchestrator"))
        deadline_ns = self._deadline_ns
        if deadline_ns is not None and self._clock.tick_ns() >= deadline_ns:
            self._refuse(self._expired(action))
        if action.action_id in self._recent:
            return False
        epoch, last = action.epoch, self.last_processed_epoch
        if epoch < last or (self._strict and epoch != last + 1):
            self._refuse_epoch(epoch)
        return True

    def note(self, action: Action) -> None:
        """Take note that an action was processed."""
        self.last_processed_epoch = max(self.last_processed_epoch, action.epoch)
        self._recent[action.action_id] = None
        while len(self._recent) > RECENT_ACTIONS:
            del self._recent[next(iter(self._recent))]

    def follow(self, delivery: Delivery) -> None:
        """Take note of what happened to the lease, and of epochs that went elsewhere, as the bus tells it.

        Only a delivery counts: a message that did not come from the bus cannot change whom a guard believes.
        """
        if delivery.workflow_id != self.workflow_id:
            return
        message = delivery.message
        if isinstance(message, Action):
            if message.action_type == ActionType.LEASE_TRANSFER:
                payload = message.payload
                self._hear_of(message.lease_id, delivery.token)
                self._switch(payload["new_lease_id"], payload["new_token"], message.epoch + 1)
            return
        payload, kind = message.payload, message.event_type
        self._hear_of(payload.get("lease_id"), payload.get("token", 0))
        if kind in _GRANTS:
            self._switch(payload["lease_id"], payload["token"], payload["epoch"])
        elif payload.get("lease_id") == self.expected_lease_id:
            if kind in _ENDS:
                self._over = _ENDS[kind]
            elif kind is EventType.STATE_CHANGED:
                self.advance(payload["epoch"])

    def _hear_of(self, lease_id: str | None, token: int) -> None:
        """Take note of a lease that the bus, or the registrar, tells of: what follows that one is later."""
        if lease_id is not None and lease_id == self.expected_lease_id:
            self.token, self._is_replaceable = max(self.token, token), True

    def _switch(self, lease_id: str, token: int, epoch: int) -> None:
        epoch = max(epoch, self.last_processed_epoch + 1)
        if lease_id == self.expected_lease_id:
            self.last_processed_epoch = epoch - 1
        elif token > self.token and self._is_replaceable:
            self.set_lease(lease_id, token=token, epoch=epoch)

    def restore(self, mark: Mark) -> None:
        """Go on where a guard of the same name has come to."""
        if mark.token < self.token:
            return
        if mark.lease_id != self.expected_lease_id:
            self._expect(mark.lease_id, mark.token)
        elif mark.token > 0:  # A mark may be from before the token was known, and tells nothing new then.
            self._hear_of(mark.lease_id, mark.token)
        self.last_processed_epoch = max(self.last_processed_epoch, mark.epoch)
        self._recent = dict.fromkeys(mark.recent) | self._recent

    def catch_up(self, status: WorkflowStatus) -> None:
        """Expect the lease that the registrar says is the workflow's, unless a later one is known here."""
        workflow = status.workflow
        if workflow.token < self.token:
            return
        if workflow.lease_id and workflow.token > self.token:
            self._expect(workflow.lease_id, workflow.token)
        if not status.is_owned:
            self._over = "nobody has the workflow"

    def _expect(self, lease_id: str, token: int) -> None:
        self.expected_lease_id, self.token, self._over = lease_id, token, ""
        self._metadata, self._deadline_ns = None, None
        self._is_replaceable = token > 0

    def believe(self, action: Action, known: Known) -> None:
        """Take the registrar's word: expect the lease that it says is the workflow's, or raise why not."""
        status, lease = known.status, known.lease
        if status is None or lease is None:
            self._refuse(
                WorkflowLeaseNotFound(
                    f"lease {action.lease_id} not found",
                    lease_id=action.lease_id,
                    workflow_id=self.workflow_id,
                    recommendation=CLAIM_AGAIN,
                )
            )
        workflow = status.workflow
        if workflow.token < self.token:  # It has answered before what the bus has told of since.
            self._refuse(self._violation(action, "a later orchestrator has the workflow"))
        if workflow.lease_id in ("", action.lease_id) and not lease.is_live:
            ran_out = lease.lease.state in (LeaseState.ACTIVE, LeaseState.EXPIRED)
            self._over = "it has expired" if ran_out else f"it was {lease.lease.state}"
            self._refuse(self._expired(action) if ran_out else self._violation(action, self._over))
        if workflow.lease_id != action.lease_id:
            self._refuse(
                self._violation(action, f"{workflow.holder or 'nobody'} has the workflow", workflow.lease_id)
            )
        if action.epoch >= workflow.epoch:
            self._refuse_epoch(action.epoch, workflow.epoch)
        emitted = known.action
        if emitted is None or (emitted.lease_id, emitted.epoch) != (action.lease_id, action.epoch):
            self._refuse(
                self._violation(action, "its orchestrator did not emit this action", workflow.lease_id)
            )
        self._hear_of(action.lease_id, workflow.token)
        if action.lease_id != self.expected_lease_id:
            self._expect(action.lease_id, workflow.token)
        elif self._deadline_ns is not None:
            self._deadline_ns = self._clock.tick_ns() + int(lease.expires_in * _NANOSECONDS)

    def _violation(self, action: Action, why: str, expected: str | None = None) -> LeaseViolation:
        return LeaseViolation(
            f"Invalid lease_id {action.lease_id} for workflow {self.workflow_id}: {why}",
            expected_lease=expected or str(self.expected_lease_id),
            received_lease=action.lease_id,
            action_epoch=action.epoch,
            current_epoch=self.current_epoch,
            recommendation="accept actions of the workflow's present orchestrator only",
        )

    def _expired(self, action: Action) -> WorkflowLeaseExpired:
        metadata = self._metadata
        return WorkflowLeaseExpired(
            f"lease {action.lease_id} of workflow {self.workflow_id} has expired",
            lease_id=action.lease_id,
            acquired_at=None if metadata is None else metadata.acquired_at.isoformat(),
            ttl_seconds=None if metadata is None else metadata.ttl_seconds,
            expected_lease=str(self.expected_lease_id),
            received_lease=action.lease_id,
            action_epoch=action.epoch,
            current_epoch=self.current_epoch,
            recommendation="check it with the registrar, or set the lease again once it is renewed",
        )

    def _refuse_epoch(self, epoch: int, current: int | None = None) -> NoReturn:
        current = self.current_epoch if current is None else current
        stale = epoch < current
        kind = StaleEpoch if stale else FutureEpoch
        word, sign = ("Stale", "<") if stale else ("Future", ">" if epoch > current else "=")
        self._refuse(
            kind(
                f"{word} action: epoch {epoch} {sign} {current}",
                expected_lease=str(self.expected_lease_id),
                received_lease=str(self.expected_lease_id),
                action_epoch=epoch,
                current_epoch=current,
                recommendation=REFRESH if stale else CHECK_MISSED,
            )
        )

    def _refuse(self, error: WorkflowError) -> NoReturn:
        """Log a refusal with the facts that it carries, and raise it."""
        extra = {
            "error_code": error.error_code,
            "correlation_id": error.correlation_id,
            "workflow_id": self.workflow_id,
            **error.context,
        }
        logger.error("Lease violation: %s", error, extra=extra)
        raise error


def action_in(message: Action | Delivery) -> Action | None:
    """Return the action that a message is, or carries; None if it carries an event.

    An event by itself is refused: only what the bus delivers can change whom a guard believes.
    """
    inner = message.message if isinstance(message, Delivery) else message
    if isinstance(inner, Action):
        return inner
    if not isinstance(message, Delivery):
        raise InvalidInput(
            f"message must be an Action or a Delivery, not {type(message).__name__}", field="message"
        )
    return None
