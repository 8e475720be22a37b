"""Nobody may wait for ever.

A holder waits for every holder in the way of anything it waits for, and those wait in turn. A wait that would
lead back to where it began can never end, so it is refused at once, naming the way round. Where a change to
leases closes such a circle among waiters that are already there, the one that came last has to leave.

Holders, not leases, are what waits: whoever waits under a holder's name keeps all that is held under it.
"""

from collections.abc import Iterator

import msgspec

from leasehold.kernel.draft import Draft, upgrade_left
from leasehold.kernel.lease import Lease
from leasehold.kernel.paths import is_path
from leasehold.kernel.queueing import in_the_way
from leasehold.kernel.records import Keys, Missing
from leasehold.kernel.refusals import Refusal, RefusalCode
from leasehold.kernel.ticket import LAST_PLACE

DEADLOCK = "deadlock: "
"""What the reason begins with when a waiter had to leave because it would have waited for ever."""


class Step(msgspec.Struct, frozen=True, gc=False):
    """A holder that waits, what with, and who is in its way."""

    waiter: Lease
    blocker: str


def find_cycle(draft: Draft, tenant: str, holder: str) -> list[Step]:
    """Return a way from a holder's waits back to itself, or nothing if there is none."""
    reached: dict[str, list[Step]] = {holder: []}
    frontier = [holder]
    while frontier:
        following: list[str] = []
        for name, steps in _waits_of_all(draft, tenant, frontier):
            for step in steps:
                way = [*reached[name], step]
                if step.blocker == holder:
                    return way
                if step.blocker not in reached:
                    reached[step.blocker] = way
                    following.append(step.blocker)
        frontier = following
    return []


def _waits_of_all(draft: Draft, tenant: str, holders: list[str]) -> Iterator[tuple[str, list[Step]]]:
    """Yield what each of several holders waits for; ask for all records that are missing for that at once."""
    missing = Keys()
    found: list[tuple[str, list[Step]]] = []
    for holder in holders:
        try:
            found.append((holder, list(_waits_of(draft, tenant, holder))))
        except Missing as one:
            missing.add(one.keys)
    if missing != Keys():
        raise Missing(missing)
    return iter(found)


def _waits_of(draft: Draft, tenant: str, holder: str) -> Iterator[Step]:
    for waiter in draft.waits_of(tenant, holder):
        for blocker in in_the_way(draft, waiter):
            yield Step(waiter, blocker.holder)


def may_be_waited_for(draft: Draft, tenant: str, holder: str, claim: list[Lease]) -> bool:
    """Say whether anybody can wait for a holder that is about to wait with a new claim, the last to come.

    Most waiters hold nothing that anybody wants, and stand at the end of the queue: nothing can lead back to
    them, and the whole of what the others wait for need not be looked at.
    """
    own = {lease.lease_id for lease in claim}
    if any(lease.lease_id not in own for lease in draft.waits_of(tenant, holder)):
        return True
    for lease in claim:
        if is_path(lease.resource) or _anybody_behind(draft, lease):
            return True
    return any(
        is_path(lease.resource) or draft.view.is_awaited(tenant, lease.resource)
        for lease in draft.owned_by(tenant, holder)
    )


def _anybody_behind(draft: Draft, lease: Lease) -> bool:
    count = draft.count_ahead(lease.tenant, lease.resource, LAST_PLACE)
    return count > draft.count_ahead(lease.tenant, lease.resource, lease.place) + 1


def refuse_cycle(cycle: list[Step]) -> Refusal:
    """Refuse a wait that could never end, and name the way round."""
    names = [name for step in cycle for name in (step.waiter.holder, step.waiter.resource)]
    return Refusal(
        code=RefusalCode.DEADLOCK,
        resource=cycle[0].waiter.resource,
        holder=cycle[0].blocker,
        cycle=(*names, cycle[0].waiter.holder),
        detail=describe(cycle),
    )


def describe(cycle: list[Step]) -> str:
    """Say who waits for whom."""
    return "; ".join(
        f"{step.waiter.holder} waits for {step.blocker} because of {step.waiter.resource}" for step in cycle
    )


def break_cycles(draft: Draft, tenant: str, holder: str) -> None:
    """Let the youngest waiter leave, of every circle that a change for a holder has closed."""
    while cycle := find_cycle(draft, tenant, holder):
        youngest = max((step.waiter for step in cycle), key=_came)
        reason = DEADLOCK + describe(cycle)
        draft.wake(youngest)
        if youngest.is_upgrading:
            draft.add(upgrade_left(youngest, draft.now, reason))
        else:
            draft.leave(youngest, reason)


def _came(waiter: Lease) -> int:
    return 0 if waiter.ticket is None else waiter.ticket.number
