"""Measuring on a machine that others use too.

What is compared is measured in turns, in short slices, so that a busy neighbour slows both sides alike.
Ratios are of the slices' medians. Where a bound is a time, the quickest slice counts: a neighbour only ever
adds to it. Other absolute numbers are shown for orientation only.
"""

import shutil
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

Operation = Callable[[], object]


@contextmanager
def workplace() -> Iterator[Path]:
    """Give a folder on a real disk, and remove it afterwards."""
    folder = Path(tempfile.mkdtemp(prefix="leasehold-bench-", dir=Path.cwd()))
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def rates(operations: dict[str, Operation], *, slices: int, repeats: int) -> dict[str, float]:
    """Return operations per second of each, from slices of `repeats` calls taken in turns."""
    seconds = _measure(operations, slices, repeats)
    return {name: 1 / statistics.median(values) for name, values in seconds.items()}


def quickest(operations: dict[str, Operation], *, slices: int, repeats: int) -> dict[str, float]:
    """Return how many seconds each operation takes where nothing else gets into its way."""
    return {name: min(values) for name, values in _measure(operations, slices, repeats).items()}


def _measure(operations: dict[str, Operation], slices: int, repeats: int) -> dict[str, list[float]]:
    """Return the seconds for one call of each operation, slice by slice."""
    seconds: dict[str, list[float]] = {name: [] for name in operations}
    for operation in operations.values():
        operation()
    for _ in range(slices):
        for name, operation in operations.items():
            start = time.perf_counter()
            for _ in range(repeats):
                operation()
            seconds[name].append((time.perf_counter() - start) / repeats)
    return seconds


class Report:
    """Lines of results, each with the bound it is meant to keep."""

    def __init__(self) -> None:
        self.missed: list[str] = []

    def show(self, text: str) -> None:
        """Print a line."""
        print(text, flush=True)

    def ratio(
        self, what: str, value: float, *, at_least: float | None = None, at_most: float | None = None
    ) -> None:
        """Print a ratio (or a time) beside its bound, and remember whether it was kept."""
        kept = (at_least is None or value >= at_least) and (at_most is None or value <= at_most)
        bound = f"≥ {at_least:g}" if at_least is not None else f"≤ {at_most:g}"
        if not kept:
            self.missed.append(what)
        self.show(f"  {'ok  ' if kept else 'MISS'} {what:<62} {value:10.2f}   {bound}")
