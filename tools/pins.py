"""Pin the seeds with which the simulator notices each mistake that its tests make on purpose.

`make test` runs only the pinned seeds, which are in `tests/simulator/pins.json`. This runs the same tests at
full length: where a pin is missing or no longer shows the mistake, the test searches, and what it finds is
written to the table. Entries of tests that are gone are removed. Exits with 1 if a mistake was not noticed,
or if something that a test patches is never used; the entry of that test stays as it was.
"""

import argparse
import os
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from tests.mutations import pins
from tests.mutations.plugin import FOUND
from tests.mutations.search import SEARCH_ANEW

ROOT = Path(__file__).resolve().parents[1]
PROCESSES = 2
LONGEST_SEARCH_S = 1_800


class Collecting:
    """Takes what each test has found from its report."""

    def __init__(self) -> None:
        self.found: dict[str, pins.Pins] = {}
        self.ran: set[str] = set()

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        test = report.nodeid.removeprefix(pins.PREFIX)
        self.ran.add(test)
        if report.when == "call" and report.passed:
            for name, seeds in report.user_properties:
                if name == FOUND:
                    assert isinstance(seeds, list)
                    self.found[test] = seeds


def run(*, anew: bool, processes: int, tests: list[str]) -> tuple[int, Collecting]:
    """Run tests that search, and return pytest's exit code and what they have found."""
    # The environment reaches the processes that share out the tests.
    os.environ[SEARCH_ANEW] = "1" if anew else "0"
    collecting = Collecting()
    options = ["-q", "--lane", "all", "--show-capture=no", "--timeout", str(LONGEST_SEARCH_S)]
    options += ["--rootdir", str(ROOT), "-p", "no:cacheprovider", "-n", str(processes)]
    nodes = [str(pins.FOLDER / test) for test in tests]
    return int(pytest.main([*options, *nodes], plugins=[collecting])), collecting


def main() -> int:
    parser = argparse.ArgumentParser(prog="tools/pins.py", description=__doc__)
    parser.add_argument("--all", action="store_true", help="search again for every test, whatever is pinned")
    options = parser.parse_args()
    code, collecting = run(anew=options.all, processes=PROCESSES, tests=list(pins.mutation_tests()))
    if code not in (pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED):
        return code
    before = pins.read_table()
    after = {test: seeds for test, seeds in before.items() if test in collecting.ran} | collecting.found
    pins.write_table(after)
    for test in sorted(before.keys() | after.keys()):
        if before.get(test) != after.get(test):
            print(f"{test}: {before.get(test, 'none')} -> {after.get(test, 'removed')}")
    changed = sum(before.get(test) != after.get(test) for test in before.keys() | after.keys())
    print(f"{len(after)} tests in {pins.TABLE.relative_to(ROOT)}, {changed} changed")
    return code


if __name__ == "__main__":
    raise SystemExit(main())
