"""What can be asked about files: which leases stand around a path."""

from typing import TYPE_CHECKING

from leasehold.engine.port import Snapshot
from leasehold.engine.questions import LeaseStatus, Question
from leasehold.engine.status import live, read_leases, statuses_of, tree_around
from leasehold.errors import InvalidInput
from leasehold.kernel.lease.model import LeaseState, Mode
from leasehold.kernel.lease.paths import related
from leasehold.kernel.lease.records import FIRST_AROUND
from leasehold.kernel.ledger.commands import Right
from leasehold.kernel.ledger.records import EVERYTHING

if TYPE_CHECKING:
    from leasehold.engine.registrar import Registrar

_NEXT_PAGE = 16


class FindAround(Question[list[LeaseStatus]], frozen=True, kw_only=True, tag="find_around"):
    """Ask which leases stand around a path, oldest token first: above, on and below it, and on patterns.

    With `against`, only some of those that are in the way of that mode; none only if there are none.
    """

    right = Right.LOOK

    resource: str
    against: Mode | None = None


def find_around(registrar: "Registrar", question: FindAround, snapshot: Snapshot) -> list[LeaseStatus]:
    """Answer who stands around a path."""
    del registrar
    return around(snapshot, question)


def around(snapshot: Snapshot, question: FindAround) -> list[LeaseStatus]:
    """Return who stands around a path as of a snapshot of a store whose epoch is open."""
    if question.tenant is None:
        raise InvalidInput("name the tenant whose leases are meant", field="tenant")
    if question.against is None:
        return _around(snapshot, question.tenant, question.resource, EVERYTHING)[0]
    limit, more = FIRST_AROUND, True
    while more:
        found, cut = _around(snapshot, question.tenant, question.resource, limit)
        in_the_way = [one for one in found if one.lease.mode.conflicts_with(question.against)]
        if in_the_way:
            return in_the_way
        limit, more = limit * _NEXT_PAGE, any(mode.conflicts_with(question.against) for mode in cut)
    return []


def _around(
    snapshot: Snapshot, tenant: str, resource: str, limit: int
) -> tuple[list[LeaseStatus], frozenset[Mode]]:
    key = (tenant, resource, limit)
    found = read_leases(snapshot, resources={key[:2]}, trees=tree_around(*key))
    leases = [one for one in found.records.values() if related(resource, one.resource)]
    standing = [one for one in leases if one.state is LeaseState.ACTIVE]
    return live(statuses_of(standing, snapshot)), found.cut.get(key, frozenset())
