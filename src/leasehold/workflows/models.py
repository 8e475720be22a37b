"""Actions, events, results and lease metadata: values that travel between orchestrators and nodes.

They are immutable, checked when they are made, and refuse fields that they do not know. Times have a time
zone. `to_json` and `from_json` spell them for a wire. The payload is a copy, so what its maker does to it
later changes nothing.
"""

from datetime import UTC, datetime, timedelta
from enum import StrEnum
from typing import Any, Self
from uuid import UUID, uuid4

import msgspec
from msgspec.structs import force_setattr

from leasehold.errors import InvalidInput, error_of
from leasehold.kernel.ledger.limits import NUMBER_MAXIMUM, REASON_BYTES, check_text
from leasehold.kernel.ledger.refusals import Refusal
from leasehold.workflows.law.events import ActionFacts
from leasehold.workflows.law.limits import check_action, check_payload


class ActionType(StrEnum):
    """The types of action that come with the pattern. Any other text is a type of the user's own."""

    COMPUTE = "compute"
    EFFECT = "effect"
    REDUCE = "reduce"
    ORCHESTRATE = "orchestrate"
    CUSTOM = "custom"
    EXECUTE = "execute"
    EXECUTE_WORKFLOW = "execute_workflow"
    VALIDATE_DATA = "validate_data"
    PROCESS_DATA = "process_data"
    STORE_RESULTS = "store_results"
    LEASE_TRANSFER = "lease_transfer"


class EventType(StrEnum):
    """What travels on the bus beside actions."""

    LEASE_CLAIMED = "lease_claimed"
    LEASE_TAKEN_OVER = "lease_taken_over"
    LEASE_TRANSFERRED = "lease_transferred"
    LEASE_ACCEPTED = "lease_accepted"
    LEASE_EXPIRED = "lease_expired"
    LEASE_REVOKED = "lease_revoked"
    LEASE_RELEASED = "lease_released"
    STATE_CHANGED = "state_changed"
    WORKFLOW_COMPLETED = "workflow_completed"
    WORKFLOW_CANCELLED = "workflow_cancelled"


