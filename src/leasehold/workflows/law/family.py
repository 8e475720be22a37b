"""Workflows as a family of records."""

from collections.abc import Sequence
from typing import Any, get_args

from leasehold.kernel.lease.events import EndEvent
from leasehold.kernel.lease.records import LEASE, lease_keys
from leasehold.kernel.ledger.commands import Command, Sweep
from leasehold.kernel.ledger.family import Family, Reaction, Rule, Stage
from leasehold.kernel.ledger.records import Keys, Wanted
from leasehold.kernel.ledger.view import View
from leasehold.workflows.law.claiming import accept, claim, hand_off, vacate
from leasehold.workflows.law.commands import (
    Accept,
    Acknowledge,
    AnswerAction,
    Claim,
    Emit,
    Finish,
    HandOff,
    MarkGuard,
    Subscribe,
    Transition,
    Unsubscribe,
)
from leasehold.workflows.law.events import EVENTS
from leasehold.workflows.law.evolve import evolve
from leasehold.workflows.law.following import acknowledge, age, due, mark, subscribe, unsubscribe
from leasehold.workflows.law.invariants import invariants
from leasehold.workflows.law.limits import check
from leasehold.workflows.law.records import (
    WORKFLOW,
    Record,
    action_key,
    mark_key,
    own_key,
    resource_of,
    subscription_key,
)
from leasehold.workflows.law.retention import forgotten, keeps
from leasehold.workflows.law.stepping import answer_action, emit, finish, transition

_REMEMBERED = (Emit, Transition, AnswerAction, HandOff, Finish, Unsubscribe)


_RULES: dict[type[Command], Rule] = {
    Claim: claim,
    Accept: accept,
    Emit: emit,
    Transition: transition,
    AnswerAction: answer_action,
    HandOff: hand_off,
    Finish: finish,
    Subscribe: subscribe,
    Acknowledge: acknowledge,
    Unsubscribe: unsubscribe,
    MarkGuard: mark,
}


def workflow_family() -> Family:
    """Return the family of workflows."""
    return Family(
        name=WORKFLOW,
        record=Record,
        events=EVENTS,
        rules=_RULES,
        check=check,
        needs=_needs,
        evolve=evolve,
        reacts=dict.fromkeys(get_args(EndEvent), Reaction(Stage.THEN, vacate)),
        due=due,
        age=age,
        invariants=invariants,
        forgotten=forgotten,
        keeps=keeps,
    )


def _needs(commands: Sequence[Any], view: View) -> Keys | None:
    """Return what commands are sure to need and is not here, for all of them at once."""
    known, leases = view.parts[WORKFLOW].records, view.parts[LEASE].records
    wanted, lease_ids, resources, requests = set[str](), set[str](), set[tuple[str, str]](), set[str]()
    for command in commands:
        wanted.update(key for key in _own_keys(command) if key not in known)
        lease_ids.update(lease_id for lease_id in _lease_ids(command) if lease_id not in leases)
        if isinstance(command, Claim) and command.lease_id in lease_ids:
            resources.add((command.tenant, resource_of(command.workflow_id)))
        if isinstance(command, _REMEMBERED) and not view.knows_request(command.request_key):
            requests.add(command.request_key)
    if not (wanted or lease_ids or requests):
        return None
    keys = lease_keys(keys=lease_ids, resources=resources) if lease_ids else Keys()
    keys.requests |= requests
    if wanted:
        keys.families[WORKFLOW] = Wanted(keys=wanted)
    return keys


def _lease_ids(command: Any) -> tuple[str, ...]:
    """Return the leases that a command is sure to look at."""
    match command:
        case Claim() | Accept() | Emit() | Transition() | AnswerAction() | Finish():
            return (command.lease_id,)
        case HandOff():
            return (command.lease_id, command.new_lease_id)
        case _:
            return ()


def _own_keys(command: Any) -> list[str]:
    """Return the records of workflows that a command is sure to look at."""
    match command:
        case Sweep(key=key):
            return [key]
        case Accept():
            return []  # Which workflow it is about, its lease has to say.
        case Subscribe(tenant=tenant, name=name) | Acknowledge(tenant=tenant, name=name):
            return [subscription_key(tenant, name)]
        case Unsubscribe(tenant=tenant, name=name):
            return [subscription_key(tenant, name)]
        case MarkGuard(tenant=tenant, workflow_id=workflow_id, name=name):
            return [own_key(tenant, workflow_id), mark_key(tenant, workflow_id, name)]
        case Emit() | AnswerAction():
            return [
                own_key(command.tenant, command.workflow_id),
                action_key(command.tenant, command.workflow_id, command.action_id),
            ]
        case _:
            return [own_key(command.tenant, command.workflow_id)]
