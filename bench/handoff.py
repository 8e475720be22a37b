"""How long it takes from one process's release to the next one's acquire, with 16 processes in line.

Every process acquires, holds for a moment and releases, again and again. What is measured is the time from
the call of `release` to the return of the next `acquire`, on the clock that all processes share. The floor is
`bare`: SQLite, a datagram, and nothing of ours.
"""

import fcntl
import itertools
import math
import multiprocessing
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from bench.bare_handoff import BareLock
from bench.measuring import Report

WAITERS = 16
ROUNDS = 12
_HOLD_SECONDS = 0.003
_REST_SECONDS = 0.006
"""How long a process stays away before it queues again, lest that be measured as well."""
_TARGETS_MS = {"fast": (0.5, 5.0), "full": (1.0, 5.0)}


def run(report: Report, folder: Path) -> None:
    """Measure hand-offs by flock, by filelock, and by leasehold beside its floor."""
    context = multiprocessing.get_context("spawn")
    for kind in ("flock", "filelock", "bare fast", "fast", "bare full", "full"):
        gate = context.Barrier(WAITERS)
        results = context.Queue()
        workers = [
            context.Process(target=_work, args=(kind, str(folder / f"{kind}"), gate, results))
            for _ in range(WAITERS)
        ]
        for worker in workers:
            worker.start()
        moments = [moment for _ in workers for moment in results.get(timeout=300)]
        for worker in workers:
            worker.join()
        _tell(report, kind, _handoffs_ms(moments))


def _tell(report: Report, kind: str, handoffs_ms: list[float]) -> None:
    half, last = handoffs_ms[len(handoffs_ms) // 2], handoffs_ms[math.ceil(len(handoffs_ms) * 0.99) - 1]
    name = f"hand-off, {WAITERS} processes, {kind}"
    report.show(f"{name:42} p50 {half:8.3f} ms   p99 {last:8.3f} ms   ({len(handoffs_ms)} hand-offs)")
    if kind in _TARGETS_MS:
        most_half, most_last = _TARGETS_MS[kind]
        report.ratio(f"{name}, p50 ms", half, at_most=most_half)
        report.ratio(f"{name}, p99 ms", last, at_most=most_last)


def _handoffs_ms(moments: list[tuple[int, int]]) -> list[float]:
    """Return the times between a release and the acquire that followed it, sorted."""
    pairs = itertools.pairwise(sorted(moments))
    return sorted((following[0] - before[1]) / 1e6 for before, following in pairs)


def _work(kind: str, path: str, gate: Any, results: Any) -> None:
    """Acquire, hold, release; report when each lease was had, and when its release was called."""
    acquire, release = _MAKERS[kind](path)
    release(acquire())
    gate.wait()
    moments = []
    for _ in range(ROUNDS):
        held = acquire()
        had_ns = time.monotonic_ns()
        time.sleep(_HOLD_SECONDS)
        released_ns = time.monotonic_ns()
        release(held)
        moments.append((had_ns, released_ns))
        time.sleep(_REST_SECONDS)
    results.put(moments)


Pair = tuple[Callable[[], Any], Callable[[Any], Any]]


def _flock(path: str) -> Pair:
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT)
    return (
        lambda: fcntl.flock(descriptor, fcntl.LOCK_EX),
        lambda held: fcntl.flock(descriptor, fcntl.LOCK_UN),
    )


def _filelock(path: str) -> Pair:
    import filelock

    lock = filelock.FileLock(path)
    return lock.acquire, lambda held: lock.release()


def _bare(synchronous: str) -> Callable[[str], Pair]:
    def make(path: str) -> Pair:
        lock = BareLock(path, synchronous)
        return lock.acquire, lambda held: lock.release()

    return make


def _leasehold(durability: str) -> Callable[[str], Pair]:
    def make(path: str) -> Pair:
        import leasehold

        leases = leasehold.connect(path, durability=durability)
        return lambda: leases.acquire("door", wait=True), lambda held: held.release()

    return make


_MAKERS: dict[str, Callable[[str], Pair]] = {
    "flock": _flock,
    "filelock": _filelock,
    "bare fast": _bare("NORMAL"),
    "bare full": _bare("FULL"),
    "fast": _leasehold("fast"),
    "full": _leasehold("full"),
}
