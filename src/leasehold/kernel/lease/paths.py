"""Which resources are paths, and how paths relate.

A resource that begins with a slash is a path. A path covers itself and everything below it: `/src` covers
`/src/main.c`, and not `/src2`. All other resources are plain names, and cover only themselves.
"""

from collections.abc import Callable
from operator import methodcaller

is_path: Callable[[str], bool] = methodcaller("startswith", "/")
"""Says whether a resource has others above or below it."""


def is_canonical(path: str) -> bool:
    """Say whether a path is spelled in the one way in which it can be compared."""
    return path == "/" or not any(part in ("", ".", "..") for part in path[1:].split("/"))


def ancestors(path: str) -> list[str]:
    """Return the paths that cover a path, from the root down, without itself."""
    if path == "/":
        return []
    parts = path[1:].split("/")
    return ["/", *("/" + "/".join(parts[:length]) for length in range(1, len(parts)))]


def descendant_range(path: str) -> tuple[str, str]:
    """Return the texts between which, the second excluded, all paths below a path lie."""
    below = path if path == "/" else f"{path}/"
    return below, f"{below[:-1]}0"  # The character that follows the slash.


def covers(path: str, other: str) -> bool:
    """Say whether one path is another, or lies above it."""
    return path == other or other.startswith(path if path == "/" else f"{path}/")


def related(one: str, other: str) -> bool:
    """Say whether claims on two resources can be in each other's way."""
    if one == other:
        return True
    return is_path(one) and is_path(other) and (covers(one, other) or covers(other, one))
