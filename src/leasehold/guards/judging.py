"""What `leasehold guard` decides: which paths are meant, who is in the way, and whether that is bypassed."""

import os
import sys
from collections.abc import Sequence
from typing import NamedTuple

from leasehold.files.names import name_of
from leasehold.guards.asking import (
    Asker,
    Refused,
    Target,
    record_bypass,
    refusals,
    refused,
    target_of,
)
from leasehold.guards.records import opened
from leasehold.guards.verdict import ALLOWED, Outcome, Verdict


class Case(NamedTuple):
    """What is to be judged: paths, or what the next commit would change, or what a push would bring."""

    paths: Sequence[str] = ()
    staged: bool = False
    pushed: str | None = None
    """The remote that is pushed to."""


def judge(case: Case, asker: Asker, bypass: str | None) -> tuple[Verdict, list[Refused]]:
    """Decide, and say what is in the way; raise InvalidInput for a path that cannot be meant."""
    found: list[Refused] = []
    named = [Target(name_of(path)) for path in case.paths]
    try:
        return _judge(named or _told_by_git(case), asker, bypass, found), found
    except Exception as error:  # Whatever it is, nobody is let through by it.
        return Verdict(Outcome.UNKNOWN, [f"could not tell whether this may be changed: {error}"]), found


def _told_by_git(case: Case) -> list[Target]:
    from leasehold.guards.repository import pushed, staged, work_tree

    top = work_tree()
    paths = staged(top) if case.pushed is None else pushed(top, case.pushed, sys.stdin)
    return [target_of(os.path.join(top, path)) for path in paths]


def _judge(targets: Sequence[Target], asker: Asker, bypass: str | None, found: list[Refused]) -> Verdict:
    if not targets:
        return ALLOWED
    with opened(asker.place.address) as records:
        if records is None:
            return ALLOWED
        found += refused(records, targets, asker)
        if not found:
            return ALLOWED
        if not bypass:
            return Verdict(Outcome.REFUSED, refusals(records, found, asker))
    record_bypass(found, asker, bypass)
    passed = [f"bypassed: {one.name.path} is held by {one.by.lease.holder}; history has it" for one in found]
    return Verdict(Outcome.ALLOWED, passed)
