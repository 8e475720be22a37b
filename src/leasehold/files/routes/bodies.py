"""What the routes of file leases take and give."""

from typing import Annotated, Any

import msgspec
from msgspec import Meta, Struct

from leasehold.engine.questions import LeaseStatus
from leasehold.files.names import shown
from leasehold.kernel.lease.model import Mode
from leasehold.kernel.lease.ticket import PRIORITY_LEAST, PRIORITY_MOST, PRIORITY_USUAL
from leasehold.kernel.ledger.limits import RENEWALS_MAXIMUM, RESOURCES_PER_CLAIM
from leasehold.server.bodies import LEASE_EXAMPLE, HandedOnTtl, LeaseBody, NextPage, RenewalTtl, Taken
from leasehold.shapes import lease_shape

PATH = "Inside the repository of `project`; or without one, as the store names it: `/@shop/src/app.py`."
PROJECT = "Git's setting `leasehold.project`, else the first 16 digits of the root commit."

_Renewals = Annotated[int, Meta(ge=-1, le=RENEWALS_MAXIMUM)]


class AcquireFilesBody(Taken, kw_only=True):
    """A claim on files, folders and patterns: all of them, or none."""

    paths: Annotated[list[str], Meta(min_length=1, max_length=RESOURCES_PER_CLAIM, description=PATH)]
    agent: str
    project: Annotated[str | None, Meta(description=PROJECT)] = None
    mode: Mode = Mode.EXCLUSIVE
    ttl: Annotated[float | None, Meta(description="Seconds; left out: as the settings say.")] = None
    wait: Annotated[float, Meta(description="How many seconds to wait if somebody is in the way.")] = 0.0
    max_renewals: Annotated[_Renewals | None, Meta(description="Left out: as the settings say.")] = None
    priority: Annotated[int, Meta(ge=PRIORITY_LEAST, le=PRIORITY_MOST)] = PRIORITY_USUAL
    reason: Annotated[str, Meta(description="What it is for: others see it.")] = ""
    metadata: dict[str, Any] = {}


class _OwnFile(Taken, kw_only=True):
    """A file lease, and the agent that shows it."""

    lease_id: str
    agent: str


class RenewFileBody(_OwnFile, kw_only=True):
    """More time for a file lease."""

    ttl: RenewalTtl = None


class ReleaseFileBody(_OwnFile, kw_only=True):
    """A file lease that is given back."""


class UpgradeFileBody(_OwnFile, kw_only=True):
    """A shared file lease that is to be exclusive."""

    wait: Annotated[float, Meta(description="How many seconds to wait for others who share it.")] = 0.0


class TransferFileBody(_OwnFile, kw_only=True):
    """A file lease that is handed to another agent."""

    to: str
    ttl: HandedOnTtl = None


class ForceReleaseBody(Taken, kw_only=True):
    """An agent that does not answer."""

    agent: str
    operator: str
    reason: str


class FileLeaseBody(LeaseBody, kw_only=True):
    """A lease on a file, a folder or a pattern, as it stands at the moment of the answer."""

    path: Annotated[str, Meta(description="Inside its repository, or absolute.")]
    reason: Annotated[str, Meta(description="What its agent says it is for.")]


class FileLeasesBody(Struct, kw_only=True):
    """Leases on files."""

    leases: list[FileLeaseBody]


class FileLeasePageBody(FileLeasesBody, kw_only=True):
    """A page of file leases; it may have fewer than were asked for, and still not be the last."""

    next: NextPage


class ForceReleasedBody(Struct, kw_only=True):
    """How many leases, and waits, have ended by this."""

    released: int


def file_lease_body(status: LeaseStatus) -> FileLeaseBody:
    """Return a file lease, as it stands."""
    lease = status.lease
    shape = lease_shape(status) | {"path": shown(lease.resource), "reason": lease.reason}
    return msgspec.convert(shape, FileLeaseBody)


FILE_EXAMPLE: dict[str, Any] = LEASE_EXAMPLE | {
    "resource": "/@shop/src/app.py",
    "holder": "agent-7",
    "ttl": 600.0,
    "expires_in": 599.9,
    "metadata": {"reason": "new parser"},
    "path": "src/app.py",
    "reason": "new parser",
}
