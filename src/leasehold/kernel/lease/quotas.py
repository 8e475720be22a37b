"""How many leases one holder, and one tenant, may have."""

import msgspec

from leasehold.kernel.ledger.limits import over_limit
from leasehold.kernel.ledger.refusals import Refusal


class Quotas(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """How many live leases one holder, and one tenant, may have. None: no limit."""

    leases_per_holder: int | None = None
    leases_per_tenant: int | None = None


def check_quotas(
    quotas: Quotas, tenant: str, holder: str, counts: tuple[int, int], wanted: int
) -> Refusal | None:
    """Refuse more leases, waiting ones included, than one holder and one tenant may have.

    `counts` says how many each has. They are counted under the store's lock, so that two claims at once
    cannot both take the last place. Leases elsewhere that expired without anybody noticing count until they
    are swept; every client sweeps some in passing.
    """
    held, all_held = counts
    limit = quotas.leases_per_holder
    if limit is not None and held + wanted > limit:
        return over_limit(
            "leases_per_holder", limit, f"{holder} has {held} leases; at most {limit} are allowed"
        )
    limit = quotas.leases_per_tenant
    if limit is not None and all_held + wanted > limit:
        return over_limit(
            "leases_per_tenant", limit, f"tenant {tenant} has {all_held}; at most {limit} are allowed"
        )
    return None
