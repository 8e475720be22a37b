"""A file system that is really full, not one that says so."""

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]


def test_a_full_file_system_costs_no_lease_and_no_commit(tmp_path: Path) -> None:
    # In a mount namespace of its own, which takes its mounts along when it ends, however that comes. Who is
    # not root here is root in a user namespace.
    namespace = ["unshare", "--mount"] if os.geteuid() == 0 else ["unshare", "--mount", "--map-root-user"]
    run = subprocess.run(
        [*namespace, sys.executable, "-m", "tests.stores.sqlite.full_disk", str(tmp_path)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert run.returncode == 0, run.stderr
    assert run.stdout.splitlines() == [
        "a_full_disk_refuses_and_loses_nothing: held",
        "a_store_cannot_be_made_on_a_full_disk: held",
        "a_checkpoint_without_space_fails_no_commit: held",
    ]
