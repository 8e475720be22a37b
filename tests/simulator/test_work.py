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
from simulator import SimulationFailed, simulate
from simulator.work_troupe import WorkTroupe

SEEDS = 25


def test_work_goes_through_everything_that_leases_do() -> None:
    troupe = WorkTroupe()
    for seed in range(SEEDS):
        simulate(seed, troupes=[troupe])
    noted = sum((Counter(play.noted) for play in troupe.plays), Counter[str]())
    # A troupe that has become tame would find nothing either.
    often = ("work.acquired", "work.enqueued", "work.succeeded", "work.retried", "refused: TOKEN_MISMATCH")
    assert min(noted[name] for name in (*often, "refused: NO_LEASE", "refused: BACKLOG_ORDERING")) > 80
    seldom = ("work.failed", "carried over", "started over", "worker died", "worker paused")
    assert min(noted[name] for name in seldom) > 10
    assert min(noted["hand-off repeated after its end"], noted["given back unheard"]) > 0


def found(**others: Any) -> str:
    """Return the first promise that is seen to be broken by a family with something else in its place."""
    family = replace(work_family(), invariants=lambda state: (), **others)
    for seed in range(2 * SEEDS):
        try:
            simulate(seed, troupes=[WorkTroupe(family)])
        except SimulationFailed as failure:
            return failure.problem
    raise AssertionError(f"nothing was noticed in {2 * SEEDS} seeds")


def deciding(kind: Any, rule: Any) -> dict[str, Any]:
    return {"rules": {**work_family().rules, kind: rule}}


def test_a_retry_that_is_carried_out_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Draft, "remembered", lambda self, command: None)
    assert "was carried out twice" in found()


def test_a_token_that_is_not_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    # Whoever has any token ends what is in flight; the event says it was another's.
    def obliging(draft: Draft, command: Any) -> Any:
        flight = rules.flight_of(draft, command.tenant, command.domain)
        return flight or rules.bearer_of(draft, command)

    monkeypatch.setattr(finish, "bearer_of", obliging)
    assert "another's token" in found()


def test_an_answer_that_was_not_committed() -> None:
    def silent(command: Succeed, draft: Draft) -> Any:
        made = rules.bearer_of(draft, command)
        return Succeeded(outcome="NO_BACKLOG") if isinstance(made, Flight) else finish.succeed(command, draft)  # type: ignore[arg-type]

    assert "it is not in the ledger" in found(**deciding(Succeed, silent))


def test_a_queue_that_is_overtaken(monkeypatch: pytest.MonkeyPatch) -> None:
    head_of = rules.head_of

    def blind(draft: Draft, tenant: str, domain: str) -> Any:
        head = head_of(draft, tenant, domain)
        return head and (head[0], replace(head[1], offset=head[1].offset ^ 1))

    monkeypatch.setattr(rules, "head_of", blind)
    monkeypatch.setattr(finish, "head_of", blind)
    problem = found()
    said = ("hinted at", "is not the head", "does not replay", "refused without reason")
    assert any(words in problem for words in said)


def test_a_terminal_offset_that_is_taken_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rules, "_is_terminal", lambda *given: False)
    problem = found()
    assert "is terminal" in problem or "queued or terminal" in problem


def test_time_that_does_nothing_to_an_offset_in_flight() -> None:
    assert "after its time" in found(age=lambda key, record, draft: None)


def test_an_offset_that_comes_back_too_early() -> None:
    def impatient(key: str, record: Flight, draft: Draft) -> None:
        assert record.due is not None
        age.age(key, replace(record, due=replace(draft.now.tick, value=0)), draft)

    problem = found(age=impatient)
    assert "before its time" in problem


def test_an_expiry_that_is_not_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    go_back = finish.go_back

    def lenient(draft: Draft, tenant: str, domain: str, flight: Flight, **more: Any) -> None:
        go_back(draft, tenant, domain, replace(flight, retry_count=0), **more)

    monkeypatch.setattr(age, "go_back", lenient)
    assert "changed" in found()


def test_an_offset_that_forgets_when_it_was_first_acquired(monkeypatch: pytest.MonkeyPatch) -> None:
    head_of = rules.head_of

    def forgetful(draft: Draft, tenant: str, domain: str) -> tuple[int, Queued] | None:
        head = head_of(draft, tenant, domain)
        return head and (head[0], replace(head[1], before=None))

    monkeypatch.setattr(rules, "head_of", forgetful)
    assert "forgot what it has behind it" in found()


def test_a_new_era_that_gives_more_than_was_left(monkeypatch: pytest.MonkeyPatch) -> None:
    carried = Draft.carried

    def generous(self: Draft, tick: Any) -> Any:
        exact = carried(self, tick)
        return exact and replace(exact, value=exact.value + 1)

    monkeypatch.setattr(Draft, "carried", generous)
    assert "and ends at" in found()


def test_a_range_that_is_let_go_of_with_old_history() -> None:
    def careless(state: State, checkpoint: StoreCheckpointed) -> list[str]:
        del checkpoint
        return [key for key in state.of(WORK) if "\x01done\x01" in key]

    assert "work was let go of" in found(forgotten=careless)


def test_a_hand_off_that_is_told_again_though_it_has_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(finish, "_handed_off_again", rules.acquired_again)
    assert "it is in flight, or is not" in found()


def test_what_another_request_acquired_is_given_back(monkeypatch: pytest.MonkeyPatch) -> None:
    def careless(command: GiveBack, draft: Draft) -> GiveBack:
        flight = rules.flight_of(draft, command.tenant, command.domain)
        return replace(command, token=flight.token if flight else "")

    monkeypatch.setattr(finish, "_with_token", careless)
    assert "another's token" in found()


def test_a_token_of_another_request() -> None:
    def confusing(command: TryAcquire, draft: Draft) -> Any:
        made = rules.try_acquire(command, draft)
        if isinstance(made, Acquired) and made.outcome == "ALREADY_ACQUIRED":
            return replace(made, outcome="ACQUIRED")
        return made

    assert "was not given out for it" in found(**deciding(TryAcquire, confusing))
