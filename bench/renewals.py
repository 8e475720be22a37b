"""Renewing a thousand leases in one call, against one at a time."""

import statistics
import time
from pathlib import Path

import leasehold
from bench.measuring import Report

LEASES = 1_000


def run(report: Report, folder: Path) -> None:
    """Measure renewals per second, one at a time and a thousand in one call, FULL, in turns."""
    with leasehold.connect(str(folder / "renewals"), holder="bench") as leases:
        held = [leases.acquire(f"resource-{number}", ttl=3600).lease_id for number in range(LEASES)]
        single, many = [], []
        for turn in range(9):
            start = time.perf_counter()
            for lease_id in held[turn * 100 : turn * 100 + 100]:
                leases.renew(lease_id)
            single.append((time.perf_counter() - start) / 100)
            start = time.perf_counter()
            leases.renew_many(held)
            many.append((time.perf_counter() - start) / LEASES)
    one, batch = 1 / statistics.median(single), 1 / statistics.median(many)
    report.show(f"renewals, full: one at a time {one:,.0f}/s, {LEASES} per call {batch:,.0f}/s")
    report.ratio(f"renew_many of {LEASES} / one at a time", batch / one, at_least=30)
