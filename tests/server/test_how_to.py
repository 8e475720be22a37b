"""The page about HTTP says what works: its commands are run against a real server, in order."""

import shutil
import subprocess

import pytest

from tests.docs.pages import ROOT, blocks_of
from tests.server.running import PATIENCE_SECONDS, RunningServer


@pytest.fixture(scope="module", autouse=True)
def curl() -> None:
    """A small Debian has none; what cannot be installed fails the test."""
    if shutil.which("curl") is None:
        for command in (["update"], ["install", "--yes", "--no-install-recommends", "curl"]):
            subprocess.run(["apt-get", "--quiet", "--quiet", *command], check=True)


def test_the_commands_of_the_page_about_http_run(server: RunningServer) -> None:
    page = ROOT / "docs" / "how-to" / "use-http.md"
    script = "".join(block.text for block in blocks_of(page) if block.language == "sh")
    assert script.count("ask $URL") > 10

    done = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", script],
        env={"PATH": "/usr/bin:/bin", "URL": server.url, "KEY": server.key},
        capture_output=True,
        text=True,
        timeout=PATIENCE_SECONDS,
        check=False,
    )

    assert done.returncode == 0, done.stdout + done.stderr
    for shown in (
        '"path":"src/app.py"',
        '"released":2',
        '"next_offset":42',
        '"state":"completed"',
        '"value":600',
    ):
        assert shown in done.stdout
