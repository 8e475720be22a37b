"""What came of a deed, in the words of docs/concepts/stores.md."""

import signal
from collections.abc import Iterable

from tests.stores.sqlite.matrix.judge import UNVOUCHED, store_id
from tests.stores.sqlite.matrix.play import (
    ELSEWHERE,
    INSIDE,
    LATER,
    LATER_ELSEWHERE,
    NEWCOMER,
    Testimony,
    Visit,
)

_GOES_ON = "goes on"
_WORDS = {
    "STORE_UNUSABLE": "refused",
    "STORE_DAMAGED": "refused",
    "STORE_REPLACED": "refused",
    "STORE_FAILED": "outcome unknown",
}


def verdict(testimony: Testimony) -> str:
    """Return what came of a deed for those inside, newcomers, and those who come elsewhere."""
    words: dict[str, str] = {}
    raises = testimony.founded.raises
    for visit in testimony.visits:
        words[visit.who] = _word(testimony, visit, raises)
        if visit.facts is not None and len(visit.facts.raises) > len(raises):
            raises = visit.facts.raises
    inside = _sequence(words.get(who) for who in INSIDE)
    newcomers = _sequence([words[NEWCOMER], words[LATER]])
    said = newcomers if inside in ("", newcomers) else f"inside: {inside}; newcomers: {newcomers}"
    elsewhere = _sequence([words.get(ELSEWHERE), words.get(LATER_ELSEWHERE)])
    return f"{said}; elsewhere: {elsewhere}" if elsewhere else said


def _word(testimony: Testimony, visit: Visit, raises: list[tuple[int, str]]) -> str:
    """Return what came of it for one party; `raises` is what others had been told of before."""
    for answer in visit.answers.values():
        if answer.died == signal.SIGBUS:
            return "dies by SIGBUS"
        if answer.error in _WORDS:
            return _WORDS[answer.error]
    assert visit.facts is not None, visit
    stranger = testimony.stranger
    if stranger is not None and store_id(visit.facts.identity) == store_id(stranger.identity):
        return "is the other store"
    if store_id(visit.facts.identity) != store_id(testimony.founded.identity):
        return "is a new store"
    if len(visit.facts.raises) > len(raises):
        return f"new epoch ({', '.join(reason for _, reason in visit.facts.raises[len(raises) :])})"
    if any(UNVOUCHED in problem for problem in visit.problems):
        return "goes on with a new key"
    return _GOES_ON


def _sequence(words: Iterable[str | None]) -> str:
    """Return what came of it one time after the other; that it goes on after that need not be said."""
    told: list[str] = []
    for word in words:
        if word is not None and word not in told[-1:]:
            told.append(word)
    if len(told) > 1 and told[-1] == _GOES_ON and told[-2] != "refused":
        told.pop()
    return ", then ".join(told)
