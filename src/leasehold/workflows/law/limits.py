"""Which commands about workflows can be right at all, whatever the records say.

The limits of actions are those that their models promise as well; here they hold for whoever asks.
"""

from typing import Any

from msgspec.structs import replace

from leasehold.kernel.ledger.commands import Command
from leasehold.kernel.ledger.limits import (
    ID_BYTES,
    METADATA_BYTES,
    NUMBER_MAXIMUM,
    REASON_BYTES,
    check_metadata,
    check_optional,
    check_text,
    check_ttl,
    invalid,
    over_limit,
)
from leasehold.kernel.ledger.refusals import Refusal
from leasehold.workflows.law.commands import (
    AnswerAction,
    Claim,
    Emit,
    Finish,
    HandOff,
    MarkGuard,
    Subscribe,
    Transition,
)
from leasehold.workflows.law.events import ActionFacts
from leasehold.workflows.law.records import CANCELLED, COMPLETED

NAME_CHARACTERS = 100
"""Of a target node's type."""
PAYLOAD_BYTES = METADATA_BYTES
"""Of an action or a result, as JSON."""
DEPENDENCIES = 64
PRIORITY_LEAST, PRIORITY_MOST = 1, 10
TIMEOUT_MINIMUM_MS, TIMEOUT_MAXIMUM_MS = 100, 300_000
RETRIES_MAXIMUM = 10
SUBSCRIPTIONS = 1_000
"""For one tenant."""

ENDED_STATES = (COMPLETED, CANCELLED)
LEASE_TRANSFER = "lease_transfer"
"""The type of the action that a handoff is; nobody else can emit one."""

_NAMES = (
    "tenant",
    "request_id",
    "workflow_id",
    "lease_id",
    "holder",
    "action_id",
    "to",
    "new_lease_id",
    "name",
)
_MAY_BE_EMPTY = {(Subscribe, "workflow_id"), (MarkGuard, "action_id")}
_NUMBERS = ("epoch", "position", "token")


def check(command: Command) -> Refusal | None:
    """Refuse what is empty, too long, too much, or out of range."""
    for field in _NAMES:
        given = getattr(command, field, None)
        if given is None or (given == "" and (type(command), field) in _MAY_BE_EMPTY):
            continue
        refusal = check_text(field, given)
        if refusal is not None:
            return refusal
    for field in _NUMBERS:
        number = getattr(command, field, 0)
        if not 0 <= number <= NUMBER_MAXIMUM:
            return invalid(field, f"must be from 0 to {NUMBER_MAXIMUM}")
    return _check_content(command)


def _check_content(command: Command) -> Refusal | None:
    match command:
        case Claim(ttl_ns=ttl_ns, metadata=metadata):
            return check_ttl(ttl_ns) or check_metadata(metadata)
        case Emit(action_id=action_id, action=action):
            if action.action_type == LEASE_TRANSFER:
                return invalid("action_type", f"must not be {LEASE_TRANSFER}: hand the workflow off instead")
            return check_action(action, action_id)
        case Transition(state=state):
            if state in ENDED_STATES:
                return invalid("state", f"must not be {state}: complete or cancel the workflow instead")
            return check_text("state", state)
        case AnswerAction(payload=payload, error=error):
            return check_payload(payload) or check_optional("error", error or "", REASON_BYTES)
        case HandOff(ttl_ns=ttl_ns):
            return check_ttl(ttl_ns)
        case Finish(outcome=outcome, reason=reason):
            if outcome not in ENDED_STATES:
                return invalid("outcome", f"must be one of: {', '.join(ENDED_STATES)}")
            return check_optional("reason", reason, REASON_BYTES)
        case _:
            return None


def check_action(action: ActionFacts, action_id: str) -> Refusal | None:
    """Refuse what no action may be."""
    target = action.target_node_type
    refusal = check_text("action_type", action.action_type)
    if refusal is None and target is not None:
        refusal = _check_target(target)
    return (
        refusal
        or _check_dependencies(action.dependencies, action_id)
        or _check_range("priority", action.priority, PRIORITY_LEAST, PRIORITY_MOST)
        or _check_range("timeout_ms", action.timeout_ms, TIMEOUT_MINIMUM_MS, TIMEOUT_MAXIMUM_MS)
        or _check_range("retry_count", action.retry_count, 0, RETRIES_MAXIMUM)
        or check_payload(action.payload)
    )


def check_payload(payload: dict[str, Any]) -> Refusal | None:
    """Refuse a payload that is too much, too deep, or not JSON."""
    refusal = check_metadata(payload)
    return None if refusal is None else replace(refusal, field="payload")


def _check_target(target: str) -> Refusal | None:
    if len(target) > NAME_CHARACTERS:
        detail = f"is {len(target)} characters long; at most {NAME_CHARACTERS} are allowed"
        return over_limit("target_node_type", NAME_CHARACTERS, detail)
    return check_text("target_node_type", target, 4 * NAME_CHARACTERS)


def _check_dependencies(dependencies: tuple[str, ...], action_id: str) -> Refusal | None:
    if len(dependencies) > DEPENDENCIES:
        detail = f"names {len(dependencies)} actions; at most {DEPENDENCIES} are allowed"
        return over_limit("dependencies", DEPENDENCIES, detail)
    if action_id in dependencies:
        return invalid("dependencies", "must not name the action itself")
    for one in dependencies:
        refusal = check_text("dependencies", one, ID_BYTES)
        if refusal is not None:
            return refusal
    return None


def _check_range(field: str, number: int, least: int, most: int) -> Refusal | None:
    return None if least <= number <= most else invalid(field, f"must be from {least} to {most}")
