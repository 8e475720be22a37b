"""Whether there was a reason for a refusal, as far as that does not depend on the moment."""

from leasehold.kernel.lease.commands import Acquire, Renew
from leasehold.kernel.ledger.commands import Command
from leasehold.kernel.ledger.refusals import Refusal, RefusalCode
from simulator.true_lease import TrueLease


def is_justified(command: Command, refusal: Refusal, lease: TrueLease | None) -> bool:
    """Say whether the reason was there; what is about those who wait, or about lines, others know."""
    holder = getattr(command, "holder", None)
    match refusal.code:
        case RefusalCode.ALREADY_HELD:
            return (
                lease is not None
                and lease.key[0] == command.tenant
                and lease.holder == getattr(command, "to", holder)
                and not getattr(command, "adopt", False)
            )
        case RefusalCode.NOT_HOLDER:
            return lease is not None and lease.holder != holder
        case RefusalCode.LEASE_EXISTS | RefusalCode.LEASE_EXPIRED | RefusalCode.LEASE_TERMINAL:
            return lease is not None
        case RefusalCode.RENEWALS_EXHAUSTED:
            return lease is not None and lease.max_renewals >= 0
        case RefusalCode.RENEWAL_DOES_NOT_EXTEND:
            unconfirmed = lease is not None and lease.order != (0, 0, 0)
            return isinstance(command, Renew) and (command.ttl_ns is not None or unconfirmed)
        case RefusalCode.LIMIT_EXCEEDED:
            return refusal.field in ("leases_per_holder", "leases_per_tenant")
        case RefusalCode.INVALID_INPUT:
            return isinstance(command, Acquire) and command.ttl_ns == 0
        case RefusalCode.LEASE_NOT_FOUND:
            return True
        case _:
            return False
