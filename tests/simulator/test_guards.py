"""Worlds in which guards are bypassed beside leases: what is wrong with their law is found."""

from collections import Counter
from typing import Any

import pytest
from msgspec.structs import replace

from leasehold.guards.law import RecordBypass, Recorded, guard_family, record
from leasehold.kernel.ledger.draft import Draft
from simulator import SimulationFailed, simulate
from simulator.guard_troupe import GuardTroupe

SEEDS = 15


def test_bypasses_go_through_everything_that_leases_do() -> None:
    troupe = GuardTroupe()
    for seed in range(SEEDS):
        simulate(seed, troupes=[troupe])
    noted = sum((play.noted for play in troupe.plays), Counter[str]())
    # A troupe that has become tame would find nothing either.
    assert min(noted[name] for name in ("recorded", "repeated", "refused")) > 50
    assert noted["started over"] > 3


def found(**others: Any) -> str:
    """Return the first promise that is seen to be broken by a family with something else in its place."""
    family = replace(guard_family(), **others)
    for seed in range(SEEDS):
        try:
            simulate(seed, troupes=[GuardTroupe(family)])
        except SimulationFailed as failure:
            return failure.problem
    raise AssertionError(f"nothing was noticed in {SEEDS} seeds")


def test_a_request_that_is_recorded_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Draft, "remembered", lambda self, command: None)
    assert "was recorded twice" in found()


def test_a_bypass_that_is_answered_and_not_recorded() -> None:
    assert "is not in the ledger" in found(rules={RecordBypass: lambda command, draft: Recorded()})


def test_a_bypass_of_which_a_part_is_recorded() -> None:
    def careless(command: RecordBypass, draft: Draft) -> Recorded:
        return record(replace(command, passed=command.passed[:1]), draft)

    assert "asked for" in found(rules={RecordBypass: careless})


def test_a_bypass_for_no_reason() -> None:
    assert "was answered with" in found(check=lambda command: None)
