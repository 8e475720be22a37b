"""Work: cycles of acquire and succeed in one domain and in many, and what a long backlog costs."""

import threading
import time
from pathlib import Path

import leasehold
from bench.measuring import Report

DOMAINS = 64
SECONDS = 3.0
_FEW, _MANY = 10, 20_000
_CALLS = 100


def run(report: Report, folder: Path) -> None:
    """Measure cycles per second, FULL, a thread for each domain; and queueing behind few and many."""
    with leasehold.connect(str(folder / "work.db")) as leases:
        one, many = _rate(leases, 1), _rate(leases, DOMAINS)
        report.show(f"acquire + succeed, full: one domain {one:,.0f} cycles/s, {DOMAINS} domains {many:,.0f}")
        report.ratio(f"cycles, {DOMAINS} domains / one domain, full", many / one, at_least=4)
    with leasehold.connect(str(folder / "backlog.db"), durability="fast") as leases:
        few, long = _queueing(leases, _FEW), _queueing(leases, _MANY)
        report.ratio(f"queueing behind {_MANY:,} / behind {_FEW}, fast", long / few, at_most=1.5)


def _rate(leases: leasehold.Client, domains: int) -> float:
    """Return how many cycles per second so many domains come to."""
    counts = [0] * domains
    until = time.perf_counter() + SECONDS

    def work(number: int) -> None:
        name, offset = f"{domains}.{number}", 0
        while time.perf_counter() < until:
            token = leases.work.try_acquire(name, offset).token
            assert token is not None
            leases.work.succeed(name, token)
            offset += 1
        counts[number] = offset

    threads = [threading.Thread(target=work, args=(number,)) for number in range(domains)]
    began = time.perf_counter()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return sum(counts) / (time.perf_counter() - began)


def _queueing(leases: leasehold.Client, backlog: int) -> float:
    """Return the quickest of several times that it takes to queue some more."""
    name = f"backlog {backlog}"
    leases.work.try_acquire(name, 0)
    for first in range(1, backlog + 1, 1_000):
        leases.work.enqueue(name, range(first, min(first + 1_000, backlog + 1)))
    slices = []
    for turn in range(5):
        began = time.perf_counter()
        for offset in range(_CALLS):
            leases.work.try_acquire(name, 10**9 + turn * _CALLS + offset)
        slices.append(time.perf_counter() - began)
    return min(slices)
