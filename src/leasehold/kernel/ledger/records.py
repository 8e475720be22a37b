"""Names of records, and the records found for them: what passes between a decision and a store.

Each family has questions of its own kind (`Wanted`) and answers to them (`Found`). All can be asked for
records by key, and to scan and count them in named orders. A family that keeps its records on a shelf of its
own can be asked for more.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import msgspec
from msgspec.structs import astuple

from leasehold.kernel.ledger.authority import Era
from leasehold.kernel.ledger.events import Event

BY_KEY = "key"
"""The order that every shelf has: of the keys as they are spelled."""

EVERYTHING = 1 << 31
"""More than there can be of anything."""


class Scan(NamedTuple):
    """The first records of a range in a named order, up to a limit; in `reverse`, the last ones."""

    low: str
    high: str
    """Not among them any more."""
    limit: int = EVERYTHING
    order: str = BY_KEY
    reverse: bool = False


class Count(NamedTuple):
    """How many records there are in a range of a named order."""

    low: str
    high: str
    order: str = BY_KEY


class Wanted(msgspec.Struct, kw_only=True, gc=False):
    """What is asked of one family."""

    keys: set[str] = msgspec.field(default_factory=set)
    scans: set[Scan] = msgspec.field(default_factory=set)
    counts: set[Count] = msgspec.field(default_factory=set)

    def add(self, more: "Wanted") -> None:
        """Ask for what `more` asks for, too."""
        for name in self.__struct_fields__:
            mine: set[object] = getattr(self, name)
            mine |= getattr(more, name)

    def __bool__(self) -> bool:
        return any(astuple(self))


class Found(msgspec.Struct, kw_only=True, gc=False):
    """What a store found of one family. A key that was asked for and is not here has no record."""

    records: dict[str, Any] = msgspec.field(default_factory=dict)
    """Every record asked for by key, and those that the scans have found."""
    scans: dict[Scan, list[str]] = msgspec.field(default_factory=dict)
    """The keys that each scan has found, in order; fewer than its limit: there are no more."""
    counts: dict[Count, int] = msgspec.field(default_factory=dict)

    def __bool__(self) -> bool:
        return any(astuple(self))


class Keys(msgspec.Struct, kw_only=True, gc=False):
    """What to read before deciding."""

    requests: set[str] = msgspec.field(default_factory=set)
    """Keys of requests, to learn what each of them has caused."""
    eras: set[int] = msgspec.field(default_factory=set)
    families: dict[str, Any] = msgspec.field(default_factory=dict)
    """What is wanted of each family, by its name."""

    def add(self, more: "Keys") -> None:
        """Ask for what `more` asks for, too."""
        self.requests |= more.requests
        self.eras |= more.eras
        for name, wanted in more.families.items():
            mine = self.families.get(name)
            if mine is None:
                self.families[name] = mine = type(wanted)()
            mine.add(wanted)

    def __bool__(self) -> bool:
        return bool(self.requests or self.eras or any(self.families.values()))


class Records(msgspec.Struct, kw_only=True, gc=False):
    """What a store found for `Keys`. A name that was asked for and is not here has no record.

    Of every family that was asked about there is an answer, and in it one for each scan and count.
    """

    requests: dict[str, Event] = msgspec.field(default_factory=dict)
    eras: dict[int, Era] = msgspec.field(default_factory=dict)
    families: dict[str, Any] = msgspec.field(default_factory=dict)


class Missing(LookupError):
    """A decision needs records that are not in the view."""

    def __init__(self, keys: Keys) -> None:
        super().__init__(keys)
        self.keys = keys


class Gathering:
    """Steps of which each may lack records, so that what all of them lack is read at once.

    What is decided on the way counts only if nothing was lacking.
    """

    def __init__(self) -> None:
        self._keys = Keys()

    @contextmanager
    def step(self) -> Iterator[None]:
        """Go on with the next step if this one lacks something."""
        try:
            yield
        except Missing as missing:
            self._keys.add(missing.keys)

    def end(self) -> None:
        """Say what was lacking, if anything was."""
        if self._keys:
            raise Missing(self._keys)
