"""What is answered when the answer is no.

A refusal is a value, not an exception: it changes nothing, it carries the facts a caller needs for the
next step, and it crosses a wire as it is.
"""

from enum import StrEnum
from typing import Any

import msgspec

from leasehold.kernel.ledger.events import Token


class RefusalCode(StrEnum):
    """Why not. The names are stable; programs may rely on them."""

    HELD = "HELD"
    ALREADY_HELD = "ALREADY_HELD"
    ALREADY_WAITING = "ALREADY_WAITING"
    DEADLOCK = "DEADLOCK"
    LEASE_NOT_FOUND = "LEASE_NOT_FOUND"
    LEASE_EXISTS = "LEASE_EXISTS"
    LEASE_TERMINAL = "LEASE_TERMINAL"
    LEASE_EXPIRED = "LEASE_EXPIRED"
    LEASE_PENDING = "LEASE_PENDING"
    NOT_HOLDER = "NOT_HOLDER"
    RENEWALS_EXHAUSTED = "RENEWALS_EXHAUSTED"
    RENEWAL_DOES_NOT_EXTEND = "RENEWAL_DOES_NOT_EXTEND"
    UNKNOWN_TIME = "UNKNOWN_TIME"
    INVALID_INPUT = "INVALID_INPUT"
    LIMIT_EXCEEDED = "LIMIT_EXCEEDED"
    NOTHING_GRANTED = "NOTHING_GRANTED"
    SCOPE_DENIED = "SCOPE_DENIED"
    SCOPE_EXCEEDED = "SCOPE_EXCEEDED"
    BUDGET_EXCEEDED = "BUDGET_EXCEEDED"
    BUDGET_EXHAUSTED = "BUDGET_EXHAUSTED"
    OUTLIVES_PARENT = "OUTLIVES_PARENT"
    REFUSED = "REFUSED"
    """By a rule of a family that has codes of its own: see `Refusal.rule`."""

    @property
    def means_loss(self) -> bool:
        """Say whether a holder that gets this answer to a renewal has lost its lease for certain."""
        return self in _LOSSES


_LOSSES = frozenset(
    {
        RefusalCode.LEASE_NOT_FOUND,
        RefusalCode.LEASE_TERMINAL,
        RefusalCode.LEASE_EXPIRED,
        RefusalCode.NOT_HOLDER,
    }
)


class Refusal(msgspec.Struct, frozen=True, kw_only=True, gc=False, omit_defaults=True, tag=True):
    """A no, with what the caller needs to know to do better. Facts that do not apply are None."""

    code: RefusalCode
    lease_id: str | None = None
    resource: str | None = None
    holder: str | None = None
    """Who holds the resource, or the lease, that was asked for."""
    reason: str | None = None
    """What the holder says that it holds the obstacle for."""
    mode: str | None = None
    state: str | None = None
    token: Token | None = None
    since_ns: int | None = None
    """Wall time since when the holder holds it."""
    expires_in_ns: int | None = None
    """How long the obstacle lasts if nobody renews it."""
    field: str | None = None
    limit: int | None = None
    detail: str | None = None
    position: int | None = None
    """The place in the queue that the claim would have had; 1 is next in line."""
    cycle: tuple[str, ...] | None = None
    """Who would wait for ever: a holder, what it waits for, who is in its way, … and the first again."""
    rule: str = ""
    """The code that a family gives to its own refusals; then `detail` is all that there is to say."""
    facts: dict[str, Any] = {}
    """What else such a refusal is about, by name."""
