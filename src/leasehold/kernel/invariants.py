"""Everything that must be true of every state the law can reach.

Written once; every test, every simulation and `doctor` call it. It reports, and never repairs.
"""

from collections import defaultdict
from collections.abc import Iterator

from leasehold.kernel.authority import COUNTER_LIMIT, EPOCH_LIMIT
from leasehold.kernel.lease import Lease, LeaseState, Mode
from leasehold.kernel.lines import lines_hold
from leasehold.kernel.replay import State


def invariants(state: State) -> list[str]:
    """Return a sentence for every invariant that does not hold; an empty list is good news."""
    return [
        *_at_most_one(state),
        *_tokens_rise(state),
        *(problem for lease in state.leases.values() for problem in _lease_is_sound(lease)),
        *lines_hold(state),
        *(
            f"lease {lease.lease_id} is filed under {lease_id}"
            for lease_id, lease in state.leases.items()
            if lease_id != lease.lease_id
        ),
    ]


def _at_most_one(state: State) -> Iterator[str]:
    standing: dict[tuple[str, str], list[Lease]] = defaultdict(list)
    for lease in state.leases.values():
        if not lease.is_terminal:
            standing[(lease.tenant, lease.resource)].append(lease)
    for (tenant, resource), leases in standing.items():
        if len(leases) > 1 and any(lease.mode is Mode.EXCLUSIVE for lease in leases):
            names = ", ".join(sorted(lease.lease_id for lease in leases))
            yield f"{tenant}/{resource} is held exclusively and not alone: {names}"
        holders = {lease.holder for lease in leases}
        if len(holders) < len(leases):
            yield f"{tenant}/{resource} is held twice by one holder"


def _tokens_rise(state: State) -> Iterator[str]:
    seen: dict[int, str] = {}
    highest = 0
    for lease in state.leases.values():
        if lease.token in seen:
            yield f"token {lease.token} belongs to {seen[lease.token]} and {lease.lease_id}"
        seen[lease.token] = lease.lease_id
        highest = max(highest, lease.token)
        replaced = state.leases.get(lease.adopted_from or "")
        if replaced is not None and replaced.token >= lease.token:
            yield f"lease {lease.lease_id} adopted {replaced.lease_id} without a higher token"
    authority = state.authority
    if authority is None:
        if state.leases:
            yield "there are leases, but no registrar"
        return
    if authority.next_token() <= highest:
        yield f"token {highest} was granted, but the next would be {authority.next_token()}"
    if not (0 < authority.epoch < EPOCH_LIMIT and 0 <= authority.counter < COUNTER_LIMIT):
        yield f"epoch {authority.epoch} or counter {authority.counter} is out of range"


def _lease_is_sound(lease: Lease) -> Iterator[str]:
    name = f"lease {lease.lease_id}"
    if lease.is_terminal != (lease.terminated_at_ns is not None):
        yield f"{name} is {lease.state}, with end time {lease.terminated_at_ns}"
    if (lease.state is LeaseState.RELEASED) != (lease.release_reason is not None):
        yield f"{name} is {lease.state}, with release reason {lease.release_reason}"
    if (lease.state is LeaseState.REVOKED) != (lease.end_reason is not None):
        yield f"{name} is {lease.state}, with revocation reason {lease.end_reason}"
    if lease.is_terminal != (lease.ended_by is not None):
        yield f"{name} is {lease.state}, ended by {lease.ended_by}"
    issued, expires = lease.issued_tick, lease.expires_tick
    if issued is not None and expires is not None and (issued.until(expires) or 0) <= 0:
        yield f"{name} expires no later than it was issued"
    if 0 <= lease.max_renewals < lease.renewal_count:
        yield f"{name} was renewed {lease.renewal_count} times of {lease.max_renewals}"
    if (lease.renewal_count > 0) != (lease.last_renewed_at_ns is not None):
        yield f"{name} was renewed {lease.renewal_count} times, last {lease.last_renewed_at_ns}"
    if lease.state is LeaseState.EXPIRED and lease.terminated_at_ns != lease.expires_at_ns:
        yield f"{name} expired at another time than its own"
