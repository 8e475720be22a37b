"""Answers to questions, each as of one moment of the store."""

from collections.abc import Callable
from typing import Any

from msgspec.structs import replace

from leasehold.engine.port import EntryQuery, Head, Snapshot
from leasehold.engine.questions import (
    FindBeginning,
    FindChildren,
    FindHead,
    FindHolders,
    FindLease,
    FindWaiters,
    FindWon,
    Followed,
    FollowLedger,
    IsAnythingDue,
    LeaseStatus,
    ListKeys,
    ListLeases,
    PrunedHistory,
    Question,
    ReadLedger,
    Waiter,
    check_limit,
)
from leasehold.engine.status import live, read_leases, status_of, statuses_of, won
from leasehold.engine.waiters import waiters
from leasehold.errors import HistoryPruned, InvalidInput
from leasehold.kernel.lease.answers import Granted
from leasehold.kernel.lease.model import LeaseState
from leasehold.kernel.lease.records import children_of
from leasehold.kernel.ledger.authority import now_of
from leasehold.kernel.ledger.chain import Entry
from leasehold.kernel.ledger.keys import Key


def reply(question: Question[Any], snapshot: Snapshot) -> Any:
    """Answer a question as of a snapshot."""
    return _REPLIES[type(question)](question, snapshot)


def _lease(question: FindLease, snapshot: Snapshot) -> LeaseStatus | None:
    found = snapshot.lease(question.lease_id)
    if found is None or question.tenant not in (None, found.tenant):
        return None
    return status_of(found, snapshot)


def _holders(question: FindHolders, snapshot: Snapshot) -> list[LeaseStatus]:
    found = read_leases(snapshot, resources={(question.one_tenant, question.resource)}).records.values()
    return live(statuses_of([one for one in found if one.state is LeaseState.ACTIVE], snapshot))


def _children(question: FindChildren, snapshot: Snapshot) -> list[LeaseStatus]:
    found = read_leases(snapshot, scans={children_of(question.lease_id)}).records.values()
    return live(statuses_of([one for one in found if question.tenant in (None, one.tenant)], snapshot))


def _waiters(question: FindWaiters, snapshot: Snapshot) -> list[Waiter]:
    return waiters(snapshot, question.one_tenant, question.resource)


def _won(question: FindWon, snapshot: Snapshot) -> Granted | None:
    granted = won(snapshot, question.lease_ids)
    if granted is None or question.tenant is None:
        return granted
    tenants = {lease.tenant for lease in (granted.lease, *granted.also)}
    return granted if tenants == {question.tenant} else None


def _leases(question: ListLeases, snapshot: Snapshot) -> list[LeaseStatus]:
    check_limit(question.query.limit)
    return statuses_of(snapshot.leases(_query(question)), snapshot)


def _entries(question: ReadLedger, snapshot: Snapshot) -> list[Entry]:
    check_limit(question.query.limit)
    return snapshot.entries(_query(question))


def _followed(question: FollowLedger, snapshot: Snapshot) -> Followed:
    check_limit(question.query.limit)
    query, gone = _query(question), snapshot.pruned
    if 0 < query.after < gone:
        raise HistoryPruned(
            f"entries up to {gone} were pruned, and you have seen {query.after}; look at what "
            f"stands now, and continue after {gone}",
            position=gone,
        )
    return Followed(entries=snapshot.entries(query), end=snapshot.head.position)


def _beginning(question: FindBeginning, snapshot: Snapshot) -> PrunedHistory | None:
    del question
    kept = snapshot.checkpoint()
    if kept is None:
        return None
    (entry,) = snapshot.entries(EntryQuery(after=kept.position - 1, limit=1))
    event = entry.event
    return PrunedHistory(
        pruned=snapshot.pruned, checkpoint=kept.position, at_ns=event.at_ns, actor=event.actor
    )


def _head(question: FindHead, snapshot: Snapshot) -> Head:
    del question
    return snapshot.head


def _keys(question: ListKeys, snapshot: Snapshot) -> list[Key]:
    del question
    return snapshot.signing_keys()


def _is_anything_due(question: IsAnythingDue, snapshot: Snapshot) -> bool:
    del question
    authority = snapshot.authority
    return authority is not None and bool(snapshot.due(now_of(authority, snapshot.reading()).tick, limit=1))


def _query(question: ListLeases | ReadLedger | FollowLedger) -> Any:
    """Return what a question wants to have listed, of the tenant that it is about."""
    query, tenant = question.query, question.tenant
    if tenant is None or query.tenant == tenant:
        return query
    if query.tenant is not None:
        raise InvalidInput(
            f"the question is about tenant {tenant}, and its query about {query.tenant}", field="tenant"
        )
    return replace(query, tenant=tenant)


_REPLIES: dict[type[Question[Any]], Callable[[Any, Snapshot], Any]] = {
    FindLease: _lease,
    FindHolders: _holders,
    FindChildren: _children,
    FindWaiters: _waiters,
    FindWon: _won,
    ListLeases: _leases,
    ReadLedger: _entries,
    FollowLedger: _followed,
    FindBeginning: _beginning,
    FindHead: _head,
    ListKeys: _keys,
    IsAnythingDue: _is_anything_due,
}

QUESTIONS: tuple[type[Question[Any]], ...] = tuple(_REPLIES)
"""What can be answered here."""
