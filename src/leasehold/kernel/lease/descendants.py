"""What the end of a lease means for those above and below it.

Below: its children end with it, and theirs, as far as they fit into one commit. If some do not, the end says
so (`orphaned`), and sweeping goes on with them; they are dead all the same.

Above: what it did not use comes back to its parent, or to the nearest lease above it that stands. If the
first of its line was replaced, that is whoever has taken over its budget.
"""

from msgspec.structs import replace

from leasehold.kernel.lease import age as aging
from leasehold.kernel.lease.answers import (
    Answer,
    Ended,
    Granted,
    Released,
    Spent,
)
from leasehold.kernel.lease.decision import Decision
from leasehold.kernel.lease.events import EndEvent, LeaseEvent, LeaseIssued, LeaseReclaimed, befalling
from leasehold.kernel.lease.evolve import evolve
from leasehold.kernel.lease.lineage import cause_of, fallen, heir_of
from leasehold.kernel.lease.model import Lease
from leasehold.kernel.lease.succession import taken_over
from leasehold.kernel.lease.view import LeaseView
from leasehold.kernel.ledger.tick import Now

DESCENDANTS_PER_COMMAND = 100
"""How many leases end in one commit because a lease above them did."""


def settle(decided: Decision, view: LeaseView, now: Now) -> Decision:
    """Return a decision together with what the ends in it bring about above and below."""
    ends = {event.lease_id for event in decided.events if isinstance(event, EndEvent)}
    if not ends:
        return decided
    settling = _Settling(view, now, ends)
    for event in decided.events:
        settling.take(event)
    settling.reclaim_late()
    return Decision(
        events=settling.events,
        leases=list(settling.leases.values()),
        answer=decided.answer,
        wakes=decided.wakes,
    )


class _Settling:
    """The events so far, and how the leases they are about stand after them."""

    def __init__(self, view: LeaseView, now: Now, ends: set[str]) -> None:
        self.events: list[LeaseEvent] = []
        self.leases: dict[str, Lease] = {}
        self._view = view
        self._now = now
        self._ends = ends
        """Leases that end by an event of their own in this decision."""
        self._left = DESCENDANTS_PER_COMMAND
        self._unclaimed: list[Lease] = []
        """Ended leases with nobody above them: a successor comes behind the end of the one it replaces."""

    def take(self, event: LeaseEvent) -> None:
        if isinstance(event, LeaseIssued) and event.adopted_from is not None:
            event = self._as_successor(event, event.adopted_from)
        lease = self._lease(event.lease_id) if isinstance(event, EndEvent) else None
        if lease is None or lease.delegation is None or not isinstance(event, EndEvent):
            self.record(event)
        else:
            self._end(lease, event)

    def _end(self, lease: Lease, event: EndEvent) -> None:
        children, whole = self._children(lease)
        heirs = children[: self._left]
        self._left -= len(heirs)
        if not whole or len(heirs) < len(children):
            event = replace(event, orphaned=True)
        self.record(event)
        if not self._reclaim(lease):
            self._unclaimed.append(lease)
        for child in heirs:
            self._fall_with(self.leases[lease.lease_id], child)

    def _children(self, lease: Lease) -> tuple[list[Lease], bool]:
        children, whole = self._view.children_of(lease.lease_id)
        return [child for child in children if child.lease_id not in self._ends], whole

    def _fall_with(self, parent: Lease, child: Lease) -> None:
        """End a child; as expired if its own time was over, because that came first."""
        events, child_now = aging.age(child, self._now, self._view.authority, self._view.eras_for(child))
        self._ends.add(child.lease_id)
        for event in events if child_now.is_terminal else [fallen(child, cause_of(parent), self._now)]:
            self.take(event)

    def _as_successor(self, event: LeaseIssued, old_id: str) -> LeaseIssued:
        """Let a successor take over what the old lease has left after all that has ended so far."""
        old = self._lease(old_id)
        account = None if old is None else old.delegation
        if account is None or account.successor != event.lease_id:
            return event
        return replace(event, delegation=taken_over(account))

    def _reclaim(self, ended: Lease) -> bool:
        """Give back what an ended lease did not use, if there is anybody by now to give it to."""
        account = ended.delegation
        if account is None or not account.ancestors:
            return True
        self._view.ancestors_of(ended)  # So that all of them are read at once.
        heir = heir_of(account, self._lease)
        if heir is None:
            return False
        self.record(
            LeaseReclaimed(
                **befalling(heir, self._now, actor=heir.holder),
                child_id=ended.lease_id,
                granted=account.budget.counted(),
                spent=account.spent,
                delegated=account.delegated,
            )
        )
        return True

    def reclaim_late(self) -> None:
        """Give back what nobody was there for at first."""
        for ended in self._unclaimed:
            self._reclaim(ended)

    def _lease(self, lease_id: str) -> Lease | None:
        return self.leases.get(lease_id) or self._view.lease(lease_id)

    def record(self, event: LeaseEvent) -> None:
        """Take an event as it is."""
        self.events.append(event)
        for lease_id in event.keys:
            new = isinstance(event, LeaseIssued) and lease_id not in self.leases
            lease = self._view.proposed(lease_id) if new else self._lease(lease_id)
            self.leases[lease_id] = evolve(lease, event)


def as_settled(answer: Answer | None, view: LeaseView) -> Answer | None:
    """Return an answer that speaks of the leases as they stand after everything."""

    def settled(lease: Lease) -> Lease:
        return view.lease(lease.lease_id) or lease

    match answer:
        case Ended() | Granted() | Spent():
            return replace(answer, lease=settled(answer.lease))
        case Released():
            return Released(
                outcomes=tuple(
                    replace(one, lease=settled(one.lease)) if isinstance(one, Ended) else one
                    for one in answer.outcomes
                )
            )
        case _:
            return answer
