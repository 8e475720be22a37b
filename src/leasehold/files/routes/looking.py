"""Which file leases there are, and who is in the way, over plain REST."""

from typing import Annotated

from litestar.params import FromQuery, QueryParameter

from leasehold.client.aio.reader import AsyncReader
from leasehold.client.aio.session import AsyncSession
from leasehold.engine.questions import LeaseStatus
from leasehold.errors import error_of
from leasehold.files.names import is_file_name, name_elsewhere
from leasehold.files.questions import FindAround
from leasehold.files.routes.bodies import (
    FILE_EXAMPLE,
    PATH,
    PROJECT,
    FileLeaseBody,
    FileLeasePageBody,
    FileLeasesBody,
    file_lease_body,
)
from leasehold.kernel.lease.decision import not_found
from leasehold.kernel.lease.model import Mode
from leasehold.server.routing import Asking, Limit, get

_Path = Annotated[str, QueryParameter(description=PATH)]
_Project = Annotated[str | None, QueryParameter(description=PROJECT)]


@get("/", "List file leases", answer={"leases": [FILE_EXAMPLE], "next": None})
async def list_leases(
    session: Asking,
    agent: FromQuery[str | None] = None,
    project: _Project = None,
    after: Annotated[str | None, QueryParameter(description="`next` of the page before.")] = None,
    limit: Limit = 100,
) -> FileLeasePageBody:
    """Return a page of the file leases that stand, in the order of their ids."""
    prefix = None if project is None else name_elsewhere(".", project=project).resource
    page = await AsyncReader(session).list(
        holder=agent, prefix=prefix, states=["active"], after=after, limit=limit
    )
    return FileLeasePageBody(
        leases=[file_lease_body(one) for one in page.statuses if one.is_live and _is_in(one, prefix)],
        next=page.next,
    )


def _is_in(status: LeaseStatus, top: str | None) -> bool:
    resource = status.lease.resource
    return is_file_name(resource) if top is None else resource == top or resource.startswith(f"{top}/")


@get("/around", "List the leases around a path", answer={"leases": [FILE_EXAMPLE]})
async def list_around(session: Asking, path: _Path, project: _Project = None) -> FileLeasesBody:
    """Return the leases that stand on a path, above it, below it, and on patterns that can match it."""
    return await _around(session, path, project, None)


@get("/in-the-way", "Look who is in the way", answer={"leases": [FILE_EXAMPLE]})
async def list_in_the_way(
    session: Asking, path: _Path, project: _Project = None, mode: FromQuery[Mode] = Mode.EXCLUSIVE
) -> FileLeasesBody:
    """Return some of the leases that keep others from owning a path in a mode; none only if none does."""
    return await _around(session, path, project, mode)


async def _around(
    session: AsyncSession, path: str, project: str | None, against: Mode | None
) -> FileLeasesBody:
    resource = name_elsewhere(path, project=project).resource
    found = await session.ask(FindAround(tenant=session.tenant, resource=resource, against=against))
    return FileLeasesBody(leases=[file_lease_body(one) for one in found])


@get("/lease", "Look at a file lease", 404, answer=FILE_EXAMPLE)
async def get_lease(session: Asking, lease_id: FromQuery[str]) -> FileLeaseBody:
    """Return a file lease by its id, also one that has ended."""
    status = await AsyncReader(session).get(lease_id)
    if status is None or not is_file_name(status.lease.resource):
        raise error_of(not_found(lease_id))
    return file_lease_body(status)


HANDLERS = (list_leases, list_around, list_in_the_way, get_lease)
