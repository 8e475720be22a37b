"""Whatever time namespace a process is in, or comes into, its ticks are those of the machine."""

import subprocess
import sys
import time
from pathlib import Path

import pytest

import leasehold
from leasehold.engine.clock import SystemClock

pytestmark = pytest.mark.root

SHIFTS = [86_400, -1]
"""In seconds; the second one is as far back as any machine that has just booted can be put."""

_UNSHARE = """
import ctypes, os, subprocess, sys
from leasehold.engine.clock import SystemClock
NEW_TIME = 0x80
libc = ctypes.CDLL(None, use_errno=True)

def unshare(seconds):
    assert libc.unshare(NEW_TIME) == 0, os.strerror(ctypes.get_errno())
    with open("/proc/self/timens_offsets", "w") as offsets:
        offsets.write(f"boottime {seconds} 0")

def enter(process_id):
    descriptor = os.open(f"/proc/{process_id}/ns/time_for_children", os.O_RDONLY)
    assert libc.setns(descriptor, NEW_TIME) == 0, os.strerror(ctypes.get_errno())

shift = int(sys.argv[1])
"""

WAYS = {
    "unshares, and looks": "unshare(shift); print(SystemClock().tick_ns())",
    "has a clock, unshares, and looks": "clock = SystemClock(); unshare(shift); print(clock.tick_ns())",
    "unshares, and its child looks": """
unshare(shift)
if os.fork() == 0:
    print(SystemClock().tick_ns(), flush=True)
    os._exit(0)
os.wait()
""",
    "has a clock, unshares, and its child looks at that": """
clock = SystemClock()
unshare(shift)
if os.fork() == 0:
    print(clock.tick_ns(), flush=True)
    os._exit(0)
os.wait()
""",
    "has a clock, and enters the namespace of another": """
clock = SystemClock()
ready, told = os.pipe()
goes_on, stays = os.pipe()
if (other := os.fork()) == 0:
    os.close(stays)
    unshare(shift)
    os.write(told, b"!")
    os.read(goes_on, 1)
    os._exit(0)
os.read(ready, 1)
enter(other)
print(clock.tick_ns())
""",
    "unshares, its child has a clock, unshares as well, and looks": """
unshare(shift)
if os.fork() == 0:
    clock = SystemClock()
    unshare(3_600)
    print(clock.tick_ns(), flush=True)
    os._exit(0)
os.wait()
""",
}


@pytest.mark.parametrize("shift", SHIFTS)
@pytest.mark.parametrize("way", WAYS)
def test_ticks_are_the_same_in_a_process_that(way: str, shift: int) -> None:
    before = SystemClock().tick_ns()
    told = _run(_UNSHARE + WAYS[way], str(shift))
    after = SystemClock().tick_ns()

    assert before <= int(told) <= after


def test_a_live_lease_is_not_granted_anew_to_who_has_unshared_time(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'leases.db'}"
    up_seconds = time.clock_gettime(time.CLOCK_BOOTTIME)
    take = """
import leasehold
unshare(shift)
with leasehold.connect(sys.argv[2]) as leases:
    try:
        print(leases.acquire("door").token)
    except leasehold.Held:
        print("held")
"""
    with leasehold.connect(url) as leases, leases.acquire("door", ttl=min(up_seconds / 4, 600)) as lease:
        assert _run(_UNSHARE + take, str(-int(up_seconds / 2)), url) == "held"
        lease.ensure()


def test_a_shift_that_cannot_be_known_is_not_guessed() -> None:
    program = """
from leasehold.errors import UnknownTime
unshare(shift)
if os.fork() == 0:
    unshare(3_600)
    try:
        print(SystemClock().tick_ns(), flush=True)
    except UnknownTime as error:
        print(error, flush=True)
    os._exit(0)
os.wait()
"""
    assert "connect in a child process, or before unshare" in _run(_UNSHARE + program, "86400")


def _run(program: str, *arguments: str) -> str:
    finished = subprocess.run(
        [sys.executable, "-c", program, *arguments],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert finished.returncode == 0, finished.stderr
    return finished.stdout.strip()
