"""Does a grant cost more when many other leases live in the file?"""

import time
from pathlib import Path

import leasehold
from bench.filling import claim, fill
from bench.measuring import Operation, Report, rates

FEW, MANY = 1_000, 1_000_000


def run(report: Report, folder: Path) -> None:
    """Measure acquire and release beside a thousand and beside a million live leases."""
    started = time.perf_counter()
    paths = {count: folder / f"{count}" for count in (FEW, MANY)}
    for count, path in paths.items():
        _fill(path, count)
    report.show(f"filled a store with {MANY:,} live leases in {time.perf_counter() - started:,.0f} s")
    for what, quota in (("pair", None), ("pair under a quota", 2 * MANY)):
        clients = {
            count: leasehold.connect(str(path), leases_per_tenant=quota) for count, path in paths.items()
        }
        pairs: dict[str, Operation] = {str(count): _Pairs(leases) for count, leases in clients.items()}
        few, many = rates(pairs, slices=25, repeats=40).values()
        for leases in clients.values():
            leases.close()
        report.show(f"{what}: {few:,.0f}/s beside {FEW:,} live leases, {many:,.0f}/s beside {MANY:,}")
        report.ratio(f"cost of a {what}, a million live leases / a thousand", few / many, at_most=1.25)


def _fill(path: Path, count: int) -> None:
    fill(
        path,
        (claim(f"resource-{number * 7919 % count}", f"holder-{number % 1000}") for number in range(count)),
    )


class _Pairs:
    """Acquire and release a resource that nobody else wants, each time another one."""

    def __init__(self, leases: leasehold.Client) -> None:
        self._leases = leases
        self._number = 0

    def __call__(self) -> None:
        self._number += 1
        self._leases.acquire(f"free-{self._number * 7919 % 1_000_003}").release()
