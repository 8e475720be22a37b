"""How leases, entries and the registrar's record are spelled as rows, and read back.

Every column has one meaning and one place here, so that the table and the ledger can be compared field by
field.
"""

from collections.abc import Sequence
from typing import Any

import msgspec

from leasehold.engine.port import Head
from leasehold.kernel.authority import Authority, Era
from leasehold.kernel.chain import Entry
from leasehold.kernel.lease import Lease, LeaseState, Mode, ReleaseReason
from leasehold.kernel.tick import Tick

Row = Sequence[Any]

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
_ENDED = ("status", "terminated_at_ns", "release_reason", "ended_by", "end_reason")
"""What an end changes."""

LEASE_COLUMNS = ", ".join((*_FIXED, *_EXTENDED, *_ENDED))
INSERT_LEASE = (
    f"INSERT INTO leases ({LEASE_COLUMNS}) VALUES ({', '.join('?' * len((*_FIXED, *_EXTENDED, *_ENDED)))})"
)
EXTEND_LEASE = f"UPDATE leases SET {', '.join(f'{name} = ?' for name in _EXTENDED)} WHERE lease_id = ?"
END_LEASE = (
    f"UPDATE leases SET {', '.join(f'{name} = ?' for name in (*_EXTENDED, *_ENDED))} WHERE lease_id = ?"
)

AUTHORITY_COLUMNS = (
    "epoch, counter, era, era_first_tick, boot_id, identity, tick, wall_ns, rate, position, hash"
)

_MODES = {mode.value: mode for mode in Mode}
_STATES = {state.value: state for state in LeaseState}
_REASONS: dict[str | None, ReleaseReason | None] = {reason.value: reason for reason in ReleaseReason}
_REASONS[None] = None


def lease_of(row: Row) -> Lease:
    """Read a lease from a row of LEASE_COLUMNS."""
    issued_value, expires_value, era, rate = row[15:19]
    known = expires_value is not None
    return Lease(
        lease_id=row[0],
        tenant=row[1],
        resource=row[2],
        holder=row[3],
        mode=_MODES[row[4]],
        token=row[5],
        issued_at_ns=row[6],
        max_renewals=row[7],
        adopted_from=row[8],
        bound_to_boot=bool(row[9]),
        signature=row[10],
        metadata={} if row[11] == "{}" else msgspec.json.decode(row[11]),
        config_version=row[12],
        zone_version=row[13],
        ttl_ns=row[14],
        issued_tick=None if issued_value is None else Tick(value=issued_value, era=era, rate=rate),
        expires_tick=Tick(value=expires_value, era=era, rate=rate) if known else None,
        expires_at_ns=row[19],
        renewal_count=row[20],
        last_renewed_at_ns=row[21],
        version=row[22],
        state=_STATES[row[23]],
        terminated_at_ns=row[24],
        release_reason=_REASONS[row[25]],
        ended_by=row[26],
        end_reason=row[27],
    )


def row_of(lease: Lease) -> Row:
    """Spell a whole lease as the values of INSERT_LEASE."""
    fixed = (
        lease.lease_id,
        lease.tenant,
        lease.resource,
        lease.holder,
        lease.mode.value,
        lease.token,
        lease.issued_at_ns,
        lease.max_renewals,
        lease.adopted_from,
        int(lease.bound_to_boot),
        lease.signature,
        msgspec.json.encode(lease.metadata).decode() if lease.metadata else "{}",
        lease.config_version,
        lease.zone_version,
    )
    return (*fixed, *_extended(lease), *_ended(lease))


def extension_of(lease: Lease) -> Row:
    """Spell what a renewal changed as the values of EXTEND_LEASE."""
    return (*_extended(lease), lease.lease_id)


def ending_of(lease: Lease) -> Row:
    """Spell what an end (and any renewal before it) changed as the values of END_LEASE."""
    return (*_extended(lease), *_ended(lease), lease.lease_id)


def _extended(lease: Lease) -> Row:
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
    )


def _ended(lease: Lease) -> Row:
    return (
        lease.state.value,
        lease.terminated_at_ns,
        None if lease.release_reason is None else lease.release_reason.value,
        lease.ended_by,
        lease.end_reason,
    )


def event_columns(entry: Entry) -> Row:
    """Spell an entry as the values of a row of `events`."""
    event = entry.event
    return (
        entry.position,
        event.type,
        event.at_ns,
        getattr(event, "tenant", None),
        getattr(event, "lease_id", None),
        getattr(event, "resource", None),
        getattr(event, "holder", None),
        getattr(event, "token", None),
        event.request,
        entry.body.decode(),
        entry.hash,
    )


def authority_of(row: Row) -> tuple[Authority, Head]:
    """Read the registrar's record, and where the ledger ends, from a row of AUTHORITY_COLUMNS."""
    authority = Authority(
        epoch=row[0],
        counter=row[1],
        era=row[2],
        era_first_tick=row[3],
        boot_id=row[4],
        identity=row[5],
        tick=row[6],
        wall_ns=row[7],
        rate=row[8],
    )
    return authority, Head(position=row[9], hash=row[10])


def authority_columns(authority: Authority, head: Head) -> Row:
    """Spell the registrar's record and the ledger's end as the values of AUTHORITY_COLUMNS."""
    return (
        authority.epoch,
        authority.counter,
        authority.era,
        authority.era_first_tick,
        authority.boot_id,
        authority.identity,
        authority.tick,
        authority.wall_ns,
        authority.rate,
        head.position,
        head.hash,
    )


def era_of(row: Row) -> Era:
    """Read an ended era from a row of `eras`."""
    return Era(number=row[0], boot_id=row[1], first_tick=row[2], last_tick=row[3], rate=row[4])


def era_columns(era: Era) -> Row:
    """Spell an ended era as the values of a row of `eras`."""
    return (era.number, era.boot_id, era.first_tick, era.last_tick, era.rate)
