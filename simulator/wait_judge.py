"""Whether answers about waiting, and about modes, holders and paths that change, were right.

Whoever is told to wait waits for somebody who is in its way at that very moment, and is told to ask again
before it can be in vain; so nobody who is entitled waits longer than until it asks again. Whoever is refused
because of others is refused for a reason that was there, and as a deadlock only where it is one. Whoever has
won is woken.
"""

from collections.abc import Sequence

from leasehold.engine.port import Batch
from leasehold.kernel.lease.answers import Granted, Place, Waiting
from leasehold.kernel.lease.commands import Acquire, ChangeMode, Derive, Transfer
from leasehold.kernel.lease.events import LeaseIssued
from leasehold.kernel.lease.model import Mode
from leasehold.kernel.lease.ticket import PRIORITY_USUAL
from leasehold.kernel.ledger.commands import Command
from leasehold.kernel.ledger.events import REGISTRAR
from leasehold.kernel.ledger.refusals import Refusal, RefusalCode
from leasehold.kernel.ledger.tick import Tick
from simulator.closings import ended_before
from simulator.crowd_judge import CLAIM_WINDOW_NS, SECOND
from simulator.crowds import (
    obstacles,
    waits_for_ever_already,
    would_have_to_wait,
    would_wait_for_ever,
)
from simulator.stage import Stage
from simulator.true_lease import TrueLease, place_of, touch
from simulator.truth import Truth
from simulator.witness import Witness

_POLL_NS = 10 * SECOND
_POLL_TOGETHER_NS = SECOND // 2
_STAGGER_NS = SECOND // 200
"""How long a waiter may be left alone that nobody is ahead of, and one with several claims; and by how much
later than the first each further one may ask at the end of what all wait for."""


