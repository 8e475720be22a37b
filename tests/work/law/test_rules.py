"""What work leases can do beyond the contract, and what every command here promises."""

from typing import Any

import pytest

from leasehold.engine.batch import Rules, run_batch
from leasehold.kernel.ledger.commands import Sweep
from leasehold.work.law import commands, rules
from leasehold.work.law.answers import Acquired, GivenBack, Kept
from leasehold.work.law.commands import Enqueue, Fail, Succeed, TryAcquire
from leasehold.work.law.model import OFFSET_MAXIMUM, flight_key, queued_key
from tests.work.house import SECOND, WorkHouse, refused

# Time to live.


def test_an_offset_whose_time_is_over_goes_back_to_the_head_with_what_it_has_behind_it(
    house: WorkHouse,
) -> None:
    first = house.acquire("A", 1, ttl_ns=10 * SECOND)
    house.acquire("A", 2)
    house.fail("A", first.token)
    house.clock.advance(10)
    assert refused(house.acquire("A", 2)) == "BACKLOG_ORDERING"
    assert house.sweep() == 1
    assert house.backlog() == [1, 2]
    again = house.acquire("A", 1)
    assert again.outcome == "ACQUIRED"
    assert again.acquired_at_millis == first.acquired_at_millis
    assert again.retry_count == 2, "one failure, and one attempt that nobody ended"
    assert int(again.token) > int(first.token)
    for end in (house.succeed, house.fail, house.keep_alive):
        assert refused(end("A", first.token)) == "TOKEN_MISMATCH"
    house.ensure_sound()


def test_at_the_retry_limit_an_offset_whose_time_is_over_ends_as_failed(house: WorkHouse) -> None:
    house.token("A", 1, ttl_ns=SECOND, max_retries=0)
    house.acquire("A", 2)
    house.clock.advance(1)
    assert house.sweep() == 1
    assert house.acquire("A", 1).outcome == "ALREADY_FAILED"
    assert house.backlog() == [2]
    failed = house.events("work")[-1]
    assert (failed.type, failed.actor, failed.reason) == ("work.failed", "registrar", "expired")  # type: ignore[attr-defined]


def test_time_runs_out_on_the_tick(house: WorkHouse) -> None:
    token = house.token("A", 1, ttl_ns=SECOND)
    house.clock.advance(ns=SECOND - 1)
    assert house.acquire("A", 1).expires_in_ns == 1
    house.clock.advance(ns=1)
    assert refused(house.succeed("A", token)) == "NO_LEASE"


def test_keep_alive_gives_more_time_and_never_less(house: WorkHouse) -> None:
    token = house.token("A", 1, ttl_ns=10 * SECOND)
    house.clock.advance(9)
    assert house.keep_alive("A", token) == Kept(expires_in_ns=10 * SECOND)
    assert house.keep_alive("A", token, ttl_ns=SECOND) == Kept(expires_in_ns=10 * SECOND)
    assert house.keep_alive("A", token, ttl_ns=20 * SECOND).expires_in_ns == 20 * SECOND
    house.clock.advance(19.9)
    assert house.succeed("A", token).outcome == "NO_BACKLOG"


def test_keep_alive_leaves_an_offset_without_a_time_to_live_as_it_is_or_gives_it_one(
    house: WorkHouse,
) -> None:
    token = house.token("A", 1)
    position = house.position()
    assert house.keep_alive("A", token) == Kept()
    assert house.position() == position
    house.keep_alive("A", token, ttl_ns=SECOND)
    house.clock.advance(1)
    assert refused(house.succeed("A", token)) == "NO_LEASE"


def test_a_reboot_leaves_an_offset_what_it_had_left(house: WorkHouse) -> None:
    token = house.token("A", 1, ttl_ns=10 * SECOND)
    house.clock.advance(4)
    house.token("B", 1)  # So that the registrar has seen this moment.
    house.clock.reboot(down_seconds=3600)
    assert house.acquire("A", 1).expires_in_ns == 6 * SECOND
    house.clock.advance(6)
    assert refused(house.succeed("A", token)) == "NO_LEASE"
    house.ensure_sound()


def test_an_offset_that_has_run_out_by_a_reboot_goes_back_at_once(house: WorkHouse) -> None:
    house.token("A", 1, ttl_ns=SECOND)
    house.clock.advance(2)
    house.token("B", 1)
    house.clock.reboot()
    assert house.acquire("A", 1).retry_count == 1


