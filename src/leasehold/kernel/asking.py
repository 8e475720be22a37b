"""A claim that was made before asks how things stand.

It keeps its place that way, and confirms what it was granted meanwhile: a lease that was granted to a waiter
lasts only for the claim window until it is asked for again.
"""

from leasehold.kernel.answers import Granted
from leasehold.kernel.deadlock import DEADLOCK
from leasehold.kernel.decision import Decision, about
from leasehold.kernel.draft import Draft
from leasehold.kernel.events import LeaseConfirmed, LeaseRenewed
from leasehold.kernel.happening import befalling
from leasehold.kernel.lease import Lease, LeaseState
from leasehold.kernel.placing import place_of, waiting
from leasehold.kernel.queueing import promote
from leasehold.kernel.refusals import Refusal, RefusalCode
from leasehold.kernel.tick import Now
from leasehold.kernel.ticket import kept_ns
from leasehold.kernel.view import View


def ask_again(lease_ids: tuple[str, ...], view: View, now: Now) -> Decision | Refusal:
    """Answer a claim that was made before: it waits, or was granted meanwhile, or is over.

    Leases that have just been granted to it are confirmed.
    """
    draft = Draft(view, now)
    claimed = [draft.aged(draft.known(lease_id)) for lease_id in lease_ids]
    if claimed[0].state is LeaseState.PENDING:
        for one in claimed:
            draft.standing(one.tenant, one.resource)
            draft.freed.append((one.tenant, one.resource))
    promote(draft)  # Also if it was found to be over: others may wait for it.
    claimed = [draft.known(one.lease_id) for one in claimed]
    first = claimed[0]
    if first.state is LeaseState.FAILED:
        return _left(first, draft.now)
    if first.state is LeaseState.PENDING:
        _keep_places(draft, claimed)
        return still_waiting(draft, claimed)
    unconfirmed = [one for one in claimed if one.is_unconfirmed]
    if all(one.ticks_remaining(draft.now.tick) > 0 for one in claimed):
        for one in unconfirmed:
            draft.add(LeaseConfirmed(**befalling(one, draft.now, actor=one.holder)))
    return granted(draft, [draft.known(one.lease_id) for one in claimed], repeated=not unconfirmed)


def _left(lease: Lease, now: Now) -> Refusal:
    """Tell a waiter that has left the queue why, if it had to; it may ask again with a new request."""
    reason = lease.end_reason or ""
    if reason.startswith(DEADLOCK):
        return Refusal(
            code=RefusalCode.DEADLOCK,
            lease_id=lease.lease_id,
            resource=lease.resource,
            detail=reason.removeprefix(DEADLOCK),
        )
    return about(RefusalCode.LEASE_TERMINAL, lease, now)


def _keep_places(draft: Draft, claimed: list[Lease]) -> None:
    """Extend the time after which a silent waiter leaves, unless most of it is left."""
    more_ns = kept_ns(len(claimed))
    now = draft.now.tick
    late = [one for one in claimed if 0 < one.ticks_remaining(now) <= more_ns // 2]
    if late:
        alone = late[0] if len(late) == 1 else None
        draft.add(
            LeaseRenewed(
                tick=now,
                at_ns=draft.now.wall_ns,
                actor=late[0].holder,
                tenant=late[0].tenant,
                holder=late[0].holder,
                renewals={one.lease_id: now.value + more_ns for one in late},
                resource=None if alone is None else alone.resource,
                token=None if alone is None else alone.token,
            )
        )


def granted(draft: Draft, leases: list[Lease], *, repeated: bool = False) -> Decision:
    """Answer a claim with its leases, for as long as the first of them to end."""
    left = min(lease.ticks_remaining(draft.now.tick) for lease in leases)
    answer = Granted(
        lease=leases[0],
        expires_in_ns=left,
        repeated=repeated,
        ended=left == 0,
        also=tuple(leases[1:]),
    )
    return draft.decision(answer)


def still_waiting(draft: Draft, claimed: list[Lease]) -> Decision:
    """Answer a claim with its places, once those who are found to be gone have made way."""
    places = tuple(place_of(draft, one) for one in claimed)
    while draft.freed:  # Looking has shown that somebody is gone.
        promote(draft)
        places = tuple(place_of(draft, one) for one in claimed)
    answer = waiting(draft.now, claimed, places)
    return draft.decision(answer)
