"""Waiting for a lease: who comes next, and what becomes of those who wait."""

import pytest
from msgspec.structs import replace

from leasehold.kernel.lease.answers import Ended, Granted, Waiting
from leasehold.kernel.lease.commands import Acquire, Wanted
from leasehold.kernel.lease.decision import Decision
from leasehold.kernel.lease.events import LeaseRenewed
from leasehold.kernel.lease.model import LeaseState, Mode
from leasehold.kernel.lease.ticket import AGEING_NS, ASK_AGAIN_NS, CLAIM_WINDOW_NS, KEPT_NS
from leasehold.kernel.ledger.refusals import Refusal, RefusalCode
from tests.kernel.registrar import HOUR, SECOND, TTL, Registrar, expect


def test_a_claim_that_may_wait_and_need_not_is_granted() -> None:
    registrar = Registrar()

    lease = registrar.grant("ann", wait=True)

    assert lease.state is LeaseState.ACTIVE
    assert lease.ticket is None


def test_a_waiter_is_told_who_holds_it_its_place_and_when_to_ask_again() -> None:
    registrar = Registrar()
    held = registrar.grant("ann")
    registrar.advance(1)
    first = registrar.claim("bob", wait=True)

    waiting = expect(Waiting, registrar.ask(first))

    (place,) = waiting.places
    assert (place.resource, place.mode, place.position) == ("door", Mode.EXCLUSIVE, 1)
    assert (place.holder, place.lease_id, place.since_ns) == ("ann", held.lease_id, held.issued_at_ns)
    assert place.expires_in_ns == TTL - SECOND
    assert waiting.lease_id == first.lease_id
    assert waiting.waited_ns == 0
    assert waiting.ask_again_ns == TTL - SECOND
    assert registrar.lease(first.lease_id).state is LeaseState.PENDING


def test_the_places_behind_the_first_count_up_and_ask_a_little_later() -> None:
    registrar = Registrar()
    registrar.grant("ann", ttl_ns=SECOND)
    claims = [registrar.join(name) for name in ("bob", "cem", "dia")]

    answers = [registrar.wait(claim) for claim in claims]

    assert [answer.places[0].position for answer in answers] == [1, 2, 3]
    assert [answer.ask_again_ns for answer in answers] == [SECOND, SECOND + 5_000_000, SECOND + 10_000_000]
    tickets = [answer.ticket for answer in answers]
    assert tickets == sorted(set(tickets))


def test_a_waiter_is_never_told_to_stay_silent_for_long() -> None:
    registrar = Registrar()
    registrar.grant("ann", ttl_ns=3600 * SECOND)
    claim = registrar.join("bob")

    assert registrar.wait(claim).ask_again_ns == ASK_AGAIN_NS


def test_a_released_resource_goes_to_the_head_of_the_queue_in_the_same_commit() -> None:
    registrar = Registrar()
    held = registrar.grant("ann")
    first, second = registrar.join("bob"), registrar.join("cem")

    registrar.end(held)

    won = registrar.lease(first.lease_id)
    assert won.state is LeaseState.ACTIVE
    assert won.is_unconfirmed
    assert won.token > held.token
    assert won.expires_tick == registrar.now().tick.after(CLAIM_WINDOW_NS)
    assert registrar.queue() == ["cem"]
    assert registrar.wait(second).places[0].holder == "bob"


def test_asking_again_confirms_the_lease_for_its_whole_time() -> None:
    registrar = Registrar()
    held = registrar.grant("ann")
    claim = registrar.join("bob")
    registrar.end(held)
    registrar.advance(1.5)

    granted = registrar.win(claim)

    assert not granted.repeated
    assert granted.expires_in_ns == TTL
    assert granted.lease.ticket is None
    again = registrar.win(claim)
    assert again.repeated
    assert again.lease == granted.lease


def test_a_waiter_that_never_confirms_costs_the_next_the_claim_window() -> None:
    registrar = Registrar()
    held = registrar.grant("ann")
    dead, alive = registrar.join("bob"), registrar.join("cem")
    registrar.end(held)
    assert registrar.wait(alive).places[0].expires_in_ns == CLAIM_WINDOW_NS

    registrar.clock += CLAIM_WINDOW_NS

    assert registrar.win(alive).lease.holder == "cem"
    assert registrar.lease(dead.lease_id).state is LeaseState.EXPIRED
    late = expect(Granted, registrar.ask(dead))
    assert late.ended


