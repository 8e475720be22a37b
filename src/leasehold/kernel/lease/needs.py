"""What a batch will need of leases besides what is here.

Whatever is foreseen is read at once for all commands of a batch, in rounds: first what the commands name,
then what that shows to be needed where somebody waits, then, step by step, what a search for a circle will
look at. What is not foreseen, a decision asks for itself, and is taken again.
"""

from collections.abc import Sequence
from typing import Any

from leasehold.kernel.lease.commands import (
    Acquire,
    ChangeMode,
    Derive,
    Release,
    Renew,
    Revoke,
    Spend,
    Transfer,
)
from leasehold.kernel.lease.model import LeaseState, Mode
from leasehold.kernel.lease.paths import is_path
from leasehold.kernel.lease.records import (
    FIRST_IN_LINE,
    LEASE,
    HolderKey,
    LeaseWanted,
    ResourceKey,
    count_of_holder,
    count_of_tenant,
    held_by,
    waits_of,
)
from leasehold.kernel.lease.ticket import LAST_PLACE
from leasehold.kernel.lease.view import LeaseView
from leasehold.kernel.ledger.commands import Sweep
from leasehold.kernel.ledger.records import Keys
from leasehold.kernel.ledger.view import View

_CLAIMS = (Acquire, Derive)
_REPEATED = (Renew, Spend, ChangeMode, Transfer)
"""Commands on leases that are there already, of which a repeat has to be told from a second request."""


def needs(commands: Sequence[Any], view: View) -> Keys | None:
    """Return what commands are sure to need and is not here; None: nothing.

    The commands are well-formed: a malformed one is refused unread.
    """
    leases: LeaseView = view.parts[LEASE]
    wanted, requests = leases.blank, set[str]()  # One that stays empty serves again.
    known = leases.records
    for command in commands:
        if isinstance(command, _CLAIMS):
            _add_for_claim(command, leases, wanted, requests)
        elif isinstance(command, Sweep):
            if command.key not in known:
                wanted.keys.add(command.key)
        else:  # An ending needs no memory of requests: who ends a lease twice finds it ended.
            for lease_id in command.lease_ids:
                if lease_id not in known:
                    wanted.keys.add(lease_id)
            if isinstance(command, _REPEATED) and not view.knows_request(command.request_key):
                requests.add(command.request_key)
    if requests or wanted:
        leases.blank = LeaseWanted()
        return Keys(requests=requests, families={LEASE: wanted})
    return _needs_in_a_crowd(commands, leases, wanted) if leases.is_crowded else None


def _needs_in_a_crowd(commands: Sequence[Any], leases: LeaseView, wanted: LeaseWanted) -> Keys | None:
    """Return what commands need besides because somebody waits. What they name is here."""
    for command in commands:
        _add_what_is_crowded(command, leases, wanted)
    if not wanted:
        _add_what_is_behind(leases, wanted)
    if not wanted:
        return None
    leases.blank = LeaseWanted()
    return Keys(families={LEASE: wanted})


def _add_for_claim(
    command: Acquire | Derive, view: LeaseView, wanted: LeaseWanted, requests: set[str]
) -> None:
    lease_id, is_its_own_request = command.lease_id, command.is_its_own_request
    if lease_id not in view.records and lease_id not in view.presumed:
        # Who waits sends the same claim again and again; any other is unlikely to be a repeat.
        once = isinstance(command, Acquire) and not command.wait and not command.also
        if view.ledger.presuming and is_its_own_request and once:
            view.presumed.add(lease_id)
        else:
            wanted.keys.add(lease_id)
    if isinstance(command, Derive):
        if command.parent_id not in view.records:
            wanted.keys.add(command.parent_id)
    elif command.also:
        wanted.keys.update(one for one in command.lease_ids if one not in view.records)
        also = ((command.tenant, one.resource) for one in command.also)
        wanted.resources.update(one for one in also if one not in view.resources_read)
    if not is_its_own_request and not view.ledger.knows_request(command.request_key):
        requests.add(command.request_key)
    resource = (command.tenant, command.resource)
    if resource not in view.resources_read:
        wanted.resources.add(resource)
    if view.has_quotas:
        _add_for_quotas(command, view, wanted)


