"""What the processes of one `run` tell each other.

Notices are words in shared memory, where the newest one counts: a process that was stopped for a while
reads how things stand, not how they were. Beside them is a pipe that ends when the front does.
"""

import mmap
import os
import struct

from leasehold.engine.clock import SystemClock
from leasehold.kernel.ledger.tick import NANOSECONDS_PER_SECOND

FRONT_VARIABLE = "LEASEHOLD_FRONT"
"""Tells a command the process id of the front that it runs behind, in case that it is a `run` itself."""

ENDING_SECONDS = 10.0
"""How much longer than the grace time the ending of a command may take before somebody else steps in."""

_NUMBER = struct.Struct("=q")
_DEADLINE_AT, _IS_HELD_AT, _COMMAND_AT, _SIZE = 0, 8, 16, 24


class Board:
    """Made before the forks, used by all processes."""

    def __init__(self) -> None:
        self._notices = mmap.mmap(-1, _SIZE)
        self.front_lives, self._front_end = os.pipe()
        """Ends when the front does; of use in every process but the front."""
        self._clock = SystemClock()

    def set_deadline(self, seconds: float) -> None:
        """Say that who works on it has so long from now: to renew the lease, or to end the command."""
        self._set(_DEADLINE_AT, self._clock.tick_ns() + int(seconds * NANOSECONDS_PER_SECOND))

    def forget_deadline(self) -> None:
        """Say that nobody has to step in any more."""
        self._set(_DEADLINE_AT, 0)

    def is_overdue(self, *, by_seconds: float) -> bool:
        """Say whether the deadline is over for longer than that, so that it is time to step in."""
        late_ns = self._clock.tick_ns() - int(by_seconds * NANOSECONDS_PER_SECOND)
        return 0 < self._get(_DEADLINE_AT) < late_ns

    @property
    def is_held(self) -> bool:
        """Whether the lease was won: from then on signals concern the command, which is being started."""
        return bool(self._get(_IS_HELD_AT))

    @is_held.setter
    def is_held(self, is_held: bool) -> None:
        self._set(_IS_HELD_AT, is_held)

    @property
    def command(self) -> int:
        """The process id of the command; 0 until it is known, shortly after the start, and after the end."""
        return self._get(_COMMAND_AT)

    @command.setter
    def command(self, process_id: int) -> None:
        self._set(_COMMAND_AT, process_id)

    def watch_front(self) -> int:
        """Return, in the keeper process, a descriptor that becomes readable when the front is gone."""
        os.close(self._front_end)
        return self.front_lives

    def _get(self, place: int) -> int:
        number: int = _NUMBER.unpack_from(self._notices, place)[0]
        return number

    def _set(self, place: int, number: int) -> None:
        _NUMBER.pack_into(self._notices, place, number)
