"""What can happen to work. Each event says all that it changes, so that replaying never looks further."""

from typing import Any, get_args

from leasehold.kernel.ledger.events import REGISTRAR, Event, Filing
from leasehold.kernel.ledger.tick import Now
from leasehold.work.law.model import (
    Attempt,
    Reach,
    domain_key,
    filed_under,
    flight_key,
    place_key,
    queued_key,
    range_key,
    resource_of,
)


def happening(now: Now, tenant: str, domain: str, actor: str = REGISTRAR) -> dict[str, Any]:
    """Return when, by whom and where something happens."""
    return {"tick": now.tick, "at_ns": now.wall_ns, "actor": actor, "tenant": tenant, "domain": domain}


class _WorkEvent(Event, frozen=True, kw_only=True, omit_defaults=True):
    tenant: str = "default"
    domain: str

    @property
    def domain_key(self) -> str:
        return domain_key(self.tenant, self.domain)

    @property
    def flight_key(self) -> str:
        return flight_key(self.tenant, self.domain)


class _OffsetEvent(_WorkEvent, frozen=True, kw_only=True, omit_defaults=True):
    offset: int
    fence: int = 0
    """The token under which the offset is, or was, in flight; 0: it is in the backlog."""

    @property
    def filing(self) -> Filing:
        """Return the offset as the resource, and the domain in the place of a lease."""
        resource = resource_of(self.domain, self.offset)
        return (self.tenant, filed_under(self.domain), resource, self.actor, self.fence or None)

    def told(self, what: str) -> str:
        """Return what has become of the offset, for people."""
        return f"offset {self.offset} of {self.domain} {what}"

    def place_keys(self, place: int) -> tuple[str, str]:
        """Return the keys of an offset in the backlog."""
        return (
            queued_key(self.tenant, self.domain, place),
            place_key(self.tenant, self.domain, self.offset),
        )

    def range_keys(self, reach: Reach, *, failed: bool = False) -> tuple[str, ...]:
        """Return the keys of the range that the offset joins, and of one behind that is joined with it."""
        own = range_key(self.tenant, self.domain, reach.first, failed=failed)
        if reach.last == self.offset:
            return (own,)
        return (own, range_key(self.tenant, self.domain, self.offset + 1, failed=failed))


class WorkEnqueued(_OffsetEvent, frozen=True, kw_only=True, omit_defaults=True, tag="work.enqueued"):
    """An offset was put at the end of the backlog."""

    is_remembered = True

    place: int
    wake: str = ""
    added: int = 1
    """How many offsets the request has put there; the last of them remembers the request."""

    @property
    def story(self) -> str:
        """Return it as a sentence."""
        return self.told("was put into the backlog")

    @property
    def keys(self) -> tuple[str, ...]:
        """Return the domain, and the offset's place."""
        return (self.domain_key, *self.place_keys(self.place))


class WorkAcquired(_OffsetEvent, frozen=True, kw_only=True, omit_defaults=True, tag="work.acquired"):
    """An offset is in flight."""

    is_remembered = True
    draws = True

    acquired_at_ns: int
    """When it was first acquired."""
    retry_count: int = 0
    max_retries: int
    ttl_ns: int = 0
    due: int | None = None
    """The tick value at which it goes back to the backlog; None: never."""
    place: int | None = None
    """Where it was at the head of the backlog; None: it was not there."""
    wake: str = ""
    gave_up_after: int = 0
    """In a hand-off: how often the offset before it had failed, for whoever asks again."""

    @property
    def number(self) -> int:
        """Return the token."""
        return self.fence

    @property
    def story(self) -> str:
        """Return it as a sentence."""
        return self.told(f"is in flight, attempt {self.retry_count + 1}")

    @property
    def keys(self) -> tuple[str, ...]:
        """Return the domain, what is in flight, and the place that is left."""
        keys = (self.domain_key, self.flight_key)
        return keys if self.place is None else (*keys, *self.place_keys(self.place))


class WorkSucceeded(_OffsetEvent, frozen=True, kw_only=True, omit_defaults=True, tag="work.succeeded"):
    """An offset was processed."""

    is_remembered = True

    done: Reach
    """The range of terminal offsets that it is in now."""
    next_offset: int | None = None
    """What was at the head of the backlog then."""

    @property
    def story(self) -> str:
        """Return it as a sentence."""
        return self.told("was processed")

    @property
    def keys(self) -> tuple[str, ...]:
        """Return the domain, what was in flight, and the ranges that are joined."""
        return (self.domain_key, self.flight_key, *self.range_keys(self.done))


