"""Whether those who wait are treated as they were promised, told from the truth alone.

At every commit: nobody overtakes; a claim on several resources waits and is granted whole; whoever leaves a
queue left by its holder, by an operator, by time, or out of a circle that was there; whoever stays waits for
somebody, and not for itself once all in that circle have shown that they live, which only those in one are
asked for; a grant that nobody has confirmed, and a wait that nobody asks for, last no longer than they may;
what was cancelled does not come back; lock-delays are kept.
"""

from collections.abc import Iterable

from leasehold.engine.port import Batch
from leasehold.kernel.lease.answers import Ended, Released
from leasehold.kernel.lease.commands import Acquire, Release, Revoke
from leasehold.kernel.lease.events import (
    REBOOT,
    LeaseDoubted,
    LeaseIssued,
    LeaseLeft,
    LeaseQueued,
    LeaseRenewed,
    LeaseUpgradeLeft,
    LeaseUpgradeQueued,
)
from leasehold.kernel.ledger.commands import Command
from leasehold.kernel.ledger.events import REGISTRAR, Event
from simulator.closings import Closings
from simulator.crowds import circle, waiters
from simulator.true_lease import TrueLease, place_of
from simulator.truth import Truth

SECOND = 1_000_000_000
CLAIM_WINDOW_NS = 2 * SECOND
SILENCE_NS = 30 * SECOND
"""How long a waiter may be silent, and what is granted to it unconfirmed.

Said here once more, because what is tested cannot be its own measure.
"""


class CrowdJudge:
    """Looks after those who wait."""

    def __init__(self) -> None:
        self._closings = Closings()
        self._cancelled: set[str] = set()
        """Leases whose holders were told that they are over."""

    def note(self, command: Command, outcome: object) -> None:
        """Remember what a holder was told to be over."""
        if isinstance(command, Release) and isinstance(outcome, Released):
            self._cancelled |= {one.lease.lease_id for one in outcome.outcomes if isinstance(one, Ended)}

    def forget(self, lease_ids: Iterable[str]) -> None:
        """Take note that leases were let go of: their ids may come again."""
        self._cancelled -= {*lease_ids}

    def take_in(self, event: Event, truth: Truth) -> None:
        """Take in an event that was judged before, and that the truth has not taken in yet."""
        self._closings.problem_before(event, truth)

    def problem_before(
        self, event: Event, truth: Truth, sender: Command | None, *, vouched: bool = False
    ) -> str | None:
        """Return what is wrong with an event, which the truth has not taken in yet.

        `vouched`: it is what somebody in another family has asked for.
        """
        closed = self._closings.problem_before(event, truth)
        match event:
            case LeaseIssued() | LeaseQueued():
                if event.lease_id in self._cancelled:
                    return f"{event.lease_id} was cancelled, and came back"
                return closed or _lasts_too_long(event) or _overtakes(event, truth, sender)
            case LeaseRenewed() | LeaseUpgradeQueued():
                return _keeps_silent_too_long(event, truth)
            case LeaseLeft():
                return None if vouched else _left_wrongly(event, truth, sender)
            case LeaseDoubted():
                return _doubted_wrongly(event, truth)
            case LeaseUpgradeLeft():
                return _gave_up_wrongly(event, truth, sender)
            case _:
                return closed

    def problem_after(self, batch: Batch, truth: Truth) -> str | None:
        """Return what is wrong with how a commit has left those who wait."""
        issued = [entry.event for entry in batch.entries if isinstance(entry.event, LeaseIssued)]
        names = {event.lease_id for event in issued}
        for event in issued:
            if not names.issuperset(event.group):
                return f"{event.lease_id} was granted without the rest of its claim"
        for waiter in truth.waiting.values():
            if not truth.waiting.keys() >= {*waiter.group}:
                return f"{waiter.lease_id} waits without the rest of its claim"
        tick = batch.entries[-1].event.tick.value
        leases = [*truth.standing.values(), *truth.waiting.values()]
        waiting = waiters(leases, tick)
        if not waiting:
            return None
        names_in_circle = circle(leases, truth, tick, certain=True)
        if names_in_circle:
            return f"these wait for each other, for ever: {names_in_circle}"
        return _waits_in_vain(waiting, leases, truth)


def _waits_in_vain(waiting: list[TrueLease], leases: list[TrueLease], truth: Truth) -> str | None:
    """Look for a claim that waits though nothing is in its way, as far as anybody has recorded."""
    blocked = set()
    for one in waiting:
        if any(_is_recorded_in_the_way(other, one) for other in leases):
            blocked |= {one.lease_id, *one.group}
    for one in waiting:
        if one.lease_id not in blocked:
            return f"{one.lease_id} waits, and nothing is in its way"
    return None


