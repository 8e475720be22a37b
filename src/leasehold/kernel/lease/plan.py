"""The leases as they will be, while a decision that touches many of them is being made.

A decision about a queue goes step by step: a lease ends, the next waiter is granted it, and so on. Each step
has to see the ones before it, and none may change the view, because the decision may yet be refused, or be
taken again. So the steps are planned here: events are folded into copies, and every question is answered from
those first and from the view second.

Whatever time has done to a lease that is met on the way is planned as well, and so is what became free.
"""

from collections import deque
from collections.abc import Iterator
from typing import get_args

from leasehold.kernel.lease import age as aging
from leasehold.kernel.lease.answers import Answer
from leasehold.kernel.lease.decision import Decision, age
from leasehold.kernel.lease.events import (
    STOPPED_ASKING,
    LeaseEvent,
    LeaseExpired,
    LeaseIssued,
    LeaseLeft,
    LeaseModeChanged,
    LeaseReleased,
    LeaseRevoked,
    LeaseUpgradeLeft,
    befalling,
)
from leasehold.kernel.lease.evolve import evolve
from leasehold.kernel.lease.lock_delay import delay_after, delay_id
from leasehold.kernel.lease.model import Lease, LeaseState, Mode
from leasehold.kernel.lease.paths import is_path, related
from leasehold.kernel.lease.records import FIRST_AROUND, FIRST_IN_LINE, ResourceKey
from leasehold.kernel.lease.ticket import LAST_PLACE
from leasehold.kernel.lease.touched import Touched
from leasehold.kernel.lease.view import LeaseView
from leasehold.kernel.ledger.authority import go_on
from leasehold.kernel.ledger.events import REGISTRAR
from leasehold.kernel.ledger.tick import Now

Freeing = LeaseReleased | LeaseExpired | LeaseRevoked | LeaseLeft | LeaseUpgradeLeft | LeaseModeChanged
FREEING: tuple[type[Freeing], ...] = get_args(Freeing)
"""Events after which somebody may be entitled to what they could not have before."""

CLOSING = (LeaseExpired, LeaseRevoked)
"""Those of them after which a resource may be kept closed for a while."""

_NEXT_PAGE = 16
"""How many times as many leases to read when those that were read first are not enough."""


