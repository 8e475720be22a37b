"""A real process that is stopped while it writes, for longer than its lease lasts, overwrites nothing."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

import leasehold

pytestmark = pytest.mark.chaos


def test_a_holder_that_was_stopped_past_its_ttl_overwrites_nothing(repository: Path, tmp_path: Path) -> None:
    store = f"sqlite:///{tmp_path}/store/.leasehold/leases.db"
    path = repository / "src" / "app.py"
    with leasehold.connect(store) as leases:
        writer = subprocess.Popen(
            [sys.executable, "-m", "tests.files.stopped_writer", store, str(path)],
            cwd=Path(__file__).parents[2],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        try:
            assert writer.stdout is not None
            assert writer.stdout.readline() == "written\n"
            writer.send_signal(signal.SIGSTOP)
            with leases.files.lease(path, agent="other", wait=60) as lease, lease.open(path, "w") as out:
                out.write("theirs")
            writer.send_signal(signal.SIGCONT)
            said, _ = writer.communicate("\n", timeout=60)
        finally:
            writer.kill()
            writer.wait()
    assert said.startswith("lost ")
    assert path.read_text() == "theirs"
    assert os.listdir(path.parent) == ["app.py"]