class WaitJudge:
    """Checks what is answered to those who wait, and because of them."""

    def __init__(self, stage: Stage, witness: Witness) -> None:
        self._stage = stage
        self._witness = witness
        self._position = self._first_tick = self._last_tick = 0
        self._alone = self._untouched = False

    def look(self, position: int, ticks: tuple[int, int], *, alone: bool, untouched: bool) -> None:
        """Note when the next answers were decided; whether each was by itself, and changed nothing."""
        self._position, (self._first_tick, self._last_tick) = position, ticks
        self._alone, self._untouched = alone, alone and untouched

    @property
    def _truth(self) -> Truth:
        return self._witness.truth

    def _require(self, condition: bool, template: str, *facts: object) -> None:
        if not condition:
            self._stage.violate(template, *facts)

    def check_waiting(self, command: Command, waiting: Waiting) -> None:
        """Whoever is told to wait stands in every queue, or is a sharer that waits to be alone.

        What else was in the same batch may have ended that already.
        """
        self._stage.tally.note("waited")
        asked = isinstance(command, Acquire | ChangeMode) and command.wait
        lease = self._truth.leases.get(waiting.lease_id)
        self._require(asked and lease is not None, "{} did not want to wait: {}", command, waiting)
        assert lease is not None
        claim = [self._truth.leases[name] for name in lease.group or (lease.lease_id,)]
        if isinstance(command, ChangeMode):
            claim = [lease]
        for place in waiting.places:
            self._check_place(lease.holder, place)
        if not self._alone or any(one.issued_position > self._position and not one.pending for one in claim):
            return
        truth, tick = self._truth, self._first_tick
        stands = all(one.lease_id in truth.waiting or one.is_upgrading(tick) for one in claim)
        self._require(stands, "{} was told to wait, and does not: {}", command, waiting)
        leases = [*self._truth.standing.values(), *self._truth.waiting.values()]
        found = [obstacles(leases, one, self._truth, self._first_tick) for one in claim]
        self._require(any(found), "{} was told to wait for nobody: {}", command, waiting)
        latest_ns = self._latest_ns(found, max(place.position for place in waiting.places))
        self._require(
            0 <= waiting.ask_again_ns <= latest_ns, "{} was told to ask too late: {}", command, waiting
        )

    def _check_place(self, holder: str, place: Place) -> None:
        """See that whoever is said to be in the way is: a lease that stands, or somebody who still asks."""
        blocker = self._truth.leases.get(place.lease_id or "")
        if blocker is None:
            return
        ended = blocker.ended_position is not None and blocker.ended_position <= self._position
        ends = min(one.end_tick for one in self._truth.accounts.line_of(blocker))
        in_the_way = touch((blocker.key[0], place.resource), blocker.key) and blocker.holder != holder
        self._require(
            in_the_way and not ended and ends > self._first_tick,
            "{} is over, and {} waits for it",
            place.lease_id,
            holder,
        )

    def _latest_ns(self, found: list[list[TrueLease]], position: int) -> int:
        """Return after how long a waiter with a place in the queue has to ask again at the latest."""
        if len(found) > 1:
            return _POLL_TOGETHER_NS
        if any(one.pending for one in found[0]):
            return CLAIM_WINDOW_NS  # Those ahead may be dead, and each of them costs no more than that.
        if any(one.issued_position > self._position for one in found[0]):
            return _POLL_NS  # It has had its turn since, and has not confirmed that yet.
        open_again = self._truth.settling.open_again_at
        ends = [
            one.end_tick if one.end_tick > self._first_tick else open_again(one, one.end_tick)
            for one in found[0]
        ]
        return min(_POLL_NS, max(ends) - self._first_tick + _STAGGER_NS * position)

    def check_granted(self, command: Command, granted: Granted) -> None:
        """Whoever claimed several things got all of them; whoever changed something got what it asked for."""
        leases = (granted.lease, *granted.also)
        match command:
            case Acquire():
                whole = len(leases) == 1 + len(command.also)
                self._require(whole, "{} was granted in part: {}", command, granted)
                for lease in leases:
                    true = self._truth.leases[lease.lease_id]
                    got = granted.ended or (true.confirmed and not true.pending)
                    self._require(got, "{} was granted, and nobody has confirmed it", lease.lease_id)
                    left_ns = max(0, true.end_tick - self._first_tick)
                    self._require(
                        granted.expires_in_ns <= left_ns, "{} was promised too much", lease.lease_id
                    )
            case ChangeMode():
                changed = granted.repeated or granted.lease.mode is command.mode
                self._require(changed, "{} was answered with {}", command, granted)
            case Transfer():
                old = self._truth.leases.get(command.lease_id)
                handed = old is not None and old.ended_position is not None and old.token < leases[0].token
                self._require(
                    handed and leases[0].holder == command.to, "{} was not handed over: {}", command, granted
                )
            case _:
                pass

    def check_rings(self, batches: Sequence[Batch], rung: set[str]) -> None:
        """Whoever has won something is woken, if it said where."""
        for batch in batches:
            for entry in batch.entries:
                if isinstance(entry.event, LeaseIssued) and entry.event.claim_window_ns:
                    address = self._truth.leases[entry.event.lease_id].wake
                    self._require(
                        not address or address in rung, "{} won, and was not woken", entry.event.lease_id
                    )

    def is_justified(self, command: Command, refusal: Refusal, lease: TrueLease | None) -> bool | None:
        """Say whether the reason for a refusal was there; None: it has nothing to do with this."""
        holder = getattr(command, "holder", None)
        holder = getattr(command, "to", getattr(command, "child_holder", holder))
        match refusal.code:
            case RefusalCode.HELD if refusal.holder == REGISTRAR and lease is None:
                return self._is_closed_to(holder, refusal)
            case RefusalCode.HELD if isinstance(command, Acquire | Derive | ChangeMode | Transfer):
                if lease is None or holder in (lease.holder, lease.delayed_for):
                    return False
                return self._is_obstacle(command, lease)
            case RefusalCode.ALREADY_WAITING:
                return lease is not None and lease.holder == holder and self._was_pending(lease)
            case RefusalCode.LEASE_PENDING:
                return lease is not None and (not lease.confirmed or self._was_pending(lease))
            case RefusalCode.DEADLOCK if isinstance(command, Acquire | ChangeMode):
                return self._is_deadlock(command, refusal, lease)
            case _:
                return None

    def _is_closed_to(self, holder: str | None, refusal: Refusal) -> bool:
        """Say whether a lease is over, and nobody has recorded yet that it leaves something closed."""
        delayed = self._truth.leases.get(ended_before(refusal.lease_id or ""))
        if delayed is None or not delayed.confirmed or delayed.holder == holder:
            return False
        open_again = self._truth.settling.open_again_at(delayed, delayed.end_tick)
        return delayed.end_tick <= self._last_tick and self._first_tick < open_again

    def _is_obstacle(self, command: Acquire | Derive | ChangeMode | Transfer, lease: TrueLease) -> bool:
        if lease.changed_position > self._position:
            return True  # It has another mode now than when it was in the way.
        if isinstance(command, Acquire | Derive):
            wanted, priority = [(command.resource, command.mode)], PRIORITY_USUAL
            if isinstance(command, Acquire):
                wanted += [(one.resource, one.mode) for one in command.also]
                priority = command.priority
            place = place_of(self._truth.ticks[-1].era, self._last_tick, priority)
            ahead = not lease.pending or lease.order[:2] <= place or self._is_entitled(lease)
            return ahead and any(
                lease.blocks(command.tenant, resource, mode, self._first_tick) for resource, mode in wanted
            )
        own = self._truth.leases[command.lease_id]
        if isinstance(command, ChangeMode):
            return command.mode is Mode.EXCLUSIVE and own.touches(lease)
        return lease.blocks(*own.key, own.mode, self._first_tick)

    def _is_entitled(self, waiter: TrueLease) -> bool:
        """Say whether a waiter has nobody in its way: it gets its turn before any newcomer is looked at."""
        claim = [self._truth.leases[name] for name in waiter.group or (waiter.lease_id,)]
        leases = [*self._truth.standing.values(), *self._truth.waiting.values()]
        found = (obstacles(leases, one, self._truth, self._first_tick) for one in claim)
        return not self._alone or not any(found)

    def _was_pending(self, lease: TrueLease) -> bool:
        """Say whether a claim may have waited, or been unconfirmed, when the batch began or in it."""
        return lease.pending or lease.granted_position > self._position or not lease.confirmed

    def _is_deadlock(self, command: Acquire | ChangeMode, refusal: Refusal, lease: TrueLease | None) -> bool:
        if refusal.cycle is None:  # It waited, and had to leave; that it had to was looked at then.
            return lease is not None and lease.ended_position is not None
        self._stage.tally.note("deadlock prevented")
        now = Tick(value=self._last_tick, era=self._truth.ticks[-1].era)
        if not self._untouched:
            return True
        if waits_for_ever_already(command, self._truth, now):
            return True
        if (
            isinstance(command, Acquire)
            and command.gives_up
            and would_have_to_wait(command, self._truth, now)
        ):
            return False  # It may wait until all others in the circle have shown that they live.
        return would_wait_for_ever(command, self._truth, now)
