"""Does a grant cost more when many other leases live in the file?"""

import time
from pathlib import Path

import leasehold
from bench.filling import claim, fill
from bench.measuring import Report, rates

FEW, MANY = 1_000, 1_000_000


def run(report: Report, folder: Path) -> None:
    """Measure acquire and release beside a thousand and beside a million live leases."""
    started = time.perf_counter()
    few = _filled(folder / "few.db", FEW)
    many = _filled(folder / "many.db", MANY)
    report.show(f"filled a store with {MANY:,} live leases in {time.perf_counter() - started:,.0f} s")
    found = rates({"few": _Pairs(few), "many": _Pairs(many)}, slices=25, repeats=40)
    for leases in (few, many):
        leases.close()
    report.show(
        f"pairs/s beside {FEW:,} live leases {found['few']:,.0f}, beside {MANY:,} {found['many']:,.0f}"
    )
    report.ratio(
        "cost of a pair, a million live leases / a thousand", found["few"] / found["many"], at_most=1.25
    )


def _filled(path: Path, count: int) -> leasehold.Client:
    fill(
        path,
        (claim(f"resource-{number * 7919 % count}", f"holder-{number % 1000}") for number in range(count)),
    )
    return leasehold.connect(str(path))


class _Pairs:
    """Acquire and release a resource that nobody else wants, each time another one."""

    def __init__(self, leases: leasehold.Client) -> None:
        self._leases = leases
        self._number = 0

    def __call__(self) -> None:
        self._number += 1
        self._leases.acquire(f"free-{self._number * 7919 % 1_000_003}").release()
