"""Payloads of lease events, ready to be put into an `EventRecord`.

Ticks are optional, as they are in the contract. A lease that is issued without them is expired for its
holder at every tick: nobody can tell.
"""

from leasehold.kernel.ledger.tick import Tick
from leasehold.reducer.errors import InvalidInput
from leasehold.reducer.payloads import Conflict, Denied, Expired, Issued, Payload, Released, Renewed, encode


def lease_issued_payload(  # noqa: PLR0917  the order is the contract's
    lease_id: str,
    work_id: str,
    actor_id: str,
    issued_at: int,
    expires_at: int,
    registrar_signature: bytes,
    *,
    issued_at_tick: Tick | None = None,
    expires_at_tick: Tick | None = None,
) -> bytes:
    """Return the payload of `lease.issued`."""
    return _encoded(
        Issued(
            lease_id=lease_id,
            work_id=work_id,
            actor_id=actor_id,
            issued_at=issued_at,
            expires_at=expires_at,
            registrar_signature=registrar_signature,
            issued_at_tick=issued_at_tick,
            expires_at_tick=expires_at_tick,
        )
    )


def lease_renewed_payload(
    lease_id: str,
    new_expires_at: int,
    registrar_signature: bytes,
    *,
    renewed_at_tick: Tick | None = None,
    new_expires_at_tick: Tick | None = None,
) -> bytes:
    """Return the payload of `lease.renewed`."""
    return _encoded(
        Renewed(
            lease_id=lease_id,
            new_expires_at=new_expires_at,
            registrar_signature=registrar_signature,
            renewed_at_tick=renewed_at_tick,
            new_expires_at_tick=new_expires_at_tick,
        )
    )


def lease_released_payload(lease_id: str, release_reason: str) -> bytes:
    """Return the payload of `lease.released`."""
    return _encoded(Released(lease_id=lease_id, release_reason=release_reason))


def lease_expired_payload(lease_id: str, expired_at: int, *, expired_at_tick: Tick | None = None) -> bytes:
    """Return the payload of `lease.expired`."""
    return _encoded(Expired(lease_id=lease_id, expired_at=expired_at, expired_at_tick=expired_at_tick))


def lease_conflict_payload(work_id: str, conflicting_lease_ids: list[str], resolution: str) -> bytes:
    """Return the payload of `lease.conflict`."""
    return _encoded(
        Conflict(work_id=work_id, conflicting_lease_ids=conflicting_lease_ids, resolution=resolution)
    )


def lease_denied_payload(work_id: str, actor_id: str, reason: str) -> bytes:
    """Return the payload of `lease.denied`."""
    return _encoded(Denied(work_id=work_id, actor_id=actor_id, reason=reason))


def _encoded(payload: Payload) -> bytes:
    """Refuse what no payload can carry, such as a number of more than 64 bits."""
    try:
        return encode(payload)
    except (OverflowError, TypeError, ValueError) as error:
        raise InvalidInput(field="payload", reason=f"cannot be written: {error}") from error
