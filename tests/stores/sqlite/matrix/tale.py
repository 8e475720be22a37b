"""A tale told by a seed: people come, hold, leave and die, and things are done to files, in any order."""

import random
from contextlib import suppress
from pathlib import Path
from subprocess import CalledProcessError

import msgspec

from tests.stores.sqlite.matrix.deeds import DEEDS, FOLDER, SUBJECTS, WITH_ANOTHER, Scene
from tests.stores.sqlite.matrix.judge import is_lost, misbehaviour, repeated_tokens, store_id
from tests.stores.sqlite.matrix.play import Facts, Grant, Visit, found
from tests.stores.sqlite.theatre.stage import Actor, Answer, Stage

_RESOURCES = ("attic", "door", "gate", "hall")


class Tale:
    """Plays one tale, and remembers all that was said."""

    def __init__(self, stage: Stage, base: Path, seed: int) -> None:
        self._stage = stage
        self._base = base
        self._chance = random.Random(seed)
        self._places = [base / "leases"]
        """Where there is a store, or was."""
        self._inside: list[tuple[Actor, Visit]] = []
        self._visits: list[Visit] = []
        self._grants: list[Grant] = []
        self._acknowledged: list[tuple[Path, Facts]] = []
        self._backups: list[Path] = []
        self._number = 0

    def complaints(self) -> list[str]:
        """Play the tale to its end; return what must not have happened."""
        steps = {self._come: 4, self._claim: 8, self._leave: 2, self._do: 4, self._save: 1, self._restore: 1}
        self._come()
        for step in self._chance.choices([*steps], [*steps.values()], k=20):
            step()
        while self._inside:
            self._leave()
        lost = [complaint for place in self._places for complaint in self._losses(place)]
        behaviour = [complaint for visit in self._visits for complaint in misbehaviour(visit)]
        return [*repeated_tokens(self._grants), *lost, *behaviour]

    def _come(self) -> None:
        self._connect(self._chance.choice(self._places))

    def _connect(self, place: Path) -> None:
        actor, visit = self._engage(place)
        if self._hear(actor, visit, "connect", place=str(place)).went_well:
            self._inside.append((actor, visit))

    def _engage(self, place: Path) -> tuple[Actor, Visit]:
        self._number += 1
        visit = Visit(who=f"actor {self._number}", place=place)
        self._visits.append(visit)
        return self._stage.engage(visit.who), visit

    def _hear(self, actor: Actor, visit: Visit, step: str, **details: str) -> Answer:
        answer = actor.tries(step, **details)
        visit.answers[f"{len(visit.answers)} {step}"] = answer
        if answer.died is not None and (actor, visit) in self._inside:
            self._inside.remove((actor, visit))
        return answer

    def _claim(self) -> None:
        """Have somebody hold something more."""
        if not self._inside:
            return
        actor, visit = self._chance.choice(self._inside)
        resource = f"{self._chance.choice(_RESOURCES)} {self._chance.randrange(3)}"
        answer = self._hear(actor, visit, "acquire", resource=resource)
        if answer.went_well:
            facts = self._note_facts(actor, visit)
            if facts is not None:
                granted = answer.value["token"]
                grant = Grant(place=visit.place, identity=facts.identity, resource=resource, token=granted)
                self._grants.append(grant)

    def _note_facts(self, actor: Actor, visit: Visit) -> Facts | None:
        answer = self._hear(actor, visit, "facts")
        if not answer.went_well:
            return None
        facts = msgspec.convert(answer.value, Facts)
        self._acknowledged.append((visit.place, facts))
        return facts

    def _leave(self) -> None:
        if not self._inside:
            return
        actor, visit = self._inside.pop(self._chance.randrange(len(self._inside)))
        if self._chance.random() < 0.5:
            self._hear(actor, visit, "close")
        else:
            actor.dies()

    def _do(self) -> None:
        """Do something to a file, if it is there."""
        self._number += 1
        base = self._base / str(self._number)
        base.mkdir()
        scene = Scene(base, self._chance.choice(SUBJECTS), self._stage)
        scene.store = self._chance.choice(self._places)
        deed = self._chance.choice([*DEEDS.values()])
        # What is not there any more, or is several, or is a folder, cannot be had done all this to.
        with suppress(OSError, ValueError, CalledProcessError):
            if scene.target.is_symlink() or not scene.target.exists():
                return
            if deed in WITH_ANOTHER:
                found(self._stage, scene.other)
            scene.older = self._chance.choice(self._places)
            deed(scene)
            if scene.subject == FOLDER and scene.elsewhere.exists():
                self._places.append(scene.elsewhere)

    def _save(self) -> None:
        file, place = self._base / f"saved {len(self._visits)}", self._chance.choice(self._places)
        if self._hear(*self._engage(place), "backup", place=str(place), file=str(file)).went_well:
            self._backups.append(file)

    def _restore(self) -> None:
        if self._backups:
            file, place = self._chance.choice(self._backups), self._chance.choice(self._places)
            self._hear(*self._engage(place), "restore", place=str(place), file=str(file))

    def _losses(self, place: Path) -> list[str]:
        """Compare what is at a place in the end with what was acknowledged there."""
        before = [facts for there, facts in self._acknowledged if there == place]
        self._connect(place)
        if not self._inside:
            return []
        ((actor, visit),) = self._inside
        visit.problems = self._hear(actor, visit, "verify").value or []
        last = self._note_facts(actor, visit)
        self._leave()
        if last is None:
            return []
        mine = [facts for facts in before if store_id(facts.identity) == store_id(last.identity)]
        return [f"lost in silence: {facts} is not in {last}" for facts in mine if is_lost(facts, last)]
