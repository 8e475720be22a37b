"""What people see: aligned tables, local times, colours where there is a terminal to show them.

Promised: whatever is in names, metadata, file names or a certificate, only printable characters leave for a
terminal, besides colours and line ends of our own. What is not printable is spelled as JSON spells it, such
as \\u001b. A backslash stays as it is: `--json` is there for whoever needs the exact text.
"""

import io
import os
import sys
from argparse import Namespace
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime
from typing import Any, TextIO

from leasehold.kernel.ledger.tick import NANOSECONDS_PER_SECOND

_CODES = {"bold": "1", "dim": "2", "red": "31", "green": "32", "yellow": "33", "cyan": "36"}

Cell = str | tuple[str, str]
"""A text, or a text and its colour."""


def escaped(text: str) -> str:
    """Return a text in which everything that could steer a terminal, or deceive its reader, is spelled out.

    Control characters, and invisible ones such as those that turn the direction of writing. What JSON says
    stays the same by this.
    """
    if text.isprintable():
        return text
    return "".join(one if one.isprintable() else _spelled(one) for one in text)


def _spelled(character: str) -> str:
    units = character.encode("utf-16-be", "surrogatepass").hex()
    return "".join(f"\\u{units[at : at + 4]}" for at in range(0, len(units), 4))


def say_on_stderr(text: str) -> None:
    """Write a line to stderr, at once, whatever the form that answers are written in."""
    print(escaped(text), file=sys.stderr, flush=True)


def agrees(question: str) -> bool:
    """Ask on stderr, and return whether the answer on stdin is yes."""
    print(f"{escaped(question)} [y/N] ", end="", file=sys.stderr, flush=True)
    return sys.stdin.readline().strip().lower() in ("y", "yes")


def json_of(shape: dict[str, Any]) -> str:
    """Return JSON, also of what is not UTF-8, such as the name of a file."""
    import msgspec

    try:
        return msgspec.json.encode(shape).decode()
    except UnicodeEncodeError:
        import json

        return json.dumps(msgspec.to_builtins(shape), ensure_ascii=False, separators=(",", ":"))


class Output:
    """Where a command's answer goes, and in which form."""

    def __init__(self, arguments: Namespace, stream: TextIO | None = None) -> None:
        self.as_json: bool = arguments.json
        self._stream = stream or sys.stdout
        self._coloured = not arguments.no_color and shows_colour(self._stream)

    def line(self, *cells: Cell) -> None:
        """Write a line, at once, of cells one right behind the other."""
        print("".join(map(self.painted, cells)), file=self._stream, flush=True)

    @contextmanager
    def together(self) -> Iterator[None]:
        """Write all that the block says in one piece: a reader that leaves early was sent all of it."""
        stream, self._stream = self._stream, io.StringIO()
        try:
            yield
            stream.write(self._stream.getvalue())
            stream.flush()
        finally:
            self._stream = stream

    def json(self, shape: dict[str, Any]) -> None:
        """Write one JSON object as one line."""
        self.line(json_of(shape))

    def answer(self, shape: dict[str, Any], *cells: Cell) -> None:
        """Write what was asked for: JSON, or a line for people."""
        if self.as_json:
            self.json(shape)
        else:
            self.line(*cells)

    def painted(self, cell: Cell) -> str:
        """Return a cell as it may go to the terminal: escaped, and in its colour if colours are shown."""
        if isinstance(cell, str):
            return escaped(cell)
        text, colour = cell
        return f"\033[{_CODES[colour]}m{escaped(text)}\033[0m" if self._coloured else escaped(text)

    def table(self, headings: Sequence[str], rows: Iterable[Sequence[Cell]]) -> None:
        """Write rows in columns as wide as their widest cell; nothing is ever cut off."""
        lines: list[Sequence[Cell]] = [[(heading, "bold") for heading in headings], *rows]
        self.rows(lines)

    def rows(self, lines: Sequence[Sequence[Cell]]) -> None:
        """Write lines of cells in columns."""
        widths = [max(map(width_of, column)) for column in zip(*lines, strict=True)]
        for line in lines:
            self.row(line, widths)

    def row(self, cells: Sequence[Cell], widths: Sequence[int]) -> None:
        """Write cells padded to widths, or wider if need be, and no spaces at the end of the line."""
        texts = list(cells)
        while texts and not width_of(texts[-1]):
            texts.pop()
        padded: list[Cell] = []
        for column, cell in enumerate(texts):
            space = "" if column == len(texts) - 1 else " " * max(widths[column] - width_of(cell) + 2, 2)
            padded += [cell, space]
        self.line(*padded)

    def facts(self, title: Cell, facts: Iterable[tuple[str, str | None]]) -> None:
        """Write a title and named facts below it; those that are None are left out."""
        known = [(name, text) for name, text in facts if text is not None]
        width = max((len(name) for name, _ in known), default=0)
        self.line((title, "bold") if isinstance(title, str) else title)
        for name, text in known:
            self.line("  ", (name.ljust(width), "dim"), "  ", text)


def counted(number: int, noun: str) -> str:
    """Return `1 lease`, `2 leases`; for a noun whose plural is that simple."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def width_of(cell: Cell) -> int:
    """Return how many columns of a terminal a cell takes up: some characters are two wide, some none."""
    text = escaped(cell if isinstance(cell, str) else cell[0])
    if text.isascii():
        return len(text)
    from unicodedata import combining, east_asian_width

    return sum(0 if combining(one) else 2 if east_asian_width(one) in "FW" else 1 for one in text)


def shows_colour(stream: TextIO) -> bool:
    """Say whether colours make sense on a stream: a terminal whose user has nothing against them."""
    return stream.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def local_time(wall_ns: int) -> str:
    """Spell a wall time for people: where they are, to the second."""
    moment = datetime.fromtimestamp(wall_ns / NANOSECONDS_PER_SECOND).astimezone()
    return moment.strftime("%Y-%m-%d %H:%M:%S")
