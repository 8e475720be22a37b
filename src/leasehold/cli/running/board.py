"""What the front and the keeper process of one `run` tell each other.

Notices are words in shared memory, where the newest one counts: a process that was stopped for a while
reads how things stand, not how they were. Beside them is a pipe that ends when the front does.
"""

import mmap
import os
import struct

FRONT_VARIABLE = "LEASEHOLD_FRONT"
"""Tells a command the process id of the front that it runs behind, in case that it is a `run` itself."""

_NUMBER = struct.Struct("=q")
_DEADLINE_AT, _IS_HELD_AT, _COMMAND_AT, _SIZE = 0, 8, 16, 24


class Board:
    """Made before the fork, used on both sides of it."""

    def __init__(self) -> None:
        self._notices = mmap.mmap(-1, _SIZE)
        self._front_lives, self._front_end = os.pipe()

    @property
    def deadline_ns(self) -> int:
        """When, in ticks of this boot, the front has to step in; 0: not at all."""
        return self._get(_DEADLINE_AT)

    @deadline_ns.setter
    def deadline_ns(self, tick_ns: int) -> None:
        self._set(_DEADLINE_AT, tick_ns)

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
        return self._front_lives

    def _get(self, place: int) -> int:
        number: int = _NUMBER.unpack_from(self._notices, place)[0]
        return number

    def _set(self, place: int, number: int) -> None:
        _NUMBER.pack_into(self._notices, place, number)
