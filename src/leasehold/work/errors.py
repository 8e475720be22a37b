"""What can go wrong with work, under the names of the contract."""

from leasehold.errors import LeaseLost, NotAcquired, Refused


class BacklogOrderingException(NotAcquired, code="BACKLOG_ORDERING"):
    """Another offset is at the head of the domain's backlog, and has to be acquired first."""

    domain: str
    expected: int
    """The head of the backlog."""
    got: int


class TokenMismatchException(LeaseLost, code="TOKEN_MISMATCH"):
    """The token is not that of the offset in flight: somebody else works on the domain now."""

    domain: str


class LeaseNotFoundException(LeaseLost, code="NO_LEASE", http_status=404):
    """No offset of the domain is in flight: it was ended, or its time was over."""

    domain: str


class WorkBelowStart(Refused, code="WORK_BELOW_START"):
    """A domain cannot start above an offset that is in flight or in its backlog."""

    domain: str
    expected: int
    """The lowest offset that is still to be done."""
    got: int
