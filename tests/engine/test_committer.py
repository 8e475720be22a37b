"""Group commit: every command is answered once, whoever leads, and whatever happens to the leader."""

import os
import threading
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any

import pytest

from leasehold.engine import batch as batch_module
from leasehold.engine.audit import audit
from leasehold.engine.batch import Outcome
from leasehold.engine.call import Call
from leasehold.engine.committer import Committer
from leasehold.engine.port import Batch, Conflict, Transaction
from leasehold.engine.recording import open_epoch
from leasehold.errors import ClientClosed, StoreBusy, StoreFailed, StoreFull, StoreRejected
from leasehold.kernel.lease.answers import Ended, Granted, Released
from leasehold.kernel.lease.commands import (
    Release,
)
from leasehold.kernel.lease.model import LeaseState
from leasehold.kernel.lease.records import LEASE, lease_keys
from leasehold.kernel.ledger.commands import Command, Sweep
from leasehold.kernel.ledger.refusals import Refusal
from leasehold.stores.memory import MemoryStore
from leasehold.stores.sqlite import SqliteStore
from leasehold.testing.clock import FakeClock
from tests.engine.doubles import (
    SIGNAL_SECONDS,
    Caller,
    SignallingCommitter,
    WatchedStore,
    claim,
    created,
    expect,
    granted,
    release,
)

BACKGROUND = "leasehold-committer"


@pytest.fixture
def watched(clock: FakeClock) -> WatchedStore:
    store = WatchedStore(MemoryStore(clock))
    open_epoch(store)
    store.commits.clear()
    store.writers.clear()
    return store


@pytest.fixture
def committer(watched: WatchedStore) -> Iterator[SignallingCommitter]:
    made = SignallingCommitter(watched)
    yield made
    watched.vacate()
    made.close()


def leases_of(store: WatchedStore, *lease_ids: str) -> dict[str, LeaseState]:
    with store.snapshot() as snapshot:
        found = list(snapshot.read(lease_keys(keys=set(lease_ids))).families[LEASE].records.values())
    return {lease.lease_id: lease.state for lease in found}


class Pause:
    """Holds the first commit up until the test lets it go on."""

    def __init__(self, store: WatchedStore) -> None:
        self.reached = threading.Event()
        self.go_on = threading.Event()
        self._first = True
        store.before_commit = self._hold_up

    def _hold_up(self, batch: Batch) -> None:
        if self._first:
            self._first = False
            self.reached.set()
            assert self.go_on.wait(SIGNAL_SECONDS)


class Mailbox:
    """Takes outcomes in, and says when they have come."""

    def __init__(self) -> None:
        self.outcomes: list[Outcome] = []
        self._come = threading.Semaphore(0)

    def __call__(self, outcome: Outcome) -> None:
        self.outcomes.append(outcome)
        self._come.release()

    def wait(self, count: int = 1) -> list[Outcome]:
        for _ in range(count):
            assert self._come.acquire(timeout=SIGNAL_SECONDS), "never answered"
        return self.outcomes


def test_a_single_caller_leads_in_its_own_thread(
    watched: WatchedStore, committer: SignallingCommitter
) -> None:
    for number in range(3):
        granted(committer.call(claim(f"door-{number}")))

    assert watched.writers == [threading.current_thread().name] * 3
    assert BACKGROUND not in {thread.name for thread in threading.enumerate()}


def test_callers_that_come_during_a_commit_share_the_next_one(
    watched: WatchedStore, committer: SignallingCommitter
) -> None:
    pause = Pause(watched)
    first = Caller(lambda: committer.call(claim("first")))
    assert pause.reached.wait(SIGNAL_SECONDS)
    others = [
        Caller(lambda number=number: committer.call(claim(f"door-{number}")))  # type: ignore[misc]
        for number in range(50)
    ]
    committer.wait_until_queued(51)
    pause.go_on.set()

    tokens = {granted(caller.outcome()).token for caller in [first, *others]}

    assert len(tokens) == 51
    assert [len(created(batch)) for batch in watched.commits] == [1, 50]
    assert BACKGROUND not in watched.writers


