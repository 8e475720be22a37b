"""What must never come of anything that is done to files.

No token is ever given twice, by whichever copy of a store. Tokens of one store rise, so that whoever is
granted what somebody else believes to hold has the higher one. Nothing that was acknowledged is lost in
silence: it is there, or the store is refused, or its ledger tells of a new epoch.
"""

import signal
from collections.abc import Iterator, Sequence

from tests.stores.sqlite.matrix.deeds import FOLDER
from tests.stores.sqlite.matrix.play import LATER, LATER_ELSEWHERE, Facts, Grant, Testimony, Visit

_REFUSALS = {"STORE_UNUSABLE", "STORE_DAMAGED", "STORE_REPLACED", "STORE_FAILED"}
_LAWFUL = {"HELD", "ALREADY_HELD", "LEASE_NOT_FOUND"}
"""Which answers say all there is to say: that somebody else has it, or that the lease is lost."""

UNVOUCHED = "which no admitted key vouches for"


def complaints(testimony: Testimony) -> list[str]:
    """Return everything that must not have happened, and did."""
    found = list(repeated_tokens(testimony.grants))
    for visit in testimony.visits:
        found += misbehaviour(visit)
        if visit.who in (LATER, LATER_ELSEWHERE) and visit.facts is not None:
            found += _losses(testimony, visit, visit.facts)
    return found


def store_id(identity: str) -> str:
    """Return what all copies of a store share."""
    return identity.partition(".")[0]


def repeated_tokens(grants: Sequence[Grant]) -> Iterator[str]:
    """Complain of tokens that came twice, or did not rise."""
    if len({grant.token for grant in grants}) < len(grants):
        yield f"a token was given twice: {grants}"
    for number, grant in enumerate(grants):
        earlier = [one for one in grants[:number] if store_id(one.identity) == store_id(grant.identity)]
        comparable = [one.token for one in earlier if one.identity == grant.identity]
        if not comparable:  # the first of a copy, or of an epoch that was begun for another reason
            comparable = [one.token for one in earlier]
        if comparable and grant.token <= max(comparable):
            yield f"a token did not rise: {grant} after {earlier}"


def misbehaviour(visit: Visit) -> Iterator[str]:
    """Complain of anything but an answer, a refusal or SIGBUS; and of a store that does not verify."""
    for step, answer in visit.answers.items():
        if answer.crash is not None:
            yield f"{visit.who}: {step} crashed: {answer.crash}"
        elif answer.died not in (None, signal.SIGBUS):
            yield f"{visit.who}: {step} was killed by signal {answer.died}"
        elif answer.error not in {None, *_REFUSALS, *_LAWFUL}:
            yield f"{visit.who}: {step} ended in {answer.error}: {answer.message}"
    for problem in visit.problems:
        # Who finds their key gone enrols another one, for which nobody vouches.
        if UNVOUCHED not in problem:
            yield f"{visit.who}: {problem}"


def is_lost(acknowledged: Facts, found: Facts) -> bool:
    """Say whether a store has forgotten what it acknowledged, and does not say so."""
    has_told = not set(found.raises) <= set(acknowledged.raises)
    return not has_told and found.entries[: len(acknowledged.entries)] != acknowledged.entries


def _losses(testimony: Testimony, visit: Visit, found: Facts) -> Iterator[str]:
    """Compare what is there in the end with what was acknowledged there, or anywhere before the deed."""
    mine = store_id(testimony.founded.identity)
    if store_id(found.identity) != mine:
        if testimony.subject != FOLDER and visit.who == LATER:
            yield f"{visit.who}: another store is in the place of the first: {found}"
        return
    for number, (place, facts) in enumerate(testimony.acknowledged):
        counts = store_id(facts.identity) == mine and (place == visit.place or number < testimony.before)
        if counts and is_lost(facts, found):
            yield f"{visit.who}: lost in silence: {facts} is not in {found}"
