"""What callers write, checked and brought into the kernel's terms."""

import math
from collections.abc import Iterable
from typing import TypeVar

import msgspec

from leasehold.engine.port import LeaseQuery
from leasehold.engine.registrar import LeaseStatus
from leasehold.errors import InvalidInput
from leasehold.kernel.lease import LeaseState, Mode, ReleaseReason, UnknownWord
from leasehold.kernel.tick import NANOSECONDS_PER_SECOND

_WordType = TypeVar("_WordType", Mode, LeaseState, ReleaseReason)


class Page(msgspec.Struct, frozen=True, kw_only=True):
    """One page of leases."""

    statuses: list[LeaseStatus]
    next: str | None
    """Pass this as `after` for the next page; None: this is the last."""


def at_least_zero_ns(field: str, seconds: float) -> int:
    """Return seconds as nanoseconds; refuse what is no number of seconds."""
    try:
        sound = math.isfinite(seconds) and seconds >= 0
    except TypeError:
        sound = False
    if not sound:
        raise InvalidInput(f"{field} must be a number of seconds, not {seconds!r}", field=field)
    return round(seconds * NANOSECONDS_PER_SECOND)


def parse(field: str, words: type[_WordType], text: str) -> _WordType:
    """Return the mode, state or reason that `text` names, in any case."""
    try:
        return words.parse(text)
    except (UnknownWord, AttributeError) as error:
        raise InvalidInput(f"{field} {error}", field=field) from None


def page_query(
    tenant: str,
    *,
    resource: str | None = None,
    prefix: str | None = None,
    holder: str | None = None,
    states: Iterable[LeaseState | str] = (),
    after: str | None = None,
    limit: int = 1_000,
) -> LeaseQuery:
    """Return the query for one page of leases."""
    return LeaseQuery(
        tenant=tenant,
        resource=resource,
        resource_prefix=prefix,
        holder=holder,
        states=tuple(parse("state", LeaseState, state) for state in states),
        after=after,
        limit=limit,
    )
