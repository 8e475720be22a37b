"""What programs are told about work: by `--json`, and by the server."""

from typing import Any

from msgspec.structs import asdict

from leasehold.shapes import utc
from leasehold.work.law.answers import Acquired
from leasehold.work.questions import DomainState, FailedOffset


def acquired_shape(acquired: Acquired) -> dict[str, Any]:
    """Return what became of an attempt to acquire an offset."""
    return {
        "outcome": acquired.outcome.value,
        "offset": acquired.offset,
        "token": acquired.token,
        "fence": acquired.fence,
        "acquired_at_millis": acquired.acquired_at_millis,
        "retry_count": acquired.retry_count,
        "expires_in": acquired.expires_in,
    }


def state_shape(state: DomainState) -> dict[str, Any]:
    """Return how a domain stands."""
    return asdict(state)


def failed_shape(failed: FailedOffset) -> dict[str, Any]:
    """Return an offset that was given up."""
    return {
        "offset": failed.offset,
        "reason": failed.reason,
        "retry_count": failed.retry_count,
        "failed_at": utc(failed.failed_at_ns),
    }
