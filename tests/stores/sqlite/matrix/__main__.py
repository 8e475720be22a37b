"""Play every cell of the matrix, and write down on the page what came of it. Needs root."""

import sys
import tempfile
from pathlib import Path

from tests.stores.sqlite.matrix.judge import complaints
from tests.stores.sqlite.matrix.page import CELLS, Cell, impossible, write
from tests.stores.sqlite.matrix.play import play
from tests.stores.sqlite.matrix.verdict import verdict
from tests.stores.sqlite.theatre.stage import stage_of, theatre


def main() -> int:
    """Return how many cells ended badly."""
    said: dict[Cell, str] = impossible()
    bad = 0
    with tempfile.TemporaryDirectory() as name, theatre(Path(name) / "door") as door:
        for number, (subject, deed, situation) in enumerate(CELLS):
            base = Path(name) / str(number)
            base.mkdir()
            with stage_of(door) as stage:
                testimony = play(stage, base, subject=subject, deed=deed, situation=situation)
            said[subject, deed, situation] = verdict(testimony)
            print(f"{subject} {deed}, {situation}: {said[subject, deed, situation]}")
            for complaint in complaints(testimony):
                bad += 1
                print(f"    {complaint}")
    if not bad:
        write(said)
    return bad


if __name__ == "__main__":
    sys.exit(1 if main() else 0)
