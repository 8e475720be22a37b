"""The keeper, step by step, on a clock that stands still and with answers that come when the test says."""

import threading
from collections.abc import Callable, Iterator

import pytest

from leasehold.engine.batch import Outcome, Request
from leasehold.engine.call import Call
from leasehold.engine.clock import SystemClock
from leasehold.engine.keeper import _NOT_ASLEEP_NS, Keeper
from leasehold.engine.kept import Kept
from leasehold.engine.port import EntryQuery
from leasehold.engine.questions import FindHolders, ReadLedger
from leasehold.engine.registrar import Registrar
from leasehold.engine.trust import Trust
from leasehold.errors import ClientClosed, LeaseExpired, LeaseholdError, LeaseTerminal, StoreBusy
from leasehold.kernel.lease.answers import Granted, Renewal, Renewed
from leasehold.kernel.lease.commands import (
    Renew,
    Revoke,
)
from leasehold.kernel.ledger.commands import Command
from leasehold.stores.memory import MemoryStore
from leasehold.testing.clock import FakeClock
from tests.engine.doubles import SIGNAL_SECONDS, claim, expect, granted, release

TTL = 30.0
THIRD = TTL / 3
TRUST = Trust(drift_ppm=0, margin_ns=0)
SECOND = 1_000_000_000


class Desk(Registrar):
    """A registrar whose answers lie on the desk until the test hands them out."""

    def __init__(self, store: MemoryStore) -> None:
        super().__init__(store)
        self.sent: list[tuple[Command, Callable[[Outcome], None]]] = []
        self.refuses: Exception | None = None

    def submit(self, command: Command, deliver: Callable[[Outcome], None]) -> Call:
        if self.refuses is not None:
            raise self.refuses
        self.sent.append((command, deliver))
        return Call(Request(command), deliver)

    def renewals(self) -> list[tuple[str, ...]]:
        """The leases of each renewal that has not been answered yet."""
        return [expect(Renew, command).lease_ids for command, _ in self.sent]

    def answer(self, outcome: Outcome | None = None) -> None:
        """Answer all that was sent: truthfully, or as given."""
        for command, deliver in self._take():
            deliver(self.call(command) if outcome is None else outcome)

    def decide_now_and_answer_later(self) -> Callable[[], None]:
        """Let the registrar do its part; the replies travel until the result is called."""
        replies = [(self.call(command), deliver) for command, deliver in self._take()]

        def arrive() -> None:
            for outcome, deliver in replies:
                deliver(outcome)

        return arrive

    def _take(self) -> list[tuple[Command, Callable[[Outcome], None]]]:
        sent, self.sent = self.sent, []
        return sent


class Holder:
    """Leases under one keeper, and what their holder hears of them."""

    def __init__(self, clock: FakeClock, trust: Trust = TRUST) -> None:
        self.clock = clock
        self.desk = Desk(MemoryStore(clock))
        self.trust = trust
        self.keeper = Keeper(self.desk, clock, trust, seed=1, threaded=False)
        self.losses: list[tuple[str, LeaseholdError]] = []

    def hold(self, resource: str = "door", holder: str = "ann", ttl: float = TTL, **claimed: object) -> Kept:
        command = claim(resource, holder, ttl_ns=int(ttl * SECOND), **claimed)
        sent_ns = self.clock.tick_ns()
        answer = expect(Granted, self.desk.call(command))
        kept = Kept(
            answer.lease,
            self.trust.deadline_ns(sent_ns, answer.expires_in_ns),
            self.clock,
            on_lost=lambda error: self.losses.append((resource, error)),
        )
        self.keeper.keep(kept)
        return kept

    def pass_time(self, seconds: float) -> None:
        """Let time pass and the keeper look."""
        self.clock.advance(seconds)
        self.keeper.step()

    def plans(self) -> int:
        return len(self.keeper._plans)


@pytest.fixture
def holder(clock: FakeClock) -> Holder:
    return Holder(clock)