@pytest.mark.parametrize("how", ["expiry met by a poll", "expiry swept", "revoked", "expiry met by a claim"])
def test_whatever_frees_a_resource_grants_it_to_the_first_in_line(how: str) -> None:
    registrar = Registrar()
    held = registrar.grant("ann")
    first = registrar.join("bob")
    second = registrar.join("cem")
    if how == "revoked":
        registrar.revoke(held)
    else:
        registrar.clock += TTL
    if how == "expiry met by a poll":
        registrar.wait(second)
    elif how == "expiry swept":
        registrar.sweep(held)
    elif how == "expiry met by a claim":
        registrar.join("dia")

    assert registrar.holders() == ["bob"]
    assert registrar.win(first).lease.holder == "bob"


def test_a_claim_that_does_not_wait_is_refused_for_those_who_do() -> None:
    registrar = Registrar()
    held = registrar.grant("ann")
    first = registrar.join("bob")
    registrar.clock += TTL

    refusal = registrar.deny("cem")

    assert refusal.code is RefusalCode.HELD
    assert refusal.holder == "bob"
    assert registrar.lease(held.lease_id).state is LeaseState.ACTIVE, "a refusal changes nothing"
    assert registrar.win(first).lease.holder == "bob"


def test_a_cancelled_wait_leaves_the_queue() -> None:
    registrar = Registrar()
    held = registrar.grant("ann")
    first, second = registrar.join("bob"), registrar.join("cem")

    (ended,) = registrar.cancel(first)

    assert expect(Ended, ended).lease.state is LeaseState.FAILED
    assert registrar.queue() == ["cem"]
    registrar.end(held)
    assert registrar.holders() == ["cem"]
    refused = expect(Refusal, registrar.ask(first))
    assert refused.code is RefusalCode.LEASE_TERMINAL
    registrar.win(second)


def test_a_cancelled_wait_gives_back_what_was_won_to_the_next() -> None:
    registrar = Registrar()
    held = registrar.grant("ann")
    first, second = registrar.join("bob"), registrar.join("cem")
    registrar.end(held)

    (ended,) = registrar.cancel(first)

    assert expect(Ended, ended).lease.state is LeaseState.RELEASED
    assert registrar.holders() == ["cem"]
    registrar.win(second)


def test_a_retried_cancel_is_told_what_the_first_was() -> None:
    registrar = Registrar()
    registrar.grant("ann")
    claim = registrar.join("bob")
    lease = registrar.lease(claim.lease_id)
    first = registrar.release(lease, request_id="cancel")
    again = registrar.release(lease, request_id="cancel")
    other = registrar.release(lease)

    assert first == again
    assert expect(Ended, other[0]).already


def test_a_waiter_that_stops_asking_leaves_by_itself() -> None:
    registrar = Registrar()
    held = registrar.grant("ann", ttl_ns=3600 * SECOND)
    silent = registrar.join("bob")
    registrar.advance(20)
    asking = registrar.join("cem")
    registrar.advance(10)

    assert registrar.wait(asking).places[0].position == 2, "nobody has met the silent one yet"
    registrar.end(held)

    assert registrar.holders() == ["cem"]
    left = registrar.lease(silent.lease_id)
    assert (left.state, left.end_reason) == (LeaseState.FAILED, "stopped asking")


def test_a_waiter_that_comes_back_too_late_stands_behind_those_whose_turn_it_was() -> None:
    registrar = Registrar()
    registrar.grant("ann", mode=Mode.SHARED, ttl_ns=2 * KEPT_NS)
    late = registrar.join("bob")
    registrar.clock += KEPT_NS - 1
    registrar.join("cem", mode=Mode.SHARED)
    registrar.clock += 1

    back = registrar.join("bob")

    assert registrar.lease(late.lease_id).state is LeaseState.FAILED
    assert registrar.holders() == ["ann", "cem"]
    assert registrar.wait(back).places[0].position == 1


