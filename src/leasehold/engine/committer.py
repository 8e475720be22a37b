"""Who runs the batches.

A calling thread that finds nobody at work becomes the leader: it runs a batch with its own command and
whatever else is waiting, in its own thread, and then passes the lead to one of those who queued up
meanwhile. So a single caller never pays for a thread switch, and many callers share transactions.

Two kinds of work go to a background thread instead: commands submitted without blocking (from tasks, and
from the keeper), and everything while another process is writing, so that callers can give up waiting.

Promised: every command is answered exactly once. A caller that gives up before its command was taken on
board knows that nothing was changed. A leader that is interrupted (Ctrl-C) leaves the commands of others
to be run again, which their request ids make harmless; who gives up on one of those is told that its outcome
is unknown.

There is one leader at a time, and it is known which, so that whoever is interrupted can tell whether it had
the lead. Commands stay in order only because of that: a batch may need several transactions (it met another
writer, an epoch has to be opened, one command spoils it for the rest), and between these a second leader
could run the release of a lease before its claim.
"""

import logging
import os
import queue
import threading
import time
import weakref
from collections import deque
from collections.abc import Callable

from leasehold.engine.batch import Done, Outcome, Recall, Request, Rules, run_taken
from leasehold.engine.call import Call, tell
from leasehold.engine.port import Store, WouldBlock
from leasehold.errors import ClientClosed, StoreBusy, StoreFailed
from leasehold.kernel.ledger.commands import LOCAL, Caller, Command

_COMMANDS_PER_BATCH = 1_000
_SWEEP_EVERY_SECONDS = 1.0
_SWEEP_LIMIT = 64

_logger = logging.getLogger(__name__)

_PASSED = object()
"""Leads while the lead is on its way to the background: whichever thread there picks it up has it."""


