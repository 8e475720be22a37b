"""The records a decision looks at.

The engine loads records into a view; `decide` reads them; `fold` takes the events of a decision back in,
so that the next command of the same batch sees them. A decision that needs a record nobody loaded raises
`Missing`, which says what to load; deciding again is free, because deciding changes nothing.

Records may be loaded before or after events were folded in: what a store still says about a lease that an
event has changed here does not count. A view whose changes were committed, and behind which nobody else
has committed anything, still says what the store says: `settle` makes it ready for the next batch.
"""

from collections.abc import Iterable

from leasehold.kernel.lease.events import Event, LeaseEvent, LeaseIssued, Remembered
from leasehold.kernel.lease.model import Lease
from leasehold.kernel.lease.needs import Foresight
from leasehold.kernel.lease.queue_view import has_another_shape
from leasehold.kernel.lease.records import (
    CHILDREN_PAGE,
    HolderKey,
    Keys,
    Missing,
    Records,
)
from leasehold.kernel.ledger.authority import Authority, Era, go_on
from leasehold.kernel.ledger.limits import Quotas

_LEASES_KEPT = 4_096


class View(Foresight):
    """A working copy of some records, and of the registrar's own."""

    def __init__(self, authority: Authority, quotas: Quotas | None = None) -> None:
        super().__init__(quotas or Quotas())
        self.authority = authority
        self.eras: dict[int, Era] = {}
        self.changed: dict[str, Lease] = {}
        """Leases that events have changed since they were loaded."""
        self.created: dict[str, Lease] = {}
        """Leases that did not exist before, in the order of their grants, as they are now."""
        self._grants: dict[str, Event | None] = {}
        self._holder_changes: dict[HolderKey, int] = {}
        self._tenant_changes: dict[str, int] = {}
        self._eras_asked: set[int] = set()
        self.delegating = False
        """Whether any lease here has a delegation, so that ends may concern others."""
        self._children: dict[str, dict[str, Lease]] = {}
        self._children_whole: dict[str, bool] = {}
        """By lease whose children were asked for: whether those are all."""

    def load(self, keys: Keys, records: Records) -> None:
        """Take in what a store found for `keys`; what events have changed here already stays as it is."""
        for lease_id in keys.leases:
            self._leases.setdefault(lease_id, None)
        for lease in records.leases:
            if self._leases.get(lease.lease_id) is None:
                self._file(lease)
        self._resources_asked |= keys.resources
        for request in keys.requests:
            self._requests.setdefault(request, records.requests.get(request))
        for lease_id in keys.grants:
            self._grants.setdefault(lease_id, records.grants.get(lease_id))
        for holder in keys.holders:
            self._holders.setdefault(holder, records.holders.get(holder, 0))
        for tenant in keys.tenants:
            self._tenants.setdefault(tenant, records.tenants.get(tenant, 0))
        self._eras_asked |= keys.eras
        self.eras.update(records.eras)
        if records.awaited:
            self._awaited |= records.awaited
        if keys.queues or keys.trees or keys.tangles or keys.places or keys.waits or keys.owners:
            self._load_queues(keys, records)
        for parent_id in keys.children:
            self._load_children(parent_id, records.children.get(parent_id, []))

    def _load_children(self, parent_id: str, children: list[Lease]) -> None:
        for child in children:
            if self._leases.get(child.lease_id) is None:
                self._file(child)
        self._children_whole.setdefault(parent_id, len(children) < CHILDREN_PAGE)

    def lease(self, lease_id: str) -> Lease | None:
        """Return a lease by its id, or None if there is none."""
        try:
            return self._leases[lease_id]
        except KeyError:
            raise Missing(Keys(leases={lease_id})) from None

    def ancestors_of(self, lease: Lease) -> dict[str, Lease | None]:
        """Return the leases above one, from the first to its parent; None for what has no record."""
        ancestors = () if lease.delegation is None else lease.delegation.ancestors
        unknown = {lease_id for lease_id in ancestors if lease_id not in self._leases}
        if unknown:
            raise Missing(Keys(leases=unknown))
        return {lease_id: self._leases[lease_id] for lease_id in ancestors}

    def children_of(self, lease_id: str) -> tuple[list[Lease], bool]:
        """Return unended children of a lease, in order of token, and whether those are all."""
        if lease_id not in self._children_whole:
            raise Missing(Keys(children={lease_id}))
        here = self._children.get(lease_id, {})
        return sorted(here.values(), key=lambda lease: lease.token), self._children_whole[lease_id]

    def unended_on(self, tenant: str, resource: str) -> list[Lease]:
        """Return every lease held on a resource that has not been recorded as ended, in order of token."""
        if (tenant, resource) not in self._resources_asked:
            raise Missing(Keys(resources={(tenant, resource)}))
        here = self._held.get((tenant, resource), {})
        return sorted(here.values(), key=lambda lease: lease.token)

    def remembered(self, request: str) -> Event | None:
        """Return the event that a request with this key caused, or None."""
        try:
            return self._requests[request]
        except KeyError:
            raise Missing(Keys(requests={request})) from None

    def grant_of(self, lease_id: str) -> Event | None:
        """Return the event that granted a lease; None if it was pruned."""
        try:
            return self._grants[lease_id]
        except KeyError:
            raise Missing(Keys(grants={lease_id})) from None

    def count_of_holder(self, tenant: str, holder: str) -> int:
        """Return how many unended leases a holder has."""
        try:
            return self._holders[(tenant, holder)] + self._holder_changes.get((tenant, holder), 0)
        except KeyError:
            raise Missing(Keys(holders={(tenant, holder)})) from None

    def count_of_tenant(self, tenant: str) -> int:
        """Return how many unended leases a tenant has."""
        try:
            return self._tenants[tenant] + self._tenant_changes.get(tenant, 0)
        except KeyError:
            raise Missing(Keys(tenants={tenant})) from None

    def eras_for(self, lease: Lease) -> dict[int, Era]:
        """Return the ended eras that a lease has lived through."""
        expires = lease.expires_tick
        if expires is None:
            return self.eras
        needed = set(range(expires.era, self.authority.era)) - self._eras_asked - set(self.eras)
        if needed:
            raise Missing(Keys(eras=needed))
        return self.eras

    def fold(self, events: Iterable[LeaseEvent], leases: Iterable[Lease]) -> None:
        """Take in events, and the leases as they are after them; of several that are the same, the last."""
        for event in events:
            self.authority = go_on(self.authority, event)
            if event.request is not None and isinstance(event, Remembered):
                self._requests[event.request] = event
            if type(event) is LeaseIssued:
                self._grants[event.lease_id] = event
        for lease in leases:
            lease_id = lease.lease_id
            before = self._leases.get(lease_id)
            self._file(lease)
            if before is None or lease_id in self.created:
                self.created[lease_id] = lease
            else:
                self.changed[lease_id] = lease
            if self.has_quotas:
                self._recount(before, lease)
            if lease.ticket is not None or (before is not None and has_another_shape(before, lease)):
                self._requeue(before, lease)

    def settle(self) -> bool:
        """Take what was changed here for what the store says: it was committed.

        Return False if this view can not serve another batch, because it has grown large.
        """
        if self.changed:
            self.changed = {}
        if self.created:
            self.created = {}
        if self._presumed:
            self._presumed = set()
        if self._children_whole:
            # Of a page that was not all, others are left by now.
            self._children_whole = {name: True for name, whole in self._children_whole.items() if whole}
        if self._queues or self._places or self._cut_trees or self.reshaped:
            self._forget_queues()
        if self._tenant_changes:
            self._settle_counts()
        return len(self._leases) <= _LEASES_KEPT

    def _settle_counts(self) -> None:
        """Add what events have changed to what was counted before: a store that is asked now knows of it."""
        for holder, change in self._holder_changes.items():
            if holder in self._holders:
                self._holders[holder] += change
        for tenant, change in self._tenant_changes.items():
            if tenant in self._tenants:
                self._tenants[tenant] += change
        self._holder_changes = {}
        self._tenant_changes = {}

    def _file(self, lease: Lease) -> None:
        """Keep a lease where both its id and its resource lead to it."""
        self._leases[lease.lease_id] = lease
        self._file_unended(lease)
        if lease.delegation is not None:
            self._file_delegation(lease, lease.delegation.parent)

    def _file_delegation(self, lease: Lease, parent_id: str | None) -> None:
        self.delegating = True
        if parent_id is None:
            return
        siblings = self._children.setdefault(parent_id, {})
        if lease.is_terminal:
            siblings.pop(lease.lease_id, None)
        else:
            siblings[lease.lease_id] = lease

    def _recount(self, before: Lease | None, after: Lease) -> None:
        """Keep apart what events change in the counts: a store that is asked later does not know of it.

        A lease that was there before had not ended, or nothing could have happened to it.
        """
        change = int(not after.is_terminal) - int(before is not None)
        holder = (after.tenant, after.holder)
        self._holder_changes[holder] = self._holder_changes.get(holder, 0) + change
        self._tenant_changes[after.tenant] = self._tenant_changes.get(after.tenant, 0) + change
