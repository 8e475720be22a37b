"""What a guard answers: allowed, refused, or that it could not tell; and the exit code that says so.

Pure. `block` stops who is refused, and also who cannot be told: nobody is let through by accident. `warn`
only says so.
"""

from collections.abc import Sequence
from enum import Enum
from typing import NamedTuple

EXIT_USAGE = 64
BYPASS_VARIABLE = "LEASEHOLD_BYPASS"
"""Names the reason to bypass a guard, where no option can be given."""
MODES = ("block", "warn")

_SHOWN = 20
"""How many reasons are told one by one."""


class Outcome(Enum):
    """What a guard has found, each with the exit code of `leasehold guard`."""

    ALLOWED = 0
    REFUSED = 2
    UNKNOWN = 3


class Verdict(NamedTuple):
    """What a guard has found, and what people are told about it."""

    outcome: Outcome
    reasons: Sequence[str] = ()
    """One sentence each, which says what to do next."""

    def exit_code(self, mode: str) -> int:
        """Return the exit code of `leasehold guard` in a mode."""
        return Outcome.ALLOWED.value if mode == "warn" else self.outcome.value

    def lines(self) -> list[str]:
        """Return the reasons, and how many there are beyond those that anybody reads."""
        rest = len(self.reasons) - _SHOWN
        return [*self.reasons[:_SHOWN], *([f"and {rest} more"] if rest > 0 else [])]


ALLOWED = Verdict(Outcome.ALLOWED)