class Committer:
    """Group commit for all callers of one client."""

    def __init__(
        self, store: Store, *, timeout: float, observe: Callable[[Done], None] | None = None
    ) -> None:
        """`observe` is told what became of every batch, in the thread that has run it."""
        self._store = store
        self._check = store.families.check
        ring = store.bells.ring
        self._plain_rules = Rules(wake=ring, observe=observe)
        self._sweeping_rules = Rules(sweep_limit=_SWEEP_LIMIT, wake=ring, observe=observe)
        self._timeout = timeout
        self._next_sweep = 0.0
        self._reset()
        _committers.add(self)

    def _reset(self) -> None:
        self._lock = threading.Lock()
        self._waiting: deque[Call] = deque()
        self._leader: object | None = None
        """Who runs batches: the request of a calling thread, a thread in the background, or nobody.

        Taken under the lock, and from then on changed only by who has it, until it is passed.
        """
        self._grants = True
        self._closed = False
        # Not an event: one that is set by a thread which Ctrl-C interrupts can stay locked for ever.
        self._wakes: queue.SimpleQueue[None] = queue.SimpleQueue()
        self._thread: threading.Thread | None = None
        self._recall = Recall()

    def call(self, command: Command, caller: Caller = LOCAL) -> Outcome:
        """Run a command and return its outcome; raise StoreBusy if the store's turn does not come in time."""
        refusal = self._check(command)
        if refusal is not None:
            return refusal  # Nothing in the store could make it right.
        request, call = Request(command, caller), None
        try:
            if self._take_lead(request):
                try:
                    (outcome,) = run_taken(
                        self._store, (request,), self._rules(), recall=self._recall, blocking=False
                    )
                except WouldBlock:
                    call = Call(request, None)
                    with self._lock:
                        self._append(call)
                    self._leader = _PASSED
                    self._wake_background()
                except Exception as error:
                    outcome = error
                if call is None:
                    self._pass_lead()
                    return outcome
            else:
                call = Call(request, None)
                if self._enqueue(call):
                    self._lead(call, blocking=False)
            while call.outcome is None:
                woken = call.gate.acquire(timeout=self._timeout) or self._woken_late(call)
                if woken and call.outcome is None:
                    self._lead_if_passed(call)
            call.wake_follower()
            if self._leader is request:
                self._pass_lead()  # We were given it, and an answer before we came to lead: from `close`.
        except BaseException:
            if self._leader is request:
                self._leader = _PASSED  # First, without a call in which Ctrl-C could strike once more.
            self._abandon(call)
            raise
        return call.outcome

    def _take_lead(self, request: Request) -> bool:
        """Become the leader if nobody is: then nobody else waits, and there is no need to queue up."""
        with self._lock:
            if self._leader is not None or not self._grants:
                return False
            self._leader = request
            return True

    def _lead_if_passed(self, own: Call) -> None:
        """Lead if that was passed to us; who is interrupted in passing it may wake us in vain."""
        with self._lock:
            is_ours = self._leader is own.request
        if is_ours:
            self._lead(own, blocking=False)

    def submit(self, command: Command, deliver: Callable[[Outcome], None], caller: Caller = LOCAL) -> Call:
        """Run a command soon, and hand its outcome to `deliver`, which must be quick and not raise."""
        call = Call(Request(command, caller), deliver)
        refusal = self._check(command)
        if refusal is not None:
            call.resolve(refusal)
        elif self._enqueue(call):
            self._wake_background()
        return call

    def withdraw(self, call: Call) -> StoreBusy | StoreFailed | None:
        """Take a submitted command back and return why; None if it is too late for that.

        StoreBusy says that nothing was changed; StoreFailed, that somebody was interrupted in running it.
        """
        with self._lock:
            if call not in self._waiting:
                return None
            self._waiting.remove(call)
        return self._busy(call)

    def _enqueue(self, call: Call) -> bool:
        """Put a call in the queue; return whether the caller has to see to it that somebody leads."""
        with self._lock:
            self._append(call)
            if self._leader is not None:
                return False
            self._leader = _PASSED if call.gate is None else call.request
            return True

    def _append(self, call: Call) -> None:
        if self._closed or not (self._grants or _gives_back(call)):
            raise ClientClosed("this client was closed; connect again")
        self._waiting.append(call)

    def _lead(self, own: Call | None, *, blocking: bool) -> None:
        """Run batches until our own call has its outcome (None: until nothing waits), then pass the lead."""
        try:
            while self._run_one_batch(own, blocking=blocking):
                if own is not None and own.outcome is not None:
                    break
        except WouldBlock:
            self._leader = _PASSED
            self._wake_background()
        else:
            self._pass_lead()

    def _run_one_batch(self, own: Call | None, *, blocking: bool) -> bool:
        """Run what is waiting in one transaction; return False if nothing was."""
        if not self._waiting:
            return False
        taken: list[Call] = []
        requests: list[Request] = []

        def board() -> None:
            with self._lock:
                while self._waiting and len(taken) < _COMMANDS_PER_BATCH:
                    # Noted before it is removed: Ctrl-C in between must not make it disappear.
                    taken.append(self._waiting[0])
                    self._waiting.popleft()
            requests[:] = [call.request for call in taken]

        try:
            try:
                outcomes = run_taken(
                    self._store, requests, self._rules(), board=board, recall=self._recall, blocking=blocking
                )
            except WouldBlock:
                raise
            except Exception as error:
                if not taken:
                    board()
                outcomes = [error] * len(taken)
            tell(taken, outcomes, own)
        except BaseException:
            # It is not our turn, or we were interrupted, perhaps between the commit and the last answer.
            self._take_back(taken)
            raise
        return True

    def _take_back(self, taken: list[Call]) -> None:
        """Put calls back to be run again, which gives the same answers; those with an outcome are told it."""
        with self._lock:
            for call in reversed(taken):
                call.follower = None
                if call.outcome is None and call not in self._waiting:
                    call.interrupted = True
                    self._waiting.appendleft(call)
        for call in taken:
            if call.outcome is not None and not call.told:
                call.resolve(call.outcome)

    def _rules(self) -> Rules:
        now = time.monotonic()
        if now < self._next_sweep:
            return self._plain_rules
        self._next_sweep = now + _SWEEP_EVERY_SECONDS
        return self._sweeping_rules

    def _pass_lead(self) -> None:
        """Make the first waiting caller the leader; the background thread, if that one cannot lead itself."""
        with self._lock:
            if not self._waiting:
                self._leader = None
                if self._closed:
                    self._wakes.put(None)  # The background ends when nobody leads.
                return
            successor = self._waiting[0]
            if successor.gate is not None:
                # In this order: interrupted in between, we still have the lead, and `_abandon` passes it.
                successor.open_gate()
                self._leader = successor.request
                return
            self._leader = _PASSED
        self._wake_background()

    def _woken_late(self, call: Call) -> bool:
        """Withdraw a call whose time is up, unless it was woken, or taken on board, at the last moment."""
        with self._lock:
            if call.gate.acquire(blocking=False):
                return True
            if call not in self._waiting:
                return False
            self._waiting.remove(call)
        raise self._busy(call)

    def _busy(self, call: Call) -> StoreBusy | StoreFailed:
        process_id = self._store.blocker()
        kept = (
            f"process {process_id or 'unknown'} has kept the store's write lock for more than "
            f"{self._timeout:g} s"
        )
        if call.interrupted:
            return StoreFailed(
                f"{kept}, after the command was interrupted and may have been run; ask again to find out",
                process_id=process_id,
            )
        return StoreBusy(f"{kept}; nothing was changed. `leasehold doctor` tells more", process_id=process_id)

    def _abandon(self, call: Call | None) -> None:
        """Take back the call of an interrupted caller, and see to the lead if it was passed to nobody."""
        if call is not None:
            call.wake_follower()
        with self._lock:
            if call is not None and call in self._waiting:
                self._waiting.remove(call)
        self._wake_background()

    def _wake_background(self) -> None:
        """Let the background pick up a lead that was passed to it.

        That may have been done before: whoever passed it may have been interrupted before or after.
        """
        with self._lock:
            if self._leader is not _PASSED:
                return
            if self._thread is None:
                thread = threading.Thread(
                    target=self._run_in_background,
                    args=(self._wakes,),
                    name="leasehold-committer",
                    daemon=True,
                )
                thread.start()
                self._thread = thread  # Not before: Ctrl-C must not leave us with one that never started.
        self._wakes.put(None)

    def _run_in_background(self, wakes: "queue.SimpleQueue[None]") -> None:
        while True:
            wakes.get()
            while not wakes.empty():
                wakes.get()
            try:
                if self._pick_up_lead():
                    self._lead(None, blocking=True)
            except Exception:
                _logger.exception("the background committer hit a defect and goes on")
                self._leader = _PASSED  # Who gives up waiting wakes us once more.
            if self._closed and self._leader is None:
                wakes.put(None)  # For a second thread, if Ctrl-C came while the first was being started.
                return

    def _pick_up_lead(self) -> bool:
        with self._lock:
            if self._leader is not _PASSED:
                return False
            self._leader = threading.current_thread()
            return True

    def stop_granting(self) -> None:
        """Take no more claims, and answer those that were never taken on board; leases can be given back."""
        with self._lock:
            self._grants = False
            claims = [call for call in self._waiting if not _gives_back(call)]
            self._waiting = deque(call for call in self._waiting if _gives_back(call))
        _answer_closed(claims)

    def close(self) -> bool:
        """Refuse new commands, answer callers never taken on board, and say whether the store is left alone.

        It is not while the background thread waits for a writer that does not go on. What was submitted is
        still run if its turn comes in time: it may be what gives back a lease that an interrupted caller
        was granted, or is just being granted.
        """
        with self._lock:
            self._closed, self._grants = True, False
            thread = self._thread
            blocked = [call for call in self._waiting if call.gate is not None]
            self._waiting = deque(call for call in self._waiting if call.gate is None)
        _answer_closed(blocked)
        self._wakes.put(None)
        left_alone = thread is None or thread is threading.current_thread()
        if thread is not None and not left_alone:
            thread.join(self._timeout)
            left_alone = not thread.is_alive()
        with self._lock:
            submitted, self._waiting = list(self._waiting), deque()
        _answer_closed(submitted)
        return left_alone

    def after_fork_in_child(self) -> None:
        """Start anew: the parent's threads, and the callers they answered, do not exist here."""
        closed, grants = self._closed, self._grants
        self._reset()
        self._closed, self._grants = closed, grants


def _gives_back(call: Call) -> bool:
    return call.request.command.gives_back


def _answer_closed(calls: list[Call]) -> None:
    for call in calls:
        call.resolve(ClientClosed("this client was closed before the command was run"))


_committers: weakref.WeakSet[Committer] = weakref.WeakSet()


def _after_fork_in_child() -> None:
    for committer in list(_committers):
        committer.after_fork_in_child()


os.register_at_fork(after_in_child=_after_fork_in_child)
