"""Which resources touch each other, told a second time.

Nothing is worked out from the texts of patterns: a small world of paths is listed, and for two patterns every
one of them is tried. What a pattern matches is asked of Python's `fnmatch`, name by name.
"""

from fnmatch import fnmatchcase
from functools import lru_cache
from itertools import product

_NAMES = ("d", "x", "y", "1", "x1", "d1", "xy", "f.c")
"""What files and folders are called in this world; patterns that overlap must both stand for one of these."""
_DEPTH = 4
_WORLD = tuple(names for depth in range(_DEPTH + 1) for names in product(_NAMES, repeat=depth))
_SPECIAL = frozenset("*?[{")


@lru_cache(maxsize=10_000)
def touching(one: str, other: str) -> bool:
    """Say whether two resources are the same, or paths or patterns that both cover some path."""
    if one == other or not one.startswith("/") or not other.startswith("/"):
        return one == other
    if lies_in(one, other) or lies_in(other, one):
        return True
    return not _SPECIAL.isdisjoint(one + other) and not covered_by(one).isdisjoint(covered_by(other))


def lies_in(one: str, other: str) -> bool:
    """Say whether a path lies in another, as it is spelled."""
    return one.startswith(f"{other.rstrip('/')}/")


@lru_cache(maxsize=256)
def covered_by(pattern: str) -> frozenset[tuple[str, ...]]:
    """Return the paths of this world that a path or pattern covers."""
    names = tuple(name for name in pattern.split("/") if name)
    return frozenset(path for path in _WORLD if covers(names, path))


def covers(pattern: tuple[str, ...], path: tuple[str, ...]) -> bool:
    """Say whether a pattern matches a path or a folder above it; a name with an extension is no folder."""
    is_file = pattern[-1:] != () and "." in pattern[-1][1:]
    return any(matches(pattern, path[:end]) for end in ([len(path)] if is_file else range(len(path) + 1)))


def matches(pattern: tuple[str, ...], path: tuple[str, ...]) -> bool:
    """Say whether a pattern matches a path, all of it."""
    if not pattern:
        return not path
    first, rest = pattern[0], pattern[1:]
    if first == "**":
        return any(matches(rest, path[taken:]) for taken in range(len(path) + 1))
    return bool(path) and is_one_of(path[0], first) and matches(rest, path[1:])


def is_one_of(name: str, pattern: str) -> bool:
    """Say whether a pattern matches a name; it has one pair of braces at most."""
    before, opened, rest = pattern.partition("{")
    options, _, after = rest.partition("}")
    texts = [before + option + after for option in options.split(",")] if opened else [pattern]
    return any(fnmatchcase(name, text) for text in texts)
