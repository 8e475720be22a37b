"""Worlds in which work is played beside leases: what is wrong with its law is found.

Each mistake is put where it would be made, and those who play work have to say which promise it breaks. The
family's own invariants, which would notice some of them first, are switched off.
"""

from collections import Counter
from typing import Any

import pytest
from msgspec.structs import replace

from leasehold.kernel.ledger.draft import Draft
from leasehold.kernel.ledger.events import StoreCheckpointed
from leasehold.kernel.ledger.state import State
from leasehold.work.law import age, finish, rules
from leasehold.work.law.answers import Acquired, Succeeded
from leasehold.work.law.commands import GiveBack, Succeed, TryAcquire
from leasehold.work.law.family import work_family
from leasehold.work.law.model import WORK, Flight, Queued
from simulator import simulate
from simulator.work_troupe import WorkTroupe
from tests import lanes
from tests.mutations import search

SEEDS = 25


@pytest.mark.deep
def test_work_goes_through_everything_that_leases_do() -> None:
    troupe = WorkTroupe()
    for seed in range(SEEDS if lanes.is_full_length() else SEEDS // 3):
        simulate(seed, troupes=[troupe])
    noted = sum((Counter(play.noted) for play in troupe.plays), Counter[str]())
    # A troupe that has become tame would find nothing either.
    usual, rare = (80, 10) if lanes.is_full_length() else (30, 5)
    often = ("work.acquired", "work.enqueued", "work.succeeded", "work.retried", "refused: TOKEN_MISMATCH")
    assert min(noted[name] for name in (*often, "refused: NO_LEASE", "refused: BACKLOG_ORDERING")) > usual
    seldom = ("work.failed", "carried over", "started over", "worker died", "worker paused")
    assert min(noted[name] for name in seldom) > rare
    assert min(noted["hand-off repeated after its end"], noted["given back unheard"]) > 0


def found(*says: str, **others: Any) -> str:
    """Return the first promise that is seen to be broken by a family with something else in its place."""
    family = search.change_family(work_family(), invariants=lambda state: (), **others)
    return search.found(
        *says, seeds=range(2 * SEEDS), play=lambda seed: simulate(seed, troupes=[WorkTroupe(family)])
    )


def deciding(kind: Any, rule: Any) -> dict[str, Any]:
    return {"rules": {**work_family().rules, kind: rule}}


def test_a_retry_that_is_carried_out_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Draft, "remembered", lambda self, command: None)
    assert found("was carried out twice")


def test_a_token_that_is_not_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    # Whoever has any token ends what is in flight; the event says it was another's.
    def obliging(draft: Draft, command: Any) -> Any:
        flight = rules.flight_of(draft, command.tenant, command.domain)
        return flight or rules.bearer_of(draft, command)

    monkeypatch.setattr(finish, "bearer_of", obliging)
    assert found("another's token")


def test_an_answer_that_was_not_committed() -> None:
    def silent(command: Succeed, draft: Draft) -> Any:
        made = rules.bearer_of(draft, command)
        return Succeeded(outcome="NO_BACKLOG") if isinstance(made, Flight) else finish.succeed(command, draft)  # type: ignore[arg-type]

    assert found("it is not in the ledger", **deciding(Succeed, silent))


def test_a_queue_that_is_overtaken(monkeypatch: pytest.MonkeyPatch) -> None:
    head_of = rules.head_of

    def blind(draft: Draft, tenant: str, domain: str) -> Any:
        head = head_of(draft, tenant, domain)
        return head and (head[0], replace(head[1], offset=head[1].offset ^ 1))

    monkeypatch.setattr(rules, "head_of", blind)
    monkeypatch.setattr(finish, "head_of", blind)
    assert found("hinted at", "is not the head", "does not replay", "refused without reason")


def test_a_terminal_offset_that_is_taken_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rules, "_is_terminal", lambda *given: False)
    assert found("is terminal", "queued or terminal")


def test_time_that_does_nothing_to_an_offset_in_flight() -> None:
    assert found("after its time", age=lambda key, record, draft: None)


def test_an_offset_that_comes_back_too_early() -> None:
    def impatient(key: str, record: Flight, draft: Draft) -> None:
        assert record.due is not None
        age.age(key, replace(record, due=replace(draft.now.tick, value=0)), draft)

    assert found("before its time", age=impatient)


def test_an_expiry_that_is_not_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    go_back = finish.go_back

    def lenient(draft: Draft, tenant: str, domain: str, flight: Flight, **more: Any) -> None:
        go_back(draft, tenant, domain, replace(flight, retry_count=0), **more)

    monkeypatch.setattr(age, "go_back", lenient)
    assert found("changed")


def test_an_offset_that_forgets_when_it_was_first_acquired(monkeypatch: pytest.MonkeyPatch) -> None:
    head_of = rules.head_of

    def forgetful(draft: Draft, tenant: str, domain: str) -> tuple[int, Queued] | None:
        head = head_of(draft, tenant, domain)
        return head and (head[0], replace(head[1], before=None))

    monkeypatch.setattr(rules, "head_of", forgetful)
    assert found("forgot what it has behind it")


def test_a_new_era_that_gives_more_than_was_left(monkeypatch: pytest.MonkeyPatch) -> None:
    carried = Draft.carried

    def generous(self: Draft, tick: Any) -> Any:
        exact = carried(self, tick)
        return exact and replace(exact, value=exact.value + 1)

    monkeypatch.setattr(Draft, "carried", generous)
    assert found("and ends at")


def test_a_range_that_is_let_go_of_with_old_history() -> None:
    def careless(state: State, checkpoint: StoreCheckpointed) -> list[str]:
        del checkpoint
        return [key for key in state.of(WORK) if "\x01done\x01" in key]

    assert found("work was let go of", forgotten=careless)


def test_a_hand_off_that_is_told_again_though_it_has_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(finish, "_handed_off_again", rules.acquired_again)
    assert found("it is in flight, or is not")


def test_what_another_request_acquired_is_given_back(monkeypatch: pytest.MonkeyPatch) -> None:
    def careless(command: GiveBack, draft: Draft) -> GiveBack:
        flight = rules.flight_of(draft, command.tenant, command.domain)
        return replace(command, token=flight.token if flight else "")

    monkeypatch.setattr(finish, "_with_token", careless)
    assert found("another's token")


def test_a_token_of_another_request() -> None:
    def confusing(command: TryAcquire, draft: Draft) -> Any:
        made = rules.try_acquire(command, draft)
        if isinstance(made, Acquired) and made.outcome == "ALREADY_ACQUIRED":
            return replace(made, outcome="ACQUIRED")
        return made

    assert found("was not given out for it", **deciding(TryAcquire, confusing))
