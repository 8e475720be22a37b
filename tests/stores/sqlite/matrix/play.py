"""One deed in one situation: what everybody does before it, and tries after it.

Nobody does anything at the same time as anybody else, so what comes of it is the same each time.
"""

import signal
import subprocess
from pathlib import Path
from typing import Any

import msgspec

from tests.stores.sqlite.matrix.deeds import DEEDS, WITH_ANOTHER, Scene
from tests.stores.sqlite.theatre.stage import Actor, Answer, Stage

SITUATIONS = ("in use", "closed", "killed with a hot log")

INSIDE = ("ann", "bob", "ann again")
"""Who has the store open when the deed is done: both try to go on, and the first once more in the end."""

NEWCOMER, ELSEWHERE = "newcomer", "elsewhere"
"""Who comes after the deed, to the store's own path and to where the deed has left something."""

LATER, LATER_ELSEWHERE = "later", "later elsewhere"
"""Who comes when everybody has left."""


class Facts(msgspec.Struct, frozen=True, kw_only=True):
    """What a store says of itself."""

    identity: str
    raises: list[tuple[int, str]]
    """The epochs that were begun, and why."""
    entries: list[str]
    """The hash of each entry of the ledger."""


class Grant(msgspec.Struct, frozen=True, kw_only=True):
    """A lease that somebody was given."""

    place: Path
    identity: str
    resource: str
    token: int


class Visit(msgspec.Struct, kw_only=True):
    """What one party tried at one place, and what came of it."""

    who: str
    place: Path
    answers: dict[str, Answer] = {}
    facts: Facts | None = None
    """What the store said in the end; None if it said nothing."""
    problems: list[str] = []
    """What `verify` found."""


class Testimony(msgspec.Struct, kw_only=True):
    """All that happened."""

    subject: str
    deed: str
    founded: Facts
    """What the store said before."""
    stranger: Facts | None
    """What the other store said, if there is one."""
    visits: list[Visit] = []
    grants: list[Grant] = []
    """In the order in which they were given."""
    before: int = 0
    """How many of them were given before the deed."""
    acknowledged: list[tuple[Path, Facts]] = []
    """What the store at a place said each time after something was acknowledged."""


def play(stage: Stage, base: Path, *, subject: str, deed: str, situation: str) -> Testimony:
    """Do a deed to a store, and hear what everybody says."""
    scene = Scene(base, subject, stage)
    testimony = Testimony(
        subject=subject,
        deed=deed,
        founded=found(stage, scene.store),
        stranger=found(stage, scene.other) if DEEDS[deed] in WITH_ANOTHER else None,
    )
    subprocess.run(["cp", "-a", scene.store, scene.older], check=True)
    actors = _settle(testimony, stage, scene.store, situation)
    testimony.before = len(testimony.grants)
    DEEDS[deed](scene)
    if actors:
        _go_on(testimony, actors[0], "ann", scene.store, "door")
    newcomers = [_come(testimony, stage, NEWCOMER, scene.store)]
    if scene.elsewhere.exists():
        newcomers.append(_come(testimony, stage, ELSEWHERE, scene.elsewhere))
    if actors:
        _go_on(testimony, actors[1], "bob", scene.store, "window")
        _go_on(testimony, actors[0], "ann again", scene.store, "door")
    for actor in (*actors, *newcomers):
        _leave(actor)
    _leave(_come(testimony, stage, LATER, scene.store))
    if scene.elsewhere.exists():
        _leave(_come(testimony, stage, LATER_ELSEWHERE, scene.elsewhere))
    return testimony


def found(stage: Stage, place: Path) -> Facts:
    """Use a store for a while, and leave it in order."""
    founder = stage.engage("founder")
    founder.does("connect", place=str(place))
    founder.does("acquire", resource="attic")
    founder.does("release", resource="attic")
    facts = msgspec.convert(founder.does("facts"), Facts)
    founder.does("close")
    return facts


def _settle(testimony: Testimony, stage: Stage, place: Path, situation: str) -> list[Actor]:
    """Bring about the situation in which the deed is done; return who is inside."""
    ann = stage.engage("ann")
    visit = Visit(who="before", place=place)
    _try(visit, ann, "connect", place=str(place))
    _acquire(testimony, visit, ann, "door")
    match situation:
        case "closed":
            ann.does("close")
            return []
        case "killed with a hot log":
            ann.dies()
            return []
        case _:
            bob = stage.engage("bob")
            _try(visit, bob, "connect", place=str(place))
            _acquire(testimony, visit, bob, "window")
            return [ann, bob]


def _come(testimony: Testimony, stage: Stage, who: str, place: Path) -> Actor:
    """Connect to what is at a place now, and try to hold what is held."""
    actor = stage.engage(who)
    visit = _new_visit(testimony, who, place)
    if _try(visit, actor, "connect", place=str(place)):
        _acquire(testimony, visit, actor, "door")
        _acquire(testimony, visit, actor, who)
        visit.problems = _try(visit, actor, "verify") or []
    return actor


def _go_on(testimony: Testimony, actor: Actor, who: str, place: Path, resource: str) -> None:
    """Go on as if nothing had happened."""
    visit = _new_visit(testimony, who, place)
    if _try(visit, actor, "renew", resource=resource):
        _note_facts(testimony, visit, actor)
    _try(visit, actor, "ensure", resource=resource)
    _acquire(testimony, visit, actor, who)


def _new_visit(testimony: Testimony, who: str, place: Path) -> Visit:
    visit = Visit(who=who, place=place, answers={})
    testimony.visits.append(visit)
    return visit


def _acquire(testimony: Testimony, visit: Visit, actor: Actor, resource: str) -> None:
    answer = _try(visit, actor, "acquire", resource=resource)
    if answer:
        facts = _note_facts(testimony, visit, actor)
        identity = "unknown" if facts is None else facts.identity
        testimony.grants.append(
            Grant(place=visit.place, identity=identity, resource=resource, token=answer["token"])
        )


def _note_facts(testimony: Testimony, visit: Visit, actor: Actor) -> Facts | None:
    """Have the store say what it says now, right after it acknowledged something."""
    answer = _try(visit, actor, "facts")
    if answer:
        visit.facts = msgspec.convert(answer, Facts)
        testimony.acknowledged.append((visit.place, visit.facts))
        return visit.facts
    return None


def _try(visit: Visit, actor: Actor, step: str, **details: str) -> Any:
    """Take a step, unless the actor is dead; return what came of it, if it went well."""
    if any(answer.died for answer in visit.answers.values()):
        return None
    answer = actor.tries(step, **details)
    visit.answers[f"{step} {details.get('resource', '')}".strip()] = answer
    return (True if answer.value is None else answer.value) if answer.went_well else None


def _leave(actor: Actor) -> None:
    """Go home; who died already, did."""
    answer = actor.tries("close")
    assert answer.crash is None, answer.crash
    assert answer.died in (None, signal.SIGBUS), answer
