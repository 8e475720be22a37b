"""How a reference page is spelled in Markdown."""

from collections.abc import Iterable, Sequence

from tools.reference.source import Field
from tools.reference.words import meaning_of

NOTE = "<!-- Written by tools/generate_reference.py. Change the source it reads, then run `make docs`. -->"


def page(title: str, *parts: str) -> str:
    """Return a page: a title, a note for whoever wants to edit it, and parts with a line between them."""
    return "\n\n".join([f"# {title}", NOTE, *(part.strip("\n") for part in parts if part)]) + "\n"


def table(headings: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table; line breaks and bars in cells would break it."""
    lines = [f"| {' | '.join(headings)} |", f"|{'---|' * len(headings)}"]
    for row in rows:
        lines.append(f"| {' | '.join(_cell(cell) for cell in row)} |")
    return "\n".join(lines)


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")


def code(text: str, language: str = "text") -> str:
    """Return a fenced block; `text` and `sql` are read, not run."""
    return f"```{language}\n{text.strip()}\n```"


def name(text: str) -> str:
    """Return a name of code; nothing where there is none."""
    return f"`{text}`" if text else ""


def field_table(fields: Iterable[Field]) -> str:
    """Return the fields of a value type as a table."""
    rows = [
        (name(one.name), name(one.annotation), name(one.default or ""), meaning_of(one)) for one in fields
    ]
    return table(["field", "type", "default", "meaning"], rows)
