"""Who leads a workflow, over plain REST: claiming and keeping its lease, and losing it."""

from hashlib import blake2b
from uuid import UUID

from msgspec.structs import replace

from leasehold.client.inputs import duration_ns
from leasehold.client.waits import ended_since, undoing
from leasehold.engine.desk import answer_of
from leasehold.errors import LeaseholdError
from leasehold.kernel.lease.answers import Granted
from leasehold.server.bodies import LeaseBody, granted_body, lease_body
from leasehold.server.routing import GONE, post
from leasehold.server.terms import Holding, Terms
from leasehold.workflows.errors import WorkflowLeaseNotFound, as_workflow_error
from leasehold.workflows.law.claiming import queueing
from leasehold.workflows.law.commands import Accept, Claim
from leasehold.workflows.law.records import workflow_of
from leasehold.workflows.routes.bodies import (
    HELD_EXAMPLE,
    LED_EXAMPLE,
    AcceptBody,
    ClaimBody,
    LedBody,
    ReleaseLeadBody,
    RenewLeadBody,
    RevokeLeadBody,
)
from leasehold.workflows.routes.looking import existing

_HOLDER = "orchestrator-1"
_LEASE_ID = HELD_EXAMPLE["lease_id"]


@post(
    "/claim",
    "Claim a workflow",
    *GONE,
    body={"workflow_id": "order-7", "holder": _HOLDER, "ttl": 300},
    answer=LED_EXAMPLE,
)
async def claim(terms: Holding, data: ClaimBody) -> LedBody:
    """Be the orchestrator of a workflow: begin it, or take it over if nobody has it any more.

    409 HELD: another orchestrator has it; WORKFLOW_ENDED: it was completed or cancelled.
    """
    session, patience = terms.session, terms.patience_ns(data.wait)
    lease_id = session.ids.new() if data.request_id is None else _lease_id(session.tenant, data)
    command = Claim(
        tenant=session.tenant,
        request_id=lease_id,
        workflow_id=data.workflow_id,
        lease_id=lease_id,
        holder=data.holder,
        ttl_ns=duration_ns("ttl", data.ttl),
        bound_to_boot=False,
        metadata=data.metadata,
    )
    if patience == 0:
        return await _led(terms, command)
    waiting = replace(queueing(command, data.priority), gives_up=True)
    won = await terms.claim(waiting, patience)
    try:
        # The claim may have been made anew on the way, under another id.
        command = replace(command, lease_id=won.lease.lease_id, request_id=won.lease.lease_id)
        return await _led(terms, command)
    except BaseException:  # What was won by waiting is of no use without the workflow.
        waiting = replace(waiting, lease_id=command.lease_id)
        session.send_blindly(undoing(waiting, session.ids.new()))
        raise


def _lease_id(tenant: str, data: ClaimBody) -> str:
    """Return the id that the lease of a named claim gets, each time it is sent; no other tenant's can."""
    claim = "\x01".join((tenant, data.workflow_id, data.holder, data.request_id or ""))
    return str(UUID(bytes=blake2b(claim.encode(), digest_size=16).digest(), version=4))


@post(
    "/accept",
    "Accept a workflow that was handed off",
    *GONE,
    body={"lease_id": _LEASE_ID, "holder": "orchestrator-2"},
    answer=LED_EXAMPLE | {"epoch": 3},
)
async def accept(terms: Holding, data: AcceptBody) -> LedBody:
    """Be the orchestrator of a workflow that was handed to this holder, under its new lease."""
    command = Accept(
        tenant=terms.session.tenant,
        request_id=terms.session.ids.new() if data.request_id is None else data.request_id,
        lease_id=data.lease_id,
        holder=data.holder,
    )
    return await _led(terms, command)


async def _led(terms: Terms, command: Claim | Accept) -> LedBody:
    try:
        granted = answer_of(await terms.session.send(command), Granted)
    except LeaseholdError as error:
        raise as_workflow_error(error, command.request_id) from None
    if granted.ended:
        raise ended_since(granted, command.request_id)
    terms.about(granted.lease.lease_id)
    workflow = (await existing(terms.session, workflow_of(granted.lease.resource) or "")).workflow
    return LedBody(
        workflow_id=workflow.workflow_id,
        state=workflow.state,
        epoch=workflow.epoch,
        lease=granted_body(granted.lease, granted.expires_in_ns),
        repeated=granted.repeated,
    )


@post(
    "/renew",
    "Renew an orchestrator's lease",
    *GONE,
    body={"lease_id": _LEASE_ID, "holder": _HOLDER},
    answer=HELD_EXAMPLE | {"renewal_count": 1},
)
async def renew(terms: Holding, data: RenewLeadBody) -> LeaseBody:
    """Extend the lease on a workflow from now, for `ttl` seconds or its own TTL again."""
    return lease_body(await terms.renew(data.lease_id, data.holder, data.ttl))


@post(
    "/release",
    "Release an orchestrator's lease",
    *GONE,
    body={"lease_id": _LEASE_ID, "holder": _HOLDER},
    answer=HELD_EXAMPLE | {"state": "released", "release_reason": "voluntary"},
)
async def release(terms: Holding, data: ReleaseLeadBody) -> LeaseBody:
    """Give the lease back without ending the workflow: the next claim takes it over."""
    return lease_body(await terms.release(data.lease_id, data.holder))


@post(
    "/revoke",
    "Revoke an orchestrator's lease",
    *GONE,
    body={"workflow_id": "order-7", "operator": "olga", "reason": "stuck"},
    answer=HELD_EXAMPLE | {"state": "revoked", "expires_in": 0.0, "ended_by": "olga", "end_reason": "stuck"},
)
async def revoke(terms: Holding, data: RevokeLeadBody) -> LeaseBody:
    """Forcibly end the lease of a workflow's orchestrator: for operators. The workflow goes on."""
    status = await existing(terms.session, data.workflow_id)
    if not status.is_owned:
        raise _nobody_leads(data.workflow_id)
    ended = await terms.revoke(status.workflow.lease_id, data.operator, data.reason)
    if ended.already:
        raise _nobody_leads(data.workflow_id)
    return granted_body(ended.lease, 0)


def _nobody_leads(workflow_id: str) -> WorkflowLeaseNotFound:
    return WorkflowLeaseNotFound(
        f"nobody has workflow {workflow_id}, so there is nothing to revoke", workflow_id=workflow_id
    )


HANDLERS = (claim, accept, renew, release, revoke)
