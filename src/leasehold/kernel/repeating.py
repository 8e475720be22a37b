"""Whether a claim that bears the id of a lease is the one that the lease was made for.

Such a claim is its own request: no key is kept of it, so what was asked the first time is read from what came
of it. While the lease waits, or was won and not confirmed, the lease itself still says it. Later it may have
been renewed or upgraded, so the event of the grant is asked. If that was pruned, the request is forgotten,
and its id is taken.

What is compared is what the claim asked to have. Whether it would have waited, how urgently, and what it
would have adopted is compared as far as anything came of it; of the rest nothing is known.
"""

from leasehold.kernel.budget import Budget
from leasehold.kernel.commands import Acquire
from leasehold.kernel.delegation import Delegation
from leasehold.kernel.events import LeaseIssued
from leasehold.kernel.lease import Lease, Mode
from leasehold.kernel.scope import Scope
from leasehold.kernel.view import View


def was_asked_before(command: Acquire, view: View) -> bool:
    """Say whether all leases of a claim that is its own request are there, and were made for it."""
    if view.lease(command.lease_id) is None:
        return False  # As it almost always is.
    for lease_id, (resource, mode) in zip(command.lease_ids, command.targets, strict=True):
        lease = view.lease(lease_id)
        terms = None if lease is None else _terms_of(lease, command, view)
        if terms is None or not _asks_for(command, resource, mode, terms):
            return False
    return True


def _terms_of(lease: Lease, command: Acquire, view: View) -> Lease | LeaseIssued | None:
    """Return where the terms of a lease are as they were asked for; None if another kind of claim made it."""
    group = command.lease_ids if command.also else ()
    ticket = lease.ticket
    if ticket is not None and not ticket.upgrade:
        waited = (ticket.request, ticket.group, ticket.priority)
        return lease if command.wait and waited == ("", group, command.priority) else None
    grant = view.grant_of(lease.lease_id)
    if not isinstance(grant, LeaseIssued) or grant.request is not None or grant.group != group:
        return None
    return grant if command.wait or not grant.claim_window_ns else None


def _asks_for(command: Acquire, resource: str, mode: Mode, terms: Lease | LeaseIssued) -> bool:
    delegation = terms.delegation
    # What replaced a derived lease may have got less time than it had asked for, and remembers that.
    ttl_ns = (0 if delegation is None else delegation.ttl_ns) or terms.ttl_ns
    return (
        terms.tenant == command.tenant
        and terms.resource == resource
        and terms.holder == command.holder
        and terms.mode is mode
        and ttl_ns == command.ttl_ns
        and terms.max_renewals == max(-1, command.max_renewals)
        and terms.bound_to_boot == command.bound_to_boot
        and terms.metadata == command.metadata
        and terms.config_version == command.config_version
        and terms.zone_version == command.zone_version
        and terms.lock_delay_ns == command.lock_delay_ns
        and (command.adopt or terms.adopted_from is None)
        and _is_delegated_by(delegation, command, adopted=terms.adopted_from is not None)
    )


def _is_delegated_by(delegation: Delegation | None, command: Acquire, *, adopted: bool) -> bool:
    """Say whether a claim asks for this scope and budget; one that names none may have inherited them."""
    if delegation is None:
        return command.scope is None and command.budget is None
    if command.scope is None and command.budget is None:
        return adopted
    return delegation.scope == (command.scope or Scope()).canonical() and delegation.budget == (
        command.budget or Budget()
    )