def test_an_offset_of_an_era_that_nobody_remembers_stays_in_flight(house: WorkHouse) -> None:
    from leasehold.kernel.ledger.authority import Authority
    from leasehold.kernel.ledger.draft import Draft
    from leasehold.kernel.ledger.tick import Now, Tick
    from leasehold.kernel.ledger.view import View
    from leasehold.work.law.age import age
    from leasehold.work.law.model import Flight

    authority = Authority(
        epoch=2, counter=0, era=3, era_first_tick=0, boot_id="b", identity="i", tick=5, wall_ns=5
    )
    view = View(house.store.families, authority)
    view.eras_since = lambda tick: {}  # type: ignore[method-assign]
    draft = Draft(view, Now(tick=Tick(value=9, era=3), wall_ns=9))
    due = Tick(value=1, era=1)
    flight = Flight(offset=1, fence=1, holder="ann", acquired_at_ns=1, max_retries=1, due=due)
    age(flight_key("default", "A"), flight, draft)
    assert draft.events == []


def test_a_sweep_of_what_is_not_due_does_nothing(house: WorkHouse) -> None:
    house.token("A", 1, ttl_ns=SECOND)
    house.acquire("A", 2)
    keys = (flight_key("default", "A"), flight_key("default", "B"), queued_key("default", "A", 0))
    for number, key in enumerate(keys):
        swept = house.one(Sweep(family="work", key=key, request_id=f"s{number}"))
        assert not swept.ended


# Hand-off, and giving back.


@pytest.mark.parametrize("end", ["succeed", "fail"])
def test_a_hand_off_acquires_the_head_in_the_same_commit(house: WorkHouse, end: str) -> None:
    token = house.token("A", 1, ttl_ns=10 * SECOND, max_retries=0)
    house.acquire("A", 2)
    house.acquire("A", 3)
    position = house.position()
    ended = getattr(house, end)("A", token, hand_off=True)
    assert ended.next_offset == 2
    assert (ended.acquired.outcome, ended.acquired.offset) == ("ACQUIRED", 2)
    assert ended.acquired.expires_in_ns == 10 * SECOND, "under the same terms"
    assert house.position() == position + 2
    assert house.succeed("A", ended.acquired.token).next_offset == 3


@pytest.mark.parametrize("end", [None, "succeed", "fail"])
def test_what_a_request_has_acquired_is_given_back_by_the_name_of_the_request(
    house: WorkHouse, end: str | None
) -> None:
    asked: TryAcquire | Succeed | Fail = TryAcquire(offset=2, **house.said("A", {}))
    if end is None:
        house.one(asked)
    else:
        token = house.token("A", 1, max_retries=0)
        house.acquire("A", 2)
        kind = Succeed if end == "succeed" else Fail
        asked = kind(token=token, hand_off=True, **house.said("A", {}))
        house.one(asked)

    given = house.give_back("A", "", acquired_by=asked.request_key, request_id="back")

    assert given == GivenBack(offset=2)
    assert house.give_back("A", "", acquired_by=asked.request_key, request_id="back") == given
    again = house.acquire("A", 2)
    assert (again.outcome, again.retry_count) == ("ACQUIRED", 0)
    assert refused(house.give_back("A", "", acquired_by=asked.request_key)) == "TOKEN_MISMATCH"
    assert refused(house.give_back("A", "", acquired_by="nobody:0")) == "TOKEN_MISMATCH"
    house.succeed("A", again.token)
    assert refused(house.give_back("A", "", acquired_by=asked.request_key)) == "NO_LEASE"
    house.ensure_sound()


def test_what_a_request_of_another_tenant_has_acquired_stays_there(house: WorkHouse) -> None:
    theirs = TryAcquire(offset=1, **house.said("A", {"tenant": "them"}))
    acquired = house.one(theirs)
    house.token("A", 1)
    told = house.give_back("A", "", acquired_by=theirs.request_key)
    assert refused(told) == "TOKEN_MISMATCH"
    assert acquired.token not in told.detail


