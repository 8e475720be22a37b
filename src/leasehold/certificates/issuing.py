"""Making a certificate of a lease that stands.

The store is read as of one moment: that the lease stands, what it has left by the authority's clock, and
where the ledger ends. Nothing is written, and no writer is waited for. A lease that has ended, expired, or
whose time is unknown gets none.
"""

from collections.abc import Callable
from weakref import WeakKeyDictionary

from leasehold.certificates.certificate import body_of
from leasehold.certificates.keys import TrustedKeys
from leasehold.certificates.signing import sign
from leasehold.engine.port import Snapshot, Store
from leasehold.engine.questions import Certify, LeaseStatus
from leasehold.engine.registrar import Registrar
from leasehold.engine.sealing import NoKeyAtHand
from leasehold.engine.signing import is_signed, key_id_of
from leasehold.engine.status import status_of
from leasehold.errors import LeaseLost, error_of
from leasehold.kernel.lease.decision import not_found
from leasehold.kernel.lease.model import Lease, LeaseState
from leasehold.kernel.ledger.keys import Key, voucher_message
from leasehold.kernel.ledger.refusals import Refusal, RefusalCode
from leasehold.kernel.ledger.tick import NANOSECONDS_PER_SECOND

_issuers: WeakKeyDictionary[Store, tuple[int, str]] = WeakKeyDictionary()
"""The names of registrars, and the epoch in which each was asked: another ledger in its place raises it."""


def certify(registrar: Registrar, question: Certify, snapshot: Snapshot) -> Callable[[], str]:
    """Return what makes a certificate of a lease; raise why there can be none."""
    lease_id, reading = question.lease_id, snapshot.reading()
    lease = snapshot.lease(lease_id)
    if lease is None or question.tenant not in (None, lease.tenant):
        raise error_of(not_found(lease_id))
    status = status_of(lease, snapshot, reading)
    if not status.is_live:
        raise error_of(_refusal(status, _end_of(status.lease)))
    if question.holder not in ("", lease.holder):
        raise error_of(_refusal(status, RefusalCode.NOT_HOLDER))
    if status.lease.state is not LeaseState.ACTIVE:
        raise LeaseLost(
            f"lease {lease_id} is {status.lease.state}: nobody holds {status.lease.resource} by it; "
            "ask again once it is granted",
            lease_id=lease_id,
            resource=status.lease.resource,
            state=status.lease.state,
        )
    body = body_of(
        status.lease,
        issuer=_issuer(registrar.store, snapshot),
        position=snapshot.head.position,
        wall_ns=reading.wall_ns,
        left_ns=int(status.expires_in * NANOSECONDS_PER_SECOND),
    )
    try:
        key = registrar.store.sealer.key_for(snapshot.authority, snapshot.signing_keys)
    except NoKeyAtHand:
        key = None
    # Once the look is over: nobody who wants to read has to wait for the signature.
    return lambda: sign(body, key or registrar.signing_key())


def trusted_keys_of(keys: list[Key]) -> TrustedKeys:
    """Return which of the keys of a ledger certificates of its registrar can be checked by.

    A key that enrolled itself, and for which none of the others vouches, is not among them.
    """
    vouched_for = _vouched_for(keys)
    return TrustedKeys(
        (key.public_key for key in keys if key.public_key in vouched_for and key.is_admitted),
        (key.public_key for key in keys if key.public_key in vouched_for and not key.is_admitted),
    )


def issuer_of(keys: list[Key]) -> str:
    """Return the registrar's name: the first key of its ledger, which stays while others come and go."""
    return f"leasehold:{key_id_of(keys[0].public_key)}"


def _issuer(store: Store, snapshot: Snapshot) -> str:
    epoch = 0 if snapshot.authority is None else snapshot.authority.epoch
    known = _issuers.get(store)
    if known is None or known[0] != epoch:
        known = (epoch, issuer_of(snapshot.signing_keys()))
        _issuers[store] = known
    return known[1]


def _vouched_for(keys: list[Key]) -> set[bytes]:
    """Return the keys that the first one vouches for, link by link, each signature checked."""
    found: set[bytes] = set()
    more = {key.public_key for key in keys[:1]}
    while more:
        found |= more
        more = {
            key.public_key
            for key in keys
            if key.public_key not in found
            and key.vouched_by in found
            and is_signed(key.vouched_by, voucher_message(key.public_key), key.voucher)
        }
    return found


def _end_of(lease: Lease) -> RefusalCode:
    """Return why a lease does not stand."""
    if lease.is_terminal:
        return RefusalCode.LEASE_TERMINAL
    return RefusalCode.UNKNOWN_TIME if lease.expires_tick is None else RefusalCode.LEASE_EXPIRED


def _refusal(status: LeaseStatus, code: RefusalCode) -> Refusal:
    lease = status.lease
    return Refusal(
        code=code,
        lease_id=lease.lease_id,
        resource=lease.resource,
        holder=lease.holder,
        state=lease.state,
        token=lease.token,
    )
