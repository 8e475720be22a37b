"""The clocks and ids of the machine we run on.

`CLOCK_BOOTTIME` counts while the machine sleeps, which `time.monotonic()` does not: a holder that was
suspended must not believe that its lease waited for it. All processes of one boot read the same clock; a
time namespace shifts what its processes see, and the shift is taken out again.
"""

import itertools
import os
import random
import re
import threading
import time
import weakref
from pathlib import Path
from typing import Protocol

_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")
_NAMESPACE_OFFSETS = Path("/proc/self/timens_offsets")


class Clock(Protocol):
    """A source of time. Tests and the simulator bring their own."""

    def tick_ns(self) -> int:
        """Return nanoseconds since this boot, sleep included."""
        ...

    def wall_ns(self) -> int:
        """Return nanoseconds since 1970, for people."""
        ...

    @property
    def boot_id(self) -> str:
        """Return what tells this boot of this machine from every other."""
        ...


class SystemClock:
    """The clock of this machine."""

    def __init__(self) -> None:
        self._offset_ns = _namespace_offset_ns()
        self.boot_id = _BOOT_ID.read_text().strip()
        """The kernel's id of this boot."""

    def tick_ns(self) -> int:
        """Return nanoseconds since this boot, sleep included."""
        return time.clock_gettime_ns(time.CLOCK_BOOTTIME) - self._offset_ns

    wall_ns = staticmethod(time.time_ns)
    """Returns nanoseconds since 1970."""


def _namespace_offset_ns() -> int:
    """Return how far this process's time namespace is ahead of the machine's boot clock."""
    try:
        lines = _NAMESPACE_OFFSETS.read_text().splitlines()
    except FileNotFoundError:  # a kernel without time namespaces
        return 0
    for line in lines:
        name, seconds, nanoseconds = line.split()
        if name in ("boottime", "7"):
            return int(seconds) * 1_000_000_000 + int(nanoseconds)
    return 0


class Ids:
    """Time-ordered unique ids (UUID version 7), so that an index on them grows at one end only.

    Unique, not secret: whoever knows an id can do no more with it than anybody else.
    """

    def __init__(self) -> None:
        self.restart()
        _all_ids.add(self)

    def restart(self) -> None:
        """Draw other random numbers, behind a new lock, than the process we were forked from."""
        self._lock = threading.Lock()
        self._random = random.Random(os.urandom(16))
        self._last = 0
        self._name = self.new()
        self._numbers = itertools.count(1)

    def new(self) -> str:
        """Return an id that sorts behind all that this process made before."""
        with self._lock:
            stamp = max(time.time_ns() // 1_000_000 << 12, self._last + 1)
            self._last = stamp
            return format_id(stamp, self._random.getrandbits(62))

    def name(self) -> str:
        """Return a unique name for something that need not be found in order: quicker to make than an id."""
        return f"{self._name}.{next(self._numbers)}"


_all_ids: weakref.WeakSet[Ids] = weakref.WeakSet()


def _after_fork_in_child() -> None:
    for ids in list(_all_ids):
        ids.restart()


os.register_at_fork(after_in_child=_after_fork_in_child)


def format_id(stamp: int, random_bits: int) -> str:
    """Spell a time stamp (48 bits of milliseconds, 12 of order) and 62 random bits as a UUID of version 7."""
    high, low = stamp >> 28, (stamp >> 12) & 0xFFFF
    variant, node = 0x8000 | random_bits >> 48, random_bits & 0xFFFF_FFFF_FFFF
    return f"{high:08x}-{low:04x}-7{stamp & 0xFFF:03x}-{variant:04x}-{node:012x}"


def is_id(text: str) -> bool:
    """Say whether a text is spelled as `format_id` spells ids."""
    return _ID.fullmatch(text) is not None


_ID = re.compile("[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}")
