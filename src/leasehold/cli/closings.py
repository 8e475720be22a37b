"""Why the registrar keeps a resource closed, for people: after a holder was lost, it does so for a while."""

from typing import TYPE_CHECKING

from leasehold.cli.durations import format_duration

if TYPE_CHECKING:
    from leasehold.client.blocking.client import Client
    from leasehold.kernel.lease.model import Lease


def shown_holder(lease: "Lease") -> str:
    """Return who holds a lease; of one that only keeps a resource closed, for whom."""
    return f"{lease.holder} (kept for {lease.delayed_for})" if lease.delayed_for else lease.holder


def why_closed(client: "Client", lease: "Lease") -> str | None:
    """Say why a lease keeps a resource closed, and who may have it in spite of that; None: it does not."""
    from leasehold.kernel.lease.lock_delay import ended_id

    if not lease.delayed_for:
        return None
    ended = client.get(ended_id(lease))
    if ended is None:
        cause = f"{lease.delayed_for} did not release it"
    elif ended.lease.lock_delay_ns:
        asked = format_duration(ended.lease.lock_delay_ns / 1e9)
        cause = f"{lease.delayed_for} did not release it, and had asked for a lock-delay of {asked}"
    else:
        cause = f"the lease of {lease.delayed_for} ran out while the server was down"
    return f"{cause}; {lease.delayed_for} may come back before that, others cannot"
