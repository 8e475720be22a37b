"""The example runs, and what it says is so."""

import subprocess
import sys
from pathlib import Path

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "work_consumer.py"


def run(store: Path) -> list[str]:
    done = subprocess.run(
        [sys.executable, str(EXAMPLE), str(store)], capture_output=True, text=True, timeout=120, check=True
    )
    return done.stdout.splitlines()


def test_the_consumer_processes_everything_once(tmp_path: Path) -> None:
    first, again = run(tmp_path / "leases"), run(tmp_path / "leases")
    assert first == [
        *(f"{account}: 55, commit up to 10" for account in ("ann", "bob", "cy")),
        "processed 30, retried 3, failed 0",
    ]
    assert again[-1] == "processed 0, retried 0, failed 0"
    assert again[:3] == first[:3], "nothing was booked a second time"
