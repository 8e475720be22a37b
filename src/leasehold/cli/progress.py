"""How far a long command has got, for people who watch."""

import sys

from leasehold.cli.output import Output


class Progress:
    """Shows a percentage on stderr if that is a terminal; a script's log is spared."""

    def __init__(self, doing: str, out: Output) -> None:
        self._doing = doing
        self._shown = sys.stderr.isatty() and not out.as_json

    def __call__(self, done: int, total: int) -> None:
        if self._shown and total > 0:
            self._write(f"{self._doing}: {100 * done // total} %")

    def clear(self) -> None:
        """Leave the line empty for what comes next."""
        if self._shown:
            self._write("")

    def _write(self, text: str) -> None:
        print(f"\r\033[K{text}", end="", file=sys.stderr, flush=True)
