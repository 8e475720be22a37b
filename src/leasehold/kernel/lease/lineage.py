"""How a lease stands with those above it.

A child is dead the moment any ancestor is, whether anybody has recorded its end or not: whoever meets a
child asks for its whole line, and finds out. A lease without ancestors costs nothing more.

A child never outlives its parent, so it has expired by the time an ancestor has. What it has to look up for
is an ancestor that was released, revoked, replaced, or ended by a reboot. An ancestor that is not in the
records any more has been pruned, so it had ended. One whose time is unknown is neither alive nor dead: the
child may not be used, and nobody may take it over.
"""

from collections.abc import Callable

from leasehold.kernel.lease import age as aging
from leasehold.kernel.lease.budget import Amounts
from leasehold.kernel.lease.delegation import Delegation
from leasehold.kernel.lease.events import LeaseDelegated, LeaseEvent, LeaseRevoked, befalling
from leasehold.kernel.lease.evolve import evolve
from leasehold.kernel.lease.model import Lease, LeaseState
from leasehold.kernel.lease.view import LeaseView
from leasehold.kernel.ledger.tick import Now


def age_in_line(lease: Lease, view: LeaseView, now: Now) -> tuple[list[LeaseEvent], Lease]:
    """Return what time, and the end of an ancestor, has done to an unended lease, and it afterwards."""
    events, lease = aging.age(lease, now, view.authority, view.eras_for(lease))
    if lease.is_terminal:
        return events, lease
    cause = _fallen_ancestor(lease, view, now)
    if cause is None:
        return events, lease
    fall = fallen(lease, cause, now)
    return [fall], evolve(lease, fall)


def _fallen_ancestor(lease: Lease, view: LeaseView, now: Now) -> str | None:
    """Say which ancestor has ended, and how; None: all of them stand, as far as anybody can tell."""
    for ancestor_id, ancestor in view.ancestors_of(lease).items():
        if ancestor is None:
            return f"parent {ancestor_id} is gone"
        ancestor_now = aged(ancestor, view, now)
        if ancestor_now.is_terminal:
            return cause_of(ancestor_now)
    return None


def aged(lease: Lease, view: LeaseView, now: Now) -> Lease:
    """Return a lease as time alone has left it."""
    if lease.is_terminal:
        return lease
    return aging.age(lease, now, view.authority, view.eras_for(lease))[1]


def cause_of(ended: Lease) -> str:
    """Spell the reason that the descendants of an ended lease are given."""
    return f"parent {ended.lease_id} was {ended.state}"


def heir_of(account: Delegation, find: Callable[[str], Lease | None]) -> Lease | None:
    """Return who gets what an ended lease did not use: the nearest lease above that stands.

    For a lease that was replaced, whoever has taken over its budget stands there; `find` knows leases by id.
    """
    for ancestor_id in reversed(account.ancestors):
        heir = find(ancestor_id)
        while heir is not None and heir.is_terminal:
            heir = _successor_of(heir, find)
        if heir is not None:
            return heir
    return None


def _successor_of(ended: Lease, find: Callable[[str], Lease | None]) -> Lease | None:
    name = "" if ended.delegation is None else ended.delegation.successor
    successor = find(name) if name else None
    # Tokens rise from one to the next, so even a forged line comes to an end.
    return successor if successor is not None and successor.token > ended.token else None


def ceiling(lease: Lease, view: LeaseView, now: Now, extended: dict[str, int] | None = None) -> int | None:
    """Return the tick value that a child cannot live beyond; None if nobody can tell.

    `extended` has the new times of leases that are being renewed together with it. The line above stands.
    """
    values: list[int] = []
    for ancestor_id, ancestor in view.ancestors_of(lease).items():
        if extended and ancestor_id in extended:
            values.append(extended[ancestor_id])
            continue
        expires = None if ancestor is None else aged(ancestor, view, now).expires_tick
        if expires is None or not expires.comparable(now.tick):
            return None
        values.append(expires.value)
    return min(values)


def standing(lease: Lease, view: LeaseView, now: Now) -> tuple[Lease, int]:
    """Return a lease for somebody who only looks, and how long it has left if nobody renews it.

    That is 0 if it, or an ancestor, is over or unknown. A child that has fallen and is not recorded as ended
    is shown as revoked; a lease that time has ended is shown as recorded.
    """
    if lease.is_terminal:
        return lease, 0
    lease_now = age_in_line(lease, view, now)[1]
    left_ns = lease_now.ticks_remaining(now.tick)
    if lease.delegation is None or not lease.delegation.ancestors:
        return lease, left_ns
    if lease_now.state is LeaseState.REVOKED:
        return lease_now, 0
    return lease, 0 if ceiling(lease, view, now) is None else left_ns


def fallen(lease: Lease, cause: str, now: Now) -> LeaseRevoked:
    """Return the end of a lease whose ancestor has ended."""
    return LeaseRevoked(**befalling(lease, now), reason=cause)


def delegated(parent: Lease, child_id: str, amounts: Amounts, now: Now) -> LeaseDelegated:
    """Return the event that sets aside, in the parent's budget, what a child may spend."""
    return LeaseDelegated(**befalling(parent, now, actor=parent.holder), child_id=child_id, amounts=amounts)