def test_a_lease_is_renewed_at_a_third_of_its_ttl(holder: Holder) -> None:
    kept = holder.hold()

    holder.pass_time(THIRD * 0.75)
    assert holder.desk.sent == []
    holder.pass_time(THIRD * 0.35)
    assert holder.desk.renewals() == [(kept.lease.lease_id,)]
    holder.desk.answer()

    assert kept.lease.renewal_count == 1
    assert kept.trusted_for_ns == int(TTL * SECOND)


def test_the_next_renewal_counts_from_the_last_one_and_never_becomes_a_hot_loop(holder: Holder) -> None:
    kept = holder.hold()
    for number in range(1, 21):
        holder.pass_time(THIRD * 1.1)
        assert len(holder.desk.sent) == 1
        holder.desk.answer()
        assert kept.lease.renewal_count == number
        holder.pass_time(THIRD * 0.75)
        assert holder.desk.sent == []


def test_a_lease_that_its_holder_renewed_is_left_alone_until_a_third_after_that(holder: Holder) -> None:
    kept = holder.hold()
    holder.pass_time(THIRD * 0.6)
    renew = Renew(lease_ids=(kept.lease.lease_id,), holder="ann", request_id="by hand")
    (by_hand,) = expect(Renewed, holder.desk.call(renew)).outcomes
    renewal = expect(Renewal, by_hand)
    holder.keeper.renewed([(kept, renewal)], holder.clock.tick_ns())

    holder.pass_time(THIRD * 0.5)
    assert holder.desk.sent == []
    holder.pass_time(THIRD * 0.5)
    assert holder.desk.renewals() == [(kept.lease.lease_id,)]


def test_renewals_are_spread_over_a_tenth_before_the_third(clock: FakeClock) -> None:
    holder = Holder(clock)
    interval_ns = THIRD * SECOND
    spread = []
    for number in range(200):
        kept = holder.hold(f"door-{number}")
        spread.append((kept.planned_ns - clock.tick_ns()) / interval_ns)

    assert 0.9 <= min(spread) < 0.92
    assert 0.98 < max(spread) <= 1


def test_leases_that_are_due_at_about_the_same_time_are_renewed_together(holder: Holder) -> None:
    names = {holder.hold(f"door-{number}").lease.lease_id for number in range(500)}

    holder.pass_time(THIRD)
    holder.desk.answer()

    history = holder.desk.ask(ReadLedger(query=EntryQuery(types=("lease.renewed",))))
    assert [set(entry.event.keys) for entry in history] == [names]


def test_each_holder_is_renewed_in_its_own_name(holder: Holder) -> None:
    for name in ("ann", "bob"):
        for number in range(3):
            holder.hold(f"door-{name}-{number}", name)

    holder.pass_time(THIRD * 1.1)

    renewals = [expect(Renew, command) for command, _ in holder.desk.sent]
    assert sorted((one.holder, len(one.lease_ids)) for one in renewals) == [("ann", 3), ("bob", 3)]


def test_a_renewal_names_at_most_a_thousand_leases(holder: Holder) -> None:
    for number in range(2_300):
        holder.hold(f"door-{number}")

    holder.pass_time(THIRD * 1.1)

    assert [len(names) for names in holder.desk.renewals()] == [1_000, 1_000, 300]


def test_a_lease_is_not_renewed_again_while_its_renewal_is_under_way(holder: Holder) -> None:
    holder.hold()
    holder.pass_time(THIRD * 1.1)
    holder.pass_time(THIRD * 1.1)

    assert len(holder.desk.sent) == 1


@pytest.mark.parametrize("trouble", [StoreBusy("busy"), ClientClosed("closed"), RuntimeError("a defect")])
def test_a_passing_trouble_is_not_a_loss_and_is_tried_again_soon(holder: Holder, trouble: Exception) -> None:
    kept = holder.hold()
    holder.pass_time(THIRD * 1.1)
    holder.desk.answer(trouble)

    assert holder.losses == []
    assert kept.trusted_for_ns > 0
    holder.pass_time(THIRD / 8)
    holder.desk.answer()
    assert kept.lease.renewal_count == 1


