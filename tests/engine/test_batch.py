"""Many commands, one transaction: decided in order, committed together, refused each on its own."""

from itertools import pairwise

import pytest
from msgspec.structs import replace

from leasehold.engine import batch as batch_module
from leasehold.engine.audit import audit
from leasehold.engine.batch import Recall, Request, Rules, run_batch, run_taken
from leasehold.engine.port import Batch, Store, WouldBlock
from leasehold.engine.recording import open_epoch
from leasehold.errors import StoreFailed, StoreRejected
from leasehold.kernel.lease.answers import Ended, Granted, Released, Renewal, Renewed, Waiting
from leasehold.kernel.lease.budget import Budget
from leasehold.kernel.lease.commands import (
    Acquire,
    Derive,
    Release,
    Renew,
    Revoke,
)
from leasehold.kernel.lease.family import lease_family
from leasehold.kernel.lease.model import LeaseState, ReleaseReason
from leasehold.kernel.lease.quotas import Quotas
from leasehold.kernel.lease.records import LEASE, count_of_holder, lease_keys
from leasehold.kernel.lease.scope import Scope
from leasehold.kernel.ledger.commands import Command, Sweep
from leasehold.kernel.ledger.decide import decide
from leasehold.kernel.ledger.family import Families
from leasehold.kernel.ledger.refusals import Refusal
from leasehold.testing.clock import FakeClock
from tests.engine.doubles import WatchedStore, claim, created, expect, granted, release

RULES = Rules()


@pytest.fixture
def watched(store: Store) -> WatchedStore:
    made = WatchedStore(store)
    open_epoch(made)
    made.commits.clear()
    made.durable.clear()
    return made


def test_each_command_sees_what_those_before_it_did(watched: WatchedStore) -> None:
    first = claim("door", "ann")
    ann_again = claim("door", "ann")
    bob = claim("door", "bob")
    giving_back = Release(lease_ids=(first.lease_id,), holder="ann", request_id="r")
    bob_again = claim("door", "bob")

    outcomes = run_batch(watched, [first, ann_again, bob, giving_back, bob_again], RULES)

    assert granted(outcomes[0]).holder == "ann"
    assert [expect(Refusal, outcome).code for outcome in outcomes[1:3]] == ["ALREADY_HELD", "HELD"]
    assert isinstance(expect(Released, outcomes[3]).outcomes[0], Ended)
    assert granted(outcomes[4]).token > granted(outcomes[0]).token
    assert len(watched.commits) == 1
    assert audit(watched).problems == []


def own_request(resource: str, holder: str = "ann") -> Acquire:
    """Return a claim as clients send it, whose lease will be all the memory of it that there is."""
    sent = claim(resource, holder)
    return replace(sent, request_id=sent.lease_id)


def test_a_claim_is_taken_for_new_without_looking_for_its_lease(watched: WatchedStore) -> None:
    run_batch(watched, [own_request("door")], RULES)

    assert [keys.families[LEASE].keys for keys in watched.reads] == [set()]


def test_the_repeat_of_a_claim_is_told_what_became_of_it(watched: WatchedStore) -> None:
    sent, other = own_request("door"), own_request("window")
    first = granted(run_batch(watched, [sent], RULES)[0])

    assert expect(Granted, run_batch(watched, [sent], RULES)[0]).repeated

    run_batch(watched, [release(first)], RULES)
    watched.commits.clear()
    ended, beside = run_batch(watched, [sent, other], RULES)

    assert expect(Granted, ended).ended, "the store has no room for a second lease with this id"
    assert expect(Granted, run_batch(watched, [sent], RULES)[0]).ended
    assert granted(beside).resource == "window"
    assert sum(len(created(batch)) for batch in watched.commits) == 1
    assert audit(watched).problems == []


def test_the_repeat_of_a_claim_is_told_so_where_somebody_else_has_come_since(watched: WatchedStore) -> None:
    sent = own_request("door")
    first = granted(run_batch(watched, [sent], RULES)[0])
    run_batch(watched, [release(first), own_request("door", "bob")], RULES)

    assert expect(Granted, run_batch(watched, [sent], RULES)[0]).ended


