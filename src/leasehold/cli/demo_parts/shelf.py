"""A resource that checks tokens: the least that a resource has to do to be safe from stale writers.

It keeps a text and the highest token it has seen, and refuses a write under a lower one. That is all a
fencing token asks for; a database does the same with one more condition in an UPDATE.
"""

import fcntl
import json
from pathlib import Path


class StaleToken(Exception):
    """Somebody with a higher token has written since."""

    def __init__(self, token: int, highest: int) -> None:
        super().__init__(f"token {token} is stale; {highest} has written already")
        self.highest = highest


class Shelf:
    """A file with one text in it."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def put(self, text: str, *, token: int) -> None:
        """Replace the text; raise StaleToken if somebody with a higher token has been here."""
        with self._path.open("a+") as file:
            fcntl.flock(file, fcntl.LOCK_EX)  # to compare and to write are one step
            file.seek(0)
            highest, _ = _parse(file.read())
            if token < highest:
                raise StaleToken(token, highest)
            file.truncate(0)
            file.write(json.dumps([token, text]))

    def look(self) -> str:
        """Return the text."""
        return _parse(self._path.read_text())[1]


def _parse(content: str) -> tuple[int, str]:
    token, text = json.loads(content) if content else (0, "")
    return token, text
