"""Count how many seeds the simulator needs until it notices each mistake that its tests make on purpose.

    python tools/seeds_until_found.py [test_crowding.py …]

Runs those tests without their pins, and prints for each mistake the first seed that failed, counted from one:
that is what `docs/track-record.md` tells. Exits with 1 if a mistake was not noticed.
"""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from tests.mutations import pins
from tools.pins import PROCESSES, run


def main() -> int:
    files = {Path(path).name for path in sys.argv[1:]}
    tests = [test for test in pins.mutation_tests() if not files or test.partition("::")[0] in files]
    if not tests:
        print(f"no test of {', '.join(sorted(files))} searches", file=sys.stderr)
        return 2
    code, collecting = run(anew=True, processes=PROCESSES, tests=tests)
    for test, found in sorted(collecting.found.items()):
        for first, *_ in found:
            print(f"{first + 1:>5}  {test.partition('::')[2]}")
    return code


if __name__ == "__main__":
    raise SystemExit(main())
