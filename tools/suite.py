"""Run the tests of a lane, stage by stage, and say at the end what was left out and how to run it.

    python tools/suite.py test [--workers 3]
    python tools/suite.py proof [--workers 3]
    python tools/suite.py coverage [--workers 3]

`test` is the first answer, in minutes: every test function in at least one world. `proof` is everything
else. tests/lanes.py decides which test belongs to which. `coverage` is the part of `proof` that sees whether
the tests of the laws reach every branch of them. A stage that fails does not keep the next ones from running.

Exit code 0 if everything passed, 1 if something failed, 2 for wrong arguments, 130 if interrupted,
143 if told to end.
"""

import argparse
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from types import FrameType
from typing import NamedTuple

import msgspec

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from tests.lanes import REPORT, Report

ROOT = Path(__file__).resolve().parents[1]

LAWS = {
    "tests/kernel": "src/leasehold/kernel/*",
    "tests/work/law": "src/leasehold/work/law/*",
    "tests/workflows/law": "src/leasehold/workflows/law/*",
    "tests/settings/test_law.py": "src/leasehold/settings/law.py",
    "tests/access/test_attacks.py": "src/leasehold/access/law/*",
    "tests/access/test_authentication.py": "src/leasehold/access/law/*",
    "tests/access/test_face.py": "src/leasehold/access/law/*",
    "tests/access/test_law.py": "src/leasehold/access/law/*",
    "tests/access/test_upkeep.py": "src/leasehold/access/law/*",
    "tests/guards/test_law.py": "src/leasehold/guards/law.py",
    "tests/settings/test_catalog.py": "src/leasehold/settings/catalog.py",
}
"""Tests, and the laws of which they have to reach every branch. A face adds its own line."""

COMMANDS = ("test", "proof", "coverage")


class Stage(NamedTuple):
    """One run of pytest."""

    name: str
    arguments: tuple[str, ...]
    is_measured: bool = False
    """Must it reach every branch of the laws?"""


def stages_of(lane: str, workers: int) -> list[Stage]:
    """Return what a lane runs. Chaos comes last and alone: it measures time, and neighbours disturb it."""
    beside_others = ("-n", str(workers), "-m", "not chaos", "--lane")
    tests = Stage("tests", (*beside_others, lane))
    coverage = Stage("branches of the laws", (*beside_others, "test", *LAWS), is_measured=True)
    chaos = Stage("chaos", ("-m", "chaos", "--lane", lane, *chaos_files()))
    return {"test": [tests, chaos], "coverage": [coverage], "proof": [tests, coverage, chaos]}[lane]


def chaos_files() -> list[str]:
    """Return the files that have chaos tests. To collect all others too takes longer than some of them."""
    files = sorted((ROOT / "tests").rglob("test_*.py"))
    return [str(file.relative_to(ROOT)) for file in files if "pytest.mark.chaos" in file.read_text("utf-8")]


def main(arguments: Sequence[str] | None = None) -> int:
    options = _parse(arguments)
    signal.signal(signal.SIGTERM, _end)
    try:
        return _run(options.command, options.workers)
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        return 130


class _Ended(SystemExit):
    """We were told to end, and nobody has told what we have started."""


def _end(number: int, frame: FrameType | None) -> None:
    print("told to end", file=sys.stderr)
    raise _Ended(128 + number)


def _parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python tools/suite.py", description="Run the tests of a lane, and say what was left out."
    )
    parser.add_argument("command", choices=COMMANDS, help="which tests to run")
    # One more than there are cores, because tests often wait for something; not many more, because each
    # of them reads all tests and starts services of its own.
    workers = min(len(os.sched_getaffinity(0)), 7) + 1
    parser.add_argument(
        "--workers",
        type=_count,
        metavar="N",
        default=workers,
        help=f"how many processes run tests ({workers})",
    )
    return parser.parse_args(arguments)


def _count(text: str) -> int:
    number = int(text) if text.isdecimal() else 0
    if number < 1:
        raise argparse.ArgumentTypeError(f"expected a whole number from 1 on, not {text!r}")
    return number


