"""Everything that must be true of those who wait, in every state the law can reach.

Told from the records alone, whatever the time: who is recorded as waiting waits for somebody who is recorded
as holding, or as waiting ahead; and nobody waits for itself, however far around.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator

from leasehold.kernel.events import REGISTRAR
from leasehold.kernel.lease import Lease, LeaseState, Mode
from leasehold.kernel.paths import ancestors, covers, is_path

_ByResource = dict[tuple[str, str], list[Lease]]


def queues_are_sound(leases: Iterable[Lease]) -> Iterator[str]:
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
        waits[(lease.tenant, lease.holder)] |= blockers
        key = (lease.tenant, lease.ticket.number)
        entitled[key] = entitled.get(key, True) and not blockers
    for (tenant, ticket), idle in entitled.items():
        if idle:
            yield f"ticket {ticket} of {tenant} waits, and nothing is in its way"
    yield from _circles(waits)


def _reach(lease: Lease, here: _ByResource) -> Iterator[Lease]:
    """Yield what is on the same resource; for a path, also above and below it."""
    tenant, resource = lease.tenant, lease.resource
    yield from here[(tenant, resource)]
    if is_path(resource):
        for above in ancestors(resource):
            yield from here.get((tenant, above), [])
        for (other_tenant, other), leases in here.items():
            if other_tenant == tenant and other != resource and covers(resource, other):
                yield from leases


def _is_in_the_way(one: Lease, wanted: Lease) -> bool:
    own = one.holder == wanted.holder
    if own or (one.holder == REGISTRAR and wanted.holder in one.metadata.values()):
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
