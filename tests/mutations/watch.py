"""Watches what a test puts in the place of something else: a patch that nobody uses proves nothing.

A mutation test breaks the code and sees that this is noticed. If what it replaces is not called any more, say
after a refactoring, it may pass for another reason, and nobody would know. So every patch is counted:

- functions, methods and properties when they are called; a generator function too, not when it is iterated;
- other class attributes when they are read;
- numbers of a module when they are compared or calculated with. They are of a subclass of `int`, which cannot
  be encoded: where a number ends up in an event, patch the function that returns it.

Whatever else is patched raises TypeError at once, but for the environment. The context of a watching
`monkeypatch` watches too; `pytest.MonkeyPatch.context()`, called on the class, does not. Nothing but the
count depends on being watched.
"""

import functools
import os
import pkgutil
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from types import MethodType, ModuleType
from typing import Any, TypeVar

import pytest
from msgspec.structs import replace

from leasehold.kernel.ledger.family import Family, Reaction

_NOT_GIVEN: Any = object()
_T = TypeVar("_T")


class Use:
    """What was put in one place, and how often it was used."""

    def __init__(self, target: str, verb: str, origin: object) -> None:
        self.target = target
        self.verb = verb
        self.count = 0
        self._origin = origin  # Keeps it alive, because it is recognised by its id.

    def __str__(self) -> str:
        return f"{self.target} was patched and never {self.verb}"


class Watch:
    """All that one test has put in the place of something else."""

    def __init__(self) -> None:
        self._uses: dict[tuple[str, int], Use] = {}

    def uses(self) -> set[Use]:
        """Return all that is watched."""
        return set(self._uses.values())

    def unused(self) -> list[Use]:
        """Return what was never used."""
        return [use for use in self._uses.values() if not use.count]

    def check(self) -> None:
        """Fail if something was never used."""
        unused = "\n".join(map(str, self.unused()))
        if unused:
            hint = "patch what is called, or run `make pins` if only the pinned seeds do not call it"
            pytest.fail(f"{unused}: {hint}", pytrace=False)

    def watch_patch(self, target: object, name: str, value: object) -> object:
        """Return what to put in the place of an attribute so that its use is counted."""
        path = f"{_path_of(target)}.{name}"
        in_class = isinstance(target, type)
        match value:
            case staticmethod() | classmethod():
                return type(value)(self.watch_call(path, value.__func__))
            case property(fget=getter) if getter is not None:
                return property(self.watch_call(path, getter), value.fset, value.fdel, value.__doc__)
            case _ if callable(value) and not isinstance(value, type):
                counted = self.watch_call(path, value)
                # In a class only what has been bound before remains bound.
                binds = hasattr(value, "__get__") and not isinstance(value, MethodType)
                return counted if binds or not in_class else staticmethod(counted)
            case _ if in_class and value is not None:
                return _CountedAttribute(self._use(path, "read", value), value)
            case int() if isinstance(target, ModuleType) and not isinstance(value, bool):
                return _counted_number(value, self._use(path, "calculated with", value))
            case _:
                raise TypeError(f"{path} cannot be watched as {value!r}: patch what is called instead")

    def watch_call(self, path: str, function: Callable[..., Any]) -> Callable[..., Any]:
        """Return a function that does the same and is counted."""
        use = self._use(path, "called", getattr(function, "__code__", function))

        @functools.wraps(function)
        def counted(*arguments: Any, **named: Any) -> Any:
            use.count += 1
            return function(*arguments, **named)

        return counted

    def change_family(self, family: Family, **others: Any) -> Family:
        """Return a family with something else in its place: what is called and is new to it is counted."""
        return replace(
            family,
            **{
                name: self._watch_part(f"{family.name}.{name}", getattr(family, name), other)
                for name, other in others.items()
            },
        )

    def _watch_part(self, path: str, before: Any, part: Any) -> Any:
        if isinstance(part, Mapping):
            return {
                kind: one
                if before.get(kind) is one
                else self._watch_part(f"{path}[{kind.__name__}]", before.get(kind), one)
                for kind, one in part.items()
            }
        if isinstance(part, Reaction):
            return replace(part, react=self.watch_call(path, part.react))
        if callable(part):
            return self.watch_call(path, part)
        raise TypeError(f"{path} cannot be watched as {part!r}")

    def _use(self, target: str, verb: str, origin: object) -> Use:
        # What is put in one place again and again, by the same line, is one and the same patch.
        return self._uses.setdefault((target, id(origin)), Use(target, verb, origin))