def _run(command: str, workers: int) -> int:
    began = time.monotonic()
    told, reports, problems = [], [], []
    with tempfile.TemporaryDirectory() as folder:
        for stage in stages_of(command, workers):
            print(f"\n{command}: {stage.name}", flush=True)
            since = time.monotonic()
            path = Path(folder) / stage.name
            has_passed = _run_stage(stage, path, Path(folder) / "coverage")
            report = msgspec.json.decode(path.read_bytes(), type=Report) if path.exists() else None
            wrong = problems_of(
                stage.name, report, has_passed=has_passed, in_ci=os.environ.get("CI") == "true"
            )
            problems += wrong
            told.append(f"{stage.name} {clock(time.monotonic() - since)}{' FAILED' if wrong else ''}")
            if report is not None and not stage.is_measured:
                reports.append(report)
    verdict = "FAILED" if problems else "passed"
    print(f"\nmake {command}: {verdict} in {clock(time.monotonic() - began)} ({', '.join(told)})")
    print("\n".join([*problems, *not_run_here(reports), *(left_out(reports) if command == "test" else [])]))
    return 1 if problems else 0


def problems_of(stage: str, report: Report | None, *, has_passed: bool, in_ci: bool) -> list[str]:
    """Say what is wrong with a stage; pytest may end well before all tests have run."""
    problems = [] if has_passed else [f"{stage}: something failed: see above"]
    if report is None:
        problems.append(f"{stage}: pytest ended before it had chosen any test")
    elif report.ran != report.tests:
        problems.append(f"{stage}: only {report.ran:,} of {report.tests:,} tests came to an end")
    elif in_ci and report.skipped:
        problems.append(f"{stage}: in CI every test has to run")
    return problems


def _run_stage(stage: Stage, report: Path, data: Path) -> bool:
    environment = _environment() | {REPORT: str(report), "COVERAGE_FILE": str(data)}
    pytest = ["-m", "pytest", *stage.arguments]
    if not stage.is_measured:
        return _run_python(pytest, environment)
    passed = _run_python(["-m", "coverage", "run", *pytest, "-q"], environment)
    # Each process that runs tests has written what it reached to a file of its own.
    _run_python(["-m", "coverage", "combine", "--quiet"], environment)
    include = f"--include={','.join(dict.fromkeys(LAWS.values()))}"
    return _run_python(["-m", "coverage", "report", include, "--fail-under=100"], environment) and passed


def _environment() -> dict[str, str]:
    """Return our environment without what would choose other tests, or steer what they test."""
    # Without bytecode, each of hundreds of processes would compile everything anew.
    steering = ("PYTEST_ADDOPTS", "PYTHONDONTWRITEBYTECODE")
    return {
        name: value
        for name, value in os.environ.items()
        if name not in steering and (not name.startswith("LEASEHOLD_") or name.startswith("LEASEHOLD_TEST_"))
    }


def _run_python(arguments: Sequence[str], environment: dict[str, str]) -> bool:
    with subprocess.Popen([sys.executable, *arguments], cwd=ROOT, env=environment) as process:
        try:
            return process.wait() == 0
        except _Ended:
            process.send_signal(signal.SIGINT)
            process.wait()
            raise
        except KeyboardInterrupt:
            # Ctrl-C reached it as well: let it say where it was, and clean up.
            process.wait()
            raise


def not_run_here(reports: Sequence[Report]) -> list[str]:
    """Say what could not be run on this machine."""
    lines = _listed([report.skipped for report in reports])
    return ["Not run, because this machine lacks something:", *lines] if lines else []


def left_out(reports: Sequence[Report]) -> list[str]:
    """Say what `make test` has not run."""
    worlds = sum(report.worlds for report in reports)
    shorter = sum(len(report.shorter) for report in reports)
    return [
        "Left out; `make proof` runs all of it, and `.venv/bin/pytest FILE` one file of it:",
        f"  other stores and clients for functions that ran here: {worlds:,} tests",
        f"  more seeds, examples, steps and cases for functions that were cut short here: {shorter:,}",
        *_listed([report.reasons for report in reports]),
    ]


def _listed(reasons: Sequence[dict[str, list[str]]]) -> list[str]:
    return [
        line
        for by_reason in reasons
        for reason, names in by_reason.items()
        for line in (f"  {reason}:", *(f"    {name}" for name in names))
    ]


def clock(seconds: float) -> str:
    return f"{int(seconds) // 60}:{int(seconds) % 60:02} min"


if __name__ == "__main__":
    sys.exit(main())