@pytest.mark.parametrize("end", ["succeed", "fail"])
def test_a_hand_off_that_is_asked_for_again_after_it_has_ended_is_a_hint(house: WorkHouse, end: str) -> None:
    token = house.token("A", 1, max_retries=0, ttl_ns=SECOND)
    house.acquire("A", 2)
    handed = getattr(house, end)("A", token, hand_off=True, request_id="again")
    house.clock.advance(1)
    house.acquire("A", 2)  # Its time is over: it is given up, or somebody else has it.
    again = getattr(house, end)("A", token, hand_off=True, request_id="again")
    assert (again.outcome, again.next_offset) == (handed.outcome, 2)
    assert (handed.acquired.offset, again.acquired) == (2, None)


def test_a_hand_off_without_a_backlog_acquires_nothing(house: WorkHouse) -> None:
    ended = house.succeed("A", house.token("A", 1), hand_off=True)
    assert (ended.outcome, ended.acquired) == ("NO_BACKLOG", None)
    assert house.fail("A", house.token("A", 2), hand_off=True).outcome == "RETRY_SCHEDULED"


def test_what_is_given_back_is_at_the_head_as_if_nothing_had_been(house: WorkHouse) -> None:
    first = house.acquire("A", 1)
    house.acquire("A", 2)
    assert house.give_back("A", first.token, request_id="back").offset == 1
    assert house.give_back("A", first.token, request_id="back").offset == 1, "asked again"
    assert house.backlog() == [1, 2]
    again = house.acquire("A", 1)
    assert (again.retry_count, again.acquired_at_millis) == (0, first.acquired_at_millis)
    assert refused(house.give_back("A", first.token)) == "TOKEN_MISMATCH"


# Enqueueing.


def test_offsets_are_queued_in_the_order_given_and_once(house: WorkHouse) -> None:
    assert house.enqueue("A", 5, 3, 5, 4).added == 3
    assert house.enqueue("A", 3, 9).added == 1
    assert house.backlog() == [5, 3, 4, 9]
    assert refused(house.acquire("A", 3)) == "BACKLOG_ORDERING"
    assert house.acquire("A", 5).outcome == "ACQUIRED"


def test_a_backlog_that_is_full_takes_nothing_more(house: WorkHouse, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rules, "BACKLOG_MAXIMUM", 3)
    house.token("A", 0)
    house.enqueue("A", 1, 2)
    for refusal in (house.enqueue("A", 3, 4), house.enqueue("A", 9, 4)):
        assert (refused(refusal), refusal.field, refusal.limit) == ("LIMIT_EXCEEDED", "backlog", 3)
    assert house.acquire("A", 3).outcome == "ENQUEUED"
    assert refused(house.acquire("A", 4)) == "LIMIT_EXCEEDED"
    assert house.acquire("A", 3).outcome == "ENQUEUED", "it is there already"
    assert house.backlog() == [1, 2, 3]


# Start and watermark.


def test_everything_below_the_start_counts_as_processed(house: WorkHouse) -> None:
    assert house.start_at("A", 100).start == 100
    assert house.acquire("A", 99).outcome == "ALREADY_PROCESSED"
    assert house.enqueue("A", 5, 100).added == 1
    assert house.acquire("A", 100).outcome == "ACQUIRED"
    house.ensure_sound()


def test_a_start_never_goes_back_and_never_skips_what_is_still_to_be_done(house: WorkHouse) -> None:
    house.start_at("A", 10)
    assert house.start_at("A", 5).start == 10
    house.token("A", 20)
    house.enqueue("A", 40, 30)
    assert house.start_at("A", 20).start == 20
    assert refused(house.start_at("A", 21)) == "WORK_BELOW_START"
    house.succeed("A", house.flight("A").token)  # type: ignore[union-attr]
    refusal = house.start_at("A", 31)
    assert refusal.facts == {"domain": "A", "expected": 30, "got": 31}
    assert house.start_at("A", 30).start == 30


def test_what_has_failed_below_the_start_is_still_known_to_have_failed(house: WorkHouse) -> None:
    house.fail("A", house.token("A", 3), max_retries=0)
    house.start_at("A", 10)
    assert house.acquire("A", 3).outcome == "ALREADY_FAILED"
    assert house.acquire("A", 4).outcome == "ALREADY_PROCESSED"


# Ranges.


def test_consecutive_offsets_are_one_record_however_many_and_in_whatever_order(house: WorkHouse) -> None:
    house.do("A", *range(10))
    assert house.ranges() == 1
    house.do("A", 12, 14)
    assert house.ranges() == 3
    house.do("A", 13)
    assert house.ranges() == 2
    house.do("A", 11, 10)
    assert house.ranges() == 1
    house.ensure_sound()


