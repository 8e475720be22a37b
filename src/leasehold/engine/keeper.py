"""One background renewer for all the leases of a client.

Each lease is renewed at a third of its TTL or, by jitter, a little earlier, and leases that are due at
about the same time are renewed together. One that was won by waiting lasts for its claim window only, and is
renewed almost at once, which confirms it. A renewal that fails for a passing reason is tried again; the
lease is lost only when its trust window closes, and the loss names the last failure as its cause. A definite
refusal is a loss at once, and so is another store in the place of the one that granted it. An access key that
was revoked is no such refusal: the lease stands until it expires, and nobody else is granted it before.

Promised: a lost lease is reported exactly once, no later than its trust window closes (as far as the
machine lets this thread run; `Kept.trusted_for_ns` asks the clock and needs no thread at all). A lease
reported as lost stays lost: a late answer does not bring it back, because its holder may have stopped
already.
"""

import heapq
import itertools
import logging
import random
import threading
from collections import defaultdict, deque
from collections.abc import Iterable

from leasehold.engine.clock import Clock
from leasehold.engine.desk import Desk, Failure, Outcome
from leasehold.engine.kept import Kept, forgotten, is_same_grant, window_closed
from leasehold.engine.trust import Trust
from leasehold.errors import LeaseholdError, StoreReplaced, error_of
from leasehold.kernel.lease.answers import Renewal, Renewed
from leasehold.kernel.lease.commands import Renew
from leasehold.kernel.lease.model import Lease
from leasehold.kernel.ledger.limits import BATCH_LEASES
from leasehold.kernel.ledger.refusals import Refusal
from leasehold.kernel.ledger.tick import NANOSECONDS_PER_SECOND

_RENEWALS_PER_TTL = 3
_JITTER = 0.1
_RETRIES_PER_INTERVAL = 8
_PLANS_ALWAYS_KEPT = 1_000
_NOT_ASLEEP_NS = 1 << 63
_CONFIRM_AFTER_NS = 50_000_000
"""How soon a lease that was won by waiting is confirmed; most are given back before, and need not be."""
_IDLE_NS = 60 * NANOSECONDS_PER_SECOND

_logger = logging.getLogger(__name__)
_losses = logging.getLogger("leasehold.losses")
# The holder hears of a loss itself: a program that has set up no log needs no line about it on stderr.
_losses.addHandler(logging.NullHandler())


_Plan = tuple[int, int, Kept]


def _is_void(plan: _Plan) -> bool:
    when_ns, _, kept = plan
    return kept.dropped or kept.loss is not None or when_ns != kept.planned_ns


