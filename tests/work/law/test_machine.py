"""Random work on two domains, held against a naive model of the contract after every step."""

from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from leasehold.engine.audit import audit
from leasehold.engine.registrar import Registrar
from leasehold.kernel.ledger.refusals import Refusal
from leasehold.registry import REPLIES, all_families
from leasehold.stores.memory import MemoryStore
from leasehold.testing.clock import FakeClock
from leasehold.work.questions import FindDomain
from tests.work.house import SECOND, WorkHouse
from tests.work.law.naive import NaiveDomain

DOMAINS = st.sampled_from("AB")
OFFSETS = st.integers(0, 7)
TOKENS = st.sampled_from(["current", "current", "current", "last", "1"])


class WorkMachine(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.clock = FakeClock()
        self.house = WorkHouse(MemoryStore(self.clock, families=all_families()), self.clock)
        self.registrar = Registrar(self.house.store, also=REPLIES)
        self.naive = {"A": NaiveDomain(), "B": NaiveDomain()}
        self.last_token = "0"
        self.tokens: list[int] = []

    @property
    def now(self) -> int:
        return self.clock.tick_ns()

    def token_of(self, domain: str, which: str) -> str:
        lease = self.naive[domain].lease
        if which == "current" and lease is not None:
            return str(lease["token"])
        return self.last_token if which == "last" else "1"

    def took(self, domain: str, acquired: Any) -> None:
        """Note what was acquired, under a token above all others."""
        lease = self.naive[domain].lease
        assert lease is not None
        lease["token"] = acquired.token
        assert acquired.fence == int(acquired.token)
        assert not self.tokens or acquired.fence > self.tokens[-1]
        self.tokens.append(acquired.fence)
        assert acquired.retry_count == lease["retry_count"]
        self.last_token = acquired.token

    @rule(
        domain=DOMAINS,
        offset=OFFSETS,
        ttl=st.sampled_from([0, 0, 2, 5]),
        max_retries=st.integers(0, 2),
        twice=st.booleans(),
    )
    def try_acquire(self, domain: str, offset: int, ttl: int, max_retries: int, twice: bool) -> None:
        expected = self.naive[domain].try_acquire(offset, self.now, ttl * SECOND, max_retries)
        asked: dict[str, Any] = {"ttl_ns": ttl * SECOND, "max_retries": max_retries}
        asked["request_id"] = self.house.said(domain, {})["request_id"]
        outcome = self.house.acquire(domain, offset, **asked)
        if isinstance(outcome, Refusal):
            assert (outcome.rule, outcome.facts["expected"]) == expected
            return
        assert outcome.outcome == expected
        if expected == "ACQUIRED":
            self.took(domain, outcome)
        if twice:
            assert self.house.acquire(domain, offset, **asked).token == outcome.token

    @rule(domain=DOMAINS, which=TOKENS, hand_off=st.booleans(), verb=st.sampled_from(["succeed", "fail"]))
    def end(self, domain: str, which: str, hand_off: bool, verb: str) -> None:
        naive, token = self.naive[domain], self.token_of(domain, which)
        problem = naive.bears(token, self.now)
        lease = naive.lease
        outcome = getattr(self.house, verb)(domain, token, hand_off=hand_off)
        if problem is not None:
            assert isinstance(outcome, Refusal)
            assert outcome.rule == problem
            return
        expected, next_offset = getattr(naive, verb)()
        assert (outcome.outcome, outcome.next_offset) == (expected, next_offset)
        if hand_off and next_offset is not None:
            assert lease is not None
            naive.try_acquire(next_offset, self.now, lease["ttl"], lease["max_retries"])
            self.took(domain, outcome.acquired)
        else:
            assert outcome.acquired is None

    @rule(domain=DOMAINS, which=TOKENS)
    def give_back(self, domain: str, which: str) -> None:
        token = self.token_of(domain, which)
        problem = self.naive[domain].bears(token, self.now)
        outcome = self.house.give_back(domain, token)
        if problem is None:
            self.naive[domain].give_back()
        else:
            assert outcome.rule == problem

    @rule(domain=DOMAINS, ttl=st.integers(1, 5))
    def keep_alive(self, domain: str, ttl: int) -> None:
        token = self.token_of(domain, "current")
        problem = self.naive[domain].bears(token, self.now)
        outcome = self.house.keep_alive(domain, token, ttl_ns=ttl * SECOND)
        lease = self.naive[domain].lease
        if problem is not None or lease is None:
            assert outcome.rule == problem
            return
        lease["due"] = max(lease["due"] or 0, self.now + ttl * SECOND)
        lease["ttl"] = ttl * SECOND
        assert outcome.expires_in_ns == lease["due"] - self.now

    @rule(domain=DOMAINS, offsets=st.lists(OFFSETS, min_size=1, max_size=4))
    def enqueue(self, domain: str, offsets: list[int]) -> None:
        naive = self.naive[domain]
        naive.look(self.now)
        added = sum(naive.add_to_backlog(offset) for offset in offsets)
        assert self.house.enqueue(domain, *offsets).added == added

    @rule(domain=DOMAINS, offset=OFFSETS)
    def start_at(self, domain: str, offset: int) -> None:
        naive = self.naive[domain]
        naive.look(self.now)
        to_do = [*naive.backlog, *([naive.lease["offset"]] if naive.lease else [])]
        outcome = self.house.start_at(domain, offset)
        if offset > naive.start and min(to_do, default=offset) < offset:
            assert outcome.rule == "WORK_BELOW_START"
            return
        naive.start = max(naive.start, offset)
        assert outcome.start == naive.start

    @rule(seconds=st.integers(1, 4))
    def pass_time(self, seconds: int) -> None:
        self.clock.advance(seconds)

    @rule()
    def sweep(self) -> None:
        self.house.sweep()

    @invariant()
    def the_state_is_what_the_model_says(self) -> None:
        for name, naive in self.naive.items():
            state = self.registrar.ask(FindDomain(tenant="default", domain=name))
            if state.expires_in == 0:
                continue  # Its time is over, and nobody has recorded that: what is refused changes nothing.
            naive.look(self.now)
            lease = naive.lease
            assert state.current_offset == (None if lease is None else lease["offset"])
            assert state.token == (None if lease is None else lease["token"])
            assert (state.backlog, state.head) == (
                len(naive.backlog),
                naive.backlog[0] if naive.backlog else None,
            )
            assert spread(state.processed) == naive.processed
            assert spread(state.failed) == naive.failed
            assert (state.processed_count, state.failed_count) == (len(naive.processed), len(naive.failed))
            assert state.watermark == naive.watermark

    def teardown(self) -> None:
        assert audit(self.house.store).problems == []
        self.house.store.close()


def spread(ranges: tuple[tuple[int, int], ...]) -> set[int]:
    return {offset for first, last in ranges for offset in range(first, last + 1)}


@pytest.mark.deep
def test_work_is_what_the_contract_says_whatever_is_asked() -> None:
    from hypothesis.stateful import run_state_machine_as_test

    run_state_machine_as_test(WorkMachine, settings=settings(stateful_step_count=40))
