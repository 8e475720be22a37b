"""How long it takes to import the package, and to get help."""

import subprocess
import sys
import time
from pathlib import Path

from bench.measuring import Report


def run(report: Report, folder: Path) -> None:
    """Measure the import, less that of an empty program, and the whole of `leasehold --help`."""
    del folder
    python = sys.executable
    empty = _milliseconds([python, "-c", "pass"])
    imported = _milliseconds([python, "-c", "import leasehold; leasehold.connect"]) - empty
    helped = _milliseconds([str(Path(python).with_name("leasehold")), "--help"])
    report.show(f"an empty program takes {empty:.0f} ms")
    report.ratio("leasehold.connect, imported: ms beyond an empty program", imported, at_most=150)
    report.ratio("leasehold --help, ms", helped, at_most=300)


def _milliseconds(command: list[str]) -> float:
    times = []
    for _ in range(15):
        start = time.perf_counter()
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        times.append((time.perf_counter() - start) * 1_000)
    return min(times)
