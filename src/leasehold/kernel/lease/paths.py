"""Which resources are paths, and how paths relate.

A resource that begins with a slash is a path. A path covers itself and everything below it: `/src` covers
`/src/main.c`, and not `/src2`. A path with special characters is a pattern, and covers what it matches
(`globs`). All other resources are plain names, and cover only themselves.
"""

from collections.abc import Callable, Iterator
from functools import lru_cache
from operator import methodcaller
from typing import NamedTuple

from leasehold.kernel.lease.globs import literal_prefix, overlap, parsed

is_path: Callable[[str], bool] = methodcaller("startswith", "/")
"""Says whether a resource has others above or below it."""

_FIRST_SURROGATE, _LAST_SURROGATE = 0xD800, 0xDFFF


def is_glob(resource: str) -> bool:
    """Say whether a resource is a path that is a pattern."""
    return is_path(resource) and len(literal_prefix(resource)) < len(resource)


def is_canonical(path: str) -> bool:
    """Say whether a path, or the beginning of a pattern, is spelled in the one way that can be compared."""
    if path == "/":
        return True
    unescaped = path[len(literal_prefix(path)) :].startswith("\\")
    return not unescaped and not any(part in ("", ".", "..") for part in path[1:].split("/"))


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
    """Say whether one path is another, or lies above it; of a pattern, whether its text shows that."""
    return path == other or other.startswith(path if path == "/" else f"{path}/")


def contains(path: str, other: str) -> bool:
    """Say whether all that relates to one path relates to another, that is the same or lies above it."""
    return path == other or (covers(path, other) and not parsed(path).is_file)


def includes(held: str, wanted: str) -> bool:
    """Say whether who holds one resource needs none on another, as far as the texts show: all is covered."""
    if held.endswith("/**"):
        return covers(held.removesuffix("/**"), wanted)
    return contains(held, wanted) or (
        is_glob(held) and not is_glob(wanted) and overlap(held, wanted, only=True)
    )


def related(one: str, other: str) -> bool:
    """Say whether claims on two resources can be in each other's way."""
    if one == other:
        return True
    if not is_path(one) or not is_path(other):
        return False
    if covers(one, other) or covers(other, one):
        return True
    return _can_meet(one, other) and overlap(one, other)


def _can_meet(one: str, other: str) -> bool:
    """Say whether one of two paths is a pattern, and what they begin with does not keep them apart."""
    mine, theirs = literal_prefix(one), literal_prefix(other)
    if len(mine) == len(one) and len(theirs) == len(other):
        return False
    return mine.startswith(theirs) or theirs.startswith(mine)


class Reach(NamedTuple):
    """Where everything lies that can be in the way of a path, or it in theirs.

    All of it is here; if a pattern is involved, also what only begins alike: `related` tells.
    """

    names: tuple[str, ...]
    """Single paths: those above it, and a path that is no pattern itself."""
    low: str
    high: str
    """The texts between which, both excluded, the others lie."""
    prefixes: tuple[str, ...]
    """What patterns begin with, up to their first special character, that can match around it from above."""


@lru_cache(maxsize=1_024)
def reach_of(path: str) -> Reach:
    """Return where to look for what relates to a path."""
    prefix = literal_prefix(path)
    if prefix == path:
        names = (*ancestors(path), path)
        beginnings = () if path == "/" else tuple(_beginnings(path))  # Below the root is all there is.
        return Reach(names, *descendant_range(path), beginnings)
    base = prefix.rpartition("/")[0] or "/"
    names = (*ancestors(base), base)
    if not prefix.endswith("/"):
        names = (*names, prefix)
    return Reach(names, prefix, _end_of_prefix(prefix), tuple(_beginnings(prefix))[:-1])


def _beginnings(text: str) -> Iterator[str]:
    return (text[:length] for length in range(1, len(text) + 1))


def _end_of_prefix(prefix: str) -> str:
    """Return the first text behind all that begin with a prefix, as they are sorted by their characters."""
    last = ord(prefix[-1]) + 1
    if last > 0x10FFFF:
        return _end_of_prefix(prefix[:-1])
    return prefix[:-1] + chr(_LAST_SURROGATE + 1 if last == _FIRST_SURROGATE else last)
