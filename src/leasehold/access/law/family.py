"""Access keys as a family of records."""

from collections.abc import Iterable

from leasehold.access.law.admission import admits, knows
from leasehold.access.law.commands import CreateAccessKey, RevokeAccessKey, RotateAccessKey, check
from leasehold.access.law.events import EVENTS
from leasehold.access.law.model import ACCESS, AccessRecord, Role, mark_of, record_key
from leasehold.access.law.rules import create, evolve, revoke, rotate
from leasehold.kernel.ledger.events import StoreCheckpointed
from leasehold.kernel.ledger.family import Family
from leasehold.kernel.ledger.state import State


def access_family() -> Family:
    """Return the family of access keys."""
    return Family(
        name=ACCESS,
        record=AccessRecord,
        events=EVENTS,
        rules={CreateAccessKey: create, RotateAccessKey: rotate, RevokeAccessKey: revoke},
        check=check,
        admits=admits,
        knows=knows,
        evolve=evolve,
        invariants=invariants,
        forgotten=forgotten,
    )


def invariants(state: State) -> Iterable[str]:
    """Yield a sentence for every key that no command could have left."""
    for key, record in state.of(ACCESS).items():
        name = f"access key {record.key_id}"
        if key != record_key(record.key_id):
            yield f"{name} is filed under another id"
        if not record.key_id.startswith(mark_of(record.tenant)):
            yield f"{name} does not bear the mark of its tenant"
        if record.holders and record.role is not Role.HOLDER:
            yield f"{name} is bound to holders, and its role is {record.role}"
        if (record.earlier_until is None) != (not record.earlier_digest):
            yield f"{name} has an earlier secret without an end, or an end without one"
        if record.earlier_digest and (record.generation < 2 or record.revoked_at_ns is not None):
            yield f"{name} has an earlier secret that it cannot have"


def forgotten(state: State, checkpoint: StoreCheckpointed) -> Iterable[str]:
    """Yield the keys that were revoked before the time from which history is kept."""
    for key, record in state.of(ACCESS).items():
        if record.revoked_at_ns is not None and record.revoked_at_ns < checkpoint.ended_before_ns:
            yield key