def test_a_renewal_that_cannot_even_be_sent_is_a_passing_trouble(holder: Holder) -> None:
    kept = holder.hold()
    holder.desk.refuses = StoreBusy("busy")
    holder.pass_time(THIRD * 1.1)
    holder.desk.refuses = None
    holder.pass_time(THIRD / 8)
    holder.desk.answer()

    assert kept.lease.renewal_count == 1
    assert holder.losses == []


def test_a_trouble_that_lasts_is_a_loss_when_the_window_closes_and_not_before(holder: Holder) -> None:
    kept = holder.hold()
    holder.pass_time(THIRD * 1.1)
    passed = THIRD * 1.1
    while passed < TTL - 0.5:
        holder.desk.answer(StoreBusy("busy"))
        holder.pass_time(0.25)
        passed += 0.25
        assert holder.losses == []
        assert kept.trusted_for_ns > 0
    holder.pass_time(TTL - passed)

    ((resource, error),) = holder.losses
    assert resource == "door"
    assert isinstance(error, LeaseExpired)
    assert (error.lease_id, error.token) == (kept.lease.lease_id, kept.lease.token)
    assert kept.trusted_for_ns == 0


def test_an_answer_that_never_comes_is_a_loss_when_the_window_closes(holder: Holder) -> None:
    kept = holder.hold()
    holder.pass_time(THIRD * 1.1)
    holder.pass_time(TTL - THIRD * 1.1 - 0.001)
    assert holder.losses == []
    holder.pass_time(0.001)

    assert len(holder.losses) == 1
    assert kept.loss is holder.losses[0][1]


def test_the_window_counts_from_before_the_request_and_not_from_the_reply(holder: Holder) -> None:
    kept = holder.hold()
    holder.pass_time(THIRD * 1.1)
    sent_ns = holder.clock.tick_ns()
    reply = holder.desk.decide_now_and_answer_later()
    holder.clock.advance(5)
    reply()

    assert kept.deadline_ns == sent_ns + int(TTL * SECOND)
    assert kept.trusted_for_ns == int((TTL - 5) * SECOND)


def test_the_window_closes_earlier_than_the_lease_by_drift_and_margin(clock: FakeClock) -> None:
    holder = Holder(clock, Trust(drift_ppm=10_000, margin_ns=SECOND))
    kept = holder.hold()

    holder.pass_time(THIRD * 1.1)
    holder.pass_time(TTL * 0.99 - 1 - THIRD * 1.1)

    assert len(holder.losses) == 1
    assert kept.trusted_for_ns == 0
    assert holder.desk.ask(FindHolders(tenant="default", resource="door"))[0].expires_in == pytest.approx(1.3)


def test_a_definite_refusal_is_a_loss_at_once(holder: Holder) -> None:
    kept = holder.hold()
    holder.desk.call(Revoke(lease_id=kept.lease.lease_id, operator="olga", reason="stuck", request_id="r"))
    holder.pass_time(THIRD * 1.1)
    holder.desk.answer()

    ((_, error),) = holder.losses
    assert isinstance(error, LeaseTerminal)
    assert error.state == "revoked"
    assert kept.trusted_for_ns == 0


def test_the_refusal_of_one_lease_does_not_touch_the_others_of_its_renewal(holder: Holder) -> None:
    lost, fine = holder.hold("lost"), holder.hold("fine")
    holder.desk.call(release(lost.lease))
    holder.pass_time(THIRD * 1.1)
    assert len(holder.desk.sent) == 1
    holder.desk.answer()

    assert [resource for resource, _ in holder.losses] == ["lost"]
    assert fine.lease.renewal_count == 1


def test_a_loss_is_reported_once_however_many_find_out(holder: Holder) -> None:
    kept = holder.hold()
    holder.desk.call(release(kept.lease))
    holder.pass_time(THIRD * 1.1)
    reply = holder.desk.decide_now_and_answer_later()
    reply()
    reply()
    holder.keeper.lose(kept, LeaseExpired("found out otherwise"))
    holder.pass_time(TTL)
    holder.pass_time(TTL)

    assert len(holder.losses) == 1


