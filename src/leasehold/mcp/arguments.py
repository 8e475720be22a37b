"""What each tool is asked for. A tool is named as its type is.

The schemas that clients see are made of these types, and calls are checked against them: an argument that a
tool does not have, or one of another type, is refused by its name.
"""

from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from typing import Annotated, Any, TypeVar

import msgspec
from msgspec import UNSET, Meta, UnsetType

from leasehold.errors import InvalidInput
from leasehold.kernel.ledger.limits import RESOURCES_PER_CLAIM

WAIT_SECONDS = 50
"""How long one call may wait: clients give up on a call after a minute."""
LIST_MAXIMUM = 100
HISTORY_MAXIMUM = 100
REASON_CHARACTERS = 200

_Name = Annotated[str, Meta(min_length=1)]
_Seconds = Annotated[float, Meta(ge=0.001)]
_Paths = Annotated[list[str], Meta(min_length=1, max_length=RESOURCES_PER_CLAIM)]


class Arguments(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """What all arguments are a kind of."""


class _OfAgent(Arguments, frozen=True, kw_only=True):
    agent: Annotated[_Name, Meta(description="default: this server's")] | UnsetType = UNSET


class Claim(_OfAgent, frozen=True, kw_only=True):
    """Files to own, on which terms."""

    paths: Annotated[_Paths, Meta(description="files, folders or globs")]
    reason: (
        Annotated[str, Meta(max_length=REASON_CHARACTERS, description="what for; others see it")] | UnsetType
    ) = UNSET
    shared: bool = False
    ttl_seconds: _Seconds | UnsetType = UNSET


class Wait(Claim, frozen=True, kw_only=True):
    """Files to wait for, and for how long."""

    seconds: Annotated[float, Meta(gt=0, le=WAIT_SECONDS)] = WAIT_SECONDS


class Renew(_OfAgent, frozen=True, kw_only=True):
    """What to have for longer."""

    paths: Annotated[_Paths, Meta(description="default: all you hold")] | UnsetType = UNSET
    ttl_seconds: _Seconds | UnsetType = UNSET


class Release(_OfAgent, frozen=True, kw_only=True):
    """What to give back."""

    paths: _Paths | UnsetType = UNSET
    all: bool = False


class Check(_OfAgent, frozen=True, kw_only=True):
    """What to look at before changing it."""

    paths: _Paths


class List(Arguments, frozen=True, kw_only=True):
    """Which leases to list."""

    agent: Annotated[_Name, Meta(description="only this agent's")] | UnsetType = UNSET
    path: Annotated[str, Meta(description="only around this path")] | UnsetType = UNSET


class History(Arguments, frozen=True, kw_only=True):
    """Of what to tell the history, and how much of it."""

    path: str
    limit: Annotated[int, Meta(ge=1, le=HISTORY_MAXIMUM)] = 20


class Transfer(_OfAgent, frozen=True, kw_only=True):
    """What to hand to whom."""

    path: str
    to: Annotated[_Name, Meta(description="the other agent's id")]
    ttl_seconds: _Seconds | UnsetType = UNSET


Acting = Claim | Renew | Release | Check | Transfer
"""What somebody is named in who acts."""

_WORDS = {"`float`": "number", "`int`": "integer", "`str`": "string", "`bool`": "boolean"}
"""What the schemas call types."""

_NAMES = {"holder": "agent", "ttl": "ttl_seconds"}
"""What the registrar calls otherwise."""

_Kind = TypeVar("_Kind", bound=Arguments)
_Value = TypeVar("_Value")


def checked(kind: type[_Kind], given: Mapping[str, Any]) -> _Kind:
    """Return arguments as their type; raise InvalidInput, which names the one that is wrong."""
    known = kind.__struct_fields__
    for name in given:
        if name not in known:
            near = _near(name, known)
            step = f"did you mean {near[0]!r}?" if near else f"there are {', '.join(known)}"
            raise InvalidInput(f"there is no argument {name!r:.80}; {step}", field=name[:80])
    try:
        return msgspec.convert(given, kind)
    except msgspec.ValidationError as error:
        raise InvalidInput(_in_words(str(error))) from None


def _near(name: str, known: Sequence[str]) -> Sequence[str]:
    """Return the argument that was meant, at the front, if one is likely: `seconds` for `wait_seconds`."""
    parts = [one for one in known if one in name or name in one]
    return parts or get_close_matches(name, known, n=1, cutoff=0.8)


def _in_words(problem: str) -> str:
    """Say what is wrong with an argument, beginning with its name."""
    for ours, theirs in _WORDS.items():
        problem = problem.replace(ours, theirs)
    what, _, where = problem.partition(" - at `$.")
    if where:
        return f"{where.rstrip('`')}: {what[0].lower()}{what[1:]}"
    return what.replace("Object missing required field", "missing argument")


def with_our_names(problem: str) -> str:
    """Return what a registrar says about a value, beginning with the name of the argument that it came in."""
    field, space, rest = problem.partition(" ")
    return f"{_NAMES.get(field, field)}{space}{rest}"


def given(value: _Value | UnsetType) -> _Value | None:
    """Return an argument, or None where there is none."""
    return None if isinstance(value, UnsetType) else value
