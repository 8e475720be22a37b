"""What those are told who wait: which place they have, who is in the way, and when to ask again."""

from leasehold.kernel.lease.answers import Place, Waiting
from leasehold.kernel.lease.decision import last_to_expire
from leasehold.kernel.lease.model import Lease, LeaseState
from leasehold.kernel.lease.plan import Plan
from leasehold.kernel.lease.queue import holders_in_the_way, waiters_in_the_way
from leasehold.kernel.lease.ticket import ASK_AGAIN_NS, CLAIM_WINDOW_NS
from leasehold.kernel.ledger.tick import Now

_ASK_TOGETHER_NS = 500_000_000
_STAGGER_NS = 5_000_000
"""By how much later than the one ahead a waiter asks when what they wait for should have ended."""


def waiting(now: Now, claimed: list[Lease], places: tuple[Place, ...]) -> Waiting:
    """Tell a waiter where it stands, since when, and when to ask again."""
    ticket = claimed[0].ticket
    assert ticket is not None
    waited = ticket.since.until(now.tick)
    times = [_longest_silence_ns(claimed, places)]
    times += [
        place.expires_in_ns + (place.position - 1) * _STAGGER_NS
        for place in places
        if place.expires_in_ns is not None
    ]
    return Waiting(
        lease_id=claimed[0].lease_id,
        ticket=ticket.number,
        places=places,
        waited_ns=max(0, now.wall_ns - ticket.since_ns) if waited is None else waited,
        ask_again_ns=min(times),
    )


def _longest_silence_ns(claimed: list[Lease], places: tuple[Place, ...]) -> int:
    """Return after how long a waiter should ask that knows of no end to wait for.

    Whoever is first in line is woken when it has won. Whoever is behind others may be the first of them who
    lives: nobody else would notice that those ahead do not confirm what they are granted. Asking once in
    every claim window, it finds each of these grants before it is over, and asks again at its end.
    """
    if len(claimed) > 1:
        return _ASK_TOGETHER_NS
    return CLAIM_WINDOW_NS if places[0].position > 1 else ASK_AGAIN_NS


def place_of(plan: Plan, one: Lease) -> Place:
    """Tell a waiter its place on one resource as things stand."""
    position = 1 + plan.count_ahead(one.tenant, one.resource, one.place)
    holding = holders_in_the_way(plan, one.holder, one)
    if holding:
        return place_behind(one, position, last_to_expire(holding, plan.now), plan.now)
    return place_behind(one, position, next(waiters_in_the_way(plan, one.holder, one), None), plan.now)


def place_behind(one: Lease, position: int, blocker: Lease | None, now: Now) -> Place:
    """Tell a waiter its place on one resource, and who is in the way there."""
    if blocker is None:
        return Place(resource=one.resource, mode=one.mode, position=position)
    held_until = blocker.expires_tick if blocker.state is LeaseState.ACTIVE else None
    return Place(
        resource=one.resource,
        mode=one.mode,
        position=position,
        holder=blocker.holder,
        reason=blocker.reason,
        lease_id=blocker.lease_id,
        since_ns=blocker.issued_at_ns,
        expires_in_ns=None if held_until is None else now.tick.until(held_until),
    )