def test_failed_offsets_have_ranges_of_their_own_inside_the_others(house: WorkHouse) -> None:
    for offset in (5, 7, 6):
        house.fail("A", house.token("A", offset), max_retries=0)
    house.do("A", 4, 8)
    assert house.ranges() == 2
    house.ensure_sound()


def test_the_largest_offset_is_like_any_other(house: WorkHouse) -> None:
    house.do("A", OFFSET_MAXIMUM, OFFSET_MAXIMUM - 1)
    house.fail("A", house.token("A", OFFSET_MAXIMUM - 2), max_retries=0)
    assert house.acquire("A", OFFSET_MAXIMUM).outcome == "ALREADY_PROCESSED"
    assert house.acquire("A", OFFSET_MAXIMUM - 2).outcome == "ALREADY_FAILED"
    house.fail("B", house.token("B", OFFSET_MAXIMUM), max_retries=0)
    assert house.acquire("B", OFFSET_MAXIMUM).outcome == "ALREADY_FAILED"
    house.ensure_sound()


# Requests that are sent again.


@pytest.mark.parametrize("handing_off", [False, True])
def test_a_request_that_is_sent_again_gets_the_same_answer(house: WorkHouse, handing_off: bool) -> None:
    def twice(call: Any, *given: Any, **more: Any) -> Any:
        first = call(*given, request_id=f"again {house.position()}", **more)
        position = house.position()
        request_id = house.events("work")[-1].request.partition(":")[0]  # type: ignore[union-attr]
        assert call(*given, request_id=request_id, **more) == first
        assert house.position() == position
        return first

    token = twice(house.acquire, "A", 1, max_retries=1).token
    twice(house.acquire, "A", 2)
    assert twice(house.enqueue, "A", 3, 4).added == 2
    twice(house.fail, "A", token)
    given_up = twice(house.fail, "A", token, hand_off=handing_off)
    assert given_up.retry_count == 1
    token = given_up.acquired.token if handing_off else house.token("A", 2)
    succeeded = twice(house.succeed, "A", token, hand_off=handing_off)
    assert succeeded.next_offset == 3


def test_an_acquisition_that_has_ended_since_is_told_as_it_was_and_as_ended(house: WorkHouse) -> None:
    first = house.acquire("A", 1, request_id="one")
    house.succeed("A", first.token)
    again: Acquired = house.acquire("A", 1, request_id="one")
    assert again.ended
    assert (again.outcome, again.token, again.expires_in_ns) == ("ACQUIRED", first.token, 0)


def test_a_request_is_another_one_with_other_content_or_another_holder(house: WorkHouse) -> None:
    house.acquire("A", 1, request_id="one")
    assert house.acquire("A", 1, request_id="one", holder="bob").outcome == "ALREADY_ACQUIRED"
    assert house.acquire("A", 2, request_id="one").outcome == "ENQUEUED"


def test_where_to_wake_is_no_part_of_a_request(house: WorkHouse) -> None:
    first = house.acquire("A", 1, request_id="one", wake="0000000000000001.1")
    assert house.acquire("A", 1, request_id="one", wake="0000000000000001.2") == first


# Waking.


def wakes(house: WorkHouse, *asked: Any) -> set[str]:
    """Where somebody was to be woken after a batch."""
    rung: set[str] = set()
    run_batch(house.store, asked, Rules(wake=rung.update))
    return rung


ANN, BOB = "00000000000000aa.1", "00000000000000bb.2"


def end_of(house: WorkHouse, kind: Any, token: str, **more: Any) -> Any:
    return kind(token=token, **house.said("A", more))


def test_whoever_waits_for_the_head_is_woken_when_its_turn_comes(house: WorkHouse) -> None:
    token = house.token("A", 1, max_retries=0)
    house.acquire("A", 2, wake=ANN)
    house.acquire("A", 3, wake=BOB)
    assert wakes(house, end_of(house, Succeed, token)) == {ANN}
    token = house.token("A", 2, max_retries=0, wake=ANN)
    assert wakes(house, end_of(house, commands.Fail, token)) == {BOB}, "ann waits for nothing any more"