class _Model(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    def to_json(self) -> bytes:
        """Spell it as JSON."""
        return msgspec.json.encode(self)

    @classmethod
    def from_json(cls, body: bytes | str) -> Self:
        """Read it; refuse what is none, or has fields that it must not have."""
        try:
            return msgspec.json.decode(body, type=cls)
        except InvalidInput:
            raise
        except (msgspec.ValidationError, msgspec.DecodeError) as error:
            if isinstance(error.__cause__, InvalidInput):
                raise error.__cause__ from None
            raise InvalidInput(
                f"invalid {cls.__name__.lower()}: {error}", field=cls.__name__.lower()
            ) from None


class Action(_Model, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Something that an orchestrator wants done. Its lease and its epoch prove who says so, and when."""

    action_id: str = msgspec.field(default_factory=lambda: str(uuid4()))
    action_type: str
    target_node_type: str | None = None
    payload: dict[str, Any] = {}
    dependencies: tuple[str, ...] = ()
    """Ids of actions that have to come first."""
    priority: int = 5
    """From 1 to 10."""
    timeout_ms: int = 30_000
    """From 100 to 300,000: how long processing it may take."""
    lease_id: str
    """Of its orchestrator: the proof of ownership."""
    epoch: int
    """When in the life of the workflow it was emitted."""
    retry_count: int = 0
    """From 0 to 10."""
    created_at: datetime = msgspec.field(default_factory=lambda: datetime.now(UTC))

    def __post_init__(self) -> None:
        force_setattr(self, "action_id", _id("action_id", self.action_id))
        force_setattr(self, "lease_id", _id("lease_id", self.lease_id))
        force_setattr(self, "action_type", _word("action_type", self.action_type))
        dependencies: Any = self.dependencies
        if isinstance(dependencies, str) or not isinstance(dependencies, list | tuple | set | frozenset):
            raise InvalidInput("dependencies must be a list of action ids", field="dependencies")
        force_setattr(self, "dependencies", tuple(_id("dependencies", one) for one in dependencies))
        for field in ("priority", "timeout_ms", "retry_count", "epoch"):
            _whole(field, getattr(self, field))
        if not 0 <= self.epoch <= NUMBER_MAXIMUM:
            raise InvalidInput(f"epoch must be from 0 to {NUMBER_MAXIMUM}", field="epoch")
        if self.target_node_type is not None:
            _text("target_node_type", self.target_node_type)
        force_setattr(self, "payload", _payload(self.payload))
        force_setattr(self, "created_at", _moment("created_at", self.created_at))
        _must_not(check_action(self.facts, self.action_id))

    @property
    def facts(self) -> ActionFacts:
        """What its orchestrator says about it."""
        return ActionFacts(
            action_type=self.action_type,
            payload=self.payload,
            target_node_type=self.target_node_type,
            dependencies=self.dependencies,
            priority=self.priority,
            timeout_ms=self.timeout_ms,
            retry_count=self.retry_count,
        )


class Event(_Model, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Something that happened to a workflow, or to its lease."""

    event_type: EventType
    payload: dict[str, Any] = {}
    created_at: datetime = msgspec.field(default_factory=lambda: datetime.now(UTC))

    def __post_init__(self) -> None:
        try:
            force_setattr(self, "event_type", EventType(self.event_type))
        except ValueError:
            known = ", ".join(EventType)
            raise InvalidInput(f"event_type must be one of: {known}", field="event_type") from None
        force_setattr(self, "payload", _payload(self.payload))
        force_setattr(self, "created_at", _moment("created_at", self.created_at))


class Result(_Model, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What became of an action."""

    result_id: str = msgspec.field(default_factory=lambda: str(uuid4()))
    """A result that is delivered twice counts once."""
    action_id: str
    success: bool
    payload: dict[str, Any] = {}
    error: str | None = None
    created_at: datetime = msgspec.field(default_factory=lambda: datetime.now(UTC))

    def __post_init__(self) -> None:
        force_setattr(self, "result_id", _id("result_id", self.result_id))
        force_setattr(self, "action_id", _id("action_id", self.action_id))
        if not isinstance(self.success, bool):
            raise InvalidInput("success must be true or false", field="success")
        if self.error is not None:
            _must_not(check_text("error", _text("error", self.error), REASON_BYTES))
        force_setattr(self, "payload", _payload(self.payload))
        force_setattr(self, "created_at", _moment("created_at", self.created_at))


class LeaseMetadata(_Model, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A lease as others see it, by wall clock; its orchestrator goes by the registrar's."""

    lease_id: str
    acquired_at: datetime
    """When it was granted, or last renewed."""
    ttl_seconds: float = 300

    def __post_init__(self) -> None:
        force_setattr(self, "lease_id", _id("lease_id", self.lease_id))
        force_setattr(self, "acquired_at", _moment("acquired_at", self.acquired_at))
        ttl: Any = self.ttl_seconds
        if isinstance(ttl, bool) or not isinstance(ttl, int | float) or not ttl > 0:
            raise InvalidInput("ttl_seconds must be a number above 0", field="ttl_seconds")

    def is_expired(self, now: datetime | None = None) -> bool:
        """Say whether the lease has expired, by wall clock."""
        return self.remaining_ttl(now) <= 0

    def remaining_ttl(self, now: datetime | None = None) -> float:
        """Return how many seconds are left, by wall clock."""
        ends = self.acquired_at + timedelta(seconds=self.ttl_seconds)
        left = ends - (datetime.now(UTC) if now is None else _moment("now", now))
        return max(0.0, left.total_seconds())


class Delivery(msgspec.Struct, frozen=True, kw_only=True):
    """A message on the bus, and where it stands."""

    position: int
    """In the ledger; acknowledging it moves the subscription here."""
    workflow_id: str
    message: Action | Event
    token: int = 0
    """The fencing token of the lease that it was sent under."""


def _must_not(refusal: Refusal | None) -> None:
    if refusal is not None:
        raise error_of(refusal)


def _id(field: str, value: object) -> str:
    if isinstance(value, UUID):
        return str(value)
    _must_not(check_text(field, _text(field, value)))
    return str(value)


def _word(field: str, value: object) -> str:
    _text(field, value)
    return value.value if isinstance(value, StrEnum) else str(value)


def _text(field: str, value: object) -> str:
    if not isinstance(value, str):
        raise InvalidInput(f"{field} must be text, not {type(value).__name__}", field=field)
    return value


def _whole(field: str, value: object) -> None:
    if not isinstance(value, int) or isinstance(value, bool):
        raise InvalidInput(f"{field} must be a whole number, not {type(value).__name__}", field=field)


def _payload(value: object) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise InvalidInput(f"payload must be a dictionary, not {type(value).__name__}", field="payload")
    _must_not(check_payload(value))
    copy: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(value))
    return copy


def _moment(field: str, value: object) -> datetime:
    if not isinstance(value, datetime) or value.tzinfo is None:
        raise InvalidInput(f"{field} must be a datetime with a time zone", field=field)
    return value.astimezone(UTC)
