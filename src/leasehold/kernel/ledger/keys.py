"""Which keys may seal the ledger.

The first key is pinned by the event that opens the store (or, in a store from before there were seals, by
the first that enrols one). Every later one is enrolled with the signature of a key that is admitted at that
time. So whoever knows the first key can tell, link by link, that all others are rightly there.

A key can also enrol itself, where none of the admitted ones is at hand. It may seal, but nobody vouches for
it: whoever verifies the ledger has to say that they trust it, until an admitted key vouches for it after all.

Signatures are checked by the engine's audit: this module knows which key must have signed what.
"""

import msgspec

from leasehold.kernel.ledger.events import (
    Event,
    IllegalTransition,
    KeyEnrolled,
    KeyRetired,
    KeyVouched,
    StoreOpened,
)

_VOUCHER_DOMAIN = b"leasehold key voucher 1"


class Key(msgspec.Struct, frozen=True, kw_only=True, gc=False, omit_defaults=True):
    """A key that seals the ledger, or did."""

    public_key: bytes
    number: int
    """Counts the keys in the order of their enrolment; the first has 1."""
    enrolled_at_ns: int
    enrolled_by: str
    """Who enrolled it: a user, or `registrar` for the first."""
    vouched_by: bytes = b""
    """The public key that vouches for it; empty if none does, as for the first."""
    voucher: bytes = b""
    reason: str = ""
    retired_at_ns: int | None = None
    retired_by: str | None = None
    retire_reason: str | None = None

    @property
    def is_admitted(self) -> bool:
        """Say whether the key may seal."""
        return self.retired_at_ns is None

    @property
    def is_vouched_for(self) -> bool:
        """Say whether trust in the first key is enough to trust this one: it is the first, or one of those
        that are vouched for has vouched for it.
        """
        return self.number == 1 or bool(self.vouched_by)


def voucher_message(public_key: bytes) -> bytes:
    """Return what an admitted key signs to vouch for another."""
    return _VOUCHER_DOMAIN + public_key


def evolve_keys(keys: dict[bytes, Key], event: Event) -> Key | None:
    """Return the key that `event` enrols or retires, as it is then; None for any other event.

    Raises IllegalTransition for an event that the law could not have produced.
    """
    match event:
        case StoreOpened(public_key=public_key):
            return (
                Key(public_key=public_key, number=1, enrolled_at_ns=event.at_ns, enrolled_by=event.actor)
                if public_key
                else None
            )
        case KeyEnrolled():
            return _enrol(keys, event)
        case KeyVouched():
            return _vouch(keys, event)
        case KeyRetired():
            return _retire(keys, event)
        case _:
            return None


def _enrol(keys: dict[bytes, Key], event: KeyEnrolled) -> Key:
    if event.public_key in keys:
        raise IllegalTransition("a key was enrolled twice")
    if event.vouched_by:
        _check_voucher(keys, event.vouched_by)
    return Key(
        public_key=event.public_key,
        number=len(keys) + 1,
        enrolled_at_ns=event.at_ns,
        enrolled_by=event.actor,
        vouched_by=event.vouched_by,
        voucher=event.voucher,
        reason=event.reason,
    )


def _vouch(keys: dict[bytes, Key], event: KeyVouched) -> Key:
    key = keys.get(event.public_key)
    if key is None or key.is_vouched_for:
        raise IllegalTransition("a key was vouched for that is unknown, or was vouched for already")
    _check_voucher(keys, event.vouched_by)
    return msgspec.structs.replace(key, vouched_by=event.vouched_by, voucher=event.voucher)


def _check_voucher(keys: dict[bytes, Key], public_key: bytes) -> None:
    voucher = keys.get(public_key)
    if voucher is None or not voucher.is_admitted or not voucher.is_vouched_for:
        raise IllegalTransition("a key vouches for another that is not admitted, or not vouched for itself")


def _retire(keys: dict[bytes, Key], event: KeyRetired) -> Key:
    key = keys.get(event.public_key)
    if key is None or not key.is_admitted:
        raise IllegalTransition("a key was retired that is not admitted")
    if sum(one.is_admitted for one in keys.values()) == 1:
        raise IllegalTransition("the last key was retired")
    return msgspec.structs.replace(
        key, retired_at_ns=event.at_ns, retired_by=event.actor, retire_reason=event.reason
    )
