"""What time has done is recorded in bulk: one command for each record, and few reads for all of them."""

import pytest

from leasehold.engine.audit import audit
from leasehold.engine.batch import Rules, run_batch
from leasehold.engine.port import Store
from leasehold.kernel.lease.answers import Waiting
from leasehold.kernel.ledger.commands import Sweep, SweepDue, Swept, SweptDue
from leasehold.kernel.ledger.refusals import Refusal
from leasehold.testing.clock import FakeClock
from tests.engine.doubles import WatchedStore, claim, expect, granted

RULES = Rules()


def sweep(store: Store, limit: int) -> int:
    (answer,) = run_batch(store, [SweepDue(limit=limit, request_id="sweep")], RULES)
    return expect(SweptDue, answer).ended


@pytest.fixture
def watched(store: Store) -> WatchedStore:
    return WatchedStore(store)


def test_a_thousand_leases_that_others_wait_for_are_swept_with_ten_reads_at_most(
    watched: WatchedStore, clock: FakeClock
) -> None:
    run_batch(watched, [claim(f"door-{number}") for number in range(1_000)], RULES)
    waiters = [claim(f"door-{number}", f"waiter-{number}", wait=True) for number in range(1_000)]
    assert all(isinstance(outcome, Waiting) for outcome in run_batch(watched, waiters, RULES))
    clock.advance(11)
    watched.reads.clear()
    watched.commits.clear()

    assert sweep(watched, 1_000) == 1_000

    assert len(watched.reads) <= 10
    assert len(watched.commits) == 1
    assert [granted(one).holder for one in run_batch(watched, waiters[:3], RULES)] == [
        "waiter-0",
        "waiter-1",
        "waiter-2",
    ]
    assert audit(watched).problems == []


def test_a_sweep_sees_to_no_more_than_it_was_told_to(watched: WatchedStore, clock: FakeClock) -> None:
    run_batch(watched, [claim(f"door-{number}") for number in range(5)], RULES)
    clock.advance(11)
    assert [sweep(watched, 2) for _ in range(4)] == [2, 2, 1, 0]


def test_a_record_can_be_swept_by_name(watched: WatchedStore, clock: FakeClock) -> None:
    lease = granted(run_batch(watched, [claim("door")], RULES)[0])
    named = Sweep(family="lease", key=lease.lease_id, request_id="r")
    assert run_batch(watched, [named], RULES) == [Swept(ended=False)]
    clock.advance(10)
    assert run_batch(watched, [named, named], RULES) == [Swept(ended=True), Swept(ended=False)]


def test_what_is_not_there_is_not_swept(watched: WatchedStore) -> None:
    nobody = Sweep(family="lease", key="nobody", request_id="r")
    assert run_batch(watched, [nobody], RULES) == [Swept(ended=False)]


@pytest.mark.parametrize("field", ["key", "request_id", "tenant"])
def test_a_sweep_of_nothing_is_refused(watched: WatchedStore, field: str) -> None:
    fields = {"key": "x", "request_id": "r", "tenant": "default"} | {field: ""}
    (refusal,) = run_batch(watched, [Sweep(family="lease", **fields)], RULES)
    assert expect(Refusal, refusal).field == field


def test_a_family_that_nobody_knows_cannot_be_swept(watched: WatchedStore) -> None:
    (refusal,) = run_batch(watched, [Sweep(family="camera", key="x", request_id="r")], RULES)
    assert expect(Refusal, refusal).field == "family"


def test_who_asks_first_has_swept_it_all_and_answers_stay_in_order(
    watched: WatchedStore, clock: FakeClock
) -> None:
    run_batch(watched, [claim("door"), claim("gate")], RULES)
    clock.advance(10)
    due = SweepDue(limit=10, request_id="r")
    outcomes = run_batch(watched, [claim("one"), due, claim("two"), due], RULES)
    assert [outcomes[1], outcomes[3]] == [SweptDue(ended=2), SweptDue(ended=0)]
    assert [granted(outcomes[0]).resource, granted(outcomes[2]).resource] == ["one", "two"]


def test_of_several_who_ask_at_once_the_one_who_asks_for_most_counts(
    watched: WatchedStore, clock: FakeClock
) -> None:
    run_batch(watched, [claim(f"door-{number}") for number in range(5)], RULES)
    clock.advance(10)
    few, most = SweepDue(limit=1, request_id="few"), SweepDue(limit=4, request_id="most")

    assert run_batch(watched, [few, most, few], Rules(sweep_limit=2)) == [
        SweptDue(ended=4),
        SweptDue(ended=0),
        SweptDue(ended=0),
    ]


@pytest.mark.parametrize("limit", [0, -1, 1_001])
def test_a_sweep_has_a_limit(watched: WatchedStore, limit: int) -> None:
    (refusal,) = run_batch(watched, [SweepDue(limit=limit, request_id="r")], RULES)
    assert expect(Refusal, refusal).field == "limit"
