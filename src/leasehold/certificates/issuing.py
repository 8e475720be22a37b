"""Making a certificate of a lease that stands.

The store is read as of one moment: that the lease stands, what it has left by the authority's clock, and
where the ledger ends. Nothing is written, and no writer is waited for. A lease that has ended, expired, or
whose time is unknown gets none.
"""

from leasehold.certificates.certificate import body_of
from leasehold.certificates.keys import TrustedKeys
from leasehold.certificates.signing import sign
from leasehold.engine.registrar import LeaseStatus, Registrar, status_of
from leasehold.errors import error_of
from leasehold.kernel.decision import not_found
from leasehold.kernel.refusals import Refusal, RefusalCode
from leasehold.kernel.tick import NANOSECONDS_PER_SECOND
from leasehold.kernel.view import Keys


def certify(registrar: Registrar, tenant: str, lease_id: str) -> str:
    """Return a certificate of a lease; raise why there can be none."""
    with registrar.store.snapshot() as snapshot:
        # Read before the time that is left, so that their sum is never later than the truth.
        wall_ns = snapshot.reading().wall_ns
        found = snapshot.read(Keys(leases={lease_id})).leases
        if not found or found[0].tenant != tenant:
            raise error_of(not_found(lease_id))
        status = status_of(found[0], snapshot)
        position = snapshot.head.position
    if not status.is_live:
        raise error_of(_refusal(status))
    body = body_of(
        status.lease,
        issuer=issuer_of(registrar),
        position=position,
        wall_ns=wall_ns,
        left_ns=int(status.expires_in * NANOSECONDS_PER_SECOND),
    )
    return sign(body, registrar.signing_key())


def issuer_of(registrar: Registrar) -> str:
    """Return the registrar's name: that of its key."""
    return f"leasehold:{registrar.signing_key().key_id}"


def trusted_keys_of(registrar: Registrar) -> TrustedKeys:
    """Return the public keys by which certificates of this registrar can be checked."""
    return TrustedKeys([registrar.signing_key().public_key])


def _refusal(status: LeaseStatus) -> Refusal:
    lease = status.lease
    if lease.is_terminal:
        code = RefusalCode.LEASE_TERMINAL
    elif lease.expires_tick is None:
        code = RefusalCode.UNKNOWN_TIME
    else:
        code = RefusalCode.LEASE_EXPIRED
    return Refusal(
        code=code,
        lease_id=lease.lease_id,
        resource=lease.resource,
        holder=lease.holder,
        state=lease.state,
        token=lease.token,
    )
