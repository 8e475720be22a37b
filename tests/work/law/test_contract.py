"""The contract of work leases, sentence by sentence: invariants, order of checks, six scenarios."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import leasehold
from leasehold.kernel.ledger.refusals import Refusal
from leasehold.work.law.answers import Acquired, Failed, Succeeded
from leasehold.work.law.model import Domain
from tests.work.house import SECOND, WorkHouse, refused

# The six sanity scenarios.


def test_scenario_1_the_happy_path(house: WorkHouse) -> None:
    token = house.token("A", 1)
    assert house.succeed("A", token) == Succeeded(outcome="NO_BACKLOG")  # type: ignore[arg-type]


def test_scenario_2_queue_then_orchestrated_hand_off(house: WorkHouse) -> None:
    token = house.token("A", 1)
    assert house.acquire("A", 2).outcome == "ENQUEUED"
    hint = house.succeed("A", token)
    assert (hint.outcome, hint.next_offset) == ("NEXT_HINT", 2)
    assert house.backlog() == [2], "a hint takes nothing out"
    assert house.acquire("A", 2).outcome == "ACQUIRED"
    assert house.backlog() == []


def test_scenario_3_an_acquire_out_of_order_is_a_hard_bug(house: WorkHouse) -> None:
    token = house.token("A", 1)
    house.acquire("A", 2)
    house.succeed("A", token)
    before = house.records()
    refusal = house.acquire("A", 3)
    assert refused(refusal) == "BACKLOG_ORDERING"
    assert refusal.facts == {"domain": "A", "expected": 2, "got": 3}
    assert house.records() == before


def test_scenario_4_a_retry_keeps_the_lease_and_its_acquired_at(house: WorkHouse) -> None:
    token = house.token("A", 1)
    before = house.flight("A")
    house.clock.advance(5)
    failed = house.fail("A", token)
    assert (failed.outcome, failed.retry_count) == ("RETRY_SCHEDULED", 1)
    after = house.flight("A")
    assert before is not None
    assert after is not None
    assert (after.token, after.acquired_at_ns, after.offset) == (token, before.acquired_at_ns, 1)
    assert house.fail("A", token).retry_count == 2


def test_scenario_5_the_final_give_up(house: WorkHouse) -> None:
    token = house.token("A", 1, max_retries=2)
    house.acquire("A", 2)
    assert [house.fail("A", token).outcome for _ in range(2)] == ["RETRY_SCHEDULED"] * 2
    given_up = house.fail("A", token)
    assert (given_up.outcome, given_up.next_offset) == ("GIVE_UP_NEXT_HINT", 2)
    assert house.flight("A") is None
    assert house.acquire("A", 1).outcome == "ALREADY_FAILED"


def test_scenario_6_idempotence(house: WorkHouse) -> None:
    house.do("A", 1)
    house.fail("A", house.token("A", 2), max_retries=0)
    before = house.records()
    assert house.acquire("A", 1).outcome == "ALREADY_PROCESSED"
    assert house.acquire("A", 2).outcome == "ALREADY_FAILED"
    token = house.token("A", 3)
    assert house.acquire("A", 1).outcome == "ALREADY_PROCESSED"
    assert house.acquire("A", 2).outcome == "ALREADY_FAILED"
    assert house.enqueue("A", 1, 2, 3).added == 0
    assert house.backlog() == []
    house.succeed("A", token)
    assert len(house.records()) == len(before)


# The invariants.


def test_invariant_1_at_most_one_offset_is_in_flight(house: WorkHouse) -> None:
    house.token("A", 1)
    for offset in (2, 3, 4):
        assert house.acquire("A", offset).outcome == "ENQUEUED"
    flight = house.flight("A")
    assert flight is not None
    assert flight.offset == 1


def test_invariant_2_in_flight_terminal_and_queued_never_overlap(house: WorkHouse) -> None:
    house.do("A", 1)
    token = house.token("A", 2)
    house.acquire("A", 3)
    assert house.enqueue("A", 1, 2, 3, 4).added == 1
    assert house.backlog() == [3, 4]
    house.fail("A", token, max_retries=0)
    assert house.enqueue("A", 2).added == 0
    house.ensure_sound()


def test_invariant_3_the_backlog_is_drained_from_its_head_by_acquiring_it(house: WorkHouse) -> None:
    token = house.token("A", 1)
    for offset in (9, 3, 7):
        house.acquire("A", offset)
    house.succeed("A", token)
    served: list[int] = []
    while house.backlog():
        head = house.backlog()[0]
        for other in {3, 7, 9} - {head, *served}:
            assert refused(house.acquire("A", other)) == "BACKLOG_ORDERING"
        house.do("A", head)
        served.append(head)
    assert served == [9, 3, 7], "in the order of their coming, not of their numbers"


def test_invariant_4_a_terminal_offset_is_never_queued_nor_acquired_again(house: WorkHouse) -> None:
    house.do("A", *range(5))
    house.token("A", 5)
    for offset in range(5):
        assert house.acquire("A", offset).outcome == "ALREADY_PROCESSED"
    assert house.backlog() == []


def test_invariant_5_only_the_token_of_the_lease_ends_it(house: WorkHouse) -> None:
    token = house.token("A", 1)
    other = house.token("B", 1)
    before = house.records()
    for wrong in (other, "0", "nonsense", token + "0"):
        for end in (house.succeed, house.fail, house.give_back, house.keep_alive):
            refusal = end("A", wrong)
            assert refused(refusal) == "TOKEN_MISMATCH"
            assert refusal.detail.startswith("Token mismatch")
    assert house.records() == before
    house.succeed("A", token)
    refusal = house.succeed("A", token)
    assert refused(refusal) == "NO_LEASE"
    assert refusal.detail.startswith("No lease")


def test_invariant_6_racing_first_calls_create_one_record_that_is_never_replaced(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'leases.db'}"

    def first_call(number: int) -> str:
        with leasehold.connect(url, durability="fast") as client:
            return str(client.work.try_acquire("A", number).outcome)

    with ThreadPoolExecutor(8) as threads:
        outcomes = sorted(threads.map(first_call, range(8)))
    assert outcomes == ["ACQUIRED"] + ["ENQUEUED"] * 7
    with leasehold.connect(url) as client:
        state = client.work.state("A")
        assert state.backlog == 7
        for entry in client.history():
            assert entry.event.type in ("work.acquired", "work.enqueued")


def test_a_domain_stays_the_record_that_it_was_made_as(house: WorkHouse) -> None:
    house.token("A", 1)
    created = house.domain("A").created_at_ns
    house.clock.advance(10)
    house.acquire("A", 2)
    house.start_at("A", 0)
    assert house.domain("A").created_at_ns == created
    assert len(house.records(Domain)) == 1


# The order of checks.


def test_terminal_comes_before_in_flight(house: WorkHouse) -> None:
    # The reference looked at the lease first, and put an offset that had failed into the backlog again.
    house.fail("A", house.token("A", 1), max_retries=0)
    house.do("A", 2)
    house.token("A", 3)
    assert house.acquire("A", 1).outcome == "ALREADY_FAILED"
    assert house.acquire("A", 2).outcome == "ALREADY_PROCESSED"
    assert house.backlog() == []


def test_terminal_comes_before_the_order_of_the_backlog(house: WorkHouse) -> None:
    house.do("A", 1)
    house.enqueue("A", 5)
    assert house.acquire("A", 1).outcome == "ALREADY_PROCESSED"


def test_in_flight_comes_before_the_order_of_the_backlog(house: WorkHouse) -> None:
    token = house.token("A", 1)
    house.acquire("A", 2)
    again = house.acquire("A", 1)
    assert (again.outcome, again.token) == ("ALREADY_ACQUIRED", token)
    assert house.acquire("A", 3).outcome == "ENQUEUED"


def test_no_lease_comes_before_a_token_that_does_not_match(house: WorkHouse) -> None:
    for end in (house.succeed, house.fail):
        assert refused(end("A", "1")) == "NO_LEASE"
    assert house.records() == {}


# Retries.


def test_with_two_retries_the_third_failure_gives_up_and_with_none_the_first(house: WorkHouse) -> None:
    def outcomes(offset: int, **limit: Any) -> list[str]:
        token, said = house.token("A", offset, **limit), []
        while house.flight("A") is not None:
            said.append(house.fail("A", token).outcome)
        return said

    assert outcomes(1, max_retries=2) == ["RETRY_SCHEDULED"] * 2 + ["GIVE_UP_NO_BACKLOG"]
    assert outcomes(2, max_retries=0) == ["GIVE_UP_NO_BACKLOG"]
    assert outcomes(3) == ["RETRY_SCHEDULED"] * 3 + ["GIVE_UP_NO_BACKLOG"], "3 by default"


def test_a_limit_that_is_said_with_the_failure_comes_before_the_one_of_the_acquisition(
    house: WorkHouse,
) -> None:
    token = house.token("A", 1, max_retries=0)
    assert house.fail("A", token, max_retries=1) == Failed(outcome="RETRY_SCHEDULED", retry_count=1)  # type: ignore[arg-type]
    assert house.fail("A", token, max_retries=1).outcome == "GIVE_UP_NO_BACKLOG"


def test_the_token_stays_the_same_over_the_retries_of_an_offset_and_is_new_for_the_next(
    house: WorkHouse,
) -> None:
    token = house.token("A", 1)
    house.fail("A", token)
    assert house.acquire("A", 1).token == token
    house.succeed("A", token)
    assert int(house.token("A", 2)) > int(token)


def test_tokens_rise_over_all_domains_and_with_leases(house: WorkHouse) -> None:
    tokens = [int(house.token(domain, 1)) for domain in "CAB"]
    assert tokens == sorted(tokens)
    acquired: Acquired = house.acquire("B", 1)
    assert acquired.fence == tokens[-1]
    assert acquired.token == str(tokens[-1])


def test_nothing_in_the_contract_depends_on_time(house: WorkHouse) -> None:
    token = house.token("A", 1)
    house.clock.advance(10**6)
    house.sweep()
    house.clock.reboot()
    assert house.acquire("A", 1).outcome == "ALREADY_ACQUIRED"
    assert house.succeed("A", token).outcome == "NO_BACKLOG"


def test_what_is_refused_changes_nothing(house: WorkHouse) -> None:
    house.token("A", 1, ttl_ns=SECOND)
    house.acquire("A", 2)
    before, position = house.records(), house.position()
    assert isinstance(house.succeed("A", "x"), Refusal)
    assert isinstance(house.start_at("A", 9), Refusal)
    assert (house.records(), house.position()) == (before, position)