def test_a_late_reply_does_not_bring_a_lost_lease_back(holder: Holder) -> None:
    kept = holder.hold()
    holder.pass_time(THIRD * 1.1)
    reply = holder.desk.decide_now_and_answer_later()
    holder.pass_time(TTL)
    assert len(holder.losses) == 1
    reply()

    assert kept.trusted_for_ns == 0
    holder.pass_time(THIRD * 1.1)
    assert holder.desk.sent == []
    assert len(holder.losses) == 1


def test_a_reply_that_was_overtaken_does_not_turn_the_lease_back(holder: Holder) -> None:
    kept = holder.hold()
    holder.pass_time(THIRD * 1.1)
    early = holder.desk.decide_now_and_answer_later()
    holder.clock.advance(1)
    sent_ns = holder.clock.tick_ns()
    command = Renew(lease_ids=(kept.lease.lease_id,), holder="ann", request_id="by hand")
    by_hand = expect(Renewal, expect(Renewed, holder.desk.call(command)).outcomes[0])
    holder.keeper.renewed([(kept, by_hand)], sent_ns)
    early()

    assert kept.lease.renewal_count == 2
    assert kept.deadline_ns == sent_ns + int(TTL * SECOND)


def test_a_lease_that_may_not_be_renewed_any_more_stands_until_its_window_closes(holder: Holder) -> None:
    kept = holder.hold(max_renewals=1)
    holder.pass_time(THIRD * 1.1)
    holder.desk.answer()
    holder.pass_time(THIRD * 1.1)
    holder.desk.answer()  # Exhausted.
    assert holder.losses == []

    holder.pass_time(TTL - THIRD * 1.1 - 0.001)
    assert holder.desk.sent == []
    assert holder.losses == []
    assert kept.trusted_for_ns == 1_000_000
    holder.pass_time(0.001)
    assert len(holder.losses) == 1


def test_a_dropped_lease_is_neither_renewed_nor_reported(holder: Holder) -> None:
    kept = holder.hold()
    holder.keeper.drop(kept)
    holder.pass_time(TTL * 2)

    assert holder.desk.sent == []
    assert holder.losses == []


def test_a_reply_for_a_lease_that_was_dropped_meanwhile_changes_nothing(holder: Holder) -> None:
    kept = holder.hold()
    holder.pass_time(THIRD * 1.1)
    holder.keeper.drop(kept)
    holder.desk.answer()
    holder.pass_time(TTL * 2)

    assert kept.lease.renewal_count == 0
    assert holder.losses == []
    assert holder.desk.sent == []


def test_what_hears_of_a_loss_and_fails_does_not_stop_the_keeper(
    holder: Holder, caplog: pytest.LogCaptureFixture
) -> None:
    deaf, other = holder.hold("deaf", ttl=10), holder.hold("other", ttl=10)

    def fail(error: LeaseholdError) -> None:
        raise RuntimeError("a defect of whoever listens")

    deaf.on_lost = fail
    holder.pass_time(10)

    assert deaf.loss is not None
    assert other.loss is not None
    assert [resource for resource, _ in holder.losses] == ["other"]
    assert "a defect of whoever listens" in caplog.text


def test_plans_do_not_pile_up_over_ten_thousand_renewals(holder: Holder) -> None:
    kept = holder.hold(ttl=30 * 24 * 3600.0)
    for _ in range(10_000):
        unchanged = Renewal(lease=kept.lease, expires_in_ns=kept.lease.ttl_ns)
        holder.keeper.renewed([(kept, unchanged)], holder.clock.tick_ns())

    assert holder.plans() < 2_500


def test_plans_do_not_pile_up_over_ten_thousand_leases_come_and_gone(holder: Holder) -> None:
    kept = holder.hold("stays", ttl=30 * 24 * 3600.0)
    for _ in range(10_000):
        gone = Kept(kept.lease, kept.deadline_ns, holder.clock, on_lost=lambda error: None)
        holder.keeper.keep(gone)
        holder.keeper.drop(gone)

    assert holder.plans() < 2_500


def test_forgetting_void_plans_forgets_no_other(holder: Holder) -> None:
    names = set()
    for number in range(3_000):
        kept = holder.hold(f"door-{number}")
        if number % 3:
            holder.keeper.drop(kept)
        else:
            names.add(kept.lease.lease_id)

    holder.pass_time(THIRD * 1.1)

    assert {name for renewal in holder.desk.renewals() for name in renewal} == names


