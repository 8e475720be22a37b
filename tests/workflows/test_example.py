"""The example does what it says."""

import subprocess
import sys
from pathlib import Path

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "workflow.py"


def test_the_example_runs_and_tells_the_whole_story() -> None:
    finished = subprocess.run(
        [sys.executable, str(EXAMPLE)], capture_output=True, text=True, timeout=60, check=True
    )

    assert finished.stdout.splitlines() == [
        "primary leads order-7 from epoch 0",
        "  warehouse: pack tea (epoch 0)",
        "  state: step_completed at epoch 2",
        "standby leads from epoch 3",
        "  warehouse: send tea (epoch 3)",
        "the registrar refused primary: LEASE_VIOLATION",
        "the guard refused primary: LEASE_VIOLATION",
        "order-7 is completed at epoch 5",
    ]
