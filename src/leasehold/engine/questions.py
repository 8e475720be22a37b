"""What a registrar can be asked, beside commands: values that cross a wire as they are, and what is answered.

A question changes nothing, and waits for no writer. Each says which tenant it is about; None stands for all
of them, which is for operators: from a caller bound to a tenant, it is about that one. What another tenant
has does not exist for who asks about one. The head of the ledger, where it begins, and its keys belong to no
tenant, and anybody may ask for them.
"""

from typing import Annotated, Any, ClassVar, Generic, TypeVar, get_args

import msgspec

from leasehold.engine.port import EntryQuery, Head, LeaseQuery
from leasehold.errors import InvalidInput
from leasehold.kernel.lease.answers import Granted
from leasehold.kernel.lease.model import Lease
from leasehold.kernel.ledger.chain import Entry
from leasehold.kernel.ledger.commands import Right
from leasehold.kernel.ledger.keys import Key
from leasehold.kernel.ledger.limits import RESOURCES_PER_CLAIM
from leasehold.kernel.ledger.tick import NANOSECONDS_PER_SECOND

PAGE_MAXIMUM = 10_000
"""How much of anything fits into one answer."""


def check_limit(limit: int) -> None:
    """Refuse to answer with nothing, or with more than fits into one answer."""
    if not 1 <= limit <= PAGE_MAXIMUM:
        raise InvalidInput(f"limit must be from 1 to {PAGE_MAXIMUM}", field="limit", limit=PAGE_MAXIMUM)


class LeaseStatus(msgspec.Struct, frozen=True, kw_only=True):
    """A lease and how it stands at the moment of the answer."""

    lease: Lease
    expires_in: float
    """Seconds left by the authority's clock; 0 for a lease that has ended or expired."""

    @property
    def is_live(self) -> bool:
        """Say whether the lease still stands."""
        return self.expires_in > 0


def lasting(lease: Lease, left_ns: int) -> LeaseStatus:
    """Return how a lease stands that has so much time left."""
    return LeaseStatus(lease=lease, expires_in=left_ns / NANOSECONDS_PER_SECOND)


class Waiter(msgspec.Struct, frozen=True, kw_only=True):
    """A claim that waits, and its place in the queue."""

    lease: Lease
    position: int
    """1: next in line."""
    waited: float
    """Seconds since it joined the queue, by the registrar's wall clock."""
    estimate: float
    """Seconds until its turn comes if everybody ahead keeps its lease for its TTL, and nobody renews or
    releases. Sharers have theirs side by side."""


class PrunedHistory(msgspec.Struct, frozen=True, kw_only=True):
    """Where a history begins that was pruned."""

    pruned: int
    """The last entry that is gone."""
    checkpoint: int
    """The entry that stands for all that are."""
    at_ns: int
    """When it was pruned, in wall time."""
    actor: str
    """Who did it."""


class Followed(msgspec.Struct, frozen=True, kw_only=True):
    """One page of the ledger, and where the ledger ended at that moment."""

    entries: list[Entry]
    end: int


AnswerType = TypeVar("AnswerType")


class Question(
    msgspec.Struct, Generic[AnswerType], frozen=True, kw_only=True, omit_defaults=True, tag_field="question"
):
    """Something that is asked, and the type of what is answered."""

    tells_time: ClassVar[bool] = True
    """Whether the answer says what is left of anything; if not, nothing is ever recorded for asking it."""

    right: ClassVar[Right] = Right.ADMINISTER
    """What a caller with an access key needs to be allowed."""

    for_operators: ClassVar[bool] = False
    """Whether the answer is about all tenants at once, so that callers bound to one get none."""

    tenant: str | None = None

    @property
    def one_tenant(self) -> str:
        """Return the tenant that is asked about, where it has to be one."""
        if self.tenant is None:
            raise InvalidInput("name the tenant that is meant", field="tenant")
        return self.tenant


def answer_type(kind: type[Question[Any]]) -> Any:
    """Return the type of what is answered to a kind of question."""
    return get_args(kind.__orig_bases__[0])[0]  # type: ignore[attr-defined]


class FindLease(Question[LeaseStatus | None], frozen=True, kw_only=True, tag="find_lease"):
    """Ask for a lease by its id."""

    right = Right.LOOK

    lease_id: str


class FindHolders(Question[list[LeaseStatus]], frozen=True, kw_only=True, tag="find_holders"):
    """Ask which leases stand on a resource now, oldest token first."""

    right = Right.LOOK

    resource: str


class FindChildren(Question[list[LeaseStatus]], frozen=True, kw_only=True, tag="find_children"):
    """Ask for standing leases that were derived from a lease, up to a page of them, oldest token first."""

    right = Right.LOOK

    lease_id: str


class FindWaiters(Question[list[Waiter]], frozen=True, kw_only=True, tag="find_waiters"):
    """Ask who waits for a resource, first in line first; for a path, also above and below it."""

    right = Right.LOOK

    resource: str


class FindWon(Question[Granted | None], frozen=True, kw_only=True, tag="find_won"):
    """Ask what a waiting claim was granted, if that can be told by looking; None: it had better ask."""

    right = Right.LOOK

    lease_ids: Annotated[tuple[str, ...], msgspec.Meta(min_length=1, max_length=RESOURCES_PER_CLAIM)]


class ListLeases(Question[list[LeaseStatus]], frozen=True, kw_only=True, tag="list_leases"):
    """Ask for one page of leases."""

    right = Right.LOOK

    query: LeaseQuery


class ReadLedger(Question[list[Entry]], frozen=True, kw_only=True, tag="read_ledger"):
    """Ask for one page of the ledger."""

    right = Right.LOOK
    tells_time = False

    query: EntryQuery


class FollowLedger(Question[Followed], frozen=True, kw_only=True, tag="follow_ledger"):
    """Ask for what comes after a position; raises HistoryPruned if that is gone. 0: whatever there is."""

    right = Right.LOOK
    tells_time = False

    query: EntryQuery


class FindBeginning(Question[PrunedHistory | None], frozen=True, kw_only=True, tag="find_beginning"):
    """Ask where the history begins; None: nothing was ever pruned."""

    right = Right.LOOK
    tells_time = False


class FindHead(Question[Head], frozen=True, kw_only=True, tag="find_head"):
    """Ask where the ledger ends."""

    right = Right.LOOK
    tells_time = False


class ListKeys(Question[list[Key]], frozen=True, kw_only=True, tag="list_keys"):
    """Ask for every key that the ledger ever admitted, in the order of their enrolment."""

    right = Right.LOOK
    tells_time = False


class IsAnythingDue(Question[bool], frozen=True, kw_only=True, tag="is_anything_due"):
    """Ask whether time has done anything that nobody has recorded."""

    right = Right.OPERATE
    for_operators = True


class Certify(Question[str], frozen=True, kw_only=True, tag="certify"):
    """Ask for the registrar's signed word that a lease stands."""

    right = Right.HOLD  # Whoever shows a certificate is taken for the lease's holder.

    lease_id: str
    holder: str = ""
    """Who has to hold it; empty: whoever does."""
