"""How leases are spelled as rows, and read back.

Every column has one meaning and one place here, so that the table and the ledger can be compared field by
field.
"""

import msgspec

from leasehold.kernel.lease.delegation import Delegation
from leasehold.kernel.lease.globs import literal_prefix
from leasehold.kernel.lease.model import Lease, LeaseState, Mode, ReleaseReason
from leasehold.kernel.lease.paths import is_glob
from leasehold.kernel.lease.ticket import Ticket
from leasehold.kernel.ledger.tick import Tick
from leasehold.stores.sqlite.rows import Row

_ticket_decoder = msgspec.json.Decoder(Ticket)

_FIXED = (
    "lease_id",
    "tenant",
    "resource",
    "holder",
    "mode",
    "token",
    "issued_at_ns",
    "max_renewals",
    "adopted_from",
    "bound_to_boot",
    "signature",
    "metadata",
    "config_version",
    "zone_version",
    "lock_delay_ns",
    "delayed_for",
)
"""What never changes once a lease is granted."""
_EXTENDED = (
    "ttl_ns",
    "issued_tick",
    "expires_tick",
    "tick_era",
    "tick_rate",
    "expires_at_ns",
    "renewal_count",
    "last_renewed_at_ns",
    "version",
)
"""What a renewal changes. The status is not among it, so that a renewal touches one index only."""
_ENDED = ("status", "terminated_at_ns", "release_reason", "ended_by", "end_reason", "end_request")
"""What an end changes."""

_DELEGATION = "delegation"
"""What only leases with scope, budget or parent have. Statements about plain leases leave it alone."""
_WAITING = ("ticket", "place")
"""What only leases have that are waited for."""
_RESHAPED = ("mode", "token", "issued_at_ns", "ticket", "place")
"""What a grant to a waiter, its confirmation, and a change of mode change beside all that."""

_WHOLE = (*_FIXED, *_EXTENDED, *_ENDED, _DELEGATION, *_WAITING)
LEASE_COLUMNS = ", ".join(_WHOLE)
_WIDTH = len(_WHOLE)
_AWAITED = (
    "EXISTS (SELECT 1 FROM leases AS waiting WHERE waiting.tenant = leases.tenant "
    "AND waiting.resource = leases.resource AND waiting.place IS NOT NULL)"
)
"""Whether anybody waits for the resource of a lease."""
LEASE_AND_AWAITED = f"{LEASE_COLUMNS}, {_AWAITED}"
INSERT_LEASE = (
    f"INSERT INTO leases ({LEASE_COLUMNS}, parent, glob_prefix) VALUES ({', '.join('?' * (_WIDTH + 2))})"
)
EXTEND_LEASE = f"UPDATE leases SET {', '.join(f'{name} = ?' for name in _EXTENDED)} WHERE lease_id = ?"
END_LEASE = (
    f"UPDATE leases SET {', '.join(f'{name} = ?' for name in (*_EXTENDED, *_ENDED))} WHERE lease_id = ?"
)
SET_DELEGATION = f"UPDATE leases SET parent = ?, {_DELEGATION} = ? WHERE lease_id = ?"
"""Completes the change of a lease that is not plain, in the same transaction."""

RESHAPE_LEASE = (
    f"UPDATE leases SET {', '.join(f'{name} = ?' for name in (*_EXTENDED, *_ENDED, *_RESHAPED))} "
    "WHERE lease_id = ?"
)

_MODES = {mode.value: mode for mode in Mode}
_STATES = {state.value: state for state in LeaseState}
_REASONS: dict[str | None, ReleaseReason | None] = {reason.value: reason for reason in ReleaseReason}
_REASONS[None] = None


