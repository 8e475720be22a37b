"""States and reasons as the reducer's contract spells them: read in any case, written in capitals.

They are the kernel's own words in another spelling, one for one, so that nothing is lost between the two.
"""

from enum import StrEnum
from typing import Self

from leasehold.kernel.lease import model as kernel
from leasehold.reducer.errors import InvalidLeaseState, InvalidReleaseReason


class LeaseState(StrEnum):
    """Where a lease is in its life. There is no way back from a terminal state. More states may be added."""

    PENDING = "PENDING"
    ACTIVE = "ACTIVE"
    RELEASED = "RELEASED"
    EXPIRED = "EXPIRED"
    REVOKED = "REVOKED"
    FAILED = "FAILED"

    @classmethod
    def parse(cls, text: str) -> Self:
        """Return the state that `text` names, in any case; raise InvalidLeaseState for anything else."""
        try:
            return cls[text.upper()]
        except KeyError:
            raise InvalidLeaseState(value=text) from None

    def as_str(self) -> str:
        """Return the canonical spelling."""
        return self.value

    @property
    def is_terminal(self) -> bool:
        """Say whether nothing can happen to a lease in this state any more."""
        return kernel.LeaseState[self.name].is_terminal


class ReleaseReason(StrEnum):
    """Why a holder gave a lease back. For the audit; it changes no behaviour. More reasons may be added."""

    COMPLETED = "COMPLETED"
    ABORTED = "ABORTED"
    VOLUNTARY = "VOLUNTARY"
    TRANSFERRED = "TRANSFERRED"

    @classmethod
    def parse(cls, text: str) -> Self:
        """Return the reason that `text` names, in any case; raise InvalidReleaseReason for anything else."""
        try:
            return cls[text.upper()]
        except KeyError:
            raise InvalidReleaseReason(value=text) from None

    def as_str(self) -> str:
        """Return the canonical spelling."""
        return self.value
