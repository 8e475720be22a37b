"""Write the reference pages from the source, so that they cannot say anything else than the code.

tools/generate_reference.py           write the pages
tools/generate_reference.py --check   only say whether they are up to date
"""

import sys
from collections.abc import Callable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from tools.reference.api import api_page
from tools.reference.cli import cli_page
from tools.reference.errors import errors_page
from tools.reference.events import events_page
from tools.reference.faces import work_page
from tools.reference.http import http_page
from tools.reference.mcp import mcp_page
from tools.reference.storage import limits_page, schema_page
from tools.reference.workflows import workflows_page

ROOT = Path(__file__).resolve().parents[1]
FOLDER = ROOT / "docs" / "reference"
PAGES: dict[str, Callable[[], str]] = {
    "api.md": api_page,
    "cli.md": cli_page,
    "errors.md": errors_page,
    "events.md": events_page,
    "http.md": http_page,
    "limits.md": limits_page,
    "mcp.md": mcp_page,
    "schema.md": schema_page,
    "work.md": work_page,
    "workflows.md": workflows_page,
}


def stale_pages() -> dict[Path, str]:
    """Return the pages that are not what the source says, with what they should be."""
    wanted = {FOLDER / file: write() for file, write in PAGES.items()}
    return {path: text for path, text in wanted.items() if not path.exists() or path.read_text() != text}


def main() -> int:
    """Write or check every page; return an exit code."""
    stale = stale_pages()
    if "--check" in sys.argv[1:]:
        if stale:
            names = ", ".join(path.relative_to(ROOT).as_posix() for path in stale)
            sys.stderr.write(f"out of date: {names}; run `make docs`\n")
        return 1 if stale else 0
    for path, text in stale.items():
        path.write_text(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