def test_a_keeper_that_was_restarted_after_a_fork_keeps_nothing_of_the_parents(holder: Holder) -> None:
    holder.hold()
    holder.keeper.restart()
    holder.pass_time(TTL * 2)

    assert holder.desk.sent == []
    assert holder.losses == []


class Threaded:
    """A keeper with its thread, on the real clock."""

    def __init__(self) -> None:
        self.clock = SystemClock()
        self.registrar = Registrar(MemoryStore(self.clock))
        self.keeper = Keeper(self.registrar, self.clock, Trust())

    def hold(self, resource: str, ttl: float, on_lost: Callable[[LeaseholdError], None]) -> Kept:
        lease = granted(self.registrar.call(claim(resource, ttl_ns=int(ttl * SECOND))))
        kept = Kept(lease, self.clock.tick_ns() + lease.ttl_ns, self.clock, on_lost=on_lost)
        self.keeper.keep(kept)
        return kept

    def wait_until_asleep(self) -> None:
        """Wait until the thread has nothing to do for a while: it says so before it lets go of the lock."""
        while self.keeper._wakes_at_ns == _NOT_ASLEEP_NS:
            with self.keeper._lock:
                pass

    def wait_for_renewals(self, count: int) -> None:
        """Wait until so many are in the ledger."""
        position, seen = 0, 0
        while seen < count:
            assert self.registrar.store.wait(position, SIGNAL_SECONDS)
            for entry in self.registrar.ask(ReadLedger(query=EntryQuery(after=position))):
                position = entry.position
                seen += entry.event.type == "lease.renewed"


@pytest.fixture
def threaded() -> Iterator[Threaded]:
    made = Threaded()
    yield made
    made.keeper.close()
    made.registrar.close()


def test_the_thread_renews_by_itself(threaded: Threaded) -> None:
    losses: list[LeaseholdError] = []
    kept = threaded.hold("door", 1.5, losses.append)
    threaded.wait_for_renewals(3)

    assert losses == []
    assert kept.trusted_for_ns > 0


def test_leases_come_and_gone_before_the_keeper_wakes_cost_it_nothing(threaded: Threaded) -> None:
    threaded.hold("first", 3_600, lambda error: None)
    threaded.wait_until_asleep()
    for number in range(500):
        threaded.keeper.drop(threaded.hold(f"door-{number}", 3_600, lambda error: None))

    assert len(threaded.keeper._plans) == 1


def test_the_thread_wakes_for_a_lease_that_is_due_before_all_others(threaded: Threaded) -> None:
    threaded.hold("slow", 3_600, lambda error: None)
    threaded.hold("quick", 1.5, lambda error: None)

    threaded.wait_for_renewals(2)


def test_the_thread_reports_a_loss_when_the_window_closes(threaded: Threaded) -> None:
    lost = threading.Event()
    kept = threaded.hold("door", 0.2, lambda error: lost.set())
    kept.renewing = False
    threaded.keeper.renewed([(kept, Renewal(lease=kept.lease, expires_in_ns=0))], threaded.clock.tick_ns())

    assert lost.wait(SIGNAL_SECONDS)
    assert threaded.clock.tick_ns() >= kept.deadline_ns


def test_closing_waits_for_the_thread_and_ends_all_renewing(threaded: Threaded) -> None:
    threaded.hold("door", 0.3, lambda error: None)
    (thread,) = [one for one in threading.enumerate() if one.name == "leasehold-keeper"]
    threaded.keeper.close()

    assert not thread.is_alive()
    threaded.keeper.close()


def test_a_keeper_can_be_closed_by_whoever_hears_of_a_loss(threaded: Threaded) -> None:
    closed = threading.Event()

    def close(error: LeaseholdError) -> None:
        threaded.keeper.close()
        closed.set()

    kept = threaded.hold("door", 0.1, close)
    kept.renewing = False
    threaded.keeper.renewed([(kept, Renewal(lease=kept.lease, expires_in_ns=0))], threaded.clock.tick_ns())

    assert closed.wait(SIGNAL_SECONDS)
