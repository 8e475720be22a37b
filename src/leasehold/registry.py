"""The families that a store of leasehold's has: the one place that imports every face.

A face adds one line here. Whoever opens a store hands it these, because an engine that lacked one of them
would not see what its records mean for the others.
"""

from leasehold.kernel.lease.family import lease_family
from leasehold.kernel.lease.quotas import Quotas
from leasehold.kernel.ledger.family import Families


def all_families(quotas: Quotas | None = None) -> Families:
    """Return all families, with quotas for those who claim leases through this engine."""
    return Families(
        (lease_family(quotas),),
    )


FAMILIES = all_families()
"""All families, without quotas."""