class Keeper:
    """Renews leases until they are dropped, lost, or the keeper is closed."""

    def __init__(
        self,
        desk: Desk,
        clock: Clock,
        trust: Trust,
        *,
        seed: int | None = None,
        threaded: bool = True,
    ) -> None:
        """`threaded=False` leaves it to the caller to `step`, as tests and simulations do."""
        self._desk = desk
        self._clock = clock
        self._trust = trust
        self._random = random.Random(seed)
        self._threaded = threaded
        self.restart()

    def restart(self) -> None:
        """Start with nothing to keep: at first, and in a forked child, which holds none of the leases."""
        # Entered by itself, not through the condition: Ctrl-C on the way in would leave that locked for ever.
        self._lock = threading.Lock()
        self._changed = threading.Condition(self._lock)
        self._fresh: deque[Kept] = deque()
        """Leases granted since the keeper last looked: most are given back before it looks again."""
        self._plans: list[_Plan] = []
        self._order = itertools.count()
        self._plans_maximum = _PLANS_ALWAYS_KEPT
        self._wakes_at_ns = _NOT_ASLEEP_NS
        self._thread: threading.Thread | None = None
        self._closed = False

    def keep(self, kept: Kept) -> None:
        """Begin to renew a lease."""
        self._fresh.append(kept)
        # Until then it is surely not due: its deadline is no later than its TTL.
        lease = kept.lease
        soonest_ns = kept.deadline_ns - (kept.term_ns if lease.is_unconfirmed else lease.ttl_ns * 7 // 10)
        # In this order: who is not asleep yet says so before it looks at what is fresh, and sees this one.
        if self._wakes_at_ns <= soonest_ns and len(self._fresh) < _PLANS_ALWAYS_KEPT:
            return
        with self._lock:
            self._plan_fresh()
            if self._thread is None and self._threaded:
                thread = threading.Thread(target=self._run, name="leasehold-keeper", daemon=True)
                thread.start()
                self._thread = thread  # Not before: Ctrl-C must not leave us with one that never started.

    def drop(self, kept: Kept) -> None:
        """Stop renewing a lease; it is not reported as lost any more."""
        kept.dropped = True

    def renewed(self, renewals: Iterable[tuple[Kept, Renewal]], sent_ns: int) -> None:
        """Take in what a question that was sent at `sent_ns` has renewed, whoever asked it."""
        lost = []
        with self._lock:
            now_ns = self._clock.tick_ns()
            for kept, renewal in renewals:
                was_in_flight, kept.in_flight = kept.in_flight, False
                if kept.loss is not None or kept.dropped:
                    continue
                kept.trouble = None
                lease = renewal.lease
                upgrade_gone = lease.token < kept.lease.token and sent_ns > kept.changed_ns
                if upgrade_gone or not is_same_grant(lease, kept.lease):
                    lost.append(kept)
                    continue
                self._take_in(kept, lease)
                deadline_ns = self._trust.deadline_ns(sent_ns, renewal.expires_in_ns)
                kept.deadline_ns = max(kept.deadline_ns, deadline_ns)
                kept.due_ns = self._next_renewal_ns(kept, now_ns)
                if was_in_flight or kept.due_ns < kept.planned_ns:
                    self._plan(kept, kept.due_ns)
        for kept in lost:
            self.lose(kept, forgotten(kept.lease))

    def _take_in(self, kept: Kept, lease: Lease) -> None:
        """Keep a lease as it was answered with; an answer may be overtaken by a later one.

        A higher token is always the later one: where history was forgotten, versions begin anew below it.
        """
        if (lease.token, lease.version) >= (kept.lease.token, kept.lease.version):
            if lease.token != kept.lease.token:
                kept.changed_ns = self._clock.tick_ns()
            kept.lease = lease

    def changed(self, kept: Kept, lease: Lease) -> None:
        """Take in that a lease was changed in another way than by a renewal."""
        if not is_same_grant(lease, kept.lease):
            self.lose(kept, forgotten(kept.lease))
            return
        with self._lock:
            self._take_in(kept, lease)

    def lose(self, kept: Kept, loss: LeaseholdError) -> None:
        """Report a lease as lost, once."""
        with self._lock:
            if kept.loss is not None or kept.dropped:
                return
            kept.loss = loss
        _losses.warning("a lease of %s is lost: %s", kept.lease.holder, loss)
        try:
            kept.on_lost(loss)
        except Exception:
            _logger.exception("what was to hear of a lost lease failed; the other leases are kept on")

    def close(self) -> None:
        """Stop renewing altogether."""
        with self._lock:
            self._closed = True
            self._changed.notify_all()
            thread = self._thread
        if thread is not None and thread is not threading.current_thread():
            thread.join()

    def _plan_fresh(self) -> None:
        """Plan the first renewal of leases that are still held."""
        while self._fresh:
            kept = self._fresh.popleft()
            if not kept.dropped:
                self._plan(kept, self._first_renewal_ns(kept))

    def _first_renewal_ns(self, kept: Kept) -> int:
        granted_ns = kept.deadline_ns - kept.term_ns
        if kept.lease.is_unconfirmed:
            return granted_ns + _CONFIRM_AFTER_NS
        return self._next_renewal_ns(kept, granted_ns)

    def _next_renewal_ns(self, kept: Kept, from_ns: int) -> int:
        """Return a time about a third of a TTL after the last renewal (not after the grant)."""
        early = 1 - _JITTER * self._random.random()
        return from_ns + int(kept.lease.ttl_ns / _RENEWALS_PER_TTL * early)

    def _plan(self, kept: Kept, when_ns: int) -> None:
        """Look at a lease again at some time, and at the latest when its window closes."""
        kept.due_ns = when_ns
        kept.planned_ns = min(when_ns, kept.deadline_ns) if kept.is_renewable else kept.deadline_ns
        heapq.heappush(self._plans, (kept.planned_ns, next(self._order), kept))
        if len(self._plans) > self._plans_maximum:
            self._forget_void_plans()
        if kept.planned_ns < self._wakes_at_ns:
            # Only then: a keeper that wakes for nothing takes the interpreter from whoever is working.
            self._changed.notify()

    def _forget_void_plans(self) -> None:
        """Drop the plans that count no more: they may lie weeks ahead, and must not pile up until then."""
        self._plans = [plan for plan in self._plans if not _is_void(plan)]
        heapq.heapify(self._plans)
        self._plans_maximum = 2 * len(self._plans) + _PLANS_ALWAYS_KEPT

    def _run(self) -> None:
        while True:
            with self._lock:
                while not self._closed and (delay_ns := self._delay_to_next_ns()) > 0:
                    self._wakes_at_ns = self._clock.tick_ns() + delay_ns
                    if not self._fresh:  # Else one has come between, and found nobody asleep.
                        self._changed.wait(delay_ns / NANOSECONDS_PER_SECOND)
                    self._wakes_at_ns = _NOT_ASLEEP_NS
                if self._closed:
                    return
            self.step()

    def step(self) -> None:
        """Do what is due at this moment: report what was lost, and send renewals."""
        with self._lock:
            self._plan_fresh()
            overdue, due = self._take_due()
        for kept in overdue:
            self.lose(kept, window_closed(kept))
        for (tenant, holder), group in due.items():
            for start in range(0, len(group), BATCH_LEASES):
                self._send(tenant, holder, group[start : start + BATCH_LEASES])

    def _delay_to_next_ns(self) -> int:
        """Return the time to the next plan. A void one counts: else each grant would cost a wake-up."""
        self._plan_fresh()
        if not self._plans:
            return _IDLE_NS
        when_ns, _, kept = self._plans[0]
        return when_ns - _soon_ns(kept) - self._clock.tick_ns()

    def _take_due(self) -> tuple[list[Kept], dict[tuple[str, str], list[Kept]]]:
        """Take the leases whose window has closed, and by holder those to renew.

        A renewal that is due soon comes along, to share the transaction.
        """
        now_ns = self._clock.tick_ns()
        overdue: list[Kept] = []
        due: dict[tuple[str, str], list[Kept]] = defaultdict(list)
        while self._plans:
            plan = self._plans[0]
            when_ns, _, kept = plan
            if when_ns > now_ns + _soon_ns(kept):
                break
            heapq.heappop(self._plans)
            if _is_void(plan):
                continue
            if now_ns >= kept.deadline_ns:
                overdue.append(kept)
            elif not kept.is_renewable or kept.due_ns > now_ns + _soon_ns(kept):
                self._plan(kept, kept.due_ns)
            else:
                kept.in_flight = True
                self._plan(kept, now_ns)
                due[(kept.lease.tenant, kept.lease.holder)].append(kept)
        return overdue, due

    def _send(self, tenant: str, holder: str, group: list[Kept]) -> None:
        sent_ns = self._clock.tick_ns()
        command = Renew(
            tenant=tenant,
            holder=holder,
            lease_ids=tuple(kept.lease.lease_id for kept in group),
            request_id=self._desk.ids.name(),
        )
        try:
            self._desk.submit(command, lambda outcome: self._receive(group, sent_ns, outcome))
        except LeaseholdError as error:
            self._receive(group, sent_ns, error)

    def _receive(self, group: list[Kept], sent_ns: int, outcome: Outcome) -> None:
        results: tuple[object, ...] = (outcome,) * len(group)
        if isinstance(outcome, Renewed):
            results = outcome.outcomes
        renewals, troubled = [], list[Kept]()
        for kept, result in zip(group, results, strict=True):
            if isinstance(result, Renewal):
                renewals.append((kept, result))
            elif isinstance(result, Refusal) and result.code.means_loss:
                self.lose(kept, error_of(result))
            elif isinstance(result, Failure) and result.code == StoreReplaced.code:
                self.lose(kept, forgotten(kept.lease))  # Who granted it is gone for good.
            else:
                if kept.trouble is None and not kept.dropped:
                    troubled.append(kept)
                self._try_again(kept, _trouble_of(result), lasting=isinstance(result, Refusal))
        self.renewed(renewals, sent_ns)
        if troubled:  # Said once, not at every attempt, nor for every lease of an outage.
            _losses.warning(
                "leases of %s (%d) could not be renewed, and are lost soon unless this passes: %s",
                troubled[0].lease.holder,
                len(troubled),
                troubled[0].trouble,
            )

    def _try_again(self, kept: Kept, trouble: Exception, *, lasting: bool) -> None:
        """Come back soon after a passing trouble; after a lasting refusal only when the window closes."""
        with self._lock:
            kept.in_flight = False
            kept.trouble = trouble
            kept.renewing = kept.renewing and not lasting
            delay_ns = kept.term_ns // (_RENEWALS_PER_TTL * _RETRIES_PER_INTERVAL)
            self._plan(kept, self._clock.tick_ns() + delay_ns)


def _trouble_of(result: object) -> Exception:
    """Return what has kept a lease from being renewed, as its holder is told."""
    match result:
        case Refusal():
            return error_of(result)
        case Failure():
            return result.error()
        case Exception():
            return result
        case _:
            raise TypeError(f"a renewal is not answered with {type(result).__name__}")


def _soon_ns(kept: Kept) -> int:
    """Return how much earlier than planned a lease may be renewed, to come along with others.

    Not at all if its window closes first: then it is planned for that moment, and has nothing to do earlier.
    Nor before it is confirmed: it may be given back first.
    """
    if not kept.is_renewable or kept.due_ns > kept.deadline_ns or kept.lease.is_unconfirmed:
        return 0
    return int(kept.lease.ttl_ns / _RENEWALS_PER_TTL * _JITTER)
