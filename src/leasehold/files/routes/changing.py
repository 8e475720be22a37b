"""What agents and operators do with file leases, over plain REST."""

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
)
from leasehold.files.routes.claiming import FileClaims
from leasehold.kernel.lease.model import LeaseState
from leasehold.server.routing import GONE, post
from leasehold.server.terms import Holding

_LEASE_ID = FILE_EXAMPLE["lease_id"]


@post(
    "/acquire",
    "Acquire files, folders and patterns",
    *GONE,
    body={"project": "shop", "paths": ["src/app.py"], "agent": "agent-7", "ttl": 600, "reason": "new parser"},
    answer={"leases": [FILE_EXAMPLE]},
)
async def acquire(terms: Holding, data: AcquireFilesBody) -> FileLeasesBody:
    """Have an agent own what it names, all or nothing. What it has already is renewed, and never waited for.

    409 HELD says who is in the way, why, since when and until when. Safe to send again: what was granted
    before is the agent's, and renewed.
    """
    owned = await FileClaims(terms).acquire(data)
    return FileLeasesBody(leases=[file_lease_body(status) for status in owned])


@post(
    "/renew",
    "Renew a file lease",
    *GONE,
    body={"lease_id": _LEASE_ID, "agent": "agent-7"},
    answer=FILE_EXAMPLE | {"renewal_count": 1},
)
async def renew(terms: Holding, data: RenewFileBody) -> FileLeaseBody:
    """Extend a lease from now, for `ttl` seconds or its own TTL again."""
    return file_lease_body(await terms.renew(data.lease_id, data.agent, data.ttl))


@post(
    "/release",
    "Release a file lease",
    *GONE,
    body={"lease_id": _LEASE_ID, "agent": "agent-7"},
    answer=FILE_EXAMPLE | {"state": "released", "expires_in": 0.0, "release_reason": "voluntary"},
)
async def release(terms: Holding, data: ReleaseFileBody) -> FileLeaseBody:
    """Give a lease back. To release what is over already is fine."""
    return file_lease_body(await terms.release(data.lease_id, data.agent))


@post(
    "/upgrade",
    "Upgrade a shared file lease",
    *GONE,
    body={"lease_id": _LEASE_ID, "agent": "agent-7", "wait": 10},
    answer=FILE_EXAMPLE,
)
async def upgrade(terms: Holding, data: UpgradeFileBody) -> FileLeaseBody:
    """Have a shared lease exclusively, before everybody who waits; with `wait`, after others who share it."""
    claims = FileClaims(terms)
    return file_lease_body(await claims.upgrade(data.lease_id, data.agent, data.wait))


@post(
    "/transfer",
    "Transfer a file lease",
    *GONE,
    body={"lease_id": _LEASE_ID, "agent": "agent-7", "to": "agent-9"},
    answer=FILE_EXAMPLE | {"holder": "agent-9"},
)
async def transfer(terms: Holding, data: TransferFileBody) -> FileLeaseBody:
    """Hand a lease to another agent, under a new id and a higher token. The old one ends with it."""
    handed = await terms.transfer(data.lease_id, data.agent, data.to, data.ttl)
    return file_lease_body(handed)


@post(
    "/force-release",
    "Take everything from an agent",
    404,
    409,
    body={"agent": "agent-7", "operator": "olga", "reason": "does not answer"},
    answer={"released": 2},
)
async def force_release(terms: Holding, data: ForceReleaseBody) -> ForceReleasedBody:
    """End every file lease, and every wait, of an agent that does not answer: for operators."""
    unended = await AsyncFileReader(terms.session).find(
        holder=data.agent, states=[LeaseState.ACTIVE, LeaseState.PENDING]
    )
    released = 0
    for status in unended:
        if is_file_name(status.lease.resource):
            ended = await terms.revoke(status.lease.lease_id, data.operator, data.reason)
            released += not ended.already
    return ForceReleasedBody(released=released)


HANDLERS = (acquire, renew, release, upgrade, transfer, force_release)
