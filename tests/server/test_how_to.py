"""The page about HTTP says what works: its commands are run against a real server, in order."""

import subprocess

from tests.docs.pages import ROOT, blocks_of
from tests.server.running import PATIENCE_SECONDS, RunningServer


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
