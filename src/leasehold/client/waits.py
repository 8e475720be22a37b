"""What a caller says about waiting, and what it is told when that was in vain."""

import math
from typing import Generic, TypeVar

from msgspec.structs import replace

from leasehold.client.inputs import Duration, duration_ns
from leasehold.engine.desk import Outcome
from leasehold.errors import LeaseTerminal, WaitTimeout
from leasehold.kernel.lease.answers import Granted, Place, Waiting
from leasehold.kernel.lease.commands import Acquire, ChangeMode, Release
from leasehold.kernel.lease.model import LeaseState, Mode, ReleaseReason
from leasehold.kernel.lease.ticket import kept_ns
from leasehold.kernel.ledger.events import REGISTRAR
from leasehold.kernel.ledger.refusals import Refusal, RefusalCode
from leasehold.kernel.ledger.tick import NANOSECONDS_PER_SECOND

_Asked = TypeVar("_Asked", Acquire, ChangeMode)

DEAF_SECONDS = 0.25
"""How long a waiter sleeps that cannot be woken."""

LOOK_EVERY_SECONDS = 0.002
"""How often to look for what others bring about soon, and nobody tells."""

FOREVER_NS = 1 << 62
"""Longer than any clock runs."""


def patience_ns(wait: Duration | bool | None) -> int:
    """Return how long to wait: 0 for not at all, and `FOREVER_NS` for as long as it takes."""
    if wait is None or wait is False:
        return 0
    if wait is True or wait == math.inf:
        return FOREVER_NS
    return min(duration_ns("wait", wait), FOREVER_NS)


class Claim(Generic[_Asked]):
    """What is asked for, on its way. It gets new ids if the registrar has given it up meanwhile."""

    def __init__(self, command: _Asked) -> None:
        self.command: _Asked = command

    def renew(self, lease_id: str) -> None:
        """Become another claim for the same."""
        if isinstance(self.command, Acquire):
            self.command = replace(self.command, lease_id=lease_id, request_id=lease_id)


def has_lapsed(command: Acquire | ChangeMode, outcome: Outcome, silent_ns: int) -> bool:
    """Say whether an outcome means that a claim was given up because nothing was heard of its waiter.

    Then it can be made anew. A request that the caller has named cannot: the caller has to name another.
    """
    if not (isinstance(command, Acquire) and command.is_its_own_request):
        return False
    if isinstance(outcome, Granted):
        return outcome.ended and outcome.lease.state is LeaseState.EXPIRED
    return (
        isinstance(outcome, Refusal)
        and outcome.code == RefusalCode.LEASE_TERMINAL
        and outcome.state == LeaseState.FAILED
        and silent_ns >= kept_ns(1 + len(command.also))
    )


def undoing(command: Acquire | ChangeMode, request_id: str) -> ChangeMode | Release:
    """Return what takes a claim back, whatever has become of it by then."""
    if isinstance(command, ChangeMode):
        return replace(command, mode=Mode.SHARED, wait=False, wake="", request_id=request_id)
    return Release(
        tenant=command.tenant,
        lease_ids=command.lease_ids,
        holder=command.holder,
        reason=ReleaseReason.ABORTED,
        request_id=request_id,
    )


def ended_since(granted: Granted, request_id: str) -> LeaseTerminal:
    """Return what a caller is told whose request was granted before, and whose lease has ended since."""
    lease = granted.lease
    return LeaseTerminal(
        f"request {request_id} was granted lease {lease.lease_id}, which has ended since; ask again with a "
        "new request id",
        lease_id=lease.lease_id,
        state=lease.state,
        request_id=request_id,
    )


def in_vain(waiting: Waiting, waited_ns: int) -> WaitTimeout:
    """Return what a caller is told whose patience has ended."""
    place = _in_the_way(waiting.places)
    waited = waited_ns / NANOSECONDS_PER_SECOND
    expires_in = None if place.expires_in_ns is None else place.expires_in_ns / NANOSECONDS_PER_SECOND
    left = "" if expires_in is None else f" (for at most {expires_in:.1f} s more, unless renewed)"
    who = "reserved for" if place.expires_in_ns is None and place.position > 1 else "held by"
    why = f" ({place.reason})" if place.reason else ""
    how, step = f"{who} {place.holder or 'nobody known'}{why}{left}", "wait longer, or ask them"
    if place.holder == REGISTRAR:
        left = "" if expires_in is None else f" for at most {expires_in:.1f} s more"
        how, step = f"kept closed{left}, after a lease that was not released", "wait longer"
    return WaitTimeout(
        f"waited {waited:.1f} s: {place.resource} is still {how}, "
        f"and this claim was at place {place.position} in the queue; {step}",
        resource=place.resource,
        holder=place.holder,
        reason=place.reason or None,
        lease_id=place.lease_id,
        mode=place.mode,
        since=None if place.since_ns is None else place.since_ns / NANOSECONDS_PER_SECOND,
        expires_in=expires_in,
        retry_after=expires_in,
        waited=waited,
        position=place.position,
    )


def _in_the_way(places: tuple[Place, ...]) -> Place:
    """Return the place where somebody is in the way longest."""
    return max(places, key=lambda place: (place.holder is not None, place.position, place.expires_in_ns or 0))
