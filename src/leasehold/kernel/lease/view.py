"""What a view knows of leases.

Leases are found by id, by what they stand on and wait for (`queue_view`), and by parent. What is lacking is
said with `Missing`. What a store still says about a lease that an event has changed here does not count.
"""

from collections.abc import Iterable

from msgspec.structs import replace

from leasehold.kernel.lease.commands import Acquire
from leasehold.kernel.lease.events import LeaseEvent, LeaseIssued
from leasehold.kernel.lease.model import Lease, LeaseState
from leasehold.kernel.lease.queue_view import QueueView
from leasehold.kernel.lease.quotas import Quotas
from leasehold.kernel.lease.records import (
    CHILDREN,
    WAITING,
    HolderKey,
    LeaseFound,
    LeaseWanted,
    ResourceKey,
    children_of,
    count_of_holder,
    count_of_tenant,
    lease_keys,
    missing,
)
from leasehold.kernel.ledger.authority import Authority, Era
from leasehold.kernel.ledger.commands import Command
from leasehold.kernel.ledger.events import Event
from leasehold.kernel.ledger.key import split_key
from leasehold.kernel.ledger.records import Count, Keys, Scan, Wanted
from leasehold.kernel.ledger.view import View

_NO_QUOTAS = Quotas()


class LeaseView(QueueView):
    """A working copy of some leases."""

    is_touched = True
    """What a rule only looked for, or took for new, has to be settled as well."""

    def __init__(self, ledger: View, quotas: Quotas | None = None) -> None:
        super().__init__(ledger.journal)
        self.ledger = ledger
        """The view that this is a part of."""
        self.quotas = quotas or _NO_QUOTAS
        self.has_quotas = self.quotas != _NO_QUOTAS
        self.before: dict[str, Lease | None] = {}
        """Leases that events have changed, as the store has them."""
        self.resources_read: set[ResourceKey] = set()
        """Resources of which everything is here that is held on them."""
        self.presumed: set[str] = set()
        """Lease ids that were taken for new without asking the store, which would reject a second lease."""
        self.counts: dict[Count, int] = {}
        """What was counted already."""
        self.following: set[HolderKey] = set()
        """Holders of whom it was just learnt what they wait for."""
        self.blank = LeaseWanted()
        """To ask with: most commands of a lone caller lack nothing."""
        self._grants: dict[str, Event | None] = {}
        self._holder_changes: dict[HolderKey, int] = {}
        self._tenant_changes: dict[str, int] = {}
        self._children_whole: dict[str, bool] = {}
        """By lease whose children were asked for: whether those are all."""

    def load(self, wanted: Wanted, found: LeaseFound) -> None:
        """Take in what a store found; what events have changed here already stays as it is."""
        for lease_id in wanted.keys:
            self.records.setdefault(lease_id, None)
        for lease in found.records.values():
            if self.records.get(lease.lease_id) is None:
                self._file(lease)
        for scan, keys in found.scans.items():
            self._take_in_scan(scan, keys)
        for count, number in found.counts.items():
            self.counts.setdefault(count, number)
        if found.awaited:
            self._awaited |= found.awaited
        if isinstance(wanted, LeaseWanted):
            self.resources_read |= wanted.resources
            for lease_id in wanted.grants:
                self._grants.setdefault(lease_id, found.grants.get(lease_id))
            if wanted.is_crowded:
                self._load_queues(wanted, found)

    def _take_in_scan(self, scan: Scan, keys: list[str]) -> None:
        if scan.order == CHILDREN:
            self._children_whole.setdefault(split_key(scan.low)[0], len(keys) < scan.limit)
            return
        self._load_scan(scan)
        if scan.order == WAITING:
            tenant, holder, _ = split_key(scan.low)
            self.following.add((tenant, holder))

    @property
    def authority(self) -> Authority:
        """Return the registrar's own record."""
        return self.ledger.authority

    def stands(self, lease_id: str) -> bool:
        """Say whether a lease with this id is known to be here."""
        return self.records.get(lease_id) is not None

    def held_on(self, key: ResourceKey) -> Iterable[Lease]:
        """Return what is known to be held on a resource."""
        return self._held[key].values()

    def proposed(self, lease_id: str) -> Lease | None:
        """Return the lease that has the id which a claim proposes; None: none has, as far as is presumed.

        Only who proposes an id may presume that: for everybody else it is a lease like any other.
        """
        if lease_id in self.presumed and lease_id not in self.records:
            return None
        return self.lease(lease_id)

    def doubtful(self, command: Command) -> Keys | None:
        """Return what has to be read before a refusal of `command` can be believed; None: nothing.

        It may be a repeat, of a claim whose lease has ended since; then it has to be told that. A grant needs
        no such doubt: no store takes in a second lease with the same id.
        """
        if isinstance(command, Acquire) and command.lease_id in self.presumed:
            self.presumed.remove(command.lease_id)
            return lease_keys(keys={command.lease_id})
        return None

    def lease(self, lease_id: str) -> Lease | None:
        """Return a lease by its id, or None if there is none."""
        try:
            return self.records[lease_id]
        except KeyError:
            raise missing(keys={lease_id}) from None

    get = lease
    """As all families call it."""

    def ancestors_of(self, lease: Lease) -> dict[str, Lease | None]:
        """Return the leases above one, from the first to its parent; None for what has no record."""
        ancestors = () if lease.delegation is None else lease.delegation.ancestors
        unknown = {lease_id for lease_id in ancestors if lease_id not in self.records}
        if unknown:
            raise missing(keys=unknown)
        return {lease_id: self.records[lease_id] for lease_id in ancestors}

    def children_of(self, lease_id: str) -> tuple[list[Lease], bool]:
        """Return unended children of a lease, in order of token, and whether those are all."""
        if lease_id not in self._children_whole:
            raise missing(scans={children_of(lease_id)})
        here = self._children[lease_id]
        return sorted(here.values(), key=lambda lease: lease.token), self._children_whole[lease_id]

    def unended_on(self, tenant: str, resource: str) -> list[Lease]:
        """Return every lease held on a resource that has not been recorded as ended, in order of token."""
        if (tenant, resource) not in self.resources_read:
            raise missing(resources={(tenant, resource)})
        here = self._held.get((tenant, resource), {})
        return sorted(here.values(), key=lambda lease: lease.token)

    def grant_of(self, lease_id: str) -> Event | None:
        """Return the event that granted a lease; None if it was pruned."""
        try:
            return self._grants[lease_id]
        except KeyError:
            raise missing(grants={lease_id}) from None

    def count_of_holder(self, tenant: str, holder: str) -> int:
        """Return how many unended leases a holder has."""
        return self._counted(count_of_holder((tenant, holder))) + self._holder_changes.get(
            (tenant, holder), 0
        )

    def count_of_tenant(self, tenant: str) -> int:
        """Return how many unended leases a tenant has."""
        return self._counted(count_of_tenant(tenant)) + self._tenant_changes.get(tenant, 0)

    def _counted(self, count: Count) -> int:
        try:
            return self.counts[count]
        except KeyError:
            raise missing(counts={count}) from None

    def eras_for(self, lease: Lease) -> dict[int, Era]:
        """Return the ended eras that a lease has lived through."""
        expires = lease.expires_tick
        return self.ledger.eras if expires is None else self.ledger.eras_since(expires)

    def fold(self, events: Iterable[LeaseEvent], leases: Iterable[Lease]) -> None:
        """Take in leases as they are after events; of several that are the same, the last."""
        for event in events:
            if type(event) is LeaseIssued:
                self._journal.put(self._grants, event.lease_id, event)
        for lease in leases:
            self.put(lease.lease_id, lease)

    def put(self, key: str, record: Lease) -> None:
        """Keep a lease as events have left it."""
        records, changed = self.records, self.before
        before = records.get(key)
        was = (key in records, key in changed, self.delegating)
        self._journal.steps.append((self._put_back, (before, record, was)))
        changed.setdefault(key, before)
        self._file(record)
        if self.has_quotas:
            self._recount(before, record)
        if record.ticket is not None or (before is not None and before.ticket is not None):
            self._requeue(before, record)

    def _put_back(self, before: Lease | None, after: Lease, was: tuple[bool, bool, bool]) -> None:
        """Undo what `put` has done, but for what has steps of its own in the journal."""
        was_known, was_changed, delegating = was
        if before is not None:
            self._file(before)
        else:
            self._file(replace(after, state=LeaseState.FAILED))  # So that nothing but its id leads to it.
            self.records[after.lease_id] = None
        if not was_known:
            del self.records[after.lease_id]
        if not was_changed:
            del self.before[after.lease_id]
        self.delegating = delegating

    def settle(self) -> int:
        """Take what was changed for what the store says, and return how many leases are here."""
        self.before.clear()
        self.presumed.clear()
        self.following.clear()
        if self._children_whole:
            # Of a page that was not all, others are left by now.
            self._children_whole = {name: True for name, whole in self._children_whole.items() if whole}
        if self._queues or self._places or self._cut_trees or self._queue_changes or self._newly_waiting:
            self._forget_queues()
        if self._tenant_changes:
            self._settle_counts()
        return len(self.records)

    def _settle_counts(self) -> None:
        """Add what events have changed to what was counted before: a store that is asked now knows of it."""
        for holder, change in self._holder_changes.items():
            self._correct(count_of_holder(holder), change)
        for tenant, change in self._tenant_changes.items():
            self._correct(count_of_tenant(tenant), change)
        self._holder_changes = {}
        self._tenant_changes = {}

    def _correct(self, count: Count, change: int) -> None:
        if count in self.counts:
            self.counts[count] += change

    def _recount(self, before: Lease | None, after: Lease) -> None:
        """Keep apart what events change in the counts: a store that is asked later does not know of it.

        A lease that was there before had not ended, or nothing could have happened to it.
        """
        change = int(not after.is_terminal) - int(before is not None)
        holder = (after.tenant, after.holder)
        journal = self._journal
        journal.put(self._holder_changes, holder, self._holder_changes.get(holder, 0) + change)
        journal.put(self._tenant_changes, after.tenant, self._tenant_changes.get(after.tenant, 0) + change)
