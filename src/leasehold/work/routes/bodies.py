"""What the routes of work take and give."""

from typing import Annotated, Any

import msgspec
from msgspec import Meta, Struct

from leasehold.server.bodies import NextEntry, NextPage, RenewalTtl, RequestId, Taken
from leasehold.work.law.answers import Acquired, AcquireOutcome, FailOutcome, SucceedOutcome
from leasehold.work.law.commands import DEFAULT_MAX_RETRIES, ENQUEUE_OFFSETS, RETRIES_MAXIMUM
from leasehold.work.law.model import OFFSET_MAXIMUM
from leasehold.work.questions import DomainState, FailedOffset, WorkState
from leasehold.work.shapes import acquired_shape, failed_shape, state_shape

Offset = Annotated[int, Meta(ge=0, le=OFFSET_MAXIMUM)]
Retries = Annotated[int, Meta(ge=0, le=RETRIES_MAXIMUM)]
_Holder = Annotated[str, Meta(description="Who asks, for history.")]
_Token = Annotated[str, Meta(description="The token of the offset in flight.")]

_ExpiresIn = Annotated[
    float | None, Meta(description="Seconds without `keep-alive`; count them from before you asked.")
]


class AcquireWorkBody(Taken, kw_only=True):
    """An offset to work on."""

    domain: str
    offset: Offset
    holder: _Holder
    ttl: Annotated[
        float | None,
        Meta(description="Seconds without `keep-alive` after which it goes back; left out: it does not."),
    ] = None
    max_retries: Annotated[
        int, Meta(ge=0, le=RETRIES_MAXIMUM, description="How often it may fail and still be tried again.")
    ] = DEFAULT_MAX_RETRIES
    request_id: RequestId = None


class _InFlight(Taken, kw_only=True):
    """The offset in flight, and who works on it."""

    domain: str
    token: _Token
    holder: _Holder


class SucceedBody(_InFlight, kw_only=True):
    """The offset in flight is processed."""

    hand_off: Annotated[bool, Meta(description="Acquire the head of the backlog in the same step.")] = False
    request_id: RequestId = None


class FailBody(SucceedBody, kw_only=True):
    """An attempt at the offset in flight has failed."""

    reason: str = ""
    max_retries: Annotated[Retries | None, Meta(description="Left out: as the offset was acquired with.")] = (
        None
    )


class GiveBackBody(_InFlight, kw_only=True):
    """The offset in flight goes back to the head of the backlog."""


class KeepAliveBody(_InFlight, kw_only=True):
    """More time for the offset in flight."""

    ttl: RenewalTtl = None


class EnqueueBody(Taken, kw_only=True):
    """Offsets for the end of the backlog."""

    domain: str
    offsets: Annotated[list[Offset], Meta(min_length=1, max_length=ENQUEUE_OFFSETS)]
    holder: _Holder
    request_id: RequestId = None


class StartAtBody(Taken, kw_only=True):
    """Where a domain starts."""

    domain: str
    offset: Offset
    holder: _Holder


class AcquiredBody(Struct, kw_only=True):
    """What became of an attempt to acquire an offset: work on it only if the outcome is ACQUIRED."""

    outcome: AcquireOutcome
    offset: int
    token: str | None
    fence: Annotated[int | None, Meta(description="The token as a number: pass it along with every write.")]
    acquired_at_millis: int | None
    retry_count: int
    expires_in: _ExpiresIn


class SucceededBody(Struct, kw_only=True):
    """What comes after an offset that was processed."""

    outcome: SucceedOutcome
    next_offset: int | None
    acquired: AcquiredBody | None


class FailedBody(Struct, kw_only=True):
    """What comes after an attempt that has failed."""

    outcome: FailOutcome
    retry_count: int
    next_offset: int | None
    acquired: AcquiredBody | None


class GivenBackBody(Struct, kw_only=True):
    """The offset that is at the head of the backlog now."""

    offset: int


class KeptBody(Struct, kw_only=True):
    """How long the offset stays in flight; null: until it is ended."""

    expires_in: _ExpiresIn


class EnqueuedBody(Struct, kw_only=True):
    """How many offsets were new."""

    added: int


class StartedBody(Struct, kw_only=True):
    """Where the domain starts now."""

    start: int


class DomainBody(Struct, kw_only=True):
    """How a domain stands at the moment of the answer."""

    domain: str
    state: WorkState
    current_offset: int | None
    token: str | None
    holder: str | None
    acquired_at_millis: int | None
    retry_count: int
    expires_in: float | None
    backlog: int
    head: int | None
    processed: list[list[int]]
    failed: list[list[int]]
    processed_count: int
    failed_count: int
    start: int
    watermark: Annotated[int, Meta(description="Every offset below is terminal: what to commit upstream.")]
    more_from: Annotated[int | None, Meta(description="Ask with this as `ranges_from` for further ranges.")]


class DomainsBody(Struct, kw_only=True):
    """A page of domains, without their ranges."""

    domains: list[DomainBody]
    next: NextPage


class WatermarkBody(Struct, kw_only=True):
    """Below which offset everything is terminal."""

    watermark: int


class FailedOffsetBody(Struct, kw_only=True):
    """An offset that was given up."""

    offset: int
    reason: Annotated[str | None, Meta(description="Null: its history was pruned.")]
    retry_count: int | None
    failed_at: str | None


class FailedOffsetsBody(Struct, kw_only=True):
    """A page of offsets that were given up."""

    offsets: list[FailedOffsetBody]
    next: Annotated[int | None, Meta(description="Ask again with this as `after`; null: the last page.")]


class OffsetHistoryBody(Struct, kw_only=True):
    """What happened to an offset, oldest first."""

    entries: list[dict[str, Any]]
    next: NextEntry


def acquired_body(acquired: Acquired) -> AcquiredBody:
    """Return what became of an attempt to acquire an offset."""
    return msgspec.convert(acquired_shape(acquired), AcquiredBody)


def domain_body(state: DomainState) -> DomainBody:
    """Return how a domain stands."""
    return msgspec.convert(state_shape(state), DomainBody)


def failed_body(failed: FailedOffset) -> FailedOffsetBody:
    """Return an offset that was given up."""
    return msgspec.convert(failed_shape(failed), FailedOffsetBody)


ACQUIRED_EXAMPLE: dict[str, Any] = {
    "outcome": "ACQUIRED",
    "offset": 41,
    "token": "229613453148161",
    "fence": 229613453148161,
    "acquired_at_millis": 1795000000000,
    "retry_count": 0,
    "expires_in": 60.0,
}
DOMAIN_EXAMPLE: dict[str, Any] = {
    "domain": "orders",
    "state": "IN_FLIGHT",
    "current_offset": 41,
    "token": "229613453148161",
    "holder": "worker-1",
    "acquired_at_millis": 1795000000000,
    "retry_count": 0,
    "expires_in": 59.2,
    "backlog": 1,
    "head": 42,
    "processed": [[0, 39]],
    "failed": [[40, 40]],
    "processed_count": 40,
    "failed_count": 1,
    "start": 0,
    "watermark": 41,
    "more_from": None,
}