def test_asking_again_keeps_the_place_and_writes_history_only_now_and_then() -> None:
    registrar = Registrar()
    registrar.grant("ann", ttl_ns=3600 * SECOND)
    claim = registrar.join("bob")
    entries = len(registrar.ledger)
    for _ in range(12):
        registrar.advance(10)
        registrar.wait(claim)

    assert registrar.queue() == ["bob"]
    assert registrar.history()[entries:] == ["lease.renewed"] * 6
    assert registrar.lease(claim.lease_id).renewal_count == 0
    assert registrar.wait(claim).waited_ns == 120 * SECOND


def test_a_wait_longer_than_requests_are_remembered_is_still_the_same_wait() -> None:
    registrar = Registrar()
    held = registrar.grant("ann", ttl_ns=2 * HOUR)
    claim = registrar.join("bob", request_id="mine", ttl_ns=HOUR)
    for _ in range(400):
        registrar.advance(10)
        registrar.wait(claim)
    registrar.end(held)

    won = registrar.win(claim)
    again = expect(Granted, registrar.ask(replace(claim, lease_id="another")))
    assert (again.repeated, again.lease) == (True, won.lease)


def test_a_place_that_is_kept_says_whose() -> None:
    registrar = Registrar()
    registrar.grant("ann", ttl_ns=HOUR)
    claim = registrar.join("bob")
    registrar.clock += KEPT_NS // 2
    registrar.wait(claim)

    kept = expect(LeaseRenewed, registrar.ledger[-1])
    assert (kept.resource, kept.token) == ("door", registrar.lease(claim.lease_id).token)


def test_places_that_are_kept_together_are_no_single_one() -> None:
    registrar = Registrar()
    registrar.grant("ann", ttl_ns=HOUR)
    claim = registrar.join("bob", also=(Wanted(resource="gate"),))
    registrar.clock += CLAIM_WINDOW_NS // 2
    registrar.wait(claim)

    kept = expect(LeaseRenewed, registrar.ledger[-1])
    assert (kept.resource, kept.token) == (None, None)
    assert list(kept.renewals) == list(claim.lease_ids)


def test_a_retry_under_another_lease_id_finds_its_place() -> None:
    registrar = Registrar()
    registrar.grant("ann")
    claim = registrar.join("bob", request_id="mine")
    again = registrar.claim("bob", wait=True, request_id="mine")

    assert registrar.wait(again).lease_id == claim.lease_id
    assert registrar.queue() == ["bob"]


def test_a_waiter_whose_claim_is_its_own_request_is_recognised_by_its_lease() -> None:
    registrar = Registrar()
    held = registrar.grant("ann")
    claim = registrar.join("bob", lease_id="bobs", request_id="bobs")

    assert registrar.wait(claim).lease_id == "bobs"
    registrar.end(held)
    assert registrar.win(claim).lease.lease_id == "bobs"


def test_higher_priority_goes_first() -> None:
    registrar = Registrar()
    held = registrar.grant("ann")
    usual = registrar.join("bob")
    urgent = registrar.join("cem", priority=10)
    assert registrar.wait(usual).places[0].position == 2
    registrar.end(held)

    assert registrar.holders() == ["cem"]
    registrar.win(urgent)


def test_waiting_makes_up_for_priority() -> None:
    registrar = Registrar()
    held = registrar.grant("ann", ttl_ns=3600 * SECOND)
    patient = registrar.join("bob", priority=1)
    for _ in range(9):
        registrar.clock += AGEING_NS
        registrar.wait(patient)
    registrar.join("cem", priority=10)
    registrar.clock += 1
    registrar.join("dia", priority=10)
    registrar.end(held)

    assert registrar.holders() == ["bob"], "of equals, the one with the lower ticket goes first"
    assert registrar.queue() == ["cem", "dia"]


def test_an_urgent_claim_takes_a_free_resource_that_is_kept_for_somebody_less_urgent() -> None:
    registrar = Registrar()
    registrar.grant("ann", "window")
    pair = registrar.join("bob", "door", also=(Wanted(resource="window"),))
    assert registrar.deny("cem", "door").holder == "bob"

    assert registrar.grant("cem", "door", priority=10).holder == "cem"
    assert registrar.wait(pair).places[0].holder == "cem"


def test_one_holder_does_not_wait_twice_for_the_same() -> None:
    registrar = Registrar()
    registrar.grant("ann")
    claim = registrar.join("bob")

    refusal = registrar.deny("bob", wait=True)

    assert refusal.code is RefusalCode.ALREADY_WAITING
    assert refusal.lease_id == claim.lease_id
    assert registrar.deny("bob").code is RefusalCode.ALREADY_WAITING


