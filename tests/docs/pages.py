"""The documentation as the tests see it: pages, the fenced blocks in them, and what is said about a block.

What can be said is an HTML comment on the line before the fence:

    <!-- file: worker.py -->   the block is a file, which the commands below it use
    <!-- prints -->            the block is what the Python block before it prints
    <!-- not run: why -->      the block is shown, and not run
"""

import re
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[2]
RUN = {"python", "console", "sh"}
"""The languages whose blocks are run."""

_FENCE = re.compile(r"^```(\w*)\s*$")
_REMARK = re.compile(r"^<!-- (file|prints|not run)(?:: (.+))? -->$")


class Block(NamedTuple):
    """A fenced block."""

    page: Path
    line: int
    """The number of its first line of content."""
    language: str
    text: str
    remark: str
    """`file`, `prints`, `not run`, or nothing."""
    argument: str

    @property
    def place(self) -> str:
        """Where to look when it fails."""
        return f"{self.page.relative_to(ROOT)}:{self.line}"


def all_pages() -> list[Path]:
    """Return every page that a user is meant to read."""
    return [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]


def page_name(page: Path) -> str:
    return page.relative_to(ROOT).as_posix()


def blocks_of(page: Path) -> list[Block]:
    """Return the fenced blocks of a page, in order."""
    found: list[Block] = []
    lines = page.read_text().splitlines()
    language: str | None = None
    start, remark, argument = 0, "", ""
    for number, line in enumerate(lines, start=1):
        fence = _FENCE.match(line)
        if language is not None:
            if line == "```":
                text = "\n".join(lines[start : number - 1]) + "\n"
                found.append(Block(page, start + 1, language, text, remark, argument))
                language = None
        elif fence is not None:
            language, start = fence[1], number
            said = _REMARK.match(lines[number - 2]) if number > 1 else None
            remark, argument = (said[1], said[2] or "") if said else ("", "")
    if language is not None:
        raise ValueError(f"{page}: the block at line {start} has no end")
    return found


def prose_of(page: Path) -> str:
    """Return a page without its blocks."""
    return re.sub(r"^```.*?^```$", "", page.read_text(), flags=re.MULTILINE | re.DOTALL)
