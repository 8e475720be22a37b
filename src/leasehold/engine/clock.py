"""The clocks and ids of the machine we run on.

`CLOCK_BOOTTIME` counts while the machine sleeps, which `time.monotonic()` does not: a holder that was
suspended must not believe that its lease waited for it. All processes of one boot read the same clock; a
time namespace shifts what its processes see, and the shift is taken out again.
"""

import os
import secrets
import threading
import time
from functools import cache
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

    def boot_id(self) -> str:
        """Return what tells this boot of this machine from every other."""
        ...


class SystemClock:
    """The clock of this machine."""

    def __init__(self) -> None:
        self._offset_ns = _namespace_offset_ns()

    def tick_ns(self) -> int:
        """Return nanoseconds since this boot, sleep included."""
        return time.clock_gettime_ns(time.CLOCK_BOOTTIME) - self._offset_ns

    def wall_ns(self) -> int:
        """Return nanoseconds since 1970."""
        return time.time_ns()

    def boot_id(self) -> str:
        """Return the kernel's id of this boot."""
        return _boot_id()


@cache
def _boot_id() -> str:
    return _BOOT_ID.read_text().strip()


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
    """Time-ordered unique ids (UUID version 7), so that an index on them grows at one end only."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._last = 0
        os.register_at_fork(after_in_child=self._renew_lock)

    def _renew_lock(self) -> None:
        """Another thread may have held the lock when this process was forked."""
        self._lock = threading.Lock()

    def new(self) -> str:
        """Return an id that sorts behind all that this process made before."""
        with self._lock:
            stamp = max((time.time_ns() // 1_000_000 << 12) | secrets.randbits(12), self._last + 1)
            self._last = stamp
        return format_id(stamp, secrets.randbits(62))


def format_id(stamp: int, random_bits: int) -> str:
    """Spell a 60-bit time stamp and 62 random bits as a UUID of version 7."""
    number = (stamp >> 12) << 80 | 0x7 << 76 | (stamp & 0xFFF) << 64 | 0b10 << 62 | random_bits
    text = f"{number:032x}"
    return f"{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:]}"
