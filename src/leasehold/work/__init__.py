"""Work leases: one offset at a time in each domain, in order, and never twice.

`leases.work` is the way in; here are the names of what it answers and raises.
"""

from leasehold.work.errors import (
    BacklogOrderingException,
    LeaseNotFoundException,
    TokenMismatchException,
    WorkBelowStart,
)
from leasehold.work.law.answers import (
    Acquired,
    AcquireOutcome,
    Failed,
    FailOutcome,
    Kept,
    Succeeded,
    SucceedOutcome,
)
from leasehold.work.questions import DomainState, FailedOffset, WorkState

__all__ = [
    "AcquireOutcome",
    "Acquired",
    "BacklogOrderingException",
    "DomainState",
    "FailOutcome",
    "Failed",
    "FailedOffset",
    "Kept",
    "LeaseNotFoundException",
    "SucceedOutcome",
    "Succeeded",
    "TokenMismatchException",
    "WorkBelowStart",
    "WorkState",
]