def test_one_transaction_carries_a_thousand_commands_and_no_more(
    watched: WatchedStore, committer: SignallingCommitter
) -> None:
    pause, mailbox = Pause(watched), Mailbox()
    first = Caller(lambda: committer.call(claim("first")))
    assert pause.reached.wait(SIGNAL_SECONDS)
    for number in range(2_500):
        committer.submit(claim(f"door-{number}"), mailbox)
    pause.go_on.set()

    assert all(isinstance(outcome, Granted) for outcome in mailbox.wait(2_500))
    first.ended()
    assert [len(created(batch)) for batch in watched.commits] == [1, 1_000, 1_000, 500]


def test_commands_are_run_in_the_order_in_which_they_came(
    watched: WatchedStore, committer: SignallingCommitter
) -> None:
    watched.occupy()
    mailbox = Mailbox()
    for holder in ("ann", "bob", "eve"):
        committer.submit(claim("door", holder), mailbox)
    watched.vacate()

    winner, *losers = mailbox.wait(3)

    assert granted(winner).holder == "ann"
    assert [expect(Refusal, loser).holder for loser in losers] == ["ann", "ann"]


def test_what_is_submitted_without_waiting_is_run_in_the_background(
    watched: WatchedStore, committer: SignallingCommitter
) -> None:
    mailbox = Mailbox()
    committer.submit(claim("door"), mailbox)

    granted(mailbox.wait()[0])
    assert watched.writers == [BACKGROUND]


def test_the_background_takes_over_while_somebody_else_is_writing(
    watched: WatchedStore, committer: SignallingCommitter
) -> None:
    watched.occupy()
    callers = [Caller(lambda: committer.call(claim("one"))), Caller(lambda: committer.call(claim("two")))]
    committer.wait_until_queued(2)
    assert watched.waiting.acquire(timeout=SIGNAL_SECONDS)
    watched.vacate()

    for caller in callers:
        granted(caller.outcome())
    assert set(watched.writers) == {BACKGROUND}


def test_commands_that_come_while_the_background_waits_still_get_on_board(
    watched: WatchedStore, committer: SignallingCommitter
) -> None:
    watched.occupy()
    early = Caller(lambda: committer.call(claim("early")))
    assert watched.waiting.acquire(timeout=SIGNAL_SECONDS)
    late = Caller(lambda: committer.call(claim("late")))
    committer.wait_until_queued(2)
    watched.vacate()

    granted(early.outcome())
    granted(late.outcome())
    assert len(watched.commits) == 1


def test_a_caller_whose_turn_does_not_come_gives_up_and_nothing_is_done(watched: WatchedStore) -> None:
    committer = SignallingCommitter(watched, timeout=0.02)
    watched.occupy(process_id=4242)
    command = claim("door")

    with pytest.raises(StoreBusy, match=r"process 4242 .* nothing was changed") as busy:
        committer.call(command)

    assert busy.value.process_id == 4242
    watched.vacate()
    mailbox = Mailbox()
    committer.submit(claim("door", "bob"), mailbox)  # Queued behind whatever was left.
    granted(mailbox.wait()[0])
    assert leases_of(watched, command.lease_id) == {}
    committer.close()


def test_who_has_given_up_is_not_taken_on_board_even_before_it_says_so(watched: WatchedStore) -> None:
    committer = SignallingCommitter(watched, timeout=0.02)
    watched.occupy()
    command, mailbox = claim("door"), Mailbox()

    def blocker() -> None:
        watched.vacate()
        committer.submit(claim("other"), mailbox)  # Queued behind whatever was left.
        granted(mailbox.wait()[0])

    watched.blocker = blocker  # type: ignore[method-assign]
    with pytest.raises(StoreBusy, match="nothing was changed"):
        committer.call(command)

    assert leases_of(watched, command.lease_id) == {}
    committer.close()


def test_a_caller_that_was_taken_on_board_does_not_give_up(watched: WatchedStore) -> None:
    committer = SignallingCommitter(watched, timeout=0.02)
    on_board, time_was_up = threading.Event(), threading.Event()
    woken_late = committer._woken_late

    def woken_late_on_board(call: Any) -> bool:
        assert on_board.wait(SIGNAL_SECONDS)
        woken = woken_late(call)
        time_was_up.set()
        return woken

    def hold_up(batch: Batch) -> None:
        on_board.set()
        assert time_was_up.wait(SIGNAL_SECONDS)

    committer._woken_late = woken_late_on_board  # type: ignore[method-assign]
    watched.before_commit = hold_up
    watched.occupy()
    caller = Caller(lambda: committer.call(claim("door")))
    assert watched.waiting.acquire(timeout=SIGNAL_SECONDS)
    watched.vacate()

    granted(caller.outcome())
    committer.close()


