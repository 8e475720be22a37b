"""The records of work leases: small ones, however much there is of anything.

A domain has one record of its own, one for the offset in flight, two for each offset in its backlog (by
place, and by offset), and one for each range of terminal offsets. Failed offsets are terminal, too: they are
in a range of those, and in one of their own.

Places in a backlog are consecutive, because it is drained from its head only. What comes back to the head
gets the place before it, so places may be negative.
"""

from typing import Any

import msgspec

from leasehold.kernel.ledger.key import spell_key, under
from leasehold.kernel.ledger.tick import Tick

WORK = "work"
OFFSET_MAXIMUM = 2**63 - 1

_DOMAIN, _FLIGHT, _PLACE, _OFFSET, _DONE, _FAILED = "domain", "flight", "place", "offset", "done", "failed"


class Domain(msgspec.Struct, frozen=True, kw_only=True, gc=False, omit_defaults=True, tag="domain"):
    """What is known of a domain as a whole."""

    name: str
    created_at_ns: int
    first: int = 0
    """The place of the backlog's head."""
    next: int = 0
    """The place behind its tail."""
    processed: int = 0
    """How many offsets have succeeded."""
    failed: int = 0
    """How many were given up."""
    start: int = 0
    """Every offset below this one counts as processed."""

    @property
    def backlog(self) -> int:
        """Return how many offsets are queued."""
        return self.next - self.first


class Flight(msgspec.Struct, frozen=True, kw_only=True, gc=False, omit_defaults=True, tag="flight"):
    """The offset in flight: the contract's lease record."""

    offset: int
    fence: int
    holder: str
    acquired_at_ns: int
    """When this offset was first acquired; it never changes."""
    retry_count: int = 0
    """How often it has failed."""
    max_retries: int
    ttl_ns: int = 0
    """0: it stays in flight until somebody ends it."""
    due: Tick | None = None
    wake: str = ""
    """Where somebody who wants this offset waits for it to come free."""

    @property
    def token(self) -> str:
        """Return the token as callers know it."""
        return str(self.fence)


class Attempt(msgspec.Struct, frozen=True, kw_only=True, gc=False, omit_defaults=True):
    """What an offset has behind it."""

    acquired_at_ns: int
    retry_count: int = 0


class Queued(msgspec.Struct, frozen=True, kw_only=True, gc=False, omit_defaults=True, tag="queued"):
    """An offset in the backlog, by its place."""

    offset: int
    before: Attempt | None = None
    """What it had behind it when it came back; None: it was never in flight."""
    wake: str = ""
    """Where to ring when it becomes the head of an idle domain."""


class Place(msgspec.Struct, frozen=True, kw_only=True, gc=False, tag="place"):
    """Where in the backlog an offset is, by the offset."""

    place: int


class Range(msgspec.Struct, frozen=True, kw_only=True, gc=False, tag="range"):
    """Consecutive offsets: the first is in the key, and this is the last."""

    last: int


Record = Domain | Flight | Queued | Place | Range


class Reach(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """The whole range that an offset is part of once it has ended."""

    first: int
    last: int


def domain_key(tenant: str, domain: str) -> str:
    """Return the key of a domain's own record."""
    return spell_key(tenant, _DOMAIN, domain)


def domains_of(tenant: str, after: str = "") -> tuple[str, str]:
    """Return the range of the domains of a tenant, after one of them."""
    first, end = under(tenant, _DOMAIN)
    return (spell_key(tenant, _DOMAIN, after) + "\x01" if after else first), end


def flight_key(tenant: str, domain: str) -> str:
    """Return the key of what is in flight."""
    return spell_key(tenant, _FLIGHT, domain)


def queued_key(tenant: str, domain: str, place: int) -> str:
    """Return the key of a place in the backlog."""
    return spell_key(tenant, _PLACE, domain, place)


def places_behind(tenant: str, domain: str, place: int) -> tuple[str, str]:
    """Return the range of all places in the backlog from one on."""
    return queued_key(tenant, domain, place), under(tenant, _PLACE, domain)[1]


def place_key(tenant: str, domain: str, offset: int) -> str:
    """Return the key that says where in the backlog an offset is."""
    return spell_key(tenant, _OFFSET, domain, offset)


def places_of(tenant: str, domain: str) -> tuple[str, str]:
    """Return the range of all offsets in the backlog, lowest first."""
    return under(tenant, _OFFSET, domain)


def range_key(tenant: str, domain: str, first: int, *, failed: bool = False) -> str:
    """Return the key of a range of terminal offsets, or of failed ones."""
    return spell_key(tenant, _FAILED if failed else _DONE, domain, first)


def ranges_from(tenant: str, domain: str, offset: int = 0, *, failed: bool = False) -> tuple[str, str]:
    """Return where to look for ranges that begin at an offset or above."""
    return range_key(tenant, domain, offset, failed=failed), _ranges_of(tenant, domain, failed)[1]


def ranges_up_to(tenant: str, domain: str, offset: int, *, failed: bool = False) -> tuple[str, str]:
    """Return where to look for the last range that begins at an offset or below."""
    first, end = _ranges_of(tenant, domain, failed)
    return first, (end if offset == OFFSET_MAXIMUM else range_key(tenant, domain, offset + 1, failed=failed))


def _ranges_of(tenant: str, domain: str, failed: bool) -> tuple[str, str]:
    return under(tenant, _FAILED if failed else _DONE, domain)


def due(record: Any) -> Tick | None:
    """Return when time has something to do with a record."""
    return record.due if isinstance(record, Flight) else None


def filed_under(domain: str) -> str:
    """Return under what the history of a domain is found, in the place of a lease."""
    return f"{WORK}:{domain}"


def resource_of(domain: str, offset: int) -> str:
    """Return under what the history of an offset is found."""
    return f"{filed_under(domain)}:{offset}"
