"""The table in docs/concepts/stores.md: what came of every deed, in every situation."""

from pathlib import Path

from tests.stores.sqlite.matrix.deeds import DEEDS, IMPOSSIBLE, SUBJECTS
from tests.stores.sqlite.matrix.play import SITUATIONS

PAGE = Path(__file__).parents[4] / "docs" / "concepts" / "stores.md"
_HEAD = f"| | | {' | '.join(SITUATIONS)} |"
_RULE = f"|---|---|{'---|' * len(SITUATIONS)}"

Cell = tuple[str, str, str]
"""To what, which deed, in which situation."""

CELLS: list[Cell] = [
    (subject, deed, situation)
    for subject in SUBJECTS
    for deed in DEEDS
    for situation in SITUATIONS
    if (subject, deed) not in IMPOSSIBLE
]


def written() -> dict[Cell, str]:
    """Return what the page says of each cell."""
    lines = iter(PAGE.read_text().splitlines())
    for line in lines:
        if line == _HEAD:
            break
    assert next(lines, None) == _RULE, f"{PAGE} has no table of what is done to files"
    said: dict[Cell, str] = {}
    for line in lines:
        if not line.startswith("|"):
            break
        subject, deed, *words = (cell.strip() for cell in line.strip("|").split("|"))
        for situation, word in zip(SITUATIONS, words, strict=True):
            said[subject, deed, situation] = word
    return said


def write(said: dict[Cell, str]) -> None:
    """Put a table in the place of the one on the page."""
    lines = PAGE.read_text().splitlines()
    start = lines.index(_HEAD)
    after = (number for number in range(start, len(lines)) if not lines[number].startswith("|"))
    end = next(after, len(lines))
    rows = [
        f"| {subject} | {deed} | {' | '.join(said[subject, deed, situation] for situation in SITUATIONS)} |"
        for subject in SUBJECTS
        for deed in DEEDS
    ]
    PAGE.write_text("\n".join([*lines[:start], _HEAD, _RULE, *rows, *lines[end:], ""]))


def impossible() -> dict[Cell, str]:
    """Return what there is to say of cells that nothing can be played in."""
    return {
        (subject, deed, situation): why
        for (subject, deed), why in IMPOSSIBLE.items()
        for situation in SITUATIONS
    }
