"""Nobody may wait for ever.

A holder waits for every holder in the way of anything it waits for, and those wait in turn. A wait that would
lead back to where it began can never end, so it is refused at once, naming the way round. Where a change to
leases closes such a circle among waiters that are already there, the one that came last has to leave.

But somebody in the circle may have died, and make way when its lease, or its place, runs out. So whoever
waits for a limited time only is let in. All who wait in the circle are then in doubt, and woken; each is out
of doubt when it has asked again. Once all are, nobody is dead, and the one that came last is refused.

Holders, not leases, are what waits: whoever waits under a holder's name keeps all that is held under it.
"""

from collections.abc import Collection, Iterator

import msgspec

from leasehold.kernel.lease.events import LeaseDoubted, befalling
from leasehold.kernel.lease.model import Lease
from leasehold.kernel.lease.paths import is_path
from leasehold.kernel.lease.plan import Plan, upgrade_left
from leasehold.kernel.lease.queue import conflicting, others_among, waiters_in_the_way
from leasehold.kernel.lease.ticket import LAST_PLACE
from leasehold.kernel.ledger.records import Gathering
from leasehold.kernel.ledger.refusals import Refusal, RefusalCode

DEADLOCK = "deadlock: "
"""What the reason begins with when a waiter had to leave because it would have waited for ever."""
_PATHS_LOOKED_AT = 16
"""Around how many paths that a holder holds to look for others that wait, to be spared a longer search."""


class Step(msgspec.Struct, frozen=True, gc=False):
    """A holder that waits, what with, and who is in its way."""

    waiter: Lease
    blocker: str

    @property
    def is_doubted(self) -> bool:
        """Say whether the waiter has to show that it lives."""
        return self.waiter.ticket is not None and self.waiter.ticket.doubted


def find_cycle(plan: Plan, tenant: str, holder: str, *, certain: bool = False) -> list[Step]:
    """Return a way from a holder's waits back to itself, or nothing if there is none.

    `certain`: only one on which nobody is in doubt.
    """
    reached: dict[str, list[Step]] = {holder: []}
    frontier = [holder]
    while frontier:
        following: list[str] = []
        for name, steps in _waits_of_all(plan, tenant, frontier):
            for step in steps:
                if certain and step.is_doubted:
                    continue
                way = [*reached[name], step]
                if step.blocker == holder:
                    return way
                if step.blocker not in reached:
                    reached[step.blocker] = way
                    following.append(step.blocker)
        frontier = following
    return []


def _waits_of_all(plan: Plan, tenant: str, holders: list[str]) -> Iterator[tuple[str, list[Step]]]:
    """Yield what each of several holders waits for; ask for all records that are missing for that at once."""
    gathering = Gathering()
    found: list[tuple[str, list[Step]]] = []
    for holder in holders:
        with gathering.step():
            found.append((holder, list(_waits_of(plan, tenant, holder))))
    gathering.end()
    return iter(found)


def _waits_of(plan: Plan, tenant: str, holder: str) -> Iterator[Step]:
    for waiter in plan.waits_of(tenant, holder):
        for blocker in _in_the_way(plan, waiter):
            yield Step(waiter, blocker.holder)


def _in_the_way(plan: Plan, wanted: Lease) -> Iterator[Lease]:
    """Yield everything that a waiting lease waits for and that may wait for something itself."""
    held = plan.standing_in_tangle(wanted.tenant, wanted.resource)
    if wanted.is_upgrading:
        yield from others_among(held, wanted.holder)
        return
    yield from conflicting(held, wanted.holder, wanted.mode)
    yield from waiters_in_the_way(plan, wanted.holder, wanted)