def test_who_holds_a_resource_does_not_wait_for_it() -> None:
    registrar = Registrar()
    registrar.grant("ann")
    registrar.join("bob")

    assert registrar.deny("ann", wait=True).code is RefusalCode.ALREADY_HELD
    assert registrar.grant("ann", wait=True, adopt=True).holder == "ann", "replacing it goes before the queue"


def test_a_waiter_cannot_be_renewed() -> None:
    registrar = Registrar()
    registrar.grant("ann")
    claim = registrar.join("bob")

    assert registrar.refuse_renewal(registrar.lease(claim.lease_id)) is RefusalCode.LEASE_PENDING


@pytest.mark.parametrize("max_renewals", [-1, 0, 3])
def test_renewing_what_was_won_confirms_it_and_does_not_count(max_renewals: int) -> None:
    registrar = Registrar()
    held = registrar.grant("ann")
    claim = registrar.join("bob", max_renewals=max_renewals)
    registrar.end(held)

    renewal = registrar.extend(registrar.lease(claim.lease_id))

    assert renewal.expires_in_ns == TTL
    assert not renewal.lease.is_unconfirmed
    assert (renewal.lease.renewal_count, renewal.lease.last_renewed_at_ns) == (0, None)
    assert registrar.win(claim).repeated


def test_an_operator_can_take_a_waiter_out_of_the_queue() -> None:
    registrar = Registrar()
    registrar.grant("ann")
    claim = registrar.join("bob")

    ended = expect(Ended, registrar.revoke(registrar.lease(claim.lease_id)))

    assert (ended.lease.state, ended.lease.end_reason, ended.lease.ended_by) == (
        LeaseState.FAILED,
        "maintenance",
        "olga",
    )


def test_a_reboot_ends_the_waits_of_local_processes_only() -> None:
    registrar = Registrar()
    registrar.grant("ann", bound_to_boot=False)
    local = registrar.join("bob")
    remote = registrar.join("cem", bound_to_boot=False)
    registrar.reboot()

    assert registrar.wait(remote).places[0].position == 2, "nobody has met the dead one yet"
    registrar.advance(TTL / SECOND)

    assert registrar.win(remote).lease.holder == "cem"
    left = registrar.lease(local.lease_id)
    assert (left.state, left.end_reason) == (LeaseState.FAILED, "reboot")


def test_waiters_from_before_a_reboot_come_first() -> None:
    registrar = Registrar()
    held = registrar.grant("ann", bound_to_boot=False)
    registrar.join("bob", bound_to_boot=False, priority=1)
    registrar.reboot()
    registrar.join("cem", priority=10)

    registrar.end(held)

    assert registrar.holders() == ["bob"]


def test_waiting_is_told_in_wall_time_when_the_clock_is_another() -> None:
    registrar = Registrar()
    registrar.grant("ann", bound_to_boot=False)
    claim = registrar.join("bob", bound_to_boot=False)
    registrar.reboot()
    registrar.wall_ns += 7 * SECOND

    assert registrar.wait(claim).waited_ns == 7 * SECOND


def test_nobody_takes_over_by_waiting_what_has_an_unknown_time() -> None:
    registrar = Registrar()
    registrar.grant("ann", bound_to_boot=False)
    registrar.reboot()
    registrar.forget_eras()

    claim = registrar.join("bob")

    assert registrar.wait(claim).places[0].expires_in_ns is None
    assert registrar.wait(claim).ask_again_ns == ASK_AGAIN_NS


def test_readers_behind_a_waiting_writer_wait() -> None:
    registrar = Registrar()
    first = registrar.grant("ann", mode=Mode.SHARED)
    writer = registrar.join("bob")
    readers = [registrar.join(name, mode=Mode.SHARED) for name in ("cem", "dia")]
    assert registrar.deny("eve", mode=Mode.SHARED).holder == "bob"

    registrar.end(first)
    assert registrar.holders() == ["bob"]
    granted = registrar.win(writer)
    registrar.end(granted.lease)

    assert registrar.holders() == ["cem", "dia"], "readers are let in together"
    assert all(registrar.win(claim) for claim in readers)


