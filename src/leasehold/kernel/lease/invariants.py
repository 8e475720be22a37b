"""Everything that must be true of every state the law can reach.

Written once; every test, every simulation and `doctor` call it. It reports, and never repairs.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator
from itertools import product

from leasehold.kernel.lease.budget import DIMENSIONS, Amounts
from leasehold.kernel.lease.delegation import ANCESTORS_MAXIMUM, Delegation
from leasehold.kernel.lease.lineage import heir_of
from leasehold.kernel.lease.model import Lease, LeaseState, Mode
from leasehold.kernel.lease.path_index import PathIndex
from leasehold.kernel.lease.paths import is_path, related
from leasehold.kernel.lease.records import LEASE
from leasehold.kernel.ledger.authority import COUNTER_LIMIT, EPOCH_LIMIT, carry_over
from leasehold.kernel.ledger.events import REGISTRAR
from leasehold.kernel.ledger.state import State
from leasehold.kernel.ledger.tick import Tick


def invariants(state: State) -> list[str]:
    """Return a sentence for every invariant that does not hold; an empty list is good news."""
    return [
        *_at_most_one(state),
        *_trees_are_sound(state),
        *_claims_are_whole(state),
        *_queues_are_sound(state.of(LEASE).values()),
        *_tokens_rise(state),
        *(
            f"lease {lease.lease_id} {problem}"
            for lease in state.of(LEASE).values()
            for problem in _faults_of(lease)
        ),
        *_lines_hold(state),
        *(
            f"lease {lease.lease_id} is filed under {lease_id}"
            for lease_id, lease in state.of(LEASE).items()
            if lease_id != lease.lease_id
        ),
    ]


def _at_most_one(state: State) -> Iterator[str]:
    standing: dict[tuple[str, str], list[Lease]] = defaultdict(list)
    for lease in state.of(LEASE).values():
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
    """Look around every path that is held: what relates to it must not be in conflict with it."""
    standing: dict[tuple[str, str], list[Lease]] = defaultdict(list)
    paths = PathIndex()
    for lease in state.of(LEASE).values():
        if lease.state is LeaseState.ACTIVE and is_path(lease.resource):
            standing[(lease.tenant, lease.resource)].append(lease)
            paths.add((lease.tenant, lease.resource))
    for (tenant, path), leases in standing.items():
        for above in paths.around((tenant, path)):
            if above >= path:
                continue  # Each pair is looked at once, from the path that is sorted last.
            for lease, other in product(leases, standing[(tenant, above)]):
                theirs = (
                    lease.holder != other.holder and not _is_for(other, lease) and not _is_for(lease, other)
                )
                if theirs and lease.mode.conflicts_with(other.mode):
                    yield f"{other.lease_id} on {above} and {lease.lease_id} on {path} are in conflict"


def _is_for(one: Lease, other: Lease) -> bool:
    """Say whether a lease of the registrar's only keeps away those who do not hold the other one."""
    return one.delayed_for == other.holder


def _claims_are_whole(state: State) -> Iterator[str]:
    waiting: set[tuple[str, str, str]] = set()
    for lease in state.of(LEASE).values():
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
        others = [state.of(LEASE).get(lease_id) for lease_id in ticket.group]
        if any(one is None or one.ticket is None or one.ticket.number != ticket.number for one in others):
            yield f"lease {lease.lease_id} waits without the rest of its claim"
        elif any(one is not None and one.state is not LeaseState.PENDING for one in others):
            yield f"lease {lease.lease_id} waits, but another of its claim does not"


def _tokens_rise(state: State) -> Iterator[str]:
    seen: dict[int, str] = {}
    highest = 0
    for lease in state.of(LEASE).values():
        highest = max(highest, lease.token)
        if lease.state in (LeaseState.PENDING, LeaseState.FAILED):
            continue  # It has a ticket, and one claim may have one ticket on several resources.
        if lease.token in seen:
            yield f"token {lease.token} belongs to {seen[lease.token]} and {lease.lease_id}"
        seen[lease.token] = lease.lease_id
        replaced = state.of(LEASE).get(lease.adopted_from or "")
        # If it was pruned since, its id may be another's: the one that was adopted ended at that moment.
        if replaced is None or replaced.terminated_at_ns != lease.issued_at_ns:
            continue
        if replaced.token >= lease.token:
            yield f"lease {lease.lease_id} adopted {replaced.lease_id} without a higher token"
    authority = state.authority
    if authority is None:
        if state.of(LEASE):
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


_ByResource = dict[tuple[str, str], list[Lease]]


def _queues_are_sound(leases: Iterable[Lease]) -> Iterator[str]:
    """Yield a sentence for every invariant of the queues that does not hold."""
    unended = [lease for lease in leases if not lease.is_terminal]
    waiting = [lease for lease in unended if lease.is_waiting]
    if not waiting:
        return
    here: _ByResource = defaultdict(list)
    for lease in unended:
        here[(lease.tenant, lease.resource)].append(lease)
    waits: dict[tuple[str, str], set[str]] = defaultdict(set)
    entitled: dict[tuple[str, int], bool] = {}
    for lease in waiting:
        assert lease.ticket is not None
        blockers = {one.holder for one in _reach(lease, here) if _is_in_the_way(one, lease)}
        if not lease.ticket.doubted:  # Else it may be dead, and its circle end by itself.
            waits[(lease.tenant, lease.holder)] |= blockers
        key = (lease.tenant, lease.ticket.number)
        entitled[key] = entitled.get(key, True) and not blockers
    for (tenant, ticket), idle in entitled.items():
        if idle:
            yield f"ticket {ticket} of {tenant} waits, and nothing is in its way"
    yield from _circles(waits)