class WatchingMonkeyPatch(pytest.MonkeyPatch):  # type: ignore[misc]  # Final, but annotated everywhere.
    """A `monkeypatch` that watches the attributes that it sets."""

    def __init__(self, watch: Watch | None = None) -> None:
        super().__init__()
        self.watch = watch or Watch()

    def setattr(self, target: Any, name: Any, value: Any = _NOT_GIVEN, raising: bool = True) -> None:
        """Set an attribute, and count how often it is used."""
        if value is _NOT_GIVEN:
            value = name
            path, _, name = target.rpartition(".")
            target = pkgutil.resolve_name(path)
        watched = self.watch.watch_patch(target, name, value)
        counts = {use: use.count for use in self.watch.uses()}
        super().setattr(target, name, watched, raising)
        # It has read what was there before, which may be an attribute that is counted.
        for use, count in counts.items():
            use.count = count

    def setitem(self, dic: Any, name: Any, value: Any) -> None:
        _refuse_unless_environment(dic)
        super().setitem(dic, name, value)

    def delitem(self, dic: Any, name: Any, raising: bool = True) -> None:
        _refuse_unless_environment(dic)
        super().delitem(dic, name, raising)

    def delattr(self, *_: Any, **__: Any) -> None:
        raise TypeError("what is gone cannot be watched: patch what is called with setattr instead")

    @contextmanager
    def context(self) -> Iterator[pytest.MonkeyPatch]:  # type: ignore[override]
        """Return another `monkeypatch`, undone at the end of the block, that counts together with this."""
        inner = WatchingMonkeyPatch(self.watch)
        try:
            yield inner
        finally:
            inner.undo()


def _refuse_unless_environment(dic: object) -> None:
    if dic is not os.environ:
        raise TypeError("an item cannot be watched: patch what is called with setattr instead")


class _CountedAttribute:
    """An attribute of a class that counts how often it is read."""

    def __init__(self, use: Use, value: object) -> None:
        self._use = use
        self._value = value

    def __get__(self, instance: object, owner: type) -> object:
        self._use.count += 1
        return self._value


_OPERATORS = (
    "add", "sub", "mul", "floordiv", "truediv", "mod", "divmod", "pow",
    "lshift", "rshift", "and", "or", "xor",
)  # fmt: skip
_OTHERS = ("lt", "le", "eq", "ne", "ge", "gt", "neg", "abs", "bool", "int", "float", "index")


def _counted_number(value: int, use: Use) -> int:
    """Return a number that counts how often it is calculated with; the results are usual ones."""

    names = [f"__{prefix}{name}__" for name in _OPERATORS for prefix in ("", "r")]
    names += [f"__{name}__" for name in _OTHERS]
    methods = {name: _count_calls(getattr(int, name), use) for name in names}
    number: int = type("CountedNumber", (int,), {**methods, "__hash__": int.__hash__})(value)
    return number


def _count_calls(operation: Callable[..., _T], use: Use) -> Callable[..., _T]:
    def counted(*operands: Any) -> _T:
        use.count += 1
        return operation(*operands)

    return counted


def _path_of(target: object) -> str:
    if isinstance(target, ModuleType):
        return target.__name__
    owner = target if isinstance(target, type) else type(target)
    return f"{owner.__module__}.{owner.__qualname__}"
