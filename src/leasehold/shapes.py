"""What programs are told: by `--json`, and by the server. Fields may be added, never renamed or removed.

Wall times are ISO 8601 in UTC, durations are seconds. A field that does not apply is null.
"""

from datetime import UTC, datetime
from typing import Any

from msgspec.structs import asdict

from leasehold.engine.questions import LeaseStatus, Waiter
from leasehold.errors import LeaseholdError
from leasehold.kernel.lease.delegation import Delegation
from leasehold.kernel.lease.model import LeaseState
from leasehold.kernel.ledger.chain import Entry
from leasehold.kernel.ledger.tick import NANOSECONDS_PER_SECOND


def lease_shape(status: LeaseStatus) -> dict[str, Any]:
    """Return a lease, as it stands at the moment of the answer."""
    lease = status.lease
    return {
        "lease_id": lease.lease_id,
        "resource": lease.resource,
        "holder": lease.holder,
        "tenant": lease.tenant,
        "mode": lease.mode.value,
        "state": state_now(status).value,
        "token": lease.token,
        "ttl": lease.ttl_ns / NANOSECONDS_PER_SECOND,
        "expires_in": status.expires_in,
        "issued_at": utc(lease.issued_at_ns),
        "expires_at": utc(lease.expires_at_ns),
        "renewal_count": lease.renewal_count,
        "max_renewals": lease.max_renewals,
        "last_renewed_at": utc(lease.last_renewed_at_ns),
        "terminated_at": utc(lease.terminated_at_ns),
        "release_reason": None if lease.release_reason is None else lease.release_reason.value,
        "ended_by": lease.ended_by,
        "end_reason": lease.end_reason,
        "adopted_from": lease.adopted_from,
        "survives_reboot": not lease.bound_to_boot,
        "metadata": lease.metadata,
        "config_version": lease.config_version,
        "zone_version": lease.zone_version,
        "delegation": delegation_shape(lease.delegation),
        "kept_for": lease.delayed_for or None,
    }


def delegation_shape(delegation: Delegation | None) -> dict[str, Any] | None:
    """Return scope, budget and descent of a lease; null for a plain one."""
    if delegation is None:
        return None
    return {
        "parent": delegation.parent,
        "ancestors": list(delegation.ancestors),
        "scope": asdict(delegation.scope),
        "budget": asdict(delegation.budget),
        "spent": asdict(delegation.spent),
        "delegated": asdict(delegation.delegated),
        "remaining": asdict(delegation.remaining),
    }


def state_now(status: LeaseStatus) -> LeaseState:
    """Return a lease's state by the authority's clock, also where nobody has recorded its expiry yet.

    A lease whose time is unknown stays active: it is of no use to its holder, but nobody can take it over.
    """
    lease = status.lease
    if lease.is_terminal or status.is_live or lease.expires_tick is None:
        return lease.state
    return LeaseState.EXPIRED


def waiter_shape(waiter: Waiter) -> dict[str, Any]:
    """Return a claim that waits, and its place."""
    lease, ticket = waiter.lease, waiter.lease.ticket
    return {
        "position": waiter.position,
        "holder": lease.holder,
        "resource": lease.resource,
        "mode": lease.mode.value,
        "priority": None if ticket is None else ticket.priority,
        "waiting_since": None if ticket is None else utc(ticket.since_ns),
        "waited": waiter.waited,
        "estimate": waiter.estimate,
        "ttl": lease.ttl_ns / NANOSECONDS_PER_SECOND,
        "lease_id": lease.lease_id,
    }


def entry_shape(entry: Entry) -> dict[str, Any]:
    """Return a ledger entry: where it stands, what happened, and everything the event says."""
    event = entry.event
    shape: dict[str, Any] = {
        "position": entry.position,
        "type": event.type,
        "at": utc(event.at_ns),
        "tick": event.tick.value,
        "era": event.tick.era,
        "actor": event.actor,
        "lease_ids": list(event.keys) if event.type.startswith("lease.") else [],
        "hash": entry.hash.hex(),
    }
    shape |= zip(("tenant", "lease_id", "resource", "holder", "token"), event.filing, strict=True)
    for name, value in asdict(event).items():
        match name:
            case "ttl_ns" | "kept_ns" | "claim_window_ns" | "lock_delay_ns":
                shape[name.removesuffix("_ns")] = value / NANOSECONDS_PER_SECOND
            case "bound_to_boot":
                shape["survives_reboot"] = not value
            case "delegation":
                shape[name] = delegation_shape(value)
            case "amounts" | "granted" | "spent" | "delegated":
                shape[name] = asdict(value)
            case "delayed_for":
                shape[name] = value or None
            case "at_ns" | "digest" | "request" | "schema" | "signature":
                continue
            case _:
                shape.setdefault(name, value)
    return shape


def error_shape(error: LeaseholdError, message: str) -> dict[str, Any]:
    """Return an error: its stable code, what to do about it, and the facts."""
    return {
        "code": error.code,
        "message": message,
        "exit_code": error.exit_code,
        "facts": facts_shape(error),
    }


def facts_shape(error: LeaseholdError) -> dict[str, Any]:
    """Return what is known about a problem, by name."""
    facts = dict(error.facts)
    since = facts.get("since")
    if isinstance(since, float):
        facts["since"] = utc(round(since * NANOSECONDS_PER_SECOND))
    return facts


def utc(wall_ns: int | None) -> str | None:
    """Spell a wall time for programs."""
    if wall_ns is None:
        return None
    moment = datetime.fromtimestamp(wall_ns // NANOSECONDS_PER_SECOND, UTC)
    return f"{moment:%Y-%m-%dT%H:%M:%S}.{wall_ns % NANOSECONDS_PER_SECOND // 1000:06d}Z"