@pytest.mark.parametrize("moment", ["before_commit", "after_commit"])
def test_an_interrupted_leader_leaves_the_others_to_be_answered_once(
    watched: WatchedStore, committer: SignallingCommitter, moment: str
) -> None:
    pause = Pause(watched)
    first = Caller(lambda: committer.call(claim("first")))
    assert pause.reached.wait(SIGNAL_SECONDS)
    leading = claim("leader")
    leader = Caller(lambda: committer.call(leading))
    committer.wait_until_queued(2)
    mailbox = Mailbox()
    submitted = claim("submitted")
    committer.submit(submitted, mailbox)
    others = [
        Caller(lambda number=number: committer.call(claim(f"door-{number}")))  # type: ignore[misc]
        for number in range(10)
    ]
    committer.wait_until_queued(11)
    interrupted: list[str] = []

    def interrupt(batch: Batch) -> None:
        if threading.current_thread() is leader:
            interrupted.append(moment)
            raise KeyboardInterrupt

    if moment == "before_commit":
        pause.reached.clear()
        watched.before_commit = interrupt
    else:
        watched.after_commit = interrupt
    pause.go_on.set()

    first.ended()
    leader.ended()
    assert isinstance(leader.error, KeyboardInterrupt)
    assert interrupted == [moment]
    answers = [expect(Granted, caller.outcome()) for caller in others]
    assert all(answer.repeated == (moment == "after_commit") for answer in answers)
    assert granted(mailbox.wait()[0]).lease_id == submitted.lease_id
    assert len(mailbox.outcomes) == 1
    # What the leader itself asked for was taken back, or had been done already; it is not done later.
    done = {} if moment == "before_commit" else {leading.lease_id: LeaseState.ACTIVE}
    assert leases_of(watched, leading.lease_id) == done
    assert sum(len(created(batch)) for batch in watched.commits) == 12 + len(done)
    assert audit(watched).problems == []


def test_who_gives_up_on_a_command_that_was_committed_unanswered_is_not_told_that_nothing_changed(
    watched: WatchedStore, committer: SignallingCommitter
) -> None:
    pause = Pause(watched)
    first = Caller(lambda: committer.call(claim("first")))
    assert pause.reached.wait(SIGNAL_SECONDS)
    leader = Caller(lambda: committer.call(claim("leader")))
    committer.wait_until_queued(2)
    submitted = claim("submitted")
    call = committer.submit(submitted, Mailbox())

    def interrupt(batch: Batch) -> None:
        if threading.current_thread() is leader:
            watched.occupy()
            raise KeyboardInterrupt

    watched.after_commit = interrupt
    pause.go_on.set()
    first.ended()
    leader.ended()
    assert isinstance(leader.error, KeyboardInterrupt)

    assert isinstance(committer.withdraw(call), StoreFailed)
    assert leases_of(watched, submitted.lease_id) == {submitted.lease_id: LeaseState.ACTIVE}


def test_a_leader_interrupted_between_the_answers_leaves_nobody_without_one(
    watched: WatchedStore, committer: SignallingCommitter
) -> None:
    pause = Pause(watched)
    first = Caller(lambda: committer.call(claim("first")))
    assert pause.reached.wait(SIGNAL_SECONDS)
    leader = Caller(lambda: committer.call(claim("leader")))
    committer.wait_until_queued(2)
    delivered: list[Outcome] = []

    def interrupted_once(outcome: Outcome) -> None:
        delivered.append(outcome)
        if len(delivered) == 1:
            raise KeyboardInterrupt

    committer.submit(claim("submitted"), interrupted_once)
    other = Caller(lambda: committer.call(claim("other")))
    committer.wait_until_queued(2)
    pause.go_on.set()

    first.ended()
    leader.ended()
    assert isinstance(leader.error, KeyboardInterrupt)
    granted(other.outcome())
    assert [expect(Granted, outcome).lease.resource for outcome in delivered] == ["submitted"] * 2


