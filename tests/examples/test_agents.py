"""The example of two agents runs, and each sees what the how-to says."""

import subprocess
import sys
from pathlib import Path

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "agents" / "two_agents.py"


def test_the_second_agent_is_refused_until_the_first_is_done(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, str(EXAMPLE), str(tmp_path / "shop")],
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )
    lines = done.stdout.splitlines()
    held = "refused: leasehold: ./shop.py is held by ada (edited in Claude Code) since "
    assert lines[0] == "ada edits: allowed"
    assert lines[1].startswith(f"ben edits: {held}")
    assert lines[2].startswith(f"ben commits: {held}")
    assert lines[3:] == ["ada commits: allowed", "ada is done", "ben edits: allowed"]
