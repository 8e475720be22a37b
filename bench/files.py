"""How long does it take to find out who is in the way of a path, or of a pattern?

First with ten thousand leased paths: for a path that is free, for one that is leased, and for one whose
folder is. Then for a pattern with ten thousand leased ones, of which a hundred begin like it and none
overlaps with it, so that every one of them has to be compared; asked, and acquired.
"""

from itertools import count
from pathlib import Path

import leasehold
from bench.filling import claim, fill
from bench.measuring import Report, quickest
from leasehold.files import FileName

MANY, ALIKE = 10_000, 100
_PATH_MILLISECONDS = 1.0
_PATTERN_MILLISECONDS = 20.0


def run(report: Report, folder: Path) -> None:
    """Measure both."""
    _paths(report, folder / "paths.db")
    _patterns(report, folder / "patterns.db")


def _paths(report: Report, store: Path) -> None:
    leased = (f"/@project/src/{number % 100:02}/{number:05}.py" for number in range(MANY - 1))
    fill(store, (claim(path, f"agent-{number}") for number, path in enumerate((*leased, "/@project/docs"))))
    with leasehold.connect(str(store), durability="fast") as leases:
        asked = {
            "that is free": "/@project/src/07/free.py",
            "that is leased": "/@project/src/07/00007.py",
            "whose folder is leased": "/@project/docs/a/b.md",
        }
        found = quickest({what: _Look(leases, path) for what, path in asked.items()}, slices=20, repeats=50)
    for what, seconds in found.items():
        report.ratio(
            f"ms to find who is in the way of a path {what}", seconds * 1e3, at_most=_PATH_MILLISECONDS
        )


def _patterns(report: Report, store: Path) -> None:
    leased = [
        f"/@project/{'same' if number < ALIKE else f'other-{number:05}'}/*_{number:05}.py"
        for number in range(MANY)
    ]
    fill(store, (claim(path, f"agent-{number}") for number, path in enumerate(leased)))
    with leasehold.connect(str(store), durability="fast") as leases:
        pattern = "/@project/same/*_x{}?.{{py,pyi}}"
        found = quickest(
            {"ask": _Look(leases, pattern), "acquire and release": _Pair(leases, pattern)},
            slices=10,
            repeats=5,
        )
    for what, seconds in found.items():
        report.ratio(
            f"ms to {what}: a pattern beside 10,000, 100 of them alike",
            seconds * 1e3,
            at_most=_PATTERN_MILLISECONDS,
        )


class _Look:
    """Ask who is in the way; if the path leaves room for a number, of another one each time."""

    def __init__(self, leases: leasehold.Client, path: str) -> None:
        self._files = leases.files
        self._path = path
        self._numbers = count()

    def __call__(self) -> None:
        path = self._path.format(next(self._numbers))
        self._files.in_the_way(FileName(path, path))


class _Pair:
    """Acquire something that nobody is in the way of, each time something else, and release it."""

    def __init__(self, leases: leasehold.Client, path: str) -> None:
        self._leases = leases
        self._path = path
        self._numbers = count()

    def __call__(self) -> None:
        self._leases.acquire(self._path.format(next(self._numbers))).release()