def test_a_long_circle_is_found_without_deciding_anew_for_every_step(
    watched: WatchedStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    holders = [f"holder-{number}" for number in range(30)]
    run_batch(watched, [claim(f"door-{holder}", holder) for holder in holders], RULES)
    for waiter, other in pairwise(holders):
        expect(Waiting, run_batch(watched, [claim(f"door-{other}", waiter, wait=True)], RULES)[0])
    decided: list[Command] = []

    def counting(command: Command, *rest: object) -> object:
        decided.append(command)
        return decide(command, *rest)  # type: ignore[arg-type]

    monkeypatch.setattr(batch_module, "decide", counting)
    closing = claim(f"door-{holders[0]}", holders[-1], wait=True)
    refusal = expect(Refusal, run_batch(watched, [closing], RULES)[0])

    assert refusal.code == "DEADLOCK"
    assert refusal.cycle is not None
    assert len(refusal.cycle) == 2 * len(holders) + 1
    assert len(decided) < 10


def test_a_lease_can_be_granted_renewed_adopted_and_revoked_in_one_transaction(
    watched: WatchedStore, clock: FakeClock
) -> None:
    old = claim("door", "ann")
    longer = Renew(lease_ids=(old.lease_id,), holder="ann", ttl_ns=60 * 10**9, request_id="renewal")
    new = claim("door", "ann", adopt=True)
    end = Revoke(lease_id=new.lease_id, operator="olga", reason="maintenance", request_id="end")

    outcomes = run_batch(watched, [old, longer, new, end, claim("door", "bob")], RULES)

    assert isinstance(expect(Renewed, outcomes[1]).outcomes[0], Renewal)
    assert granted(outcomes[2]).adopted_from == old.lease_id
    assert expect(Ended, outcomes[3]).lease.state is LeaseState.REVOKED
    assert granted(outcomes[4]).holder == "bob"
    with watched.snapshot() as snapshot:
        (replaced,) = snapshot.read(lease_keys(keys={old.lease_id})).families[LEASE].records.values()
    assert (replaced.release_reason, replaced.renewal_count) == (ReleaseReason.TRANSFERRED, 1)
    assert audit(watched).problems == []


def test_refusals_alone_commit_nothing(watched: WatchedStore) -> None:
    run_batch(watched, [claim("door", "ann")], RULES)
    watched.commits.clear()

    outcomes = run_batch(watched, [claim("door", "bob"), claim("", "bob")], RULES)

    assert [expect(Refusal, outcome).code for outcome in outcomes] == ["HELD", "INVALID_INPUT"]
    assert watched.commits == []


def test_malformed_commands_keep_their_place_among_the_answers(watched: WatchedStore) -> None:
    commands: list[Command] = [claim("", "ann"), claim("one"), claim("x", ""), claim("two"), claim("", "")]

    outcomes = run_batch(watched, commands, RULES)

    assert [type(outcome) for outcome in outcomes] == [Refusal, Granted, Refusal, Granted, Refusal]
    assert [granted(outcomes[place]).resource for place in (1, 3)] == ["one", "two"]


def test_no_commands_are_no_trouble(watched: WatchedStore) -> None:
    assert run_batch(watched, [], RULES) == []


def test_commands_are_taken_when_it_is_our_turn_and_only_once(watched: WatchedStore) -> None:
    taken: list[str] = []

    requests: list[Request] = []

    def board() -> None:
        taken.append("taken")
        requests.append(Request(claim("door")))

    watched.occupy()
    with pytest.raises(WouldBlock):
        run_taken(watched, requests, RULES, board=board, blocking=False)
    assert taken == []
    watched.vacate()
    granted(run_taken(watched, requests, RULES, board=board, blocking=False)[0])
    assert taken == ["taken"]


def test_a_batch_that_has_to_be_run_again_takes_on_board_who_came_meanwhile(watched: WatchedStore) -> None:
    waiting = [Request(claim("one")), Request(claim("two"))]
    requests: list[Request] = []

    def board() -> None:
        requests[:] = waiting

    def reject_pairs(batch: Batch) -> None:
        if len(created(batch)) == 2:
            waiting.append(Request(claim("three")))
            raise StoreRejected("one at a time")

    watched.before_commit = reject_pairs

    outcomes = run_taken(watched, requests, RULES, board=board, blocking=True)

    assert [granted(outcome).resource for outcome in outcomes] == ["one", "two", "three"]


def test_a_batch_need_not_read_what_the_one_before_it_left(watched: WatchedStore) -> None:
    recall = Recall()
    held = granted(run_batch(watched, [claim("door")], RULES, recall=recall)[0])
    watched.reads.clear()

    outcome = run_batch(watched, [release(held)], RULES, recall=recall)[0]

    assert watched.reads == []
    assert [expect(Ended, one).already for one in expect(Released, outcome).outcomes] == [False]


def test_a_batch_sees_what_others_have_written_since_the_one_before_it(watched: WatchedStore) -> None:
    recall = Recall()
    held = granted(run_batch(watched, [claim("door")], RULES, recall=recall)[0])
    run_batch(watched, [release(held)], RULES)
    theirs = granted(run_batch(watched, [claim("door", "bob")], RULES)[0])

    refusal = expect(Refusal, run_batch(watched, [claim("door", "carl")], RULES, recall=recall)[0])

    assert (refusal.code, refusal.token) == ("HELD", theirs.token)


def test_what_a_failed_commit_would_have_done_is_not_recalled(watched: WatchedStore) -> None:
    recall = Recall()
    held = granted(run_batch(watched, [claim("door")], RULES, recall=recall)[0])

    def fail(batch: Batch) -> None:
        raise StoreFailed("broken disk")

    watched.before_commit = fail
    with pytest.raises(StoreFailed):
        run_batch(watched, [release(held)], RULES, recall=recall)
    watched.before_commit = lambda batch: None

    refusal = expect(Refusal, run_batch(watched, [claim("door", "bob")], RULES, recall=recall)[0])
    assert (refusal.code, refusal.lease_id) == ("HELD", held.lease_id)


def test_quotas_count_what_others_have_taken_since_the_last_batch(watched: WatchedStore) -> None:
    recall, rules = Recall(), Rules()
    watched.other_families = Families((lease_family(Quotas(leases_per_tenant=2)),))
    granted(run_batch(watched, [claim("one")], rules, recall=recall)[0])
    granted(run_batch(watched, [claim("two", "bob")], rules)[0])

    refusal = expect(Refusal, run_batch(watched, [claim("three")], rules, recall=recall)[0])

    assert refusal.field == "leases_per_tenant"


def test_what_quotas_count_is_counted_once_while_nobody_else_writes(watched: WatchedStore) -> None:
    recall, rules = Recall(), Rules()
    watched.other_families = Families((lease_family(Quotas(leases_per_holder=3, leases_per_tenant=4)),))
    held = granted(run_batch(watched, [claim("one")], rules, recall=recall)[0])
    watched.reads.clear()
    for resource, holder in (("two", "ann"), ("three", "ann"), ("four", "bob")):
        granted(run_batch(watched, [claim(resource, holder)], rules, recall=recall)[0])

    refusals = [run_batch(watched, [claim("five", who)], rules, recall=recall)[0] for who in ("ann", "bob")]
    assert [expect(Refusal, one).field for one in refusals] == ["leases_per_holder", "leases_per_tenant"]
    run_batch(watched, [release(held)], rules, recall=recall)
    granted(run_batch(watched, [claim("five")], rules, recall=recall)[0])
    counts = [count for keys in watched.reads for count in keys.families[LEASE].counts]
    assert counts == [count_of_holder(("default", "bob"))]


def test_a_store_that_fails_raises_for_all(watched: WatchedStore) -> None:
    def fail(batch: Batch) -> None:
        raise StoreFailed("broken disk")

    watched.before_commit = fail

    with pytest.raises(StoreFailed):
        run_batch(watched, [claim("one"), claim("two")], RULES)


def test_one_failure_of_those_run_alone_is_that_ones_own(watched: WatchedStore) -> None:
    def fail(batch: Batch) -> None:
        if len(created(batch)) > 1:
            raise StoreRejected("one at a time")
        if created(batch)[0].resource == "one":
            raise StoreFailed("broken disk")

    watched.before_commit = fail

    one, two = run_batch(watched, [claim("one"), claim("two")], RULES)

    assert isinstance(one, StoreFailed)
    assert granted(two).resource == "two"


def test_a_sweep_that_fails_does_not_fail_the_command_it_came_with(
    watched: WatchedStore, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    granted(run_batch(watched, [claim("old")], RULES)[0])
    clock.advance(10)

    def broken_sweep(command: Command, *rest: object) -> object:
        if isinstance(command, Sweep):
            raise ZeroDivisionError("a row that nobody can read")
        return decide(command, *rest)  # type: ignore[arg-type]

    monkeypatch.setattr(batch_module, "decide", broken_sweep)

    granted(run_batch(watched, [claim("new")], Rules(sweep_limit=10))[0])


def test_the_sweep_in_passing_is_bounded_and_takes_the_longest_overdue_first(
    watched: WatchedStore, clock: FakeClock
) -> None:
    old = []
    for number in range(5):
        old.append(granted(run_batch(watched, [claim(f"old-{number}")], RULES)[0]))
        clock.advance(1)
    clock.advance(10)
    watched.commits.clear()

    granted(run_batch(watched, [claim("new")], Rules(sweep_limit=3))[0])

    (batch,) = watched.commits
    ended = [entry.event.keys[0] for entry in batch.entries if entry.event.type == "lease.expired"]
    assert ended == [lease.lease_id for lease in old[:3]]


def test_quotas_are_exact_within_one_batch(watched: WatchedStore) -> None:
    rules = Rules()
    watched.other_families = Families((lease_family(Quotas(leases_per_holder=3)),))

    outcomes = run_batch(watched, [claim(f"door-{number}") for number in range(5)], rules)

    assert [isinstance(outcome, Granted) for outcome in outcomes] == [True, True, True, False, False]
    run_batch(watched, [release(granted(outcomes[0]))], rules)
    granted(run_batch(watched, [claim("door-9")], rules)[0])


def test_all_who_have_won_something_are_woken_together_after_the_commit(watched: WatchedStore) -> None:
    held = [granted(one) for one in run_batch(watched, [claim("door"), claim("gate")], RULES)]
    waiters = [claim("door", "bob", wait=True, wake="bell.1"), claim("gate", "cy", wait=True, wake="bell.2")]
    assert all(isinstance(one, Waiting) for one in run_batch(watched, waiters, RULES))
    watched.commits.clear()
    woken: list[tuple[frozenset[str], int]] = []
    rules = Rules(wake=lambda wakes: woken.append((wakes, len(watched.commits))))

    run_batch(watched, [release(one) for one in held], rules)

    assert woken == [(frozenset({"bell.1", "bell.2"}), 1)]


def test_a_new_epoch_is_made_durable_before_anything_is_granted_under_it(
    watched: WatchedStore, clock: FakeClock
) -> None:
    before = granted(run_batch(watched, [claim("one")], RULES)[0])
    watched.commits.clear()
    watched.durable.clear()
    clock.reboot()

    after = granted(run_batch(watched, [claim("two")], RULES)[0])

    assert [[entry.event.type for entry in batch.entries] for batch in watched.commits] == [
        ["store.epoch_raised"],
        ["lease.issued"],
    ]
    assert watched.durable == [False, True, False]
    assert after.token >> 23 == (before.token >> 23) + 1


def test_opening_an_epoch_that_is_open_changes_nothing(watched: WatchedStore) -> None:
    open_epoch(watched)

    assert watched.commits == []


def test_records_that_only_the_decision_asks_for_are_read_then(
    watched: WatchedStore, clock: FakeClock
) -> None:
    # Nobody can know beforehand that a lease of an earlier era needs that era's record.
    held = granted(run_batch(watched, [claim("door", bound_to_boot=False)], RULES)[0])
    clock.reboot()

    refusal = expect(Refusal, run_batch(watched, [claim("door", "bob")], RULES)[0])

    assert (refusal.code, refusal.lease_id) == ("HELD", held.lease_id)


def test_an_id_that_one_claim_presumes_to_be_new_is_a_lease_like_any_other_for_the_rest(
    watched: WatchedStore,
) -> None:
    """A claim under the id of a parent made its child fall, and somebody else was granted it."""
    budget = Budget(tokens=10)
    parent = granted(
        run_batch(watched, [claim("tree", budget=budget, scope=Scope(unlimited=True))], RULES)[0]
    )
    child = Derive(
        parent_id=parent.lease_id,
        holder="ann",
        lease_id="child",
        resource="branch",
        child_holder="ann",
        budget=Budget(tokens=5),
        request_id="derive",
    )
    granted(run_batch(watched, [child], RULES)[0])
    forged = replace(own_request("window", "eve"), lease_id=parent.lease_id, request_id=parent.lease_id)
    held, exists = run_batch(watched, [claim("branch", "eve"), forged], RULES)
    assert expect(Refusal, held).code == "HELD"
    assert expect(Refusal, exists).code == "LEASE_EXISTS"
    assert audit(watched).problems == []


def test_what_was_presumed_in_vain_is_not_carried_into_the_next_batch(watched: WatchedStore) -> None:
    recall = Recall()
    held = granted(run_batch(watched, [claim("door")], RULES)[0])
    forged = replace(own_request("door", "eve"), lease_id=held.lease_id, request_id=held.lease_id)
    expect(Refusal, run_batch(watched, [forged], RULES, recall=recall)[0])
    renew = Renew(lease_ids=(held.lease_id,), holder="ann", request_id="renewal")
    (renewed,) = expect(Renewed, run_batch(watched, [renew], RULES, recall=recall)[0]).outcomes
    expect(Renewal, renewed)
