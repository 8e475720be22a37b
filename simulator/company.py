"""Everybody who plays a family beside leases in a world."""

from collections.abc import Callable, Sequence
from random import Random
from typing import Any

from leasehold.engine.batch import Outcome
from leasehold.kernel.lease.records import LEASE
from leasehold.kernel.ledger.commands import Command, Sweep
from leasehold.kernel.ledger.events import Event
from leasehold.kernel.ledger.family import Families
from leasehold.kernel.ledger.state import State
from simulator.asking import Asker
from simulator.stage import Stage
from simulator.troupe import Commit, Moment, Play, Scene, Troupe
from simulator.truth import Truth


class Company:
    """The plays of a world, and which of them is meant."""

    def __init__(self, stage: Stage, families: Families) -> None:
        self._stage = stage
        self._families = families
        self._plays: dict[str, Play] = {}

    def hire(
        self, troupes: Sequence[Troupe[Any]], new_actor: Callable[[], Asker], truth: Callable[[], Truth]
    ) -> None:
        """Let troupes play in this world."""
        for troupe in troupes:
            name = troupe.family.name
            scene = Scene(
                stage=self._stage,
                random=Random(f"{name} {self._stage.plan.seed}"),
                new_actor=new_actor,
                truth=truth,
            )
            self._plays[name] = troupe.play(scene)

    def start(self) -> None:
        """Let all actors begin."""
        for play in self._plays.values():
            play.start()

    def _play_of(self, command: Command | None) -> Play | None:
        if isinstance(command, Sweep):
            return self._plays.get(command.family)
        family = None if command is None else self._families.of_command.get(type(command))
        return None if family is None else self._plays.get(family.name)

    def is_of_leases(self, event: Event) -> bool:
        """Say whether an event is one of leases."""
        return not event.is_own and self._families.of_event[type(event)].name == LEASE

    def is_foreign(self, command: Command | None) -> bool:
        """Say whether a command is of another family than leases, and so judged by others."""
        return self._play_of(command) is not None

    def causes(self, event: Event, command: Command | None) -> bool:
        """Say whether an event of leases is a right consequence of something in another family."""
        play = self._play_of(command)
        plays = self._plays.values() if command is None else () if play is None else (play,)
        return any(one.causes(event, command) for one in plays)

    def saw(self, commit: Commit) -> None:
        """Have a commit judged."""
        for play in self._plays.values():
            self._report(play.saw(commit))

    def told(self, command: Command, outcome: Outcome, moment: Moment) -> None:
        """Have an answer judged."""
        play = self._play_of(command)
        if play is not None:
            self._report(play.told(command, outcome, moment))

    def start_over(self, history: Sequence[Commit]) -> None:
        """Let everybody know what is left of the history."""
        for play in self._plays.values():
            play.start_over(history)

    def check_end(self, state: State) -> None:
        """Ask whether everything has come out right."""
        for play in self._plays.values():
            self._report(play.problem_at_end(state))

    def _report(self, problem: str | None) -> None:
        if problem is not None:
            self._stage.violate("{}", problem)
