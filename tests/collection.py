"""Asks pytest which tests it would run, in a process of its own."""

import os
import subprocess
import sys
from pathlib import Path

from tests.lanes import REPORT

ROOT = Path(__file__).resolve().parents[1]


def collect(*arguments: str, report: Path | None = None) -> set[str]:
    """Return the ids of the tests that pytest would run, whatever was asked for in this run.

    `report`: where to write what the lane leaves out, as a `tests.lanes.Report`.
    """
    # Neither options nor the report of this run are meant for that one.
    environment = {
        name: value for name, value in os.environ.items() if not name.startswith("PYTEST_") and name != REPORT
    }
    environment |= {REPORT: str(report)} if report else {}
    quiet = ["--collect-only", "-q", "-p", "no:cacheprovider"]
    addopts = ["-o", "addopts=--import-mode=importlib -p no:schemathesis"]
    found = subprocess.run(
        [sys.executable, "-m", "pytest", *arguments, *quiet, *addopts],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert found.returncode == 0, found.stdout + found.stderr
    return {line for line in found.stdout.splitlines() if "::" in line}