def _add_for_quotas(command: Acquire | Derive, view: LeaseView, wanted: LeaseWanted) -> None:
    holder = command.child_holder if isinstance(command, Derive) else command.holder
    if view.quotas.leases_per_holder is not None:
        wanted.counts.add(count_of_holder((command.tenant, holder)))
    if view.quotas.leases_per_tenant is not None:
        wanted.counts.add(count_of_tenant(command.tenant))
    wanted.counts -= view.counts.keys()


def _add_what_is_crowded(command: Any, view: LeaseView, wanted: LeaseWanted) -> None:
    """Ask for what a command needs besides where somebody waits. What it names is here."""
    if isinstance(command, Acquire):
        _add_to_wait(command, view, wanted)
    elif isinstance(command, Release | Revoke):
        for lease_id in command.lease_ids:
            _add_to_end(lease_id, view, wanted)
    elif isinstance(command, Sweep):
        _add_to_end(command.key, view, wanted)


def _add_to_end(lease_id: str, view: LeaseView, wanted: LeaseWanted) -> None:
    lease = view.lease(lease_id)
    if lease is not None and not lease.is_terminal:
        key = (lease.tenant, lease.resource)
        if lease.state is LeaseState.ACTIVE and lease.mode is Mode.EXCLUSIVE:
            view.resources_read.add(key)  # It is alone there: that needs no reading.
        _add_to_hand_on(key, view, wanted)


def _add_to_hand_on(key: ResourceKey, view: LeaseView, wanted: LeaseWanted) -> None:
    """Ask for who stands on a resource, and who comes next there, if anybody waits for it."""
    if view.is_awaited(*key) and not is_path(key[1]):
        if key not in view.resources_read:
            wanted.resources.add(key)
        if not view.knows_queue(key):
            wanted.queues.add((*key, FIRST_IN_LINE))


def _add_to_wait(command: Acquire, view: LeaseView, wanted: LeaseWanted) -> None:
    key, holder = (command.tenant, command.resource), (command.tenant, command.holder)
    earlier = view.proposed(command.lease_id)
    if earlier is not None and earlier.state is not LeaseState.PENDING:
        return  # It was granted meanwhile, and has nothing more to do with those who wait.
    _add_to_hand_on(key, view, wanted)
    if command.wait and earlier is None and view.is_awaited(*key):
        if not view.knows_places(key):
            wanted.places.add((*key, LAST_PLACE))
        wanted.scans |= {waits_of(holder), held_by(holder)} - view.scanned


def _add_what_is_behind(view: LeaseView, wanted: LeaseWanted) -> None:
    """Ask for what stands, and waits, where those wait who were asked about, and about who is in their way.

    With this, all that a search for a circle will look at is read before it goes on. Else everything would
    be decided anew for every step of a long way. Paths are not followed.
    """
    while view.following:
        for key in _awaited_by(view.following, view):
            if not is_path(key[1]):
                if key not in view.resources_read:
                    wanted.resources.add(key)
                if not view.knows_queue(key):
                    wanted.queues.add((*key, FIRST_IN_LINE))
        if wanted:
            return
        in_the_way = {
            (key[0], lease.holder) for key in _awaited_by(view.following, view) for lease in view.held_on(key)
        }
        wanted.scans |= {waits_of(holder) for holder in in_the_way} - view.scanned
        view.following = set()
        if wanted:
            return


def _awaited_by(holders: set[HolderKey], view: LeaseView) -> set[ResourceKey]:
    return {
        (tenant, waiter.resource) for tenant, holder in holders for waiter in view.waits_of(tenant, holder)
    }
