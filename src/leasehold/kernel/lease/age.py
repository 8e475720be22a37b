"""What time alone does to a lease.

Nobody has to be awake for a lease to expire. Whoever next meets a lease that time has ended, or that
belongs to an earlier era of the clock, records what happened to it, in the same commit as whatever they
came for.
"""

from leasehold.kernel.lease.events import (
    REBOOT,
    STOPPED_ASKING,
    LeaseEvent,
    LeaseExpired,
    LeaseLeft,
    LeaseRearmed,
    LeaseRevoked,
    befalling,
)
from leasehold.kernel.lease.evolve import evolve
from leasehold.kernel.lease.model import Lease, LeaseState
from leasehold.kernel.ledger.authority import Authority, Era, carry_over
from leasehold.kernel.ledger.events import REGISTRAR
from leasehold.kernel.ledger.tick import Now


def age(lease: Lease, now: Now, authority: Authority, eras: dict[int, Era]) -> tuple[list[LeaseEvent], Lease]:
    """Return what time has done to an unended lease, and the lease afterwards.

    A lease whose time is unknown (no ticks, another rate, an era nobody remembers) is left as it is: its
    holder may not use it, and nobody may take it over by guessing.
    """
    expires = lease.expires_tick
    if expires is None:
        return [], lease
    events: list[LeaseEvent] = []
    if expires.era != now.tick.era:
        carried = carry_over(expires, authority, eras)
        if carried is None:
            return [], lease
        home = eras[expires.era]
        # A clock can go back without a reboot, and then the holder may be alive and at work.
        rebooted = home.boot_id != authority.boot_id
        if lease.bound_to_boot and rebooted and expires.value > home.last_tick:
            pending = lease.state is LeaseState.PENDING
            ended = (
                left(lease, now, REBOOT) if pending else LeaseRevoked(**befalling(lease, now), reason=REBOOT)
            )
            return [ended], evolve(lease, ended)
        rearmed = LeaseRearmed(**befalling(lease, now), expires_tick=carried.value)
        events.append(rearmed)
        lease = evolve(lease, rearmed)
        expires = carried
    remaining = now.tick.until(expires)
    if remaining is not None and remaining <= 0:
        pending = lease.state is LeaseState.PENDING
        expired = left(lease, now, STOPPED_ASKING) if pending else LeaseExpired(**befalling(lease, now))
        events.append(expired)
        lease = evolve(lease, expired)
    return events, lease


def left(
    lease: Lease, now: Now, reason: str, *, actor: str = REGISTRAR, request: str | None = None
) -> LeaseLeft:
    """Return the event of a waiter leaving the queue."""
    return LeaseLeft(**befalling(lease, now, actor=actor), request=request, reason=reason)
