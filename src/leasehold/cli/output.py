"""What people see: aligned tables, local times, colours where there is a terminal to show them."""

import os
import sys
from argparse import Namespace
from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any, TextIO

from leasehold.kernel.ledger.tick import NANOSECONDS_PER_SECOND

_CODES = {"bold": "1", "dim": "2", "red": "31", "green": "32", "yellow": "33", "cyan": "36"}

Cell = str | tuple[str, str]
"""A text, or a text and its colour."""


class Output:
    """Where a command's answer goes, and in which form."""

    def __init__(self, arguments: Namespace, stream: TextIO | None = None) -> None:
        self.as_json: bool = arguments.json
        self._stream = stream or sys.stdout
        self._coloured = not arguments.no_color and shows_colour(self._stream)

    def line(self, text: str = "") -> None:
        """Write a line, at once."""
        print(text, file=self._stream, flush=True)

    def json(self, shape: dict[str, Any]) -> None:
        """Write one JSON object as one line."""
        import msgspec

        self.line(msgspec.json.encode(shape).decode())

    def colour(self, text: str, colour: str) -> str:
        """Return the text in a colour, if colours are shown."""
        return f"\033[{_CODES[colour]}m{text}\033[0m" if self._coloured else text

    def table(self, headings: Sequence[str], rows: Iterable[Sequence[Cell]]) -> None:
        """Write rows in columns as wide as their widest cell; nothing is ever cut off."""
        lines: list[Sequence[Cell]] = [[(heading, "bold") for heading in headings], *rows]
        self.rows(lines)

    def rows(self, lines: Sequence[Sequence[Cell]]) -> None:
        """Write lines of cells in columns."""
        widths = [max(map(width_of, column)) for column in zip(*lines, strict=True)]
        for line in lines:
            self.line(self.row(line, widths))

    def row(self, cells: Sequence[Cell], widths: Sequence[int]) -> str:
        """Return cells padded to widths. The last one is not padded: no line ends in spaces."""
        padded = []
        for column, cell in enumerate(cells):
            space = "" if column == len(cells) - 1 else " " * (widths[column] - width_of(cell))
            padded.append((cell if isinstance(cell, str) else self.colour(*cell)) + space)
        return "  ".join(padded).rstrip()

    def facts(self, title: str, facts: Iterable[tuple[str, str | None]]) -> None:
        """Write a title and named facts below it; those that are None are left out."""
        known = [(name, text) for name, text in facts if text is not None]
        width = max((len(name) for name, _ in known), default=0)
        self.line(self.colour(title, "bold"))
        for name, text in known:
            self.line(f"  {self.colour(name.ljust(width), 'dim')}  {text}")


def counted(number: int, noun: str) -> str:
    """Return `1 lease`, `2 leases`; for a noun whose plural is that simple."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def width_of(cell: Cell) -> int:
    """Return how many columns of a terminal a cell takes up: some characters are two wide, some none."""
    text = cell if isinstance(cell, str) else cell[0]
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
