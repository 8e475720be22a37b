"""A tiny family of documents, for what all families have in common: numbers under names.

A number can be set, for good or until a tick at which it ends, and it can be taken away. What a command does,
every test says for itself.
"""

from collections.abc import Callable
from typing import Any

import msgspec
from msgspec.structs import replace

from leasehold.kernel.ledger.commands import Command
from leasehold.kernel.ledger.draft import Draft
from leasehold.kernel.ledger.events import Event, Filing
from leasehold.kernel.ledger.family import Families, Family, Reaction, Rule, Stage
from leasehold.kernel.ledger.records import EVERYTHING, Keys, Missing, Scan, Wanted
from leasehold.kernel.ledger.refusals import Refusal
from leasehold.kernel.ledger.state import State
from leasehold.kernel.ledger.tick import Tick
from leasehold.kernel.ledger.view import View
from tests.kernel.records import an_authority, at
from tests.kernel.shelf import found

COUNTER = "counter"
FIRST, LAST = "", "\U0010ffff"
"""Between these are all names."""
_ALL = Wanted(scans={Scan(FIRST, LAST)})


class Counter(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A number under a name."""

    name: str
    number: int
    until: Tick | None = None


class _CounterEvent(Event, frozen=True, kw_only=True, omit_defaults=True):
    name: str

    @property
    def keys(self) -> tuple[str, ...]:
        return (self.name,)

    @property
    def filing(self) -> Filing:
        return (None, None, self.name, None, None)


class CounterSet(_CounterEvent, frozen=True, kw_only=True, omit_defaults=True, tag="counter.set"):
    """A number was set."""

    is_remembered = True

    value: int
    until: Tick | None = None


class CounterDrawn(_CounterEvent, frozen=True, kw_only=True, omit_defaults=True, tag="counter.drawn"):
    """A number was set to the next one from the store's counter."""

    draws = True

    value: int

    @property
    def number(self) -> int:
        return self.value


class CounterGone(_CounterEvent, frozen=True, kw_only=True, omit_defaults=True, tag="counter.gone"):
    """A number was taken away."""


class Do(Command, frozen=True, kw_only=True, omit_defaults=True, tag="do"):
    """Do what the test says."""

    what: str = ""


def evolve(counter: Counter | None, event: Event, key: str) -> Counter | None:
    """What an event does to a number."""
    del counter
    match event:
        case CounterSet():
            return Counter(name=key, number=event.value, until=event.until)
        case CounterDrawn():
            return Counter(name=key, number=event.value)
        case _:
            return None


def put(draft: Draft, name: str, number: int, until: int | None = None, **fields: Any) -> None:
    """Append that a number was set, up to a tick of the present era."""
    tick = None if until is None else Tick(value=until, era=draft.now.tick.era)
    draft.append(CounterSet(**happening(draft), name=name, value=number, until=tick, **fields))


def drop(draft: Draft, name: str) -> None:
    """Append that a number was taken away."""
    draft.append(CounterGone(**happening(draft), name=name))


def happening(draft: Draft) -> dict[str, Any]:
    """What every event says that happens now."""
    return {"tick": draft.now.tick, "at_ns": draft.now.wall_ns, "actor": "ann"}


def nothing(command: Do, draft: Draft) -> Refusal | Callable[[], Any]:
    """Do nothing, and say so."""
    del command, draft
    return lambda: "done"


def end(name: str, counter: Counter, draft: Draft) -> None:
    """What time does to a number: it ends, unless that was in an era before."""
    assert counter.until is not None
    if counter.until.era == draft.now.tick.era:
        drop(draft, name)


COUNTERS = Family(
    name=COUNTER,
    record=Counter,
    events=(CounterSet, CounterDrawn, CounterGone),
    rules={Do: nothing},
    evolve=evolve,
    due=lambda counter: counter.until,
    age=end,
)


def bystander(name: str, **changes: Any) -> Family:
    """A family that has no events of its own."""
    return Family(name=name, record=Counter, events=(), evolve=evolve, **changes)


def after_gone(stage: Stage, react: Callable[[CounterGone, Draft], None]) -> dict[type[Event], Reaction]:
    """What follows, at a stage, from a number that was taken away."""
    return {CounterGone: Reaction(stage, react)}


def families(rule: Rule = nothing, *more: Family, **changes: Any) -> Families:
    """A ledger with numbers, and a rule for what is to be done."""
    return Families((replace(COUNTERS, rules={Do: rule}, **changes), *more))


def due(name: str, number: int, tick: int, era: int = 1) -> Counter:
    """A number that ends at a tick."""
    return Counter(name=name, number=number, until=Tick(value=tick, era=era))


def draft_of(known: Families, tick: int = 60, era: int = 1, **counters: Counter | int) -> Draft:
    """A draft on which everything is known: there are these numbers, and no others."""
    state = state_of(**counters)
    view = View(known, an_authority(era=era))
    for family in known:
        if family.part is None:
            everything = Keys(families={family.name: _ALL})
            view.load(everything, found(state if family.name == COUNTER else State(), [], everything))
    return Draft(view, at(tick, era=era))


def blank_draft(known: Families, tick: int = 60) -> Draft:
    """A draft on which nothing is known."""
    return Draft(View(known, an_authority()), at(tick))


def load(draft: Draft, missing: Missing, **counters: Counter | int) -> None:
    """Answer a question as a store does that has these numbers, and no others."""
    draft.view.load(missing.keys, found(state_of(**counters), [], missing.keys))


def state_of(**counters: Counter | int) -> State:
    """A state with these numbers."""
    records = {
        name: one if isinstance(one, Counter) else Counter(name=name, number=one)
        for name, one in counters.items()
    }
    return State(records={COUNTER: records})


def numbers(draft: Draft) -> dict[str, int]:
    """All numbers as they are recorded, whatever time has done to them."""
    part = draft.view.parts[COUNTER]
    return {name: part.get(name).number for name in part.scan(FIRST, LAST, EVERYTHING)}