class Plan:
    """Events that are not decided yet, and the records as they would leave them."""

    def __init__(self, view: LeaseView, now: Now) -> None:
        self.view = view
        self.now = now
        self.events: list[LeaseEvent] = []
        self.freed: deque[ResourceKey] = deque()
        """Resources on which something has ended since anybody looked who is entitled to it."""
        self.wakes: list[str] = []
        """Where waiters are to be woken whose situation has changed."""
        self._changed: dict[str, Lease] = {}
        self._touched = Touched()
        self._authority = view.authority

    def add(self, event: LeaseEvent) -> None:
        """Plan one more event."""
        for lease_id in event.keys:
            new = isinstance(event, LeaseIssued) and lease_id not in self._changed
            self._put(evolve(self.view.proposed(lease_id) if new else self.lease(lease_id), event))
        self._take_in(event)

    def _put(self, lease: Lease) -> None:
        self._changed[lease.lease_id] = lease
        self._touched.add(lease)

    def _take_in(self, event: LeaseEvent) -> None:
        self._authority = go_on(self._authority, event)
        self.events.append(event)
        if isinstance(event, FREEING):
            self.free(event)

    def free(self, event: Freeing) -> None:
        """Take note of what an event makes free, and of what it keeps closed for a while."""
        self.freed.append((event.tenant, event.resource))
        if isinstance(event, CLOSING):
            self._keep_closed(self.known(event.lease_id))

    def set_aside(self, event: LeaseEvent) -> None:
        """Plan what a parent sets aside for a lease that replaces a child of it.

        It can be taken in only behind what the old child gives back, which `descendants` puts before it.
        """
        self._authority = go_on(self._authority, event)
        self.events.append(event)

    def _keep_closed(self, ended: Lease) -> None:
        """Plan the delay after an end, unless whatever this goes on from has seen to it."""
        name = delay_id(ended)
        if name in self._changed or self.view.stands(name):
            return
        delay = delay_after(ended, self.now, self.next_token(), self.view.authority)
        if delay is not None:
            self.add(delay)

    def decision(self, answer: Answer | None = None) -> Decision:
        """Return what was planned as a decision, with an answer for who has asked."""
        leases = list(self._changed.values())
        return Decision(events=self.events, leases=leases, answer=answer, wakes=self.wakes)

    def wake(self, waiter: Lease, mark: str = "") -> None:
        """Have a waiter woken, if it said where, because its situation has changed."""
        if waiter.ticket is not None and waiter.ticket.wake:
            self.wakes.append(waiter.ticket.wake + mark)

    def next_token(self) -> int:
        """Return the token, or ticket, that the next grant, or waiter, gets."""
        return self._authority.next_token()

    def lease(self, lease_id: str) -> Lease | None:
        """Return a lease by its id, or None if there is none."""
        return self._changed[lease_id] if lease_id in self._changed else self.view.lease(lease_id)

    def known(self, lease_id: str) -> Lease:
        """Return a lease that is known to exist."""
        lease = self.lease(lease_id)
        if lease is None:
            raise LookupError(f"lease {lease_id} belongs to a claim, and does not exist")
        return lease

    def group_of(self, lease: Lease) -> list[Lease]:
        """Return all leases of the claim that a waiting or just granted lease belongs to."""
        group = () if lease.ticket is None else lease.ticket.group
        return [self.known(lease_id) for lease_id in group] if group else [lease]

    def standing(self, tenant: str, resource: str) -> list[Lease]:
        """Return the leases that stand in the reach of a resource; note what time has done to the others.

        Of very many around a path these are some; those that wait to be exclusive are all among them.
        """
        return next(self.standing_pages(tenant, resource, Mode.EXCLUSIVE))

    def standing_pages(self, tenant: str, resource: str, mode: Mode) -> Iterator[list[Lease]]:
        """Yield the leases that stand in the reach of a resource: around a path some first, then ever more.

        The last that is yielded has all that are in the way of `mode`.
        """
        if not is_path(resource):
            yield self._standing(self.view.unended_on(tenant, resource), tenant, resource)
            return
        limit, more = FIRST_AROUND, True
        while more:
            found, cut = self.view.tree_of(tenant, resource, limit)
            yield self._standing(found, tenant, resource)
            limit, more = limit * _NEXT_PAGE, any(mode.conflicts_with(theirs) for theirs in cut)

    def standing_on(self, tenant: str, resource: str) -> list[Lease]:
        """Return the leases that stand on a resource itself."""
        found = self._standing(self.view.unended_on(tenant, resource), tenant, resource)
        return [lease for lease in found if lease.resource == resource]

    def standing_in_tangle(self, tenant: str, resource: str) -> list[Lease]:
        """Return the leases that stand in the reach of a resource and can keep somebody waiting for ever.

        Those are all; around a path, if there are very many, all whose holders wait for something themselves.
        """
        if not is_path(resource) or not self.view.tree_of(tenant, resource, FIRST_AROUND)[1]:
            return self.standing(tenant, resource)
        waiting = {one.holder for one in self._changed.values() if one.is_waiting and one.tenant == tenant}
        tangle = self.view.tangle_of(tenant, resource, waiting)
        names = dict.fromkeys((*tangle, *self.view.before))
        leases = (self.known(lease_id) for lease_id in names)
        found = [one for one in leases if one.tenant == tenant and related(resource, one.resource)]
        return self._standing(found, tenant, resource)

    def _standing(self, found: list[Lease], tenant: str, resource: str) -> list[Lease]:
        while True:
            known = len(self.events)
            leases = [
                lease for lease in self._patched(found, tenant, resource) if lease.state is LeaseState.ACTIVE
            ]
            standing = [self.aged(lease) for lease in sorted(leases, key=lambda one: one.token)]
            if len(self.events) == known:  # Else what was found to be over may have left a delay.
                return standing

    def waiters(self, tenant: str, resource: str, mode: Mode | None = None) -> Iterator[Lease]:
        """Yield those who wait in the reach of a resource (`mode`: in this mode), first in line first.

        Those of whom nothing was heard for too long are not among them; that they left is noted.
        """
        limit, place, horizon = FIRST_IN_LINE, "", ""
        while horizon != LAST_PLACE:
            found, horizon = self.view.queue_of(tenant, resource, mode, limit)
            yield from self._in_line(found, tenant, resource, mode, (place, horizon))
            limit, place = limit * _NEXT_PAGE, horizon

    def _in_line(
        self, found: list[Lease], tenant: str, resource: str, mode: Mode | None, reach: tuple[str, str]
    ) -> Iterator[Lease]:
        """Yield those whose place is behind the first and not behind the second of two.

        Who came in this plan may stand behind others that were not read yet.
        """
        behind, until = reach
        waiting = [
            lease
            for lease in self._patched(found, tenant, resource)
            if lease.state is LeaseState.PENDING
            and mode in (None, lease.mode)
            and behind < lease.place <= until
        ]
        for lease in sorted(waiting, key=lambda one: (one.place, one.lease_id)):  # A claim has one place.
            here = self.aged(self.known(lease.lease_id))
            if here.state is LeaseState.PENDING:
                yield here

    def _patched(self, found: list[Lease], tenant: str, resource: str) -> list[Lease]:
        """Return leases as they are in this plan, with those that came to be in it."""
        patched = {lease.lease_id: self._changed.get(lease.lease_id, lease) for lease in found}
        patched |= {lease_id: self._changed[lease_id] for lease_id in self._touched.around(tenant, resource)}
        return list(patched.values())

    def aged(self, lease: Lease) -> Lease:
        """Note what time has done to a lease, and to the claim it belongs to."""
        events, aged = age(lease, self.view, self.now)
        for event in events:
            self.add(event)
        if aged.state is LeaseState.FAILED:
            self.leave(aged, STOPPED_ASKING if aged.end_reason is None else aged.end_reason)
        elif aged.is_upgrading and self._has_lapsed(aged):
            self.add(upgrade_left(aged, self.now, STOPPED_ASKING))
            return self.known(aged.lease_id)
        return aged

    def _has_lapsed(self, lease: Lease) -> bool:
        ticket = lease.ticket
        assert ticket is not None
        return not ticket.since.comparable(self.now.tick) or ticket.kept_until <= self.now.tick.value

    def leave(self, lease: Lease, reason: str, actor: str = REGISTRAR, request: str | None = None) -> None:
        """Let a whole claim leave its queues, as far as it has not yet."""
        for one in self.group_of(lease):
            if one.state is LeaseState.PENDING:
                self.add(aging.left(one, self.now, reason, actor=actor, request=request))

    def count_ahead(self, tenant: str, resource: str, place: str) -> int:
        """Return how many waiters in the reach of a resource are ahead of a place in its queue."""
        count = self.view.count_ahead(tenant, resource, place)
        for lease_id, lease in self._changed.items():
            if lease.tenant == tenant and related(resource, lease.resource):
                before = self.view.proposed(lease_id)
                count -= before is not None and before.state is LeaseState.PENDING and before.place < place
                count += lease.state is LeaseState.PENDING and lease.place < place
        return count

    def counts(self, tenant: str, holder: str) -> tuple[int, int]:
        """Return how many unended leases a holder and its tenant have, where a quota makes that matter."""
        quotas = self.view.quotas
        held = 0 if quotas.leases_per_holder is None else self.view.count_of_holder(tenant, holder)
        all_held = 0 if quotas.leases_per_tenant is None else self.view.count_of_tenant(tenant)
        for lease_id, lease in self._changed.items():
            before = self.view.proposed(lease_id)
            change = (not lease.is_terminal) - (before is not None and not before.is_terminal)
            all_held += change if lease.tenant == tenant else 0
            held += change if (lease.tenant, lease.holder) == (tenant, holder) else 0
        return held, all_held

    def waits_of(self, tenant: str, holder: str) -> list[Lease]:
        """Return every lease of a holder with which it waits for something."""
        found = {lease.lease_id: lease for lease in self.view.waits_of(tenant, holder)}
        found |= {
            lease.lease_id: lease
            for lease in self._changed.values()
            if lease.tenant == tenant and lease.holder == holder
        }
        in_order = sorted(found.values(), key=lambda one: (one.token, one.lease_id))
        current = [self.aged(self._changed.get(lease.lease_id, lease)) for lease in in_order]
        return [lease for lease in current if lease.is_waiting]

    def owned_by(self, tenant: str, holder: str) -> list[Lease]:
        """Return every lease that a holder holds."""
        found = {lease.lease_id: lease for lease in self.view.owned_by(tenant, holder)}
        found |= {
            lease.lease_id: lease
            for lease in self._changed.values()
            if lease.tenant == tenant and lease.holder == holder
        }
        return [
            lease
            for one in found.values()
            if (lease := self._changed.get(one.lease_id, one)).state is LeaseState.ACTIVE
        ]


def upgrade_left(lease: Lease, now: Now, reason: str, actor: str = REGISTRAR) -> LeaseUpgradeLeft:
    """Return the event of a sharer that does not wait any more to be alone."""
    return LeaseUpgradeLeft(**befalling(lease, now, actor=actor), reason=reason)
