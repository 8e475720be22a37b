"""Does a claim on a path cost more when many other paths are leased?

Every claim on a path has to look above and below it. The claims that are measured are on a file and on a
directory of which nothing else is leased, in the midst of a tree of which everything else is.
"""

from pathlib import Path

import leasehold
from bench.filling import claim, fill
from bench.measuring import Report, rates

FEW, MANY = 1_000, 100_000
_FILES = 10
"""Leased files in each directory."""


def run(report: Report, folder: Path) -> None:
    """Measure acquire and release of paths beside a thousand and beside a hundred thousand leased ones."""
    few = _filled(folder / "few.db", FEW)
    many = _filled(folder / "many.db", MANY)
    for what, name in (("file", "/srv/tree/{0}/{1}/free-{2}"), ("directory", "/srv/tree/{0}/free-{2}")):
        found = rates({"few": _Pairs(few, name), "many": _Pairs(many, name)}, slices=25, repeats=40)
        report.show(
            f"pairs/s on a {what} beside {FEW:,} leased paths {found['few']:,.0f}, "
            f"beside {MANY:,} {found['many']:,.0f}"
        )
        report.ratio(
            f"cost of a pair on a {what}, 100,000 leased paths / 1,000",
            found["few"] / found["many"],
            at_most=1.25,
        )
    for leases in (few, many):
        leases.close()


def _filled(path: Path, count: int) -> leasehold.Client:
    fill(path, (claim(_file(number * 7919 % count), f"holder-{number % 1000}") for number in range(count)))
    return leasehold.connect(str(path), durability="fast")


def _file(number: int) -> str:
    directory = number // _FILES
    return f"/srv/tree/{directory % 10}/{directory // 10}/file-{number % _FILES}"


class _Pairs:
    """Acquire and release a path that nobody else wants, each time another one."""

    def __init__(self, leases: leasehold.Client, name: str) -> None:
        self._leases = leases
        self._name = name
        self._number = 0

    def __call__(self) -> None:
        self._number += 1
        directory = self._number * 7919 % (FEW // _FILES)
        self._leases.acquire(self._name.format(directory % 10, directory // 10, self._number)).release()
