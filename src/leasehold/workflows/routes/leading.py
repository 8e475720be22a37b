"""Who leads a workflow, over plain REST: claiming and keeping its lease, and losing it."""

from hashlib import blake2b
from typing import Annotated
from uuid import UUID

from litestar import post
from litestar.params import Body
from msgspec.structs import replace

from leasehold.client.aio.session import AsyncSession
from leasehold.client.inputs import duration_ns
from leasehold.client.waits import ended_since, undoing
from leasehold.engine.desk import answer_of
from leasehold.errors import LeaseholdError
from leasehold.kernel.lease.answers import Granted
from leasehold.server import terms
from leasehold.server.bodies import LeaseBody, granted_body
from leasehold.server.routing import Asking, JsonRequest, Serving, answers, ask_for
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
    summary="Claim a workflow",
    status_code=200,
    responses=answers(200, LedBody, LED_EXAMPLE, 404, 409, 410),
)
async def claim(
    request: JsonRequest,
    service: Serving,
    session: Asking,
    data: Annotated[ClaimBody, Body(examples=ask_for(workflow_id="order-7", holder=_HOLDER, ttl=300))],
) -> LedBody:
    """Be the orchestrator of a workflow: begin it, or take it over if nobody has it any more.

    409 HELD: another orchestrator has it; WORKFLOW_ENDED: it was completed or cancelled.
    """
    patience = terms.patience_ns(service, data.wait)
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
        return await _led(request, session, command)
    waiting = replace(queueing(command, data.priority), gives_up=True)
    won = await terms.claim(request, service, session, waiting, patience)
    try:
        # The claim may have been made anew on the way, under another id.
        command = replace(command, lease_id=won.lease.lease_id, request_id=won.lease.lease_id)
        return await _led(request, session, command)
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
    summary="Accept a workflow that was handed off",
    status_code=200,
    responses=answers(200, LedBody, LED_EXAMPLE | {"epoch": 3}, 404, 409, 410),
)
async def accept(
    request: JsonRequest,
    session: Asking,
    data: Annotated[AcceptBody, Body(examples=ask_for(lease_id=_LEASE_ID, holder="orchestrator-2"))],
) -> LedBody:
    """Be the orchestrator of a workflow that was handed to this holder, under its new lease."""
    command = Accept(
        tenant=session.tenant,
        request_id=session.ids.new() if data.request_id is None else data.request_id,
        lease_id=data.lease_id,
        holder=data.holder,
    )
    return await _led(request, session, command)


async def _led(request: JsonRequest, session: AsyncSession, command: Claim | Accept) -> LedBody:
    try:
        granted = answer_of(await session.send(command), Granted)
    except LeaseholdError as error:
        raise as_workflow_error(error, command.request_id) from None
    if granted.ended:
        raise ended_since(granted, command.request_id)
    terms.about(request, granted.lease.lease_id)
    workflow = (await existing(session, workflow_of(granted.lease.resource) or "")).workflow
    return LedBody(
        workflow_id=workflow.workflow_id,
        state=workflow.state,
        epoch=workflow.epoch,
        lease=granted_body(granted.lease, granted.expires_in_ns),
        repeated=granted.repeated,
    )


@post(
    "/renew",
    summary="Renew an orchestrator's lease",
    status_code=200,
    responses=answers(200, LeaseBody, HELD_EXAMPLE | {"renewal_count": 1}, 404, 409, 410),
)
async def renew(
    request: JsonRequest,
    session: Asking,
    data: Annotated[RenewLeadBody, Body(examples=ask_for(lease_id=_LEASE_ID, holder=_HOLDER))],
) -> LeaseBody:
    """Extend the lease on a workflow from now, for `ttl` seconds or its own TTL again."""
    terms.about(request, data.lease_id)
    renewal = await terms.renew(session, data.lease_id, data.holder, data.ttl)
    return granted_body(renewal.lease, renewal.expires_in_ns)


@post(
    "/release",
    summary="Release an orchestrator's lease",
    status_code=200,
    responses=answers(
        200, LeaseBody, HELD_EXAMPLE | {"state": "released", "release_reason": "voluntary"}, 404, 409, 410
    ),
)
async def release(
    request: JsonRequest,
    session: Asking,
    data: Annotated[ReleaseLeadBody, Body(examples=ask_for(lease_id=_LEASE_ID, holder=_HOLDER))],
) -> LeaseBody:
    """Give the lease back without ending the workflow: the next claim takes it over."""
    terms.about(request, data.lease_id)
    ended = await terms.release(session, data.lease_id, data.holder)
    return granted_body(ended.lease, 0)


@post(
    "/revoke",
    summary="Revoke an orchestrator's lease",
    status_code=200,
    responses=answers(
        200,
        LeaseBody,
        HELD_EXAMPLE | {"state": "revoked", "expires_in": 0.0, "ended_by": "olga", "end_reason": "stuck"},
        404,
        409,
        410,
    ),
)
async def revoke(
    request: JsonRequest,
    session: Asking,
    data: Annotated[
        RevokeLeadBody, Body(examples=ask_for(workflow_id="order-7", operator="olga", reason="stuck"))
    ],
) -> LeaseBody:
    """Forcibly end the lease of a workflow's orchestrator: for operators. The workflow goes on."""
    status = await existing(session, data.workflow_id)
    if not status.is_owned:
        raise _nobody_leads(data.workflow_id)
    terms.about(request, status.workflow.lease_id)
    ended = await terms.revoke(session, status.workflow.lease_id, data.operator, data.reason)
    if ended.already:
        raise _nobody_leads(data.workflow_id)
    return granted_body(ended.lease, 0)


def _nobody_leads(workflow_id: str) -> WorkflowLeaseNotFound:
    return WorkflowLeaseNotFound(
        f"nobody has workflow {workflow_id}, so there is nothing to revoke", workflow_id=workflow_id
    )


HANDLERS = (claim, accept, renew, release, revoke)