def may_be_waited_for(plan: Plan, tenant: str, holder: str, claim: list[Lease]) -> bool:
    """Say whether anybody can wait for a holder that is about to wait with a new claim, the last to come.

    Most waiters hold nothing that anybody wants, and stand at the end of the queue: nothing can lead back to
    them, and the whole of what the others wait for need not be looked at.
    """
    own = {lease.lease_id for lease in claim}
    if any(lease.lease_id not in own for lease in plan.waits_of(tenant, holder)):
        return True
    if any(_anybody_behind(plan, lease) for lease in claim):
        return True
    owned = plan.owned_by(tenant, holder)
    paths = [lease for lease in owned if is_path(lease.resource)]
    if len(paths) > _PATHS_LOOKED_AT:
        return True
    gathering = Gathering()
    awaited = any(plan.view.is_awaited(tenant, lease.resource) for lease in owned)
    for lease in paths:
        with gathering.step():
            awaited = awaited or _anybody_around(plan, lease)
    gathering.end()
    return awaited


def _anybody_around(plan: Plan, held: Lease) -> bool:
    """Say whether anybody else waits for a path, or above or below it."""
    standing = plan.standing(held.tenant, held.resource)
    if any(lease.is_upgrading and lease.holder != held.holder for lease in standing):
        return True
    return any(waiter.holder != held.holder for waiter in plan.waiters(held.tenant, held.resource))


def _anybody_behind(plan: Plan, lease: Lease) -> bool:
    count = plan.count_ahead(lease.tenant, lease.resource, LAST_PLACE)
    return count > plan.count_ahead(lease.tenant, lease.resource, lease.place) + 1


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


def doubt(plan: Plan, tenant: str, holder: str) -> None:
    """Have everybody who waits in a circle with a holder asked for a sign of life."""
    steps = _steps_from(plan, tenant, holder)
    leads_back = {holder}
    while more := {name for name, step in steps if step.blocker in leads_back} - leads_back:
        leads_back |= more
    waiters = {step.waiter.lease_id: step for _, step in steps if step.blocker in leads_back}
    for step in waiters.values():
        if step.is_doubted:
            plan.wake(step.waiter)
        else:
            _ask_for_a_sign(plan, step.waiter)


def _ask_for_a_sign(plan: Plan, waiter: Lease) -> None:
    plan.wake(waiter)
    plan.add(LeaseDoubted(**befalling(waiter, plan.now)))


def refuse_last(plan: Plan, tenant: str, holder: str, claim: Collection[str]) -> Refusal | None:
    """Refuse a claim that has just shown that it lives if it came last in a circle of which all have.

    If another came last there, it is asked once more, to be refused then.
    """
    while cycle := find_cycle(plan, tenant, holder, certain=True):
        youngest = _last_to_come(cycle)
        if youngest.lease_id in claim:
            return refuse_cycle(cycle)
        _ask_for_a_sign(plan, youngest)
    return None


def _steps_from(plan: Plan, tenant: str, holder: str) -> list[tuple[str, Step]]:
    """Return every step of every way from a holder's waits, with the name of who takes it."""
    found: list[tuple[str, Step]] = []
    reached, frontier = {holder}, [holder]
    while frontier:
        taken = [(name, step) for name, steps in _waits_of_all(plan, tenant, frontier) for step in steps]
        found += taken
        frontier = [name for name in dict.fromkeys(step.blocker for _, step in taken) if name not in reached]
        reached.update(frontier)
    return found


def break_cycles(plan: Plan, tenant: str, holder: str) -> None:
    """Let the youngest waiter leave, of every circle that a holder is in and in which nobody is in doubt."""
    while cycle := find_cycle(plan, tenant, holder, certain=True):
        youngest = _last_to_come(cycle)
        reason = DEADLOCK + describe(cycle)
        plan.wake(youngest)
        if youngest.is_upgrading:
            plan.add(upgrade_left(youngest, plan.now, reason))
        else:
            plan.leave(youngest, reason)


def _last_to_come(cycle: list[Step]) -> Lease:
    return max((step.waiter for step in cycle), key=_came)


def _came(waiter: Lease) -> int:
    return 0 if waiter.ticket is None else waiter.ticket.number
