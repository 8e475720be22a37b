"""Check that the tests of the kernel, and of the laws of the faces, reach every branch of those.

Leaves out the tests marked slow: they try many sequences, and measuring makes them slower still. What the
laws promise must be shown without them. Exits with 1 if a test fails or a branch was not taken.
"""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

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
"""Tests, and what they have to reach. A face adds its own line."""


def main() -> int:
    with tempfile.TemporaryDirectory() as folder:
        environment = os.environ | {"COVERAGE_FILE": str(Path(folder) / "coverage")}

        def coverage(*arguments: str) -> int:
            command = [sys.executable, "-m", "coverage", *arguments]
            return subprocess.run(command, cwd=ROOT, env=environment, check=False).returncode

        failed = coverage("run", "-m", "pytest", *LAWS, "-q", "-m", "not slow", "-p", "no:xdist")
        missed = coverage("report", f"--include={','.join(LAWS.values())}", "--fail-under=100")
    return 1 if failed or missed else 0


if __name__ == "__main__":
    raise SystemExit(main())
