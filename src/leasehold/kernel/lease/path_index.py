"""Paths that are found by what they can be in the way of.

Below a directory there may be very many of them, and very many may be patterns. So nothing here is searched
from end to end.
"""

from bisect import bisect_left, bisect_right, insort
from collections.abc import Iterator

from leasehold.kernel.lease.globs import literal_prefix
from leasehold.kernel.lease.paths import is_glob, reach_of, related
from leasehold.kernel.lease.records import ResourceKey


class PathIndex:
    """A set of paths, and of patterns, each of a tenant."""

    def __init__(self) -> None:
        self._sorted: list[ResourceKey] = []
        self._patterns: dict[ResourceKey, dict[str, None]] = {}
        """By what they begin with, up to their first special character."""

    def add(self, key: ResourceKey) -> None:
        """Take in a path, if it is not here."""
        place = bisect_left(self._sorted, key)
        if self._sorted[place : place + 1] == [key]:
            return
        insort(self._sorted, key, lo=place)
        tenant, path = key
        if is_glob(path):
            self._patterns.setdefault((tenant, literal_prefix(path)), {})[path] = None

    def discard(self, key: ResourceKey) -> None:
        """Leave out a path, if it is here."""
        place = bisect_left(self._sorted, key)
        if self._sorted[place : place + 1] != [key]:
            return
        del self._sorted[place]
        tenant, path = key
        if is_glob(path):
            beginning = (tenant, literal_prefix(path))
            del self._patterns[beginning][path]
            if not self._patterns[beginning]:
                del self._patterns[beginning]

    def around(self, key: ResourceKey) -> Iterator[str]:
        """Yield all paths that relate to one, whether that is here or not."""
        tenant, path = key
        reach, kept = reach_of(path), self._sorted
        for name in reach.names:
            place = bisect_left(kept, (tenant, name))
            if kept[place : place + 1] == [(tenant, name)] and related(path, name):
                yield name
        start, end = bisect_right(kept, (tenant, reach.low)), bisect_left(kept, (tenant, reach.high))
        for _, other in kept[start:end]:
            if related(path, other):
                yield other
        if self._patterns:
            for beginning in reach.prefixes:
                for other in self._patterns.get((tenant, beginning), ()):
                    if related(path, other):
                        yield other
