"""What is broken on purpose about those who wait is found.

Each test puts a mistake into the law. The invariants of queues, trees and claims know much of this, too; they
are switched off, so that the simulator's own telling of the law has to notice it.
"""

from collections.abc import Iterator, Sequence
from types import ModuleType
from typing import Any

import pytest
from msgspec.structs import replace

from leasehold.engine import status
from leasehold.engine.port import Snapshot
from leasehold.kernel.lease import deadlock, decision, family, paths, plan, ticket
from leasehold.kernel.lease import lock_delay as delaying
from leasehold.kernel.lease import place as placing
from leasehold.kernel.lease import queue as queueing
from leasehold.kernel.lease.answers import Granted
from leasehold.kernel.lease.decision import Decision
from leasehold.kernel.lease.events import LeaseConfirmed, LeaseIssued, LeaseReleased
from leasehold.kernel.lease.model import Lease, LeaseState, Mode
from leasehold.kernel.lease.plan import Plan
from leasehold.kernel.lease.rules import change_mode, transfer
from leasehold.kernel.lease.rules import contend as claiming
from leasehold.kernel.lease.rules import release as releasing
from leasehold.kernel.lease.rules import repeat as asking
from leasehold.kernel.lease.ticket import Ticket
from leasehold.kernel.lease.view import LeaseView
from leasehold.kernel.ledger.draft import Draft
from tests.mutations import search

SEEDS = 400


@pytest.fixture(autouse=True)
def no_other_guard(monkeypatch: pytest.MonkeyPatch) -> None:
    def nothing(_: object) -> Iterator[str]:
        yield from ()

    for name in ("_queues_are_sound", "_trees_are_sound", "_claims_are_whole", "_at_most_one"):
        monkeypatch.setattr(f"leasehold.kernel.lease.invariants.{name}", nothing)


def test_a_head_of_the_queue_that_is_skipped(monkeypatch: pytest.MonkeyPatch) -> None:
    # When something has become free, the first in line is in nobody's way, and looked at only if it is alone.
    waiters = Plan.waiters

    def without_head(self: Plan, *arguments: Any) -> Iterator[Lease]:
        line = list(waiters(self, *arguments))
        yield from line[1:] or line

    def promote(self: Plan) -> None:
        with monkeypatch.context() as here:
            here.setattr(queueing, "waiters_in_the_way", lambda *_: iter(()))
            here.setattr(Plan, "waiters", without_head)
            serve(self)

    serve = queueing.promote
    for module in (claiming, change_mode, queueing):
        monkeypatch.setattr(module, "promote", promote)
    # Who is skipped also waits for nothing, until somebody else is granted what it waits for.
    assert found("who is ahead", besides=["waits, and nothing is in its way"])


def test_a_queue_that_is_served_backwards(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        Ticket, "place", property(lambda self: f"{(1 << 62) - self.number:020x}" if not self.upgrade else "~")
    )
    # Who waits for whom, and so who waits in a circle, follows from the order.
    assert found("who is ahead", "overtook", besides=["waits in no circle", "wait for each other"])


