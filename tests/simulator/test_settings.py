"""Worlds in which settings are changed beside leases: what is wrong with their law is found."""

from collections import Counter
from typing import Any

import pytest
from msgspec.structs import replace

from leasehold.kernel.ledger.draft import Draft
from leasehold.kernel.ledger.events import StoreCheckpointed
from leasehold.kernel.ledger.state import State
from leasehold.settings import law
from leasehold.settings.law import FAMILY, Changed, ChangeSetting, settings_family
from simulator import simulate
from simulator.settings_troupe import SettingsTroupe
from tests import lanes
from tests.mutations import search

SEEDS = 25


@pytest.mark.deep
def test_settings_go_through_everything_that_leases_do() -> None:
    troupe = SettingsTroupe()
    for seed in range(SEEDS if lanes.is_full_length() else SEEDS // 3):
        simulate(seed, troupes=[troupe])
    noted = sum((Counter(play.noted) for play in troupe.plays), Counter[str]())
    # A troupe that has become tame would find nothing either.
    assert min(noted[name] for name in ("set", "reset", "repeated", "refused")) > 100
    assert noted["started over"] > 5


def found(*says: str, **others: Any) -> str:
    """Return the first promise that is seen to be broken by a family with something else in its place."""
    family = search.change_family(settings_family(), invariants=lambda state: (), **others)
    return search.found(
        *says, seeds=range(2 * SEEDS), play=lambda seed: simulate(seed, troupes=[SettingsTroupe(family)])
    )


def test_a_retry_that_is_carried_out_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Draft, "remembered", lambda self, command: None)
    assert found("was carried out twice")


def test_a_request_that_changes_nothing_and_is_not_recorded() -> None:
    def thrifty(command: ChangeSetting, draft: Draft) -> Changed:
        record = draft.get(FAMILY, law.record_key(command.tenant, command.key, command.resource))
        is_new = draft.remembered(command) is None
        if is_new and (None if record is None else record.value) == command.value:
            return law._answer(command, command.value, command.value, draft)
        return law.change(command, draft)

    assert found("is not in the ledger", rules={ChangeSetting: thrifty})


def test_a_setting_that_says_what_it_was_not(monkeypatch: pytest.MonkeyPatch) -> None:
    def forgetful(command: ChangeSetting, before: Any, value: Any, draft: Draft) -> Changed:
        return replace(answer(command, before, value, draft), before=0)

    answer = law._answer
    monkeypatch.setattr(law, "_answer", forgetful)
    assert found("and it was and is")


def test_a_setting_of_one_tenant_that_is_set_for_another(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(law, "scope_of", lambda tenant, key: "")
    assert found("which nobody asked for")


def test_a_value_that_no_setting_can_have() -> None:
    assert found("was answered with", check=lambda command: None)


def test_a_setting_that_is_let_go_of_with_its_history() -> None:
    def careless(state: State, checkpoint: StoreCheckpointed) -> list[str]:
        return list(state.of(FAMILY))

    assert found("were let go of", forgotten=careless)


def test_a_reset_that_leaves_the_value() -> None:
    def sticky(record: Any, event: Any, key: str) -> Any:
        return law.evolve(record, event, key) or record

    assert found("was changed from", evolve=sticky)