def _is_recorded_in_the_way(other: TrueLease, one: TrueLease) -> bool:
    if one.holder in (other.holder, other.delayed_for) or not other.touches(one):
        return False
    if not one.pending:
        return not other.pending
    conflict = other.mode.conflicts_with(one.mode)
    if other.pending:
        return conflict and other.order < one.order
    return conflict or other.upgrade_end_tick is not None


def _lasts_too_long(event: LeaseIssued | LeaseQueued) -> str | None:
    if isinstance(event, LeaseIssued):
        too_long = event.claim_window_ns > CLAIM_WINDOW_NS
    else:
        too_long = event.kept_ns > silence_ns(event.group)
    return f"{event.lease_id} may be silent for too long" if too_long else None


def silence_ns(group: tuple[str, ...]) -> int:
    """Return for how long a waiter keeps its place, or places, without asking."""
    return CLAIM_WINDOW_NS if group else SILENCE_NS


def _keeps_silent_too_long(event: LeaseRenewed | LeaseUpgradeQueued, truth: Truth) -> str | None:
    if isinstance(event, LeaseUpgradeQueued):
        return f"{event.lease_id} may wait too long in silence" if event.kept_ns > SILENCE_NS else None
    for lease_id, end_tick in event.renewals.items():
        waiter = truth.waiting.get(lease_id)
        if waiter is not None and end_tick - event.tick.value > silence_ns(waiter.group):
            return f"{lease_id} may wait too long in silence"
    return None


def _overtakes(event: LeaseIssued | LeaseQueued, truth: Truth, sender: Command | None) -> str | None:
    """Look whether a claim that did not wait was granted what somebody ahead of it waits for."""
    direct = isinstance(event, LeaseIssued) and not event.claim_window_ns and event.adopted_from is None
    if not direct or event.holder == REGISTRAR:
        return None
    if truth.settling.is_kept_for(event.holder, (event.tenant, event.resource), event.tick.value):
        return None  # It could not renew while the registrar was down, and comes first.
    priority = sender.priority if isinstance(sender, Acquire) else 5
    place = place_of(event.tick.era, event.tick.value, priority)
    for one in truth.waiting.values():
        ahead = one.end_tick > event.tick.value and one.order[:2] <= place and one.holder != event.holder
        if ahead and one.blocks(event.tenant, event.resource, event.mode, event.tick.value):
            return f"{event.lease_id} overtook {one.lease_id}, which waits"
    return None


def _left_wrongly(event: LeaseLeft, truth: Truth, sender: Command | None) -> str | None:
    waiter = truth.waiting.get(event.lease_id)
    if waiter is None:
        return f"{event.lease_id} left a queue it was not in"
    if event.actor != REGISTRAR:
        names = {waiter.lease_id, *waiter.group}
        asked = isinstance(sender, Revoke) and sender.operator == event.actor and sender.lease_id in names
        asked = asked or (
            isinstance(sender, Release)
            and (sender.tenant, sender.holder) == (event.tenant, event.holder)
            and not names.isdisjoint(sender.lease_ids)
        )
        return None if asked else f"{event.lease_id} was taken out of its queue by {sender}"
    claim = [truth.leases[name] for name in waiter.group or (waiter.lease_id,)]
    if event.reason == REBOOT:
        right = any(one.rebooted for one in claim)
    elif event.reason.startswith("deadlock: "):
        right = _is_in_a_circle(waiter, truth, event.tick.value) or any(
            one.ended_position is not None for one in claim
        )
    else:
        right = any(one.end_tick <= event.tick.value for one in claim)
    return None if right else f"{event.lease_id} had to leave its queue without reason: {event.reason}"


def _gave_up_wrongly(event: LeaseUpgradeLeft, truth: Truth, sender: Command | None) -> str | None:
    del sender
    lease = truth.standing.get(event.lease_id)
    if lease is None or lease.upgrade_end_tick is None:
        return f"{event.lease_id} had no upgrade to give up"
    if event.actor != REGISTRAR or lease.upgrade_end_tick <= event.tick.value:
        return None
    in_circle = event.reason.startswith("deadlock: ") and _is_in_a_circle(lease, truth, event.tick.value)
    return None if in_circle else f"{event.lease_id} had to give up its upgrade without reason"


def _doubted_wrongly(event: LeaseDoubted, truth: Truth) -> str | None:
    one = truth.waiting.get(event.lease_id) or truth.standing.get(event.lease_id)
    in_circle = one is not None and _is_in_a_circle(one, truth, event.tick.value, certain=False)
    return None if in_circle else f"{event.lease_id} was doubted, and waits in no circle"


def _is_in_a_circle(one: TrueLease, truth: Truth, tick: int, *, certain: bool = True) -> bool:
    leases = [*truth.standing.values(), *truth.waiting.values()]
    return bool(circle(leases, truth, tick, (one.key[0], one.holder), certain=certain))
