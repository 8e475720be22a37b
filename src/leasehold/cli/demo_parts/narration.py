"""What is said during the demo, and the claims that have to hold."""

from typing import NamedTuple

from leasehold.cli.output import Cell, Output


class Claim(NamedTuple):
    """Something that was said to be true, and whether it was."""

    claim: str
    held: bool


class Story:
    """Tells what happens, and remembers what was claimed."""

    def __init__(self, out: Output) -> None:
        self._out = out
        self.claims: list[Claim] = []

    def heading(self, text: str) -> None:
        """Begin a chapter."""
        if not self._out.as_json:
            self._out.line()
            self._out.line((text, "bold"))

    def say(self, *text: Cell) -> None:
        """Tell what happens."""
        if not self._out.as_json:
            self._out.line("  ", *text)

    def claim(self, text: str, held: bool) -> None:
        """Claim something, which holds or does not."""
        self.claims.append(Claim(text, held))
        self.say(("✔", "green") if held else ("✘", "red"), f" {text}")

    @property
    def holds(self) -> bool:
        """Whether everything that was claimed is true."""
        return all(claim.held for claim in self.claims)
