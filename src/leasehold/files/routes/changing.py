"""What agents and operators do with file leases, over plain REST."""

from typing import Annotated

from litestar import post
from litestar.params import Body

from leasehold.files.aio.reader import AsyncFileReader
from leasehold.files.names import is_file_name
from leasehold.files.routes.bodies import (
    FILE_EXAMPLE,
    AcquireFilesBody,
    FileLeaseBody,
    FileLeasesBody,
    ForceReleaseBody,
    ForceReleasedBody,
    ReleaseFileBody,
    RenewFileBody,
    TransferFileBody,
    UpgradeFileBody,
    file_lease_body,
    granted_file_body,
)
from leasehold.files.routes.claiming import FileClaims
from leasehold.kernel.lease.model import LeaseState
from leasehold.server import terms
from leasehold.server.routing import Asking, JsonRequest, Serving, answers, ask_for

_LEASE_ID = FILE_EXAMPLE["lease_id"]


@post(
    "/acquire",
    summary="Acquire files, folders and patterns",
    status_code=200,
    responses=answers(200, FileLeasesBody, {"leases": [FILE_EXAMPLE]}, 404, 409, 410),
)
async def acquire(
    request: JsonRequest,
    service: Serving,
    session: Asking,
    data: Annotated[
        AcquireFilesBody,
        Body(
            examples=ask_for(
                project="shop", paths=["src/app.py"], agent="agent-7", ttl=600, reason="new parser"
            )
        ),
    ],
) -> FileLeasesBody:
    """Have an agent own what it names, all or nothing. What it has already is renewed, and never waited for.

    409 HELD says who is in the way, why, since when and until when. Safe to send again: what was granted
    before is the agent's, and renewed.
    """
    owned = await FileClaims(request, service, session).acquire(data)
    return FileLeasesBody(leases=[file_lease_body(status) for status in owned])


@post(
    "/renew",
    summary="Renew a file lease",
    status_code=200,
    responses=answers(200, FileLeaseBody, FILE_EXAMPLE | {"renewal_count": 1}, 404, 409, 410),
)
async def renew(
    request: JsonRequest,
    session: Asking,
    data: Annotated[RenewFileBody, Body(examples=ask_for(lease_id=_LEASE_ID, agent="agent-7"))],
) -> FileLeaseBody:
    """Extend a lease from now, for `ttl` seconds or its own TTL again."""
    terms.about(request, data.lease_id)
    renewal = await terms.renew(session, data.lease_id, data.agent, data.ttl)
    return granted_file_body(renewal.lease, renewal.expires_in_ns)


@post(
    "/release",
    summary="Release a file lease",
    status_code=200,
    responses=answers(
        200,
        FileLeaseBody,
        FILE_EXAMPLE | {"state": "released", "expires_in": 0.0, "release_reason": "voluntary"},
        404,
        409,
        410,
    ),
)
async def release(
    request: JsonRequest,
    session: Asking,
    data: Annotated[ReleaseFileBody, Body(examples=ask_for(lease_id=_LEASE_ID, agent="agent-7"))],
) -> FileLeaseBody:
    """Give a lease back. To release what is over already is fine."""
    terms.about(request, data.lease_id)
    ended = await terms.release(session, data.lease_id, data.agent)
    return granted_file_body(ended.lease, 0)


@post(
    "/upgrade",
    summary="Upgrade a shared file lease",
    status_code=200,
    responses=answers(200, FileLeaseBody, FILE_EXAMPLE, 404, 409, 410),
)
async def upgrade(
    request: JsonRequest,
    service: Serving,
    session: Asking,
    data: Annotated[UpgradeFileBody, Body(examples=ask_for(lease_id=_LEASE_ID, agent="agent-7", wait=10))],
) -> FileLeaseBody:
    """Have a shared lease exclusively, before everybody who waits; with `wait`, after others who share it."""
    claims = FileClaims(request, service, session)
    granted = await claims.upgrade(data.lease_id, data.agent, data.wait)
    return granted_file_body(granted.lease, granted.expires_in_ns)


@post(
    "/transfer",
    summary="Transfer a file lease",
    status_code=200,
    responses=answers(200, FileLeaseBody, FILE_EXAMPLE | {"holder": "agent-9"}, 404, 409, 410),
)
async def transfer(
    request: JsonRequest,
    session: Asking,
    data: Annotated[
        TransferFileBody, Body(examples=ask_for(lease_id=_LEASE_ID, agent="agent-7", to="agent-9"))
    ],
) -> FileLeaseBody:
    """Hand a lease to another agent, under a new id and a higher token. The old one ends with it."""
    terms.about(request, data.lease_id)
    granted = await terms.transfer(session, data.lease_id, data.agent, data.to, data.ttl)
    return granted_file_body(granted.lease, granted.expires_in_ns)


@post(
    "/force-release",
    summary="Take everything from an agent",
    status_code=200,
    responses=answers(200, ForceReleasedBody, {"released": 2}, 404, 409),
)
async def force_release(
    session: Asking,
    data: Annotated[
        ForceReleaseBody, Body(examples=ask_for(agent="agent-7", operator="olga", reason="does not answer"))
    ],
) -> ForceReleasedBody:
    """End every file lease, and every wait, of an agent that does not answer: for operators."""
    unended = await AsyncFileReader(session).find(
        holder=data.agent, states=[LeaseState.ACTIVE, LeaseState.PENDING]
    )
    released = 0
    for status in unended:
        if is_file_name(status.lease.resource):
            ended = await terms.revoke(session, status.lease.lease_id, data.operator, data.reason)
            released += not ended.already
    return ForceReleasedBody(released=released)


HANDLERS = (acquire, renew, release, upgrade, transfer, force_release)
