"""What /proc says about a process, for people who have to decide what to do with it."""

import os
from pathlib import Path
from typing import NamedTuple

from leasehold.cli.output import local_time
from leasehold.kernel.ledger.tick import NANOSECONDS_PER_SECOND


class ProcessFacts(NamedTuple):
    """A process that is in the way."""

    process_id: int
    command: str
    state: str
    """As /proc spells it, such as `T (stopped)`; empty if the process has ended."""
    started_at_ns: int

    def __str__(self) -> str:
        if not self.state:
            return f"process {self.process_id}, which has ended"
        return (
            f"process {self.process_id} ({self.command}), {self.state}, "
            f"running since {local_time(self.started_at_ns)}"
        )

    @property
    def advice(self) -> str:
        """What to do about it."""
        if not self.state:
            return "try again"
        if self.state.startswith(("T", "t")):
            return f"let it go on: kill -CONT {self.process_id}; or end it: kill -KILL {self.process_id}"
        return f"wait for it, or end it: kill {self.process_id}"


def describe_process(process_id: int) -> ProcessFacts:
    """Return what is known about a process."""
    folder = Path("/proc", str(process_id))
    try:
        words = (folder / "cmdline").read_bytes().decode(errors="replace").split("\0")
        status = dict(line.split(":\t", 1) for line in (folder / "status").read_text().splitlines())
        started_ticks = int((folder / "stat").read_text().rpartition(")")[2].split()[19])
    except (FileNotFoundError, ProcessLookupError):
        return ProcessFacts(process_id, "", "", 0)
    command = " ".join(word for word in words if word) or status["Name"]
    return ProcessFacts(process_id, command, status["State"], _wall_ns(started_ticks))


def holder_of_byte(path: Path, position: int) -> int | None:
    """Return the process that has a byte of a file locked for writing, as far as the kernel tells."""
    status = path.stat()
    file = f"{os.major(status.st_dev):02x}:{os.minor(status.st_dev):02x}:{status.st_ino}"
    for line in Path("/proc/locks").read_text().splitlines():
        _, kind, _, access, process_id, locked, first, last = line.replace("-> ", "").split()
        covers = int(first) <= position and (last == "EOF" or position <= int(last))
        if covers and (kind, access, locked) == ("POSIX", "WRITE", file):
            return int(process_id)
    return None


def processes_with(path: Path) -> list[ProcessFacts]:
    """Return the processes, other than this one, that have a file open, as far as this user may see."""
    found = []
    for folder in Path("/proc").iterdir():
        if folder.name.isdecimal() and int(folder.name) != os.getpid() and _has_open(folder, path):
            found.append(describe_process(int(folder.name)))
    return found


def _has_open(process: Path, path: Path) -> bool:
    try:
        return any(os.readlink(descriptor) == str(path) for descriptor in (process / "fd").iterdir())
    except OSError:  # it has ended, or is another user's
        return False


def _wall_ns(ticks_since_boot: int) -> int:
    """Return the wall time of a moment that /proc counts in clock ticks since boot."""
    for line in Path("/proc/stat").read_text().splitlines():
        name, _, value = line.partition(" ")
        if name == "btime":
            seconds = int(value) + ticks_since_boot / os.sysconf("SC_CLK_TCK")
            return round(seconds * NANOSECONDS_PER_SECOND)
    return 0