def _reach(lease: Lease, here: _ByResource) -> Iterator[Lease]:
    """Yield what is on the same resource; for a path, also what relates to it."""
    tenant, resource = lease.tenant, lease.resource
    if not is_path(resource):
        yield from here[(tenant, resource)]
        return
    for (other_tenant, other), leases in here.items():
        if other_tenant == tenant and related(resource, other):
            yield from leases


def _is_in_the_way(one: Lease, wanted: Lease) -> bool:
    own = one.holder == wanted.holder
    if own or (one.delayed_for == wanted.holder):
        return False
    if wanted.is_upgrading:
        return one.state is LeaseState.ACTIVE
    conflict = Mode.EXCLUSIVE in (one.mode, wanted.mode)
    if one.state is LeaseState.PENDING:
        return conflict and one.place < wanted.place
    return conflict or one.is_upgrading


def _circles(waits: dict[tuple[str, str], set[str]]) -> Iterator[str]:
    """Take away whoever waits for nobody that waits, again and again; whoever is left waits for ever."""
    left = {key: {(key[0], name) for name in names} for key, names in waits.items()}
    while True:
        free = [key for key, names in left.items() if not names & left.keys()]
        if not free:
            break
        for key in free:
            del left[key]
    if left:
        names = ", ".join(f"{tenant}/{holder}" for tenant, holder in sorted(left))
        yield f"these wait for each other, for ever: {names}"


def _lines_hold(state: State) -> Iterator[str]:
    """Yield a sentence for everything that is wrong with a lease's account, or with its place in a line."""
    set_aside: dict[str, Amounts] = {}
    for lease in state.of(LEASE).values():
        account = lease.delegation
        if account is None:
            continue
        yield from _account_is_sound(lease, account)
        parent = state.of(LEASE).get(account.parent or "")
        # Ended leases may outlast their parent in the tables, and its id may be somebody else's by then.
        if parent is not None and not (lease.is_terminal and parent.token > lease.token):
            yield from _fits(lease, account, parent, state)
        above = heir_of(account, state.of(LEASE).get)
        if above is not None and not lease.is_terminal:
            before = set_aside.get(above.lease_id, Amounts())
            set_aside[above.lease_id] = before.plus(account.budget.counted())
    for lease in state.of(LEASE).values():
        if lease.is_terminal:
            continue
        expected = set_aside.get(lease.lease_id, Amounts())
        found = Amounts() if lease.delegation is None else lease.delegation.delegated
        if found != expected:
            yield f"lease {lease.lease_id} has set aside {found}; those below it were granted {expected}"


def _account_is_sound(lease: Lease, account: Delegation) -> Iterator[str]:
    name = f"lease {lease.lease_id}"
    left = account.remaining
    for part in DIMENSIONS:
        remaining = getattr(left, part)
        spent, set_aside = getattr(account.spent, part), getattr(account.delegated, part)
        if spent < 0 or set_aside < 0 or (remaining is not None and remaining < 0):
            left_over = "no limit" if remaining is None else f"{remaining} remaining"
            yield f"{name} has {part} below 0: {spent} spent, {set_aside} set aside, {left_over}"
    if len(account.ancestors) > ANCESTORS_MAXIMUM:
        yield f"{name} has {len(account.ancestors)} leases above it"
    if account.orphaned and not lease.is_terminal:
        yield f"{name} has left its children, and stands"


def _fits(child: Lease, account: Delegation, parent: Lease, state: State) -> Iterator[str]:
    name = f"lease {child.lease_id}"
    given = parent.delegation
    if given is None:
        yield f"{name} was derived from {parent.lease_id}, which had nothing to give"
        return
    if child.tenant != parent.tenant or account.ancestors != (*given.ancestors, parent.lease_id):
        yield f"{name} is not in the line of its parent {parent.lease_id}"
    if account.scope.exceeds(given.scope) is not None:
        yield f"{name} is allowed {account.scope.exceeds(given.scope)}, which its parent is not"
    if given.budget.short_of(account.budget) is not None:
        yield f"{name} was granted more {given.budget.short_of(account.budget)} than its parent"
    if child.is_terminal:
        return
    if parent.is_terminal:
        if not given.orphaned:
            yield f"{name} stands, and its parent {parent.lease_id} ended without leaving it to be ended"
        return
    ends, parent_ends = _expiry(child, state), _expiry(parent, state)
    if ends is not None and parent_ends is not None and (ends.until(parent_ends) or 0) < 0:
        yield f"{name} outlives its parent {parent.lease_id}"


def _expiry(lease: Lease, state: State) -> Tick | None:
    """Return when a lease expires on the present clock, as far as anybody can tell."""
    expires, authority = lease.expires_tick, state.authority
    if expires is None or authority is None or expires.era >= authority.era:
        return expires
    return carry_over(expires, authority, state.eras)
