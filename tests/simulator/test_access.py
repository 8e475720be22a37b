"""Worlds in which access keys come and go beside leases: what is wrong with their law is found."""

from collections import Counter
from typing import Any

import pytest
from msgspec.structs import replace

from leasehold.access.law import admission, rules
from leasehold.access.law.admission import admits
from leasehold.access.law.commands import RevokeAccessKey
from leasehold.access.law.family import access_family
from leasehold.access.law.model import ACCESS, AccessRecord, Role, record_key, shown
from leasehold.kernel.ledger.commands import Caller
from leasehold.kernel.ledger.draft import Draft
from leasehold.kernel.ledger.events import StoreCheckpointed
from leasehold.kernel.ledger.refusals import Refusal
from leasehold.kernel.ledger.state import State
from leasehold.kernel.ledger.tick import Now
from simulator import simulate
from simulator.access_troupe import AccessTroupe
from tests import lanes
from tests.mutations import search

SEEDS = 25


@pytest.mark.deep
def test_access_keys_go_through_everything_that_leases_do() -> None:
    troupe = AccessTroupe()
    for seed in range(SEEDS if lanes.is_full_length() else SEEDS // 3):
        simulate(seed, troupes=[troupe])
    noted = sum((Counter(play.noted) for play in troupe.plays), Counter[str]())
    # A troupe that has become tame would find nothing either.
    usual, rare = (50, 5) if lanes.is_full_length() else (15, 2)
    often = ("AccessKeyCreated", "AccessKeyRotated", "AccessKeyRevoked", "NOT_AUTHENTICATED", "NOT_PERMITTED")
    assert min(noted[name] for name in often) > usual
    assert noted["LAST_ADMIN_KEY"] > rare
    assert noted["started over"] > rare


def found(*says: str, **others: Any) -> str:
    """Return the first promise that is seen to be broken by a family with something else in its place."""
    family = search.change_family(access_family(), invariants=lambda state: (), **others)
    return search.found(
        *says, seeds=range(2 * SEEDS), play=lambda seed: simulate(seed, troupes=[AccessTroupe(family)])
    )


def test_a_caller_who_is_admitted_by_what_the_key_was_when_it_was_let_in() -> None:
    def trusting(caller: Caller, asked: Any, draft: Draft) -> Refusal | None:
        refusal = admits(caller, asked, draft)
        record = draft.get(ACCESS, record_key(caller.access)) if refusal is not None else None
        was_let_in = record is not None and record.role is Role.ADMIN and caller.tenant is None
        return None if was_let_in else refusal

    assert found("which opened nothing", admits=trusting)


def test_a_rotated_key_whose_old_secret_stays_good(monkeypatch: pytest.MonkeyPatch) -> None:
    def lenient(self: AccessRecord, generation: int, now: Now) -> bool:
        return self.is_live(now)

    monkeypatch.setattr(AccessRecord, "takes", lenient)
    assert found("which opened nothing")


def test_a_key_that_outlives_its_time(monkeypatch: pytest.MonkeyPatch) -> None:
    takes = AccessRecord.takes
    lasting = {"expires": None}
    monkeypatch.setattr(AccessRecord, "takes", lambda self, *given: takes(replace(self, **lasting), *given))
    assert found("which opened nothing")


def test_an_operator_who_manages_keys() -> None:
    def generous(caller: Caller, asked: Any, draft: Draft) -> Refusal | None:
        refusal = admits(caller, asked, draft)
        return refusal if caller.tenant is not None or refusal is admission.NOT_AUTHENTICATED else None

    assert found("which is of a", admits=generous)


def test_an_admin_of_one_tenant_who_reaches_for_another(monkeypatch: pytest.MonkeyPatch) -> None:
    def find(key_id: str, draft: Draft) -> Any:
        return draft.get(ACCESS, record_key(key_id))

    monkeypatch.setattr(rules, "_found", find)
    assert found("which is bound to")


def test_a_key_that_is_refused_what_it_allows() -> None:
    def suspicious(caller: Caller, asked: Any, draft: Draft) -> Refusal | None:
        return admission.NOT_AUTHENTICATED if caller.access else None

    assert found("without reason", admits=suspicious)


def test_an_admin_key_that_is_revoked_though_it_is_the_last(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rules, "_live_admins", lambda draft: [])
    assert found("was the last admin key")


def test_a_retry_that_is_carried_out_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Draft, "remembered", lambda self, command: None)
    assert found("was carried out twice")


def test_a_key_that_is_let_go_of_and_was_not_revoked() -> None:
    def careless(state: State, checkpoint: StoreCheckpointed) -> list[str]:
        return list(state.of(ACCESS))

    assert found("is not revoked", forgotten=careless)


def test_a_revocation_that_is_only_answered() -> None:
    def lazy(command: RevokeAccessKey, draft: Draft) -> Any:
        record = rules._found(command.key_id, draft)
        return rules._not_found(command.key_id) if record is None else shown(record, draft.now)

    assert found("is not in the ledger", rules={**access_family().rules, RevokeAccessKey: lazy})