def test_a_writer_behind_readers_has_its_turn_before_later_readers() -> None:
    registrar = Registrar()
    held = registrar.grant("ann")
    registrar.join("bob", mode=Mode.SHARED)
    registrar.join("cem")
    registrar.join("dia", mode=Mode.SHARED)
    registrar.end(held)

    assert registrar.holders() == ["bob"]
    assert registrar.queue() == ["cem", "dia"]


def test_more_waiters_than_are_read_at_once_are_let_in_together() -> None:
    registrar = Registrar()
    held = registrar.grant("ann")
    names = [f"reader-{number:03}" for number in range(150)]
    for name in names:
        registrar.join(name, mode=Mode.SHARED)
    registrar.join("writer")
    registrar.end(held)

    assert registrar.holders() == names
    assert registrar.queue() == ["writer"]


def test_the_limit_on_waiters_is_exact(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("leasehold.kernel.lease.rules.contend.WAITERS_PER_RESOURCE", 2)
    registrar = Registrar()
    registrar.grant("ann")
    registrar.join("bob")
    first = registrar.join("cem")

    refusal = registrar.deny("dia", wait=True)
    assert (refusal.code, refusal.limit) == (RefusalCode.LIMIT_EXCEEDED, 2)
    registrar.cancel(first)
    registrar.join("dia")


def test_tenants_do_not_wait_for_each_other() -> None:
    registrar = Registrar()
    registrar.grant("ann", tenant="acme")
    registrar.join("bob", tenant="acme")

    assert registrar.grant("cem", tenant="umbrella").holder == "cem"


def test_what_is_kept_lasts_longer_than_the_pause_between_two_questions() -> None:
    assert KEPT_NS > 2 * ASK_AGAIN_NS


def test_a_claim_lists_the_ids_of_its_leases() -> None:
    claim = Acquire(
        request_id="r",
        lease_id="x",
        resource="a",
        holder="ann",
        ttl_ns=1,
        also=(Wanted(resource="b"), Wanted(resource="c")),
    )

    assert claim.lease_ids == ("x", "x.1", "x.2")


def test_what_a_waiter_has_won_lasts_no_longer_than_it_asked_for() -> None:
    registrar = Registrar()
    held = registrar.grant("ann")
    claim = registrar.join("bob", ttl_ns=CLAIM_WINDOW_NS // 4)
    registrar.end(held)

    won = registrar.lease(claim.lease_id)

    assert won.ticks_remaining(registrar.now().tick) == CLAIM_WINDOW_NS // 4


@pytest.mark.parametrize("dead", [1, 2, 3, 10])
@pytest.mark.parametrize("late", [0, 1, SECOND, 2 * SECOND - 1])
def test_each_dead_waiter_ahead_costs_no_more_than_the_claim_window(dead: int, late: int) -> None:
    registrar = Registrar()
    held = registrar.grant("ann", ttl_ns=3600 * SECOND)
    for number in range(dead):
        registrar.join(f"dead-{number}")
    claim = registrar.join("bob")
    asks_at = registrar.clock + registrar.wait(claim).ask_again_ns
    registrar.clock += late
    registrar.end(held)
    freed = registrar.clock

    while True:
        registrar.clock = asks_at
        answer = registrar.ask(claim)
        if isinstance(answer, Granted):
            break
        asks_at += expect(Waiting, answer).ask_again_ns

    assert registrar.clock - freed <= dead * (CLAIM_WINDOW_NS + dead * 5_000_000)


def test_whoever_was_first_in_line_and_is_overtaken_is_told_so() -> None:
    registrar = Registrar()
    registrar.grant("ann", ttl_ns=3600 * SECOND)
    registrar.join("bob", wake="bob")
    assert wakes(registrar, registrar.claim("cem", wait=True, wake="cem")) == []
    registrar.join("cem", wake="cem")

    assert wakes(registrar, registrar.claim("dia", wait=True, priority=10, wake="dia")) == ["bob?"]
    registrar.join("dia", priority=10, wake="dia")
    assert wakes(registrar, registrar.claim("eve", wait=True, priority=7, wake="eve")) == [], (
        "bob knows already that he is not the first"
    )


def wakes(registrar: Registrar, command: Acquire) -> list[str]:
    """Who would be woken by a command."""
    return expect(Decision, registrar.decide(command)).wakes