class WorkRetried(_OffsetEvent, frozen=True, kw_only=True, omit_defaults=True, tag="work.retried"):
    """An attempt failed; the offset stays in flight, to be tried again."""

    is_remembered = True

    retry_count: int
    """How often it has failed now."""
    reason: str = ""

    @property
    def story(self) -> str:
        """Return it as a sentence."""
        return self.told(f"failed in attempt {self.retry_count}, and is tried again")

    @property
    def keys(self) -> tuple[str, ...]:
        """Return what is in flight."""
        return (self.flight_key,)


class WorkFailed(_OffsetEvent, frozen=True, kw_only=True, omit_defaults=True, tag="work.failed"):
    """An offset was given up, after its last attempt failed or its time ran out."""

    is_remembered = True

    done: Reach
    failed: Reach
    """The range of failed offsets that it is in now."""
    retry_count: int
    reason: str = ""
    next_offset: int | None = None

    @property
    def story(self) -> str:
        """Return it as a sentence."""
        return self.told(f"was given up after attempt {self.retry_count + 1}")

    @property
    def keys(self) -> tuple[str, ...]:
        """Return the domain, what was in flight, and the ranges that are joined."""
        ranges = (*self.range_keys(self.done), *self.range_keys(self.failed, failed=True))
        return (self.domain_key, self.flight_key, *ranges)


class WorkReturned(_OffsetEvent, frozen=True, kw_only=True, omit_defaults=True, tag="work.returned"):
    """An offset went back to the head of the backlog: its time ran out, or it was given back."""

    is_remembered = True

    place: int
    before: Attempt
    """What it has behind it now."""
    reason: str
    """`expired` or `given back`."""

    @property
    def story(self) -> str:
        """Return it as a sentence."""
        return self.told("went back to the head of the backlog")

    @property
    def keys(self) -> tuple[str, ...]:
        """Return the domain, what was in flight, and the offset's place."""
        return (self.domain_key, self.flight_key, *self.place_keys(self.place))


class WorkKept(_OffsetEvent, frozen=True, kw_only=True, omit_defaults=True, tag="work.kept"):
    """An offset in flight was given more time."""

    ttl_ns: int
    due: int

    @property
    def story(self) -> str:
        """Return it as a sentence."""
        return self.told(f"was given {self.ttl_ns / 1e9:g} s more")

    @property
    def keys(self) -> tuple[str, ...]:
        """Return what is in flight."""
        return (self.flight_key,)


class WorkCarried(_OffsetEvent, frozen=True, kw_only=True, omit_defaults=True, tag="work.carried"):
    """An offset in flight since an earlier era was given what it had left, on the clock of now."""

    due: int

    @property
    def story(self) -> str:
        """Return it as a sentence."""
        return self.told("goes on after a reboot, with the time it had left")

    @property
    def keys(self) -> tuple[str, ...]:
        """Return what is in flight."""
        return (self.flight_key,)


class WorkAwaited(_OffsetEvent, frozen=True, kw_only=True, omit_defaults=True, tag="work.awaited"):
    """Somebody else wants to be woken for an offset, in flight or in the backlog."""

    wake: str
    place: int | None = None
    """Where in the backlog; None: it is in flight."""

    @property
    def story(self) -> str:
        """Return it as a sentence."""
        return self.told("is waited for")

    @property
    def keys(self) -> tuple[str, ...]:
        """Return what is in flight, or the offset's place."""
        if self.place is None:
            return (self.flight_key,)
        return (queued_key(self.tenant, self.domain, self.place),)


class WorkStarted(_WorkEvent, frozen=True, kw_only=True, omit_defaults=True, tag="work.started"):
    """Every offset below one counts as processed."""

    start: int

    @property
    def filing(self) -> Filing:
        """Return the domain in the place of a lease."""
        return (self.tenant, filed_under(self.domain), None, self.actor, None)

    @property
    def story(self) -> str:
        """Return it as a sentence."""
        return f"{self.domain} starts at offset {self.start}: all below counts as processed"

    @property
    def keys(self) -> tuple[str, ...]:
        """Return the domain."""
        return (self.domain_key,)


WorkEvent = (
    WorkEnqueued
    | WorkAcquired
    | WorkSucceeded
    | WorkRetried
    | WorkFailed
    | WorkReturned
    | WorkKept
    | WorkCarried
    | WorkAwaited
    | WorkStarted
)

WORK_EVENTS = get_args(WorkEvent)
"""All of them."""