def test_a_caller_interrupted_while_it_waits_takes_its_command_back(
    watched: WatchedStore, committer: SignallingCommitter
) -> None:
    watched.occupy()
    leader = Caller(lambda: committer.call(claim("leader")))
    assert watched.waiting.acquire(timeout=SIGNAL_SECONDS)

    class Interrupted:
        """A gate at which the waiting caller is interrupted."""

        def acquire(self, **_: object) -> bool:
            raise KeyboardInterrupt

        def release(self) -> None:
            """Open."""

    command = claim("waiting")
    enqueue = committer._enqueue

    def enqueue_interrupted(call: Any) -> bool:
        call.gate = Interrupted()
        return enqueue(call)

    committer._enqueue = enqueue_interrupted  # type: ignore[method-assign]
    with pytest.raises(KeyboardInterrupt):
        committer.call(command)
    watched.vacate()

    granted(leader.outcome())
    assert leases_of(watched, command.lease_id) == {}


def test_a_caller_interrupted_as_it_is_woken_still_wakes_the_next(watched: WatchedStore) -> None:
    # Too patient for this test: whoever is not woken would look by itself in the end.
    committer = SignallingCommitter(watched, timeout=3 * SIGNAL_SECONDS)
    watched.occupy()
    leader = Caller(lambda: committer.call(claim("leader")))
    assert watched.waiting.acquire(timeout=SIGNAL_SECONDS)
    enqueue = committer._enqueue

    class Interrupted:
        """A gate at which the waiting caller is interrupted, just when it opens."""

        def __init__(self) -> None:
            self._opened = threading.Event()

        def acquire(self, **_: object) -> bool:
            assert self._opened.wait(SIGNAL_SECONDS)
            raise KeyboardInterrupt

        def release(self) -> None:
            self._opened.set()

    def enqueue_interrupted(call: Any) -> bool:
        if call.request.command.resource == "interrupted":
            call.gate = Interrupted()
        return enqueue(call)

    committer._enqueue = enqueue_interrupted  # type: ignore[method-assign]
    committer.wait_until_queued(1)
    callers = []
    for name in ("before", "interrupted", "behind", "last"):
        callers.append(Caller(lambda name=name: committer.call(claim(name))))  # type: ignore[misc]
        committer.wait_until_queued(1)
    watched.vacate()

    granted(leader.outcome())
    before, interrupted, behind, last = callers
    interrupted.ended()
    assert isinstance(interrupted.error, KeyboardInterrupt)
    assert [granted(one.outcome()).resource for one in (before, behind, last)] == ["before", "behind", "last"]
    committer.close()


class Interrupted:
    """A gate at which a waiting caller is interrupted when the test says so."""

    def __init__(self) -> None:
        self.now = threading.Event()

    def acquire(self, **_: object) -> bool:
        assert self.now.wait(SIGNAL_SECONDS)
        raise KeyboardInterrupt

    def release(self) -> None:
        """Open."""


class Overtaking:
    """A leader that has taken a claim on board, whose caller is interrupted and gives the lease back.

    `happen` is to be called where the leader is between two transactions. If there is a second leader then,
    it is given all the time it needs for the release.
    """

    def __init__(self, store: WatchedStore, committer: SignallingCommitter) -> None:
        self.committer = committer
        self.claim, self.given_back, self.happened = claim("door"), Mailbox(), False
        self._gate = Interrupted()
        enqueue = committer._enqueue

        def enqueue_at_gate(call: Any) -> bool:
            if call.request.command is self.claim:
                call.gate = self._gate
            return enqueue(call)

        committer._enqueue = enqueue_at_gate  # type: ignore[method-assign]
        pause = Pause(store)
        self.first = Caller(lambda: committer.call(claim("first")))
        assert pause.reached.wait(SIGNAL_SECONDS)
        self.leader = Caller(lambda: committer.call(claim("leader")))
        committer.wait_until_queued(2)
        self.claiming = Caller(lambda: committer.call(self.claim))
        committer.wait_until_queued(1)
        self._go_on = pause.go_on

    def begin(self) -> None:
        self._go_on.set()
        self.first.ended()

    def happen(self) -> None:
        if threading.current_thread() is not self.leader or self.happened:
            return
        self.happened = True
        self._gate.now.set()
        self.claiming.ended()
        assert isinstance(self.claiming.error, KeyboardInterrupt)
        ids, holder = (self.claim.lease_id,), self.claim.holder
        self.committer.submit(Release(lease_ids=ids, holder=holder, request_id="give back"), self.given_back)
        if self.committer._thread is not None:  # Whatever woke it, it leads now.
            self.given_back.wait()

    def outcome(self) -> Outcome:
        """What the release was answered, once everything is over."""
        self.leader.ended()
        if not self.given_back.outcomes:
            self.given_back.wait()
        assert self.happened
        return self.given_back.outcomes[0]


