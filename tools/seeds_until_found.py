"""Count how many seeds the simulator needs until it notices each mistake that its tests make on purpose.

    python tools/seeds_until_found.py [tests/simulator/test_crowding.py …]

Runs those tests, and prints for each of them the first seed that failed, counted from one; that is what
`docs/track-record.md` tells. Exits with 1 if a mistake was not noticed.
"""

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from simulator import SimulationFailed, simulate

ROOT = Path(__file__).resolve().parents[1]


class Counting:
    """Looks over the shoulder of every test that simulates."""

    def __init__(self) -> None:
        self._failed: list[int] = []

    def _simulate(self, seed: int, **options: object) -> object:
        try:
            return simulate(seed, **options)  # type: ignore[arg-type]
        except SimulationFailed:
            self._failed.append(seed)
            raise

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_call(self, item: pytest.Function) -> Iterator[None]:
        self._failed = []
        with pytest.MonkeyPatch.context() as patched:
            if hasattr(item.module, "simulate"):
                patched.setattr(item.module, "simulate", self._simulate)
            yield
        if self._failed:
            print(f"\n{self._failed[0] + 1:>5}  {item.name}", flush=True)


def main() -> int:
    wanted = sys.argv[1:] or [str(ROOT / "tests" / "simulator")]
    options = ["-q", "-s", "-p", "no:xdist", "-p", "no:cacheprovider", "-k", "not test_simulate"]
    return int(pytest.main([*options, *wanted], plugins=[Counting()]))


if __name__ == "__main__":
    raise SystemExit(main())
