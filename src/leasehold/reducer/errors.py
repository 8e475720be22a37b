"""Everything the reducer refuses, as one tree below `LeaseError`.

Each error carries the facts a diagnosis needs as attributes, and a message made from them. More kinds may
be added: catch `LeaseError` for all of them. An event that is refused has changed nothing.
"""

from typing import ClassVar

from leasehold.errors import LeaseholdError


class LeaseError(LeaseholdError, code="LEASE_ERROR", http_status=409):
    """An event cannot have happened in this state, or is not an event at all."""

    template: ClassVar[str] = "the event was refused"

    def __init__(self, message: str | None = None, **facts: object) -> None:
        super().__init__(self.template.format_map(facts) if message is None else message, **facts)


class WorkAlreadyLeased(LeaseError, code="WORK_ALREADY_LEASED"):
    """The work is claimed already: at most one lease stands on it."""

    template = "work {work_id} is leased already, as {existing_lease_id}; that lease has to end first"
    work_id: str
    existing_lease_id: str


class LeaseNotFound(LeaseError, code="LEASE_NOT_FOUND", http_status=404):
    """No event has issued the lease, or it was pruned."""

    template = "lease {lease_id} was never issued here, or has been pruned"
    lease_id: str


class LeaseAlreadyTerminal(LeaseError, code="LEASE_ALREADY_TERMINAL", http_status=410):
    """The lease has ended, and nothing can happen to it any more."""

    template = "lease {lease_id} is {current_state}; nothing can happen to it any more"
    lease_id: str
    current_state: str


class LeaseExpired(LeaseError, code="LEASE_EXPIRED", http_status=410):
    """The lease's time was over before the renewal, and an expired lease does not come back."""

    template = "lease {lease_id} expired at {expired_at}, before it was renewed; issue a new one"
    lease_id: str
    expired_at: int


class InvalidReleaseReason(LeaseError, ValueError, code="INVALID_RELEASE_REASON", http_status=422):
    """A text names no reason for a release."""

    template = "invalid release reason {value!r}"
    value: str


class InvalidLeaseState(LeaseError, ValueError, code="INVALID_LEASE_STATE", http_status=422):
    """A text names no state of a lease."""

    template = "invalid lease state {value!r}"
    value: str


class InvalidSignature(LeaseError, code="INVALID_SIGNATURE", http_status=403):
    """The registrar's signature does not belong to what it is said to sign.

    The reducer itself looks only whether there is one; this is for whoever verifies events before they are
    folded.
    """

    template = "the registrar's signature of lease {lease_id} does not verify"
    lease_id: str


class MissingSignature(LeaseError, code="MISSING_SIGNATURE", http_status=403):
    """The registrar did not sign."""

    template = "the registrar did not sign the event for lease {lease_id}"
    lease_id: str


class RenewalDoesNotExtend(LeaseError, code="RENEWAL_DOES_NOT_EXTEND"):
    """The renewal would leave the lease where it is, or shorten it."""

    template = "lease {lease_id} lasts until {current_expires_at}; {new_expires_at} does not extend it"
    lease_id: str
    current_expires_at: int
    new_expires_at: int


class DecodeError(LeaseError, ValueError, code="DECODE_ERROR", http_status=422):
    """Bytes are not what they are said to be."""

    template = "cannot be decoded: {reason}"
    reason: str


class LeaseAlreadyExists(LeaseError, code="LEASE_ALREADY_EXISTS"):
    """A lease with this id was issued before."""

    template = "lease {lease_id} was issued before; ids are never used twice"
    lease_id: str


class Unauthorized(LeaseError, code="UNAUTHORIZED", http_status=403):
    """Somebody other than the holder wanted to give the lease back."""

    template = "{actor_id} does not hold lease {lease_id}; only its holder can release it"
    lease_id: str
    actor_id: str


class InvalidExpiration(LeaseError, code="INVALID_EXPIRATION"):
    """The lease was said to have expired before its time was over."""

    template = "lease {lease_id} lasts until {lease_expires_at}; it cannot have expired at {provided}"
    lease_id: str
    provided: int
    lease_expires_at: int


class InvalidInput(LeaseError, ValueError, code="INVALID_INPUT", http_status=422):
    """A value can never be right."""

    template = "{field} {reason}"
    field: str
    reason: str