def test_the_last_who_asks_for_an_offset_is_the_one_who_is_woken(house: WorkHouse) -> None:
    token = house.token("A", 1)
    house.acquire("A", 2, wake=ANN)
    position = house.position()
    house.acquire("A", 2, wake=ANN)
    assert house.position() == position, "nothing has changed"
    house.acquire("A", 2, wake=BOB)
    assert wakes(house, end_of(house, Succeed, token)) == {BOB}


def test_whoever_queues_an_offset_that_is_there_already_is_woken_for_it(house: WorkHouse) -> None:
    token = house.token("A", 1)
    house.enqueue("A", 2, 3)
    assert house.enqueue("A", 2, 4, wake=ANN).added == 1
    position = house.position()
    assert house.enqueue("A", 2, wake=ANN).added == 0
    assert house.position() == position
    assert house.backlog() == [2, 3, 4]
    assert wakes(house, end_of(house, Succeed, token)) == {ANN}


def test_whoever_queues_what_is_next_in_an_idle_domain_is_woken_at_once(house: WorkHouse) -> None:
    # Its turn came between its being told that it is not next, and its asking to be woken.
    asked = Enqueue(offsets=(1, 2), **house.said("A", {"wake": ANN}))
    assert wakes(house, asked) == {ANN}
    assert wakes(house, Enqueue(offsets=(2,), **house.said("A", {"wake": BOB}))) == set()
    house.token("A", 1)
    assert wakes(house, Enqueue(offsets=(2,), **house.said("A", {"wake": ANN}))) == set()


def test_whoever_waits_for_an_offset_in_flight_is_woken_when_it_comes_free(house: WorkHouse) -> None:
    token = house.token("A", 1)
    assert house.acquire("A", 1, wake=ANN).outcome == "ALREADY_ACQUIRED"
    position = house.position()
    house.acquire("A", 1, wake=ANN)
    assert house.position() == position
    assert wakes(house, end_of(house, commands.GiveBack, token)) == {ANN}


def test_whoever_waits_is_woken_when_time_gives_it_up(house: WorkHouse) -> None:
    house.token("A", 1, ttl_ns=SECOND, max_retries=0)
    house.acquire("A", 1, wake=ANN)
    house.acquire("A", 2, wake=BOB)
    house.clock.advance(1)
    sweep = Sweep(family="work", key=flight_key("default", "A"), request_id="sweep")
    assert wakes(house, sweep) == {ANN, BOB}


def test_time_gives_up_an_offset_that_nobody_waits_behind(house: WorkHouse) -> None:
    house.token("A", 1, ttl_ns=SECOND, max_retries=0)
    house.clock.advance(1)
    sweep = Sweep(family="work", key=flight_key("default", "A"), request_id="sweep")
    assert wakes(house, sweep) == set()
    assert house.acquire("A", 1).outcome == "ALREADY_FAILED"


def test_a_hand_off_wakes_nobody_for_the_offset_that_it_takes_until_that_ends(house: WorkHouse) -> None:
    token = house.token("A", 1)
    house.acquire("A", 2, wake=ANN)
    assert wakes(house, end_of(house, Succeed, token, hand_off=True)) == set()
    flight = house.flight("A")
    assert flight is not None
    assert wakes(house, end_of(house, Succeed, flight.token)) == {ANN}


# Batches, and tenants.


def test_a_batch_is_decided_in_order_on_what_the_ones_before_have_done(house: WorkHouse) -> None:
    outcomes = house.run(
        *(TryAcquire(offset=offset, **house.said("A", {})) for offset in (1, 2, 3)),
        Enqueue(offsets=(7,), **house.said("A", {})),
    )
    assert [getattr(one, "outcome", None) for one in outcomes] == ["ACQUIRED", "ENQUEUED", "ENQUEUED", None]
    ends = [Succeed(token=outcomes[0].token, **house.said("A", {})) for _ in range(2)]
    first, second = house.run(*ends)
    assert first.next_offset == 2
    assert refused(second) == "NO_LEASE"
    house.ensure_sound()


def test_tenants_have_domains_of_their_own(house: WorkHouse) -> None:
    assert house.acquire("A", 1, tenant="acme").outcome == "ACQUIRED"
    assert house.acquire("A", 1, tenant="zeta").outcome == "ACQUIRED"
    assert {key.partition("\x01")[0] for key in house.records()} == {"acme", "zeta"}
