"""One lease, or one place in a queue, as it is in truth."""

from leasehold.kernel.lease.events import LeaseIssued, LeaseQueued
from leasehold.kernel.lease.model import Mode
from leasehold.kernel.lease.records import ResourceKey
from leasehold.kernel.ledger.events import Event
from simulator.patterns import touching

_LEVEL_NS = 10_000_000_000
"""By how much later one may come, for each level of priority, and still be first.

Said here once more, because what is tested cannot be its own measure.
"""


class TrueLease:
    """One lease, with the end it has in truth."""

    __slots__ = (
        "bound",
        "changed_position",
        "claimed_mode",
        "confirmed",
        "delayed_for",
        "doubted",
        "end_request_id",
        "end_tick",
        "ended_position",
        "granted_position",
        "group",
        "holder",
        "issued_position",
        "key",
        "lease_id",
        "lock_delay_ns",
        "max_renewals",
        "mode",
        "order",
        "pending",
        "rebooted",
        "request_id",
        "token",
        "tokens",
        "ttl_ns",
        "upgrade_end_tick",
        "wake",
    )

    def __init__(self, event: LeaseIssued | LeaseQueued, position: int) -> None:
        self.lease_id = event.lease_id
        self.key: ResourceKey = (event.tenant, event.resource)
        self.holder = event.holder
        self.mode = self.claimed_mode = event.mode
        self.token = event.token
        self.tokens = [event.token]
        """All that it ever had: its holder may not know yet of the last."""
        self.bound = event.bound_to_boot
        self.max_renewals = event.max_renewals
        self.request_id = request_id_of(event)
        self.issued_position = self.granted_position = position
        """When it came to be; and when its holder got all of its time, which a waiter has to confirm."""
        self.changed_position = 0
        """When its mode, and perhaps its token, or the wish for another mode last changed."""
        self.ttl_ns = event.ttl_ns
        self.lock_delay_ns = event.lock_delay_ns
        self.group = event.group
        self.delayed_for = (event.delayed_for or None) if isinstance(event, LeaseIssued) else None
        """Of a lease that only keeps a resource closed: who may come back nevertheless."""
        self.order = (0, 0, 0)
        """Of those who wait: era, the tick of coming less ten seconds for each level of priority, ticket."""
        self.wake = ""
        self.pending = isinstance(event, LeaseQueued)
        if isinstance(event, LeaseQueued):
            self.order = (*place_of(event.tick.era, event.tick.value, event.priority), event.token)
            self.wake = event.wake
            lasts_ns = event.kept_ns
        else:
            lasts_ns = event.claim_window_ns
        self.confirmed = not lasts_ns
        """Somebody may have acted on it."""
        self.end_tick = event.tick.value + (lasts_ns or event.ttl_ns)
        """From this tick of the present era on it blocks nobody and is of no use, recorded or not."""
        self.doubted = False
        """It waits in a circle, and nothing was heard of its waiter since somebody closed that."""
        self.upgrade_end_tick: int | None = None
        """While its holder waits to have it alone: until then it does, unless it asks again."""
        self.ended_position: int | None = None
        self.end_request_id = ""
        self.rebooted = False
        """Its holder cannot have survived a reboot of the machine."""

    def is_upgrading(self, tick: int) -> bool:
        """Say whether its holder waits to have it alone."""
        return self.upgrade_end_tick is not None and self.upgrade_end_tick > tick

    def touches(self, other: "TrueLease") -> bool:
        """Say whether the two are on the same resource, or on paths or patterns that both cover something."""
        return touch(self.key, other.key)

    def blocks(self, tenant: str, resource: str, mode: Mode, tick: int) -> bool:
        """Say whether this stands in the way of somebody else who wants a resource in a mode."""
        return touch(self.key, (tenant, resource)) and (
            self.mode.conflicts_with(mode) or self.is_upgrading(tick)
        )


def place_of(era: int, tick: int, priority: int) -> tuple[int, int]:
    """Return where in a queue one stands who comes at a tick; whoever came before has the lower ticket."""
    return (era, tick - priority * _LEVEL_NS)


def touch(one: ResourceKey, other: ResourceKey) -> bool:
    """Say whether two resources are the same, or paths or patterns that both cover something."""
    return one[0] == other[0] and touching(one[1], other[1])


def request_id_of(event: Event) -> str:
    """Return the id of the request that caused an event; no request in a simulation has a colon in it."""
    if event.request is None and isinstance(event, LeaseIssued | LeaseQueued):
        return event.group[0] if event.group else event.lease_id
    return (event.request or "").partition(":")[0]