def test_newcomers_that_overtake(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(claiming, "waiters_in_the_way", lambda *_: iter(()))
    assert found("overtook")


def test_a_grant_whose_claim_window_never_passes(monkeypatch: pytest.MonkeyPatch) -> None:
    age = decision.age

    def patient(lease: Lease, *rest: Any) -> Any:
        return ([], lease) if lease.is_unconfirmed else age(lease, *rest)

    monkeypatch.setattr(plan, "age", patient)
    assert found("is over", "could not be had")


def test_a_waiter_that_is_silent_for_ever_and_keeps_its_place(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (claiming, asking):
        monkeypatch.setattr(module, "kept_ns", lambda resources: 3600 * 1_000_000_000)
    assert found("silent for too long")


def test_a_cancelled_wait_that_leaves_a_lease(monkeypatch: pytest.MonkeyPatch) -> None:
    # Whoever leaves is told so, and is granted what it waited for all the same.
    end = releasing.end

    def absent_minded(lease: Lease, *rest: Any) -> Any:
        events, ended = end(lease, *rest)
        return ([] if lease.state is LeaseState.PENDING else events), ended

    monkeypatch.setattr(releasing, "end", absent_minded)
    assert found("stands")


def test_a_claim_that_is_granted_in_part(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Plan, "group_of", lambda self, lease: [lease])
    # Whoever comes meanwhile may be refused because of such a part, before a commit has it.
    assert found("without the rest of its claim", besides=["was refused without reason"])


def test_a_directory_that_does_not_know_what_is_in_it(monkeypatch: pytest.MonkeyPatch) -> None:
    tree_of = LeaseView.tree_of

    def flat(self: LeaseView, tenant: str, path: str, limit: int) -> tuple[list[Lease], frozenset[Mode]]:
        found, cut = tree_of(self, tenant, path, limit)
        return [lease for lease in found if lease.resource == path], cut

    monkeypatch.setattr(LeaseView, "tree_of", flat)
    monkeypatch.setattr(plan, "related", lambda one, other: one == other)
    assert found("overtook", "stood in its way")
    monkeypatch.setattr("simulator.truth._stands_in_the_way", lambda *_: False)
    be_silent_about_crowds(monkeypatch)
    assert found("at once", besides=["was not alone"])  # Upgrades do not see what is in it either.


def test_a_pattern_that_does_not_know_what_it_matches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(paths, "overlap", lambda one, other: False)
    assert found("overtook", "stood in its way", "was not alone")


def test_a_deadlock_that_nobody_sees(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (claiming, change_mode, deadlock):
        monkeypatch.setattr(module, "find_cycle", lambda *_, **__: [])
    assert found("wait for each other, for ever")


def test_a_circle_that_is_let_in_and_nobody_in_it_is_asked_for_a_sign_of_life(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(claiming, "doubt", lambda *_: None)
    assert found("wait for each other, for ever")


def test_somebody_who_has_not_asked_since_and_passes_for_living(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(deadlock.Step, "is_doubted", False)
    assert found("without reason", "in doubt already", "defect")


def test_a_waiter_behind_others_that_is_left_alone_for_long(monkeypatch: pytest.MonkeyPatch) -> None:
    # If those ahead have died, nobody notices that what they are granted is free again.
    monkeypatch.setattr(placing, "_longest_silence_ns", lambda *_: ticket.ASK_AGAIN_NS)
    assert found("was told to ask too late")


def test_a_deadlock_that_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    # Whoever is blocked by somebody who waits for anything at all is refused.
    def suspicious(self: Plan, tenant: str, holder: str, *, certain: bool = False) -> list[deadlock.Step]:
        del certain
        for step in deadlock._waits_of(self, tenant, holder):
            if next(deadlock._waits_of(self, tenant, step.blocker), None) is not None:
                return [step]
        return []

    monkeypatch.setattr(claiming, "find_cycle", suspicious)
    assert found("was refused without reason")


def test_a_lock_delay_that_is_not_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plan, "delay_after", lambda *facts: None)
    assert found("kept others away")


def test_a_lock_delay_that_lets_everybody_back(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(queueing, "is_delayed_for", lambda lease, holder: lease.holder == "registrar")
    assert found("kept others away", "stood in its way")


def test_a_transfer_that_leaves_the_old_lease_valid(monkeypatch: pytest.MonkeyPatch) -> None:
    add = Plan.add

    def forgetful(self: Plan, event: Any) -> None:
        if not (isinstance(event, LeaseReleased) and event.request and event.reason == "transferred"):
            add(self, event)

    monkeypatch.setattr(transfer, "_cannot_receive", lambda *_: None)
    monkeypatch.setattr(Plan, "add", forgetful)
    assert found("was not handed over")


def test_a_transfer_that_keeps_the_old_token(monkeypatch: pytest.MonkeyPatch) -> None:
    hand_over = transfer._hand_over

    def stingy(command: Any, self: Plan, lease: Lease) -> Any:
        with monkeypatch.context() as here:
            here.setattr(Plan, "next_token", lambda _: lease.token)
            return hand_over(command, self, lease)

    monkeypatch.setattr(transfer, "_hand_over", stingy)
    assert found("is not above all others")


@pytest.mark.parametrize("module", [change_mode, queueing], ids=["at once", "after waiting"])
def test_an_upgrade_beside_other_sharers(module: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "others_beside", lambda *_: [])
    monkeypatch.setattr("simulator.closings.Closings._enter", lambda *_: None)
    assert found("was not alone")


def test_sharers_that_come_in_while_an_upgrade_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    def lenient(self: Plan, holder: str, wanted: Lease) -> list[Lease]:
        return [
            lease
            for lease in self.standing(wanted.tenant, wanted.resource)
            if lease.holder != holder
            and not delaying.is_delayed_for(lease, holder)
            and lease.mode.conflicts_with(wanted.mode)
        ]

    for module in (claiming, queueing):
        monkeypatch.setattr(module, "holders_in_the_way", lenient)
    assert found("stood in its way")


def test_a_waiter_that_is_not_granted_what_has_become_free(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("leasehold.kernel.lease.family.promote_after", lambda event, view, now: None)
    assert found("nothing is in its way")


def test_a_winner_that_is_not_woken(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Plan, "wake", lambda *_: None)
    assert found("was not woken")


def test_a_waiter_that_is_told_to_ask_too_late(monkeypatch: pytest.MonkeyPatch) -> None:
    place_behind = placing.place_behind
    monkeypatch.setattr(
        placing, "place_behind", lambda *facts: replace(place_behind(*facts), expires_in_ns=None)
    )
    assert found("ask too late")


def test_a_grant_that_is_not_confirmed(monkeypatch: pytest.MonkeyPatch) -> None:
    ask_again = asking.ask_again

    def hasty(*arguments: Any) -> Any:
        decided = ask_again(*arguments)
        # What is granted only now has to be recorded all the same: without that it is another mistake.
        if isinstance(decided, Decision) and all(isinstance(one, LeaseConfirmed) for one in decided.events):
            return Decision(events=[], leases=[], answer=decided.answer)
        return decided

    monkeypatch.setattr("leasehold.kernel.lease.rules.acquire.ask_again", hasty)
    assert found("nobody has confirmed it")


def test_a_look_that_promises_more_than_the_claim_window(monkeypatch: pytest.MonkeyPatch) -> None:
    def boastful(snapshot: Snapshot, lease_ids: tuple[str, ...]) -> Granted | None:
        seen = status.won(snapshot, lease_ids)
        return None if seen is None else replace(seen, expires_in_ns=2 * seen.lease.ttl_ns)

    monkeypatch.setattr("simulator.engine.won", boastful)
    assert found("was promised too much")


def test_a_look_that_takes_what_is_still_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(status, "_can_wait_for_confirmation", lambda one: one.expires_in > 0)
    assert found("is still waited for")


def test_a_winner_that_stays_one_though_what_made_it_one_is_decided_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    append = family._append

    def hasty(decided: Decision, view: LeaseView, draft: Draft, **options: Any) -> None:
        steps = len(draft.view.journal.steps)
        append(decided, view, draft, **options)
        if any(isinstance(event, LeaseIssued) and event.claim_window_ns for event in decided.events):
            del draft.view.journal.steps[steps:]

    monkeypatch.setattr(family, "_append", hasty)
    assert found("waits, and nothing is in its way")


def be_silent_about_crowds(monkeypatch: pytest.MonkeyPatch) -> None:
    """Leave it to what holders believe."""
    crowd_judge = "simulator.crowd_judge.CrowdJudge"
    for name in ("problem_before", "problem_after"):
        monkeypatch.setattr(f"{crowd_judge}.{name}", lambda *_, **__: None)


def found(*says: str, besides: Sequence[str] = ()) -> str:
    """Return the first promise that is seen to be broken where it is crowded."""
    return search.found(*says, seeds=range(2, SEEDS, 4), besides=besides)
