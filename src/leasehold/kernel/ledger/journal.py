"""What a batch changes, and how what a command has changed is undone."""

from collections.abc import Callable, MutableMapping
from typing import Any

import msgspec


class Change(msgspec.Struct, frozen=True, gc=False):
    """A record before and after a batch; None: there is none."""

    family: str
    key: str
    before: Any
    after: Any


ABSENT: Any = object()
"""What stands in a journal for a name that had no value."""


class Journal:
    """How to undo, in reverse, what was done to a view since a command was begun."""

    def __init__(self) -> None:
        self.steps: list[tuple[Callable[..., object], tuple[Any, ...]]] = []

    def put(self, values: MutableMapping[Any, Any], name: Any, value: Any) -> None:
        """Give a name a value."""
        self.steps.append((_put_back, (values, name, values.get(name, ABSENT))))
        values[name] = value

    def add(self, values: set[Any], value: Any) -> None:
        """Put something into a set."""
        if value not in values:
            values.add(value)
            self.steps.append((values.discard, (value,)))

    def note(self, undo: Callable[..., object], *arguments: Any) -> None:
        """Have something called to undo what is being done."""
        self.steps.append((undo, arguments))

    def undo(self, to: int = 0) -> None:
        """Undo everything since the steps were cleared, or were so many."""
        while len(self.steps) > to:
            step, arguments = self.steps.pop()
            step(*arguments)


def _put_back(values: MutableMapping[Any, Any], name: Any, value: Any) -> None:
    if value is ABSENT:
        values.pop(name, None)
    else:
        values[name] = value