def lease_of(row: Row) -> Lease:
    """Read a lease from a row of LEASE_COLUMNS."""
    # fmt: off
    (lease_id, tenant, resource, holder, mode, token, issued_at_ns, max_renewals, adopted_from,
     bound_to_boot, signature, metadata, config_version, zone_version, lock_delay_ns, delayed_for,
     ttl_ns, issued, expires, era, rate, expires_at_ns, renewal_count, last_renewed_at_ns, version,
     status, terminated_at_ns, release_reason, ended_by, end_reason, end_request, delegation,
     ticket, _) = row[:_WIDTH]
    # fmt: on
    return Lease(
        lease_id=lease_id,
        tenant=tenant,
        resource=resource,
        holder=holder,
        mode=_MODES[mode],
        token=token,
        issued_at_ns=issued_at_ns,
        max_renewals=max_renewals,
        adopted_from=adopted_from,
        bound_to_boot=bool(bound_to_boot),
        signature=signature,
        metadata={} if metadata == "{}" else msgspec.json.decode(metadata),
        config_version=config_version,
        zone_version=zone_version,
        ttl_ns=ttl_ns,
        issued_tick=None if issued is None else Tick(value=issued, era=era, rate=rate),
        expires_tick=None if expires is None else Tick(value=expires, era=era, rate=rate),
        expires_at_ns=expires_at_ns,
        renewal_count=renewal_count,
        last_renewed_at_ns=last_renewed_at_ns,
        version=version,
        state=_STATES[status],
        terminated_at_ns=terminated_at_ns,
        release_reason=_REASONS[release_reason],
        ended_by=ended_by,
        end_reason=end_reason,
        end_request=end_request,
        delegation=None if delegation is None else msgspec.json.decode(delegation, type=Delegation),
        lock_delay_ns=lock_delay_ns,
        delayed_for=delayed_for,
        ticket=None if ticket is None else _ticket_decoder.decode(ticket),
    )


def row_of(lease: Lease) -> Row:
    """Spell a whole lease as the values of INSERT_LEASE."""
    fixed = (
        lease.lease_id,
        lease.tenant,
        lease.resource,
        lease.holder,
        lease.mode,
        lease.token,
        lease.issued_at_ns,
        lease.max_renewals,
        lease.adopted_from,
        int(lease.bound_to_boot),
        lease.signature,
        msgspec.json.encode(lease.metadata).decode() if lease.metadata else "{}",
        lease.config_version,
        lease.zone_version,
        lease.lock_delay_ns,
        lease.delayed_for,
    )
    if lease.delegation is None and lease.ticket is None:
        return (*fixed, *_changing(lease), None, None, None, None, _glob_prefix(lease.resource))
    parent, account = _account(lease)
    return (*fixed, *_changing(lease), account, *_ticket(lease), parent, _glob_prefix(lease.resource))


def _glob_prefix(resource: str) -> str | None:
    """Return what a pattern is found by; None for all other resources."""
    return literal_prefix(resource) if is_glob(resource) else None


def extension_of(lease: Lease) -> Row:
    """Spell what a renewal changed as the values of EXTEND_LEASE."""
    return (*_changing(lease)[: len(_EXTENDED)], lease.lease_id)


def ending_of(lease: Lease) -> Row:
    """Spell what an end (and any renewal before it) changed as the values of END_LEASE."""
    return (*_changing(lease), lease.lease_id)


def delegation_of(lease: Lease) -> Row:
    """Spell scope, budget and descent as the values of SET_DELEGATION."""
    return (*_account(lease), lease.lease_id)


def _account(lease: Lease) -> Row:
    account = lease.delegation
    return (None, None) if account is None else (account.parent, msgspec.json.encode(account).decode())


def reshape_of(lease: Lease) -> Row:
    """Spell everything that can change in a lease as the values of RESHAPE_LEASE."""
    reshaped = (lease.mode, lease.token, lease.issued_at_ns, *_ticket(lease))
    return (*_changing(lease), *reshaped, lease.lease_id)


def _ticket(lease: Lease) -> Row:
    ticket = lease.ticket
    if ticket is None:
        return (None, None)
    return (msgspec.json.encode(ticket).decode(), ticket.place if lease.is_waiting else None)


def _changing(lease: Lease) -> Row:
    """Spell what renewals change, and then what an end does."""
    issued, expires = lease.issued_tick, lease.expires_tick
    return (
        lease.ttl_ns,
        None if issued is None else issued.value,
        None if expires is None else expires.value,
        None if expires is None else expires.era,
        None if expires is None else expires.rate,
        lease.expires_at_ns,
        lease.renewal_count,
        lease.last_renewed_at_ns,
        lease.version,
        lease.state,
        lease.terminated_at_ns,
        lease.release_reason,
        lease.ended_by,
        lease.end_reason,
        lease.end_request,
    )
