"""Worlds in which guards are bypassed beside leases: what is wrong with their law is found."""

from collections import Counter
from typing import Any

import pytest
from msgspec.structs import replace

from leasehold.guards.law import RecordBypass, Recorded, guard_family, record
from leasehold.kernel.ledger.draft import Draft
from simulator import simulate
from simulator.guard_troupe import GuardTroupe
from tests import lanes
from tests.mutations import search

SEEDS = 15


@pytest.mark.deep
def test_bypasses_go_through_everything_that_leases_do() -> None:
    troupe = GuardTroupe()
    for seed in range(SEEDS if lanes.is_full_length() else SEEDS // 3):
        simulate(seed, troupes=[troupe])
    noted = sum((play.noted for play in troupe.plays), Counter[str]())
    # A troupe that has become tame would find nothing either.
    assert min(noted[name] for name in ("recorded", "repeated", "refused")) > 50
    assert noted["started over"] > 3


def found(*says: str, **others: Any) -> str:
    """Return the first promise that is seen to be broken by a family with something else in its place."""
    family = search.change_family(guard_family(), **others)
    return search.found(
        *says, seeds=range(SEEDS), play=lambda seed: simulate(seed, troupes=[GuardTroupe(family)])
    )


def test_a_request_that_is_recorded_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Draft, "remembered", lambda self, command: None)
    assert found("was recorded twice")


def test_a_bypass_that_is_answered_and_not_recorded() -> None:
    assert found("is not in the ledger", rules={RecordBypass: lambda command, draft: Recorded()})


def test_a_bypass_of_which_a_part_is_recorded() -> None:
    def careless(command: RecordBypass, draft: Draft) -> Recorded:
        return record(replace(command, passed=command.passed[:1]), draft)

    assert found("asked for", rules={RecordBypass: careless})


def test_a_bypass_for_no_reason() -> None:
    assert found("was answered with", check=lambda command: None)
