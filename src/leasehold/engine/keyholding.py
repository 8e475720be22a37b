"""Rotating, retiring and vouching for the keys that seal a ledger.

Each of these is an event in the ledger, sealed by a key that is admitted already. A key that cannot be used
that way is refused with `InvalidInput`, and nothing is changed.
"""

from collections.abc import Callable

from leasehold.engine.port import Store, Transaction
from leasehold.engine.recording import enrolment, open_epoch, record, retirement
from leasehold.engine.retrying import undisturbed
from leasehold.engine.signing import SigningKey, key_id_of
from leasehold.errors import InvalidInput
from leasehold.kernel.ledger.authority import now_of
from leasehold.kernel.ledger.events import KeyVouched, OwnEvent
from leasehold.kernel.ledger.keys import Key, voucher_message
from leasehold.kernel.ledger.tick import Now


def rotate(store: Store, *, actor: str, reason: str = "") -> Key:
    """Put a new key in the place of the one that this process seals with; return the new one."""
    made: list[SigningKey] = []

    def change(transaction: Transaction, now: Now) -> list[OwnEvent]:
        keys = transaction.signing_keys()
        old = store.sealer.key_for(transaction.authority, lambda: keys)
        made.append(store.sealer.spare(keys))
        return [
            enrolment(made[-1], old, keys, now, actor=actor, reason=reason),
            retirement(_find(keys, old.key_id), now, actor=actor, reason=reason),
        ]

    keys = _change(store, change)
    return _find(keys, made[-1].key_id)


def retire(store: Store, key_id: str, *, actor: str, reason: str = "") -> Key:
    """Let a key seal nothing any more; return it as it is then."""

    def change(transaction: Transaction, now: Now) -> list[OwnEvent]:
        key = _known(transaction, key_id)
        if not key.is_admitted:
            raise InvalidInput(f"key {key_id} was retired already", field="key_id")
        if sum(one.is_admitted for one in transaction.signing_keys()) == 1:
            raise InvalidInput(
                f"key {key_id} is the only one that is admitted; rotate it instead", field="key_id"
            )
        return [retirement(key, now, actor=actor, reason=reason)]

    return _find(_change(store, change), key_id)


def vouch(store: Store, key_id: str, *, actor: str, reason: str = "") -> Key:
    """Vouch for a key that has enrolled itself, with the one that this process has; return it."""

    def change(transaction: Transaction, now: Now) -> list[OwnEvent]:
        key = _known(transaction, key_id)
        if key.is_vouched_for:
            raise InvalidInput(f"key {key_id} is vouched for already", field="key_id")
        own = store.sealer.key_for(transaction.authority, transaction.signing_keys)
        if not _known(transaction, own.key_id).is_vouched_for:
            raise InvalidInput(
                f"your own key {own.key_id} is not vouched for; ask somebody whose key is", field="key_id"
            )
        return [
            KeyVouched(
                tick=now.tick,
                at_ns=now.wall_ns,
                actor=actor,
                public_key=key.public_key,
                reason=reason,
                vouched_by=own.public_key,
                voucher=own.sign(voucher_message(key.public_key)),
            )
        ]

    return _find(_change(store, change), key_id)


def _change(store: Store, change: Callable[[Transaction, Now], list[OwnEvent]]) -> list[Key]:
    """Commit what `change` gives, sealed with the key that this process has, or enrols for it.

    Returns all keys as they are then.
    """
    open_epoch(store, to_write=True)

    def commit() -> None:
        with store.write(durable=True) as transaction:
            authority = transaction.authority
            assert authority is not None, "a store that was opened has a registrar"
            record(transaction, change(transaction, now_of(authority, transaction.reading())), store.sealer)

    undisturbed(commit)
    with store.snapshot() as snapshot:
        return snapshot.signing_keys()


def _known(transaction: Transaction, key_id: str) -> Key:
    return _find(transaction.signing_keys(), key_id)


def _find(keys: list[Key], key_id: str) -> Key:
    for key in keys:
        if key_id_of(key.public_key) == key_id:
            return key
    raise InvalidInput(f"the ledger knows no key {key_id}; list them: leasehold keys list", field="key_id")
