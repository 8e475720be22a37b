"""Families beside leases: how a world is opened for them.

A troupe brings a family of records, actors that use it, and a judge. Its actors ask through the same post
and the same engines as everybody else, so what happens to leases happens to its records: requests are lost,
come twice and are repeated, engines die, stores fail, clocks go back, history is lost, pruned and rebuilt
from. The witness sees to what holds for every family: that the tables say what the ledger says, and that the
family's own invariants hold. What else was promised, the judge knows.

A troupe is asked for another play in each world, and a play is of that one world.
"""

from collections.abc import Callable, Mapping, Sequence
from random import Random
from typing import Generic, Protocol, TypeVar

import msgspec

from leasehold.engine.batch import Outcome
from leasehold.kernel.ledger.chain import Entry
from leasehold.kernel.ledger.commands import Command
from leasehold.kernel.ledger.events import Event
from leasehold.kernel.ledger.family import Family
from leasehold.kernel.ledger.state import State
from simulator.asking import Asker
from simulator.stage import Stage
from simulator.truth import Truth


class Commit(msgspec.Struct, frozen=True):
    """What was committed together: events of all families."""

    entries: Sequence[Entry]
    let_go: Mapping[str, Sequence[str]] = {}
    """The records, by family and key, that left the tables because history was pruned."""


class Moment(msgspec.Struct, frozen=True, kw_only=True):
    """When a batch was decided."""

    first_tick: int
    last_tick: int
    """It may have taken several tries, and some time may have passed."""
    position: int
    """Where the ledger ended before."""
    alone: bool
    """There was nothing else in it, but for what time had done, and the first try was the last."""


class Scene(msgspec.Struct, frozen=True, kw_only=True):
    """What actors and judges are given of a world."""

    stage: Stage
    random: Random
    """Dice of the play's own."""
    new_actor: Callable[[], Asker]
    """Makes a process that can ask, be paused and die, with a clock that drifts."""
    truth: Callable[[], Truth]
    """Returns what is true about leases; another one after history was lost."""


class Play(Protocol):
    """The use of a family in one world, and the judgement on it."""

    def start(self) -> None:
        """Begin to do things, again and again, until the stage is calm."""
        ...

    def saw(self, commit: Commit) -> str | None:
        """Take in what was committed, of whatever family; return what is wrong with it."""
        ...

    def told(self, command: Command, outcome: Outcome, moment: Moment) -> str | None:
        """Take in what somebody was answered to a command of this family; return what is wrong with it.

        It was committed before, but may be on its way to nobody: a refusal, or an answer.
        """
        ...

    def start_over(self, history: Sequence[Commit]) -> None:
        """Believe only what is left of the history, entry by entry: the end of it was lost."""
        ...

    def causes(self, event: Event, command: Command | None) -> bool:
        """Say whether an event of leases is a right consequence of a command of this family.

        None: of something that nobody has asked for, such as the passing of time.
        """
        ...

    def problem_at_end(self, state: State) -> str | None:
        """Return what is wrong once everything is over."""
        ...


PlayType = TypeVar("PlayType", bound=Play)


class Troupe(Generic[PlayType]):
    """A family, the same in all worlds, and those who play it. Tests bring one with a mistake in it."""

    def __init__(self, family: Family, new_play: Callable[[Scene], PlayType]) -> None:
        self.family = family
        self._new_play = new_play
        self.plays: list[PlayType] = []

    def play(self, scene: Scene) -> PlayType:
        """Return a play for one world."""
        self.plays.append(self._new_play(scene))
        return self.plays[-1]