@pytest.mark.parametrize("trouble", [Conflict, StoreRejected, ZeroDivisionError, KeyboardInterrupt])
def test_a_release_does_not_overtake_its_claim_while_the_leader_is_between_two_tries(
    watched: WatchedStore,
    committer: SignallingCommitter,
    trouble: type[BaseException],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    overtaking = Overtaking(watched, committer)
    troubles = [trouble("once")]

    def fail_once(batch: Batch) -> None:
        if threading.current_thread() is overtaking.leader and troubles:
            raise troubles.pop()

    write = watched.write

    @contextmanager
    def write_and_leave(**options: bool) -> Iterator[Transaction]:
        try:
            with write(**options) as transaction:
                yield transaction
        finally:
            overtaking.happen()

    monkeypatch.setattr(watched, "write", write_and_leave)
    watched.before_commit = fail_once
    overtaking.begin()

    assert isinstance(expect(Released, overtaking.outcome()).outcomes[0], Ended)
    assert leases_of(watched, overtaking.claim.lease_id) == {overtaking.claim.lease_id: LeaseState.RELEASED}


def test_a_release_does_not_overtake_its_claim_while_the_leader_opens_an_epoch(
    watched: WatchedStore, committer: SignallingCommitter, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    overtaking = Overtaking(watched, committer)
    conflicts = [Conflict()]

    def conflict_and_reboot(batch: Batch) -> None:
        if threading.current_thread() is overtaking.leader and conflicts:
            clock.reboot()
            raise conflicts.pop()

    write = watched.write

    def write_late(*, blocking: bool = True, durable: bool = False) -> AbstractContextManager[Transaction]:
        if durable:
            overtaking.happen()
        return write(blocking=blocking, durable=durable)

    monkeypatch.setattr(watched, "write", write_late)
    watched.before_commit = conflict_and_reboot
    overtaking.begin()

    assert isinstance(expect(Released, overtaking.outcome()).outcomes[0], Ended)
    assert leases_of(watched, overtaking.claim.lease_id) == {overtaking.claim.lease_id: LeaseState.RELEASED}


@pytest.mark.parametrize("opened", [False, True])
def test_a_leader_interrupted_while_it_passes_the_lead_leaves_nobody_without_one(
    watched: WatchedStore, opened: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Too patient for this test: whoever gives up waiting would see to the lead in the end.
    committer = SignallingCommitter(watched, timeout=3 * SIGNAL_SECONDS)
    pause = Pause(watched)
    first = Caller(lambda: committer.call(claim("first")))
    assert pause.reached.wait(SIGNAL_SECONDS)
    others = [Caller(lambda: committer.call(claim("one"))), Caller(lambda: committer.call(claim("two")))]
    committer.wait_until_queued(3)
    open_gate, pick_up_lead = Call.open_gate, committer._pick_up_lead
    lead_if_passed, stirred = committer._lead_if_passed, threading.Event()

    def lead_if_passed_and_say_so(own: Call) -> None:
        lead_if_passed(own)
        stirred.set()

    def pick_up_lead_late() -> bool:
        assert not opened or stirred.wait(SIGNAL_SECONDS)
        return pick_up_lead()

    def interrupted(call: Call) -> None:
        if opened:
            open_gate(call)
        if threading.current_thread() is first:
            raise KeyboardInterrupt
        if not opened:
            open_gate(call)

    monkeypatch.setattr(Call, "open_gate", interrupted)
    committer._lead_if_passed = lead_if_passed_and_say_so  # type: ignore[method-assign]
    committer._pick_up_lead = pick_up_lead_late  # type: ignore[method-assign]
    watched.after_commit = lambda batch: stirred.set() if len(watched.commits) > 1 else None
    pause.go_on.set()

    first.ended()
    assert isinstance(first.error, KeyboardInterrupt)
    for caller in others:
        granted(caller.outcome())
    assert set(watched.writers[1:]) == {BACKGROUND}, "who is woken in vain does not lead"
    assert committer.close()


def test_what_receives_an_outcome_and_fails_does_not_touch_the_others(
    watched: WatchedStore, committer: SignallingCommitter, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(outcome: Outcome) -> None:
        raise RuntimeError("a defect of whoever listens")

    watched.occupy()
    mailbox = Mailbox()
    committer.submit(claim("one"), fail)
    committer.submit(claim("two"), mailbox)
    caller = Caller(lambda: committer.call(claim("three")))
    committer.wait_until_queued(3)
    watched.vacate()

    granted(mailbox.wait()[0])
    granted(caller.outcome())
    assert "a defect of whoever listens" in caplog.text


def test_closing_answers_those_who_wait_and_nothing_of_theirs_is_done(
    watched: WatchedStore, committer: SignallingCommitter, monkeypatch: pytest.MonkeyPatch
) -> None:
    watched.occupy()
    mailbox = Mailbox()
    commands: list[Command] = [claim("one"), claim("two"), claim("three")]
    callers = [Caller(lambda command=command: committer.call(command)) for command in commands[:2]]  # type: ignore[misc]
    committer.submit(commands[2], mailbox)
    committer.wait_until_queued(3)
    assert watched.waiting.acquire(timeout=SIGNAL_SECONDS)

    with monkeypatch.context() as impatient:  # Unlike those who wait, who must not give up before.
        impatient.setattr(committer._thread, "join", lambda patience: None)
        assert committer.close() is False, "the background still waits for the store"

    assert isinstance(mailbox.wait()[0], ClientClosed)
    for caller in callers:
        assert isinstance(caller.outcome(), ClientClosed)
    watched.vacate()
    assert committer.close() is True
    assert watched.commits == []


def test_who_grants_no_more_still_takes_back(watched: WatchedStore, committer: SignallingCommitter) -> None:
    lease = granted(committer.call(claim("door")))
    watched.occupy()
    mailbox = Mailbox()
    caller = Caller(lambda: committer.call(claim("one")))
    committer.wait_until_queued(1)
    committer.submit(claim("two"), mailbox)

    committer.stop_granting()

    assert isinstance(mailbox.wait()[0], ClientClosed)
    assert isinstance(caller.outcome(), ClientClosed)
    with pytest.raises(ClientClosed):
        committer.call(claim("three"))
    releasing = Caller(lambda: committer.call(release(lease)))
    watched.vacate()
    assert isinstance(releasing.outcome(), Released)
    assert leases_of(watched, lease.lease_id) == {lease.lease_id: LeaseState.RELEASED}


def test_closing_still_gives_back_what_an_interrupted_caller_is_just_being_granted(
    watched: WatchedStore, committer: SignallingCommitter
) -> None:
    pause, granting, giving_back = Pause(watched), Mailbox(), Mailbox()
    command = claim("door")
    committer.submit(command, granting)
    assert pause.reached.wait(SIGNAL_SECONDS)
    release = Release(lease_ids=(command.lease_id,), holder=command.holder, request_id="give back")
    committer.submit(release, giving_back)
    closing = threading.Thread(target=committer.close)
    closing.start()
    pause.go_on.set()

    closing.join(SIGNAL_SECONDS)

    granted(granting.outcomes[0])
    assert isinstance(giving_back.outcomes[0], Released)
    assert leases_of(watched, command.lease_id) == {command.lease_id: LeaseState.RELEASED}


@pytest.mark.parametrize("gives_back", [False, True])
def test_closing_waits_for_a_caller_that_leads_and_for_what_was_submitted_behind_it(
    watched: WatchedStore, committer: SignallingCommitter, gives_back: bool
) -> None:
    mailbox, giving_back = Mailbox(), Mailbox()
    let_go, looked = threading.Event(), threading.Semaphore(0)
    pass_lead, pick_up_lead = committer._pass_lead, committer._pick_up_lead

    def pass_lead_and_say_so() -> None:
        pass_lead()
        let_go.set()

    def look_for_lead_and_say_so() -> bool:
        found = pick_up_lead()
        looked.release()
        return found

    committer._pass_lead = pass_lead_and_say_so  # type: ignore[method-assign]
    committer._pick_up_lead = look_for_lead_and_say_so  # type: ignore[method-assign]
    committer.submit(claim("other"), mailbox)  # So that there is a background.
    lease = granted(mailbox.wait()[0])
    assert looked.acquire(timeout=SIGNAL_SECONDS)
    assert let_go.wait(SIGNAL_SECONDS)
    pause = Pause(watched)
    leader = Caller(lambda: committer.call(claim("door")))
    assert pause.reached.wait(SIGNAL_SECONDS)
    if gives_back:
        committer.submit(release(lease), giving_back)
    closed: list[bool] = []
    closing = Caller(lambda: closed.append(committer.close()))
    assert looked.acquire(timeout=SIGNAL_SECONDS), "closing wakes the background"
    pause.go_on.set()

    granted(leader.outcome())
    closing.ended()
    assert closed == [True]
    assert [type(outcome) for outcome in giving_back.outcomes] == [Released] * gives_back


def test_who_is_given_the_lead_and_an_answer_at_once_passes_the_lead(
    watched: WatchedStore, committer: SignallingCommitter
) -> None:
    lease = granted(committer.call(claim("door")))
    opened, go_on = threading.Event(), threading.Event()

    class Slow:
        """A gate that takes its caller as long to come through as the test says."""

        def acquire(self, **_: object) -> bool:
            return go_on.wait(SIGNAL_SECONDS)

        def release(self) -> None:
            opened.set()

    enqueue = committer._enqueue

    def enqueue_slowly(call: Call) -> bool:
        if call.gate is not None:
            call.gate = Slow()
        return enqueue(call)

    committer._enqueue = enqueue_slowly  # type: ignore[method-assign]
    pause, giving_back = Pause(watched), Mailbox()
    first = Caller(lambda: committer.call(claim("first")))
    assert pause.reached.wait(SIGNAL_SECONDS)
    successor = Caller(lambda: committer.call(claim("second")))
    committer.wait_until_queued(3)
    committer.submit(release(lease), giving_back)
    pause.go_on.set()
    first.ended()
    assert opened.wait(SIGNAL_SECONDS)

    committer.stop_granting()
    go_on.set()

    assert isinstance(successor.outcome(), ClientClosed)
    assert isinstance(giving_back.wait()[0], Released)


def test_closing_is_not_upset_by_a_caller_that_has_just_been_given_the_lead(
    watched: WatchedStore, committer: SignallingCommitter
) -> None:
    # The successor's gate is open, but it has not come through it yet when close answers it.
    callers: list[Caller] = []

    def others_come(batch: Batch) -> None:
        if not callers:
            callers.extend(
                Caller(lambda number=number: committer.call(claim(f"door-{number}")))  # type: ignore[misc]
                for number in range(5)
            )
            committer.wait_until_queued(6)

    watched.before_commit = others_come
    granted(committer.call(claim("first")))
    committer.close()

    for caller in callers:
        caller.ended()
        assert caller.error is None


def test_a_closed_committer_takes_no_more_commands(committer: SignallingCommitter) -> None:
    committer.close()

    with pytest.raises(ClientClosed):
        committer.call(claim("door"))
    with pytest.raises(ClientClosed):
        committer.submit(claim("door"), lambda outcome: None)


class Poison(Sweep, frozen=True, kw_only=True, tag="poison"):
    """A command that no rule of the law knows."""


def test_a_malformed_command_is_refused_without_the_store(
    watched: WatchedStore, committer: SignallingCommitter
) -> None:
    watched.occupy()
    mailbox = Mailbox()

    refusal = expect(Refusal, committer.call(claim("")))
    committer.submit(claim(""), mailbox)

    assert (refusal.code, refusal.field) == ("INVALID_INPUT", "resource")
    assert mailbox.outcomes == [refusal]


def test_a_poisoned_command_does_not_touch_the_others(
    watched: WatchedStore, committer: SignallingCommitter
) -> None:
    watched.occupy()
    good = [Caller(lambda: committer.call(claim("one"))), Caller(lambda: committer.call(claim("two")))]
    bad = Caller(lambda: committer.call(Poison(family="lease", key="lease", request_id="r")))
    committer.wait_until_queued(3)
    watched.vacate()

    for caller in good:
        granted(caller.outcome())
    assert isinstance(bad.outcome(), KeyError)


def test_a_defect_in_the_law_is_the_answer_to_all_and_hangs_nobody(
    watched: WatchedStore, committer: SignallingCommitter, monkeypatch: pytest.MonkeyPatch
) -> None:
    def defect(*arguments: object) -> None:
        raise ZeroDivisionError("a defect in the law")

    watched.occupy()
    mailbox = Mailbox()
    callers = [
        Caller(lambda number=number: committer.call(claim(f"door-{number}")))  # type: ignore[misc]
        for number in range(5)
    ]
    committer.submit(claim("submitted"), mailbox)
    committer.wait_until_queued(6)
    with monkeypatch.context() as broken:
        broken.setattr(batch_module, "decide", defect)
        watched.vacate()
        outcomes = [caller.outcome() for caller in callers] + mailbox.wait()

    assert all(isinstance(outcome, ZeroDivisionError) for outcome in outcomes)
    granted(committer.call(claim("afterwards")))


def test_a_batch_that_the_store_rejects_is_run_one_by_one(
    watched: WatchedStore, committer: SignallingCommitter
) -> None:
    def reject(batch: Batch) -> None:
        if any(lease.resource == "forbidden" for lease in created(batch)):
            raise StoreRejected("not this one")

    watched.before_commit = reject
    watched.occupy()
    mailbox = Mailbox()
    for resource in ("one", "forbidden", "two"):
        committer.submit(claim(resource), mailbox)
    watched.vacate()

    one, forbidden, two = mailbox.wait(3)

    assert (granted(one).resource, granted(two).resource) == ("one", "two")
    assert isinstance(forbidden, StoreRejected)


@pytest.mark.parametrize("error", [StoreFull("no space"), StoreFailed("broken disk")])
def test_a_store_that_fails_says_so_to_all_on_board(
    watched: WatchedStore, committer: SignallingCommitter, error: Exception
) -> None:
    def fail(batch: Batch) -> None:
        raise error

    watched.occupy()
    mailbox = Mailbox()
    for number in range(3):
        committer.submit(claim(f"door-{number}"), mailbox)
    watched.before_commit = fail
    watched.vacate()

    assert [type(outcome) for outcome in mailbox.wait(3)] == [type(error)] * 3
    watched.before_commit = lambda batch: None
    granted(committer.call(claim("afterwards")))


def test_a_commit_that_met_another_is_decided_again(
    watched: WatchedStore, committer: SignallingCommitter
) -> None:
    conflicts = iter([Conflict(), Conflict()])

    def conflict(batch: Batch) -> None:
        for error in conflicts:
            raise error

    watched.before_commit = conflict

    granted(committer.call(claim("door")))
    assert len(watched.writers) == 3


def test_endless_conflicts_end_in_an_error(watched: WatchedStore, committer: SignallingCommitter) -> None:
    def conflict(batch: Batch) -> None:
        raise Conflict

    watched.before_commit = conflict

    assert isinstance(committer.call(claim("door")), StoreRejected)


def test_expired_leases_are_swept_in_passing_but_not_by_every_command(
    watched: WatchedStore, clock: FakeClock
) -> None:
    committer = SignallingCommitter(watched)
    for number in range(100):
        granted(committer.call(claim(f"old-{number}")))
    clock.advance(10)
    committer._next_sweep = 0.0
    watched.commits.clear()

    granted(committer.call(claim("one")))
    granted(committer.call(claim("two")))

    first, second = ([entry.event.type for entry in batch.entries] for batch in watched.commits)
    assert first == ["lease.issued"] + ["lease.expired"] * 64
    assert second == ["lease.issued"]
    committer.close()


@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
def test_a_forked_child_starts_anew_whoever_led_or_waited_in_the_parent(tmp_path: Path) -> None:
    store = WatchedStore(SqliteStore(tmp_path / "leases"))
    open_epoch(store)
    committer = SignallingCommitter(store)
    store.occupy()
    in_parent = [Caller(lambda: committer.call(claim("one"))), Caller(lambda: committer.call(claim("two")))]
    committer.wait_until_queued(2)
    assert store.waiting.acquire(timeout=SIGNAL_SECONDS)
    receive, send = os.pipe()

    process_id = os.fork()
    if process_id == 0:
        store.vacate()
        mailbox = Mailbox()
        committer.submit(claim("submitted in the child"), mailbox)
        outcomes = [committer.call(claim("called in the child")), *mailbox.wait()]
        os.write(send, " ".join(type(outcome).__name__ for outcome in outcomes).encode())
        os._exit(0)
    os.waitpid(process_id, 0)
    store.vacate()

    assert os.read(receive, 100) == b"Granted Granted"
    os.close(receive)
    os.close(send)
    for caller in in_parent:
        granted(caller.outcome())
    found = audit(store)
    assert (found.problems, found.leases) == ([], 4)
    committer.close()
    store.close()


def test_a_committer_closed_before_a_fork_is_closed_in_the_child(watched: WatchedStore) -> None:
    committer = Committer(watched, timeout=1)
    committer.close()
    committer.after_fork_in_child()

    with pytest.raises(ClientClosed):
        committer.call(claim("door"))
