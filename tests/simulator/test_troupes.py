"""Worlds in which another family of records is played beside leases: whatever is wrong with it is found."""

from collections import Counter
from typing import Any

import pytest
from msgspec.structs import replace

from leasehold.kernel.ledger.draft import Draft
from simulator import SimulationFailed, simulate
from tests.simulator import sheets
from tests.simulator.sheet_troupe import SheetTroupe
from tests.simulator.sheets import Sheet, sheet_family

SEEDS = 60


def test_a_family_that_nobody_here_knows_goes_through_everything_that_leases_do() -> None:
    troupe = SheetTroupe()
    for seed in range(SEEDS):
        simulate(seed, troupes=[troupe])
    noted = sum((Counter(play.noted) for play in troupe.plays), Counter[str]())
    # A troupe that has become tame would find nothing either.
    assert min(noted[name] for name in ("marked", "repeated", "refused", "closed in time")) > 100
    assert min(noted[name] for name in ("closed by time", "let go of", "started over")) > 10


def test_a_world_with_a_troupe_is_the_same_every_time() -> None:
    worlds: list[list[str]] = [[], []]
    for lines in worlds:
        simulate(7, trace=lines.append, troupes=[SheetTroupe()])
    assert worlds[0] == worlds[1]
    assert any("SheetMarked" in line for line in worlds[0])


def test_a_record_that_forgets_what_was_before() -> None:
    def forgetful(sheet: Sheet | None, event: Any, key: str) -> Sheet:
        evolved = sheets.evolve(sheet, event, key)
        return replace(evolved, count=event.by) if isinstance(event, sheets.SheetMarked) else evolved

    assert "and the sheet says" in found(evolve=forgetful)


def test_a_retry_that_is_counted_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Draft, "remembered", lambda self, command: None)
    assert "was counted twice" in found()


def test_a_record_that_depends_on_more_than_the_ledger() -> None:
    seen: list[object] = []

    def moody(sheet: Sheet | None, event: Any, key: str) -> Sheet:
        seen.append(event)
        evolved = sheets.evolve(sheet, event, key)
        return replace(evolved, count=evolved.count + 1) if len(seen) % 3 == 0 else evolved

    assert "was written as" in found(evolve=moody)


def test_an_end_of_a_lease_that_a_family_does_not_react_to() -> None:
    assert "is open, and the lease has ended" in found(reacts={})
    assert "is open after its lease" in found(reacts={}, invariants=lambda state: ())


def test_time_that_does_nothing_to_a_record() -> None:
    assert "was marked after its sheet was closed" in found(age=lambda key, sheet, draft: None)


def test_a_record_that_is_pruned_while_it_is_in_use() -> None:
    assert "an open sheet was let go of" in found(forgotten=lambda state, checkpoint: list(state.of("sheet")))


def test_a_lease_that_a_family_releases_for_no_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    # Each mark ends the lease that it is made for.
    mark = sheet_family().rules[sheets.Mark]

    def rash(command: Any, draft: Draft) -> Any:
        made = mark(command, draft)
        sheet = draft.get(sheets.SHEET, sheets.key_of(command.tenant, command.lease_id))
        if sheet is not None:
            sheets.release(sheet, command.request_id, draft)
        return made

    assert "is not what" in found(rules={**sheet_family().rules, sheets.Mark: rash})


def found(**others: Any) -> str:
    """Return the first promise that is seen to be broken by a family with something else in its place."""
    for seed in range(SEEDS):
        try:
            simulate(seed, troupes=[SheetTroupe(sheet_family(**others))])
        except SimulationFailed as failure:
            return failure.problem
    raise AssertionError(f"nothing was noticed in {SEEDS} seeds")
