"""What tools answer. The schemas that clients see are made of these types."""

from datetime import datetime
from typing import Any

import msgspec
from msgspec import UNSET, UnsetType

from leasehold.files.values import FileLease
from leasehold.kernel.lease.model import Mode
from leasehold.mcp.arguments import REASON_CHARACTERS
from leasehold.mcp.paths import told


class Answer(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What every answer is a kind of."""


class Lease(Answer, frozen=True, kw_only=True):
    """A lease as it stood at the moment of the answer."""

    path: str
    agent: str
    token: int
    expires_in: float
    shared: bool | UnsetType = UNSET
    reason: str | UnsetType = UNSET


class Kept(Answer, frozen=True, kw_only=True):
    """Whether a lease is as it was asked to be; if not, what to do about it."""

    granted: bool
    message: str
    leases: list[Lease] = []
    next: dict[str, Any] | UnsetType = UNSET
    """A call that makes sense now: `tool` and `arguments`."""


class Claimed(Kept, frozen=True, kw_only=True):
    """What became of a claim: the leases, or who is in the way."""

    path: str | UnsetType = UNSET
    held_by: str | UnsetType = UNSET
    reason: str | UnsetType = UNSET
    until: str | UnsetType = UNSET
    expires_in: float | UnsetType = UNSET
    position: int | UnsetType = UNSET


class Released(Answer, frozen=True, kw_only=True):
    """What was given back, and what could not be."""

    message: str
    released: list[str]
    not_held: list[str] = []


class Checked(Answer, frozen=True, kw_only=True):
    """Whether everything that was asked about is the agent's to change, and who holds what."""

    yours: bool
    free: bool
    message: str
    held: list[Lease] = []
    next: dict[str, Any] | UnsetType = UNSET


class Listed(Answer, frozen=True, kw_only=True):
    """Leases, and how many there are in all."""

    leases: list[Lease]
    total: int


class Event(Answer, frozen=True, kw_only=True):
    """Something that happened to a path."""

    at: str
    what: str
    agent: str
    by: str | UnsetType = UNSET
    reason: str | UnsetType = UNSET


class Told(Answer, frozen=True, kw_only=True):
    """What happened to a path, oldest first."""

    path: str
    events: list[Event]


def lease_of(lease: FileLease) -> Lease:
    """Return a file lease as tools tell of it."""
    return Lease(
        path=told(lease.resource),
        agent=lease.agent_id,
        token=lease.token,
        expires_in=round(lease.time_remaining, 1),
        shared=lease.mode is Mode.SHARED or UNSET,
        reason=shortened(lease.reason),
    )


def shortened(reason: object) -> str | UnsetType:
    """Return what somebody says something is for, if they do, and not more than an agent can bear to read."""
    return reason[:REASON_CHARACTERS] if isinstance(reason, str) and reason else UNSET


def moment(seconds: float) -> str:
    """Spell a wall time, to the second, with its time zone."""
    return datetime.fromtimestamp(seconds).astimezone().isoformat(timespec="seconds")
