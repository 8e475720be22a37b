"""The clocks and ids of the machine we run on.

`CLOCK_BOOTTIME` counts while the machine sleeps, which `time.monotonic()` does not: a holder that was
suspended must not believe that its lease waited for it. All processes of one boot read the same clock; a
time namespace shifts what its processes see, and the shift is taken out again, also where a process changes
its namespace while it runs: by setns(2), or because it is the forked child of one that called unshare(2).

Not noticed: a change of namespace that shifts the clock by less than a millisecond. A process that has called
unshare(2) without forking, in a namespace other than the machine's own, cannot know its own shift any more
unless it has read its clock before; it gets UnknownTime rather than a guess.
"""

import itertools
import os
import re
import threading
import time
import weakref
from pathlib import Path
from typing import Protocol

from leasehold.errors import UnknownTime
from leasehold.kernel.ledger.tick import NANOSECONDS_PER_SECOND

_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")
_NAMESPACE = Path("/proc/self/ns/time")
_CHILDRENS_NAMESPACE = Path("/proc/self/ns/time_for_children")
_CHILDRENS_OFFSETS = Path("/proc/self/timens_offsets")
"""Of the namespace that children of this process will be in, not of its own; they differ after unshare(2)."""
_MACHINES_OWN = 0xEFFFFFFA
"""The inode number of the time namespace that a machine boots with. It is part of the kernel's interface."""
_NOTICED_NS = 1_000_000


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
        self._namespace: int | None = None
        self._offset_ns = 0
        self._wall_ahead_ns = 0
        self._look_at_namespace()
        self.boot_id = _BOOT_ID.read_text().strip()
        """The kernel's id of this boot."""

    def tick_ns(self) -> int:
        """Return nanoseconds since this boot, sleep included."""
        boot_ns = time.clock_gettime_ns(time.CLOCK_BOOTTIME)
        # Another namespace shifts this clock, and not the wall clock: comparing them costs a fraction of what
        # asking the kernel does. A wall clock that was set looks the same, and does no harm.
        if not -_NOTICED_NS < time.time_ns() - boot_ns - self._wall_ahead_ns < _NOTICED_NS:
            self._look_at_namespace()
            boot_ns = time.clock_gettime_ns(time.CLOCK_BOOTTIME)
        return boot_ns - self._offset_ns

    wall_ns = staticmethod(time.time_ns)
    """Returns nanoseconds since 1970."""

    def _look_at_namespace(self) -> None:
        namespace = _inode(_NAMESPACE)
        if namespace != self._namespace or namespace is None:
            self._offset_ns = _offset_ns(namespace)
            self._namespace = namespace
        self._wall_ahead_ns = time.time_ns() - time.clock_gettime_ns(time.CLOCK_BOOTTIME)


def _offset_ns(namespace: int | None) -> int:
    """Return how far the time namespace that this process is in is ahead of the machine's boot clock."""
    if namespace in (None, _MACHINES_OWN):  # None: a kernel without time namespaces
        return 0
    if _inode(_CHILDRENS_NAMESPACE) != namespace:
        raise UnknownTime(
            "this process has called unshare(CLONE_NEWTIME) and not forked since, so its clock cannot be "
            "compared with that of others; connect in a child process, or before unshare"
        )
    for line in _CHILDRENS_OFFSETS.read_text().splitlines():
        name, seconds, nanoseconds = line.split()
        if name in ("boottime", "7"):
            return int(seconds) * NANOSECONDS_PER_SECOND + int(nanoseconds)
    return 0


def _inode(path: Path) -> int | None:
    try:
        return path.stat().st_ino
    except FileNotFoundError:
        return None


class Ids:
    """Time-ordered unique ids (UUID version 7), so that an index on them grows at one end only.

    Unique, not secret: whoever knows an id can do no more with it than anybody else.
    """

    def __init__(self) -> None:
        self.restart()
        _all_ids.add(self)

    def restart(self) -> None:
        """Draw other random numbers, behind a new lock, than the process we were forked from."""
        from random import Random  # Only here: who only looks makes no ids.

        self._lock = threading.Lock()
        self._random = Random(os.urandom(16))
        self._last = 0
        self._name = self.new()
        self._numbers = itertools.count(1)

    def new(self) -> str:
        """Return an id that sorts after all that this process made before."""
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
