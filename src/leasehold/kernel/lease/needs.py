"""The part of a view that knows what is here, and foresees what a batch will need besides.

Whatever is foreseen is read at once for all commands of a batch. What is not, a decision asks for itself, and
is taken again.
"""

from collections.abc import Sequence

from leasehold.kernel.lease.commands import (
    Acquire,
    ChangeMode,
    Command,
    Derive,
    Release,
    Renew,
    Revoke,
    Spend,
    Transfer,
)
from leasehold.kernel.lease.events import Event
from leasehold.kernel.lease.model import Lease, LeaseState, Mode
from leasehold.kernel.lease.paths import is_path
from leasehold.kernel.lease.queue_view import QueueRecords
from leasehold.kernel.lease.records import FIRST_IN_LINE, HolderKey, Keys, ResourceKey
from leasehold.kernel.lease.ticket import LAST_PLACE
from leasehold.kernel.ledger.limits import Quotas

_NO_QUOTAS = Quotas()
_NAMED = (Renew, Spend, ChangeMode, Transfer)
"""Commands on leases that are there already, of which a repeat has to be told from a second request."""


class Foresight(QueueRecords):
    """What was asked for by commands so far, and what was found."""

    def __init__(self, quotas: Quotas) -> None:
        super().__init__()
        self.quotas = quotas
        self.has_quotas = quotas != _NO_QUOTAS
        self._leases: dict[str, Lease | None] = {}
        self._resources_asked: set[ResourceKey] = set()
        self._requests: dict[str, Event | None] = {}
        self._holders: dict[HolderKey, int] = {}
        self._tenants: dict[str, int] = {}
        self._presumed: set[str] = set()
        """Lease ids that were taken for new without asking the store."""
        self._blank = Keys()

    def lacking(self, commands: Sequence[Command], *, presuming: bool = False) -> Keys | None:
        """Return what commands are sure to need and is not here, so that a whole batch can be read at once.

        None: it is all here.

        The commands are well-formed: a malformed one is refused unread. An ending needs no memory of
        requests: who ends a lease twice finds it ended. `presuming` takes the ids that claims propose for
        new where a mistake is sure to be noticed: see `doubtful`.
        """
        keys = self._blank  # One that stays empty serves again: most commands of a lone caller lack nothing.
        for command in commands:
            if isinstance(command, Acquire | Derive):
                self._lacking_for_claim(command, keys, presuming)
                continue
            for lease_id in command.lease_ids:
                if lease_id not in self._leases:
                    keys.leases.add(lease_id)
            if isinstance(command, _NAMED) and command.request_key not in self._requests:
                keys.requests.add(command.request_key)
        if not keys:
            return None
        self._blank = Keys()
        return keys

    def doubtful(self, command: Command) -> Keys | None:
        """Return what has to be read before a refusal of `command` can be believed; None: nothing.

        It may be a repeat, of a claim whose lease has ended since; then it has to be told that. A grant needs
        no such doubt: no store takes in a second lease with the same id.
        """
        if isinstance(command, Acquire) and command.lease_id in self._presumed:
            self._presumed.remove(command.lease_id)
            return Keys(leases={command.lease_id})
        return None

    def _lacking_for_claim(self, command: Acquire | Derive, keys: Keys, presuming: bool) -> None:
        lease_id, is_its_own_request = command.lease_id, command.is_its_own_request
        if lease_id not in self._leases:
            if presuming and is_its_own_request and _is_sent_once(command):
                self._leases[lease_id] = None
                self._presumed.add(lease_id)
            else:
                keys.leases.add(lease_id)
        if isinstance(command, Derive):
            keys.leases.add(command.parent_id)
        if not is_its_own_request and command.request_key not in self._requests:
            keys.requests.add(command.request_key)
        resource = (command.tenant, command.resource)
        if resource not in self._resources_asked:
            keys.resources.add(resource)
        if isinstance(command, Acquire) and command.also:
            keys.leases.update(command.lease_ids)
            keys.resources.update((command.tenant, wanted.resource) for wanted in command.also)
        if self.has_quotas:
            self._lacking_for_quotas(command, keys)

    def _lacking_for_quotas(self, command: Acquire | Derive, keys: Keys) -> None:
        if self.quotas.leases_per_holder is not None:
            holder = command.child_holder if isinstance(command, Derive) else command.holder
            if (command.tenant, holder) not in self._holders:
                keys.holders.add((command.tenant, holder))
        if self.quotas.leases_per_tenant is not None and command.tenant not in self._tenants:
            keys.tenants.add(command.tenant)

    def lacking_in_crowds(self, commands: Sequence[Command]) -> Keys | None:
        """Return what commands need besides where somebody waits, and is not here; None: nothing.

        Asked once the rest is here. What is not foreseen, a decision asks for itself.
        """
        keys = Keys()
        for command in commands:
            if isinstance(command, Acquire):
                self._lacking_to_wait(command, keys)
            elif isinstance(command, Release | Revoke):
                for lease_id in command.lease_ids:
                    lease = self._leases[lease_id]
                    if lease is not None and not lease.is_terminal:
                        key = (lease.tenant, lease.resource)
                        if lease.state is LeaseState.ACTIVE and lease.mode is Mode.EXCLUSIVE:
                            self._resources_asked.add(key)  # It is alone there: that needs no reading.
                        self._lacking_to_hand_on(key, keys)
        return keys if keys else None

    def _lacking_to_hand_on(self, key: ResourceKey, keys: Keys) -> None:
        """Ask for who stands on a resource, and who comes next there, if anybody waits for it."""
        if key in self._awaited and not is_path(key[1]):
            if key not in self._resources_asked:
                keys.resources.add(key)
            keys.queues.add((*key, FIRST_IN_LINE))

    def _lacking_to_wait(self, command: Acquire, keys: Keys) -> None:
        key, holder = (command.tenant, command.resource), (command.tenant, command.holder)
        earlier = self._leases.get(command.lease_id)
        if earlier is not None and earlier.state is not LeaseState.PENDING:
            return  # It was granted meanwhile, and has nothing more to do with those who wait.
        self._lacking_to_hand_on(key, keys)
        if command.wait and earlier is None and key in self._awaited:
            keys.places.add((*key, LAST_PLACE))
            keys.waits.add(holder)
            keys.owners.add(holder)

    def lacking_behind(self, holders: set[HolderKey]) -> Keys | None:
        """Return what is not here of what stands, and waits, where holders wait; None: nothing.

        With this and `in_the_way`, all that a search for a circle will look at is read before it goes on.
        Else everything would be decided anew for every step of a long way. Paths are not followed.
        """
        keys = Keys()
        for tenant, holder in holders:
            for waiter in self.waits_of(tenant, holder):
                key = (tenant, waiter.resource)
                if is_path(waiter.resource):
                    continue
                if key not in self._resources_asked:
                    keys.resources.add(key)
                if key not in self._queues and key not in self._whole_queues:
                    keys.queues.add((*key, FIRST_IN_LINE))
        return keys if keys else None

    def in_the_way(self, holders: set[HolderKey]) -> set[HolderKey]:
        """Return who holds what holders wait for, as far as it is not known yet what those wait for."""
        wanted = {
            (tenant, waiter.resource)
            for tenant, holder in holders
            for waiter in self.waits_of(tenant, holder)
        }
        found = {(key[0], lease.holder) for key in wanted for lease in self._held[key].values()}
        return found - self._waits_asked


def _is_sent_once(command: Acquire | Derive) -> bool:
    """Say whether a claim is unlikely to be a repeat. Who waits sends the same claim again and again."""
    return isinstance(command, Acquire) and not command.wait and not command.also
