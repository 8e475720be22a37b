"""Everything that must be true of every state the law can reach.

Written once; every test, every simulation and `doctor` call it. It reports, and never repairs.
"""

from collections import defaultdict
from collections.abc import Iterator
from itertools import product

from leasehold.kernel.authority import COUNTER_LIMIT, EPOCH_LIMIT
from leasehold.kernel.events import REGISTRAR
from leasehold.kernel.lease import Lease, LeaseState, Mode
from leasehold.kernel.lines import lines_hold
from leasehold.kernel.paths import ancestors, is_path
from leasehold.kernel.queue_invariants import queues_are_sound
from leasehold.kernel.replay import State


def invariants(state: State) -> list[str]:
    """Return a sentence for every invariant that does not hold; an empty list is good news."""
    return [
        *_at_most_one(state),
        *_trees_are_sound(state),
        *_claims_are_whole(state),
        *queues_are_sound(state.leases.values()),
        *_tokens_rise(state),
        *(
            f"lease {lease.lease_id} {problem}"
            for lease in state.leases.values()
            for problem in _faults_of(lease)
        ),
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
        if lease.state is LeaseState.ACTIVE:
            standing[(lease.tenant, lease.resource)].append(lease)
    for (tenant, resource), leases in standing.items():
        if len(leases) > 1 and any(lease.mode is Mode.EXCLUSIVE for lease in leases):
            names = ", ".join(sorted(lease.lease_id for lease in leases))
            yield f"{tenant}/{resource} is held exclusively and not alone: {names}"
        holders = [lease.holder for lease in leases if lease.holder != REGISTRAR]
        if len(set(holders)) < len(holders):
            yield f"{tenant}/{resource} is held twice by one holder"
        if sum(lease.is_upgrading for lease in leases) > 1:
            yield f"{tenant}/{resource} is to be upgraded twice"


def _trees_are_sound(state: State) -> Iterator[str]:
    """Look upwards from every path that is held: what covers it must not be in conflict with it."""
    standing: dict[tuple[str, str], list[Lease]] = defaultdict(list)
    for lease in state.leases.values():
        if lease.state is LeaseState.ACTIVE and is_path(lease.resource):
            standing[(lease.tenant, lease.resource)].append(lease)
    for (tenant, path), leases in standing.items():
        for above in ancestors(path):
            for lease, other in product(leases, standing.get((tenant, above), [])):
                theirs = (
                    lease.holder != other.holder and not _is_for(other, lease) and not _is_for(lease, other)
                )
                if theirs and lease.mode.conflicts_with(other.mode):
                    yield f"{other.lease_id} on {above} and {lease.lease_id} on {path} are in conflict"


def _is_for(one: Lease, other: Lease) -> bool:
    """Say whether a lease of the registrar's only keeps away those who do not hold the other one."""
    return one.holder == REGISTRAR and other.holder in one.metadata.values()


def _claims_are_whole(state: State) -> Iterator[str]:
    waiting: set[tuple[str, str, str]] = set()
    for lease in state.leases.values():
        if lease.state is not LeaseState.PENDING:
            continue
        ticket = lease.ticket
        if ticket is None or ticket.number != lease.token:
            yield f"lease {lease.lease_id} waits without its ticket"
            continue
        key = (lease.tenant, lease.resource, lease.holder)
        if key in waiting:
            yield f"{lease.holder} waits twice for {lease.tenant}/{lease.resource}"
        waiting.add(key)
        others = [state.leases.get(lease_id) for lease_id in ticket.group]
        if any(one is None or one.ticket is None or one.ticket.number != ticket.number for one in others):
            yield f"lease {lease.lease_id} waits without the rest of its claim"
        elif any(one is not None and one.state is not LeaseState.PENDING for one in others):
            yield f"lease {lease.lease_id} waits, but another of its claim does not"


def _tokens_rise(state: State) -> Iterator[str]:
    seen: dict[int, str] = {}
    highest = 0
    for lease in state.leases.values():
        highest = max(highest, lease.token)
        if lease.state in (LeaseState.PENDING, LeaseState.FAILED):
            continue  # It has a ticket, and one claim may have one ticket on several resources.
        if lease.token in seen:
            yield f"token {lease.token} belongs to {seen[lease.token]} and {lease.lease_id}"
        seen[lease.token] = lease.lease_id
        replaced = state.leases.get(lease.adopted_from or "")
        # If it was pruned since, its id may be another's: the one that was adopted ended at that moment.
        if replaced is None or replaced.terminated_at_ns != lease.issued_at_ns:
            continue
        if replaced.token >= lease.token:
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


def _faults_of(lease: Lease) -> Iterator[str]:
    ended = lease.is_terminal
    if ended != (lease.terminated_at_ns is not None):
        yield f"is {lease.state}, {_with('end time', lease.terminated_at_ns)}"
    if (lease.state is LeaseState.RELEASED) != (lease.release_reason is not None):
        yield f"is {lease.state}, {_with('release reason', lease.release_reason)}"
    if (lease.state in (LeaseState.REVOKED, LeaseState.FAILED)) != (lease.end_reason is not None):
        yield f"is {lease.state}, {_with('revocation reason', lease.end_reason)}"
    if ended != (lease.ended_by is not None):
        yield f"is {lease.state}, ended by {lease.ended_by or 'nobody'}"
    issued, expires = lease.issued_tick, lease.expires_tick
    if issued is not None and expires is not None and (issued.until(expires) or 0) <= 0:
        yield "expires no later than it was issued"
    if 0 <= lease.max_renewals < lease.renewal_count:
        yield f"was renewed {lease.renewal_count} times of {lease.max_renewals}"
    if (lease.renewal_count > 0) != (lease.last_renewed_at_ns is not None):
        yield f"was renewed {lease.renewal_count} times, last at {lease.last_renewed_at_ns or 'no time'}"
    if lease.ticket is not None and lease.ticket.upgrade and lease.mode is not Mode.SHARED:
        yield f"is {lease.mode}, and waits to be exclusive"
    if lease.state is LeaseState.EXPIRED and lease.terminated_at_ns != lease.expires_at_ns:
        yield "expired at another time than its own"


def _with(what: str, value: object) -> str:
    return f"without {what}" if value is None else f"with {what} {value}"
