"""What time does to leases, told a second time.

From the ledger alone follows when each lease ends on the authority's clock. It is told here independently
of the kernel, by carrying every lease along whenever a new era begins, and short enough to be seen to be
right: what the kernel decides is held against it.
"""

from collections.abc import Iterable

from leasehold.kernel.lease.events import (
    LeaseConfirmed,
    LeaseDoubted,
    LeaseExpired,
    LeaseIssued,
    LeaseLeft,
    LeaseModeChanged,
    LeaseQueued,
    LeaseRearmed,
    LeaseReleased,
    LeaseRenewed,
    LeaseRevoked,
    LeaseUpgradeLeft,
    LeaseUpgradeQueued,
)
from leasehold.kernel.lease.model import Mode
from leasehold.kernel.ledger.commands import REQUEST_MEMORY_NS
from leasehold.kernel.ledger.events import REGISTRAR, EpochRaised, Event, StoreOpened, Token
from leasehold.kernel.ledger.tick import Tick
from simulator.accounts import Accounts
from simulator.settling import Settling
from simulator.true_lease import TrueLease, request_id_of


class Truth:
    """All leases of a ledger, as they are in truth."""

    def __init__(self) -> None:
        self.leases: dict[str, TrueLease] = {}
        self.standing: dict[str, TrueLease] = {}
        """Leases whose end the ledger does not know, in the order of their grants."""
        self.waiting: dict[str, TrueLease] = {}
        """Those who wait, in the order in which they came."""
        self.grants: dict[str, TrueLease] = {}
        """The last grant for each request."""
        self.renewals: dict[str, int] = {}
        """The position of the last renewal for each request."""
        self.ticks: list[Tick] = []
        """When each entry of the ledger was decided."""
        self.pruned = 0
        """The last entry that the ledger does not have any more."""
        self.let_go: dict[str, Token] = {}
        """The leases that the tables do not have any more, each with its last token."""
        self.accounts = Accounts(self)
        """What leases may spend, and whose children they are."""
        self.settling = Settling(self)
        """When the registrar was down, and what that keeps closed."""
        self._boot_id = ""

    def apply(self, event: Event, position: int) -> str | None:
        """Take in an event; return what is wrong with it, if anything is.

        What happens to other records than leases is none of its business, but for when it happens.
        """
        problem = self.settling.take_in(event) or self._take_in(event, position)
        problem = problem or self.accounts.take_in(event, position)
        self.ticks.append(event.tick)
        return problem

    def _take_in(self, event: Event, position: int) -> str | None:
        match event:
            case StoreOpened():
                self._boot_id = event.boot_id
                return None
            case EpochRaised():
                return self._raise_epoch(event)
            case LeaseIssued():
                return self._issue(event, position)
            case LeaseRenewed():
                return self._renew(event, position)
            case LeaseRearmed():
                return self._rearm(event)
            case LeaseReleased() | LeaseRevoked() | LeaseExpired():
                return self._end(event, position)
            case LeaseDoubted():
                return self._doubt(event)
            case (
                LeaseQueued()
                | LeaseLeft()
                | LeaseConfirmed()
                | LeaseModeChanged()
                | LeaseUpgradeQueued()
                | LeaseUpgradeLeft()
            ):
                return self._wait(event, position)
            case _:
                return None  # The accounts are told of it; or nobody's lease changes by it.

    def _doubt(self, event: LeaseDoubted) -> str | None:
        lease = self.waiting.get(event.lease_id) or self.standing.get(event.lease_id)
        if lease is None or lease.doubted:
            return f"{event.lease_id} does not wait, or is in doubt already"
        lease.doubted = True
        return None

    def _wait(
        self,
        event: LeaseQueued
        | LeaseLeft
        | LeaseConfirmed
        | LeaseModeChanged
        | LeaseUpgradeQueued
        | LeaseUpgradeLeft,
        position: int,
    ) -> str | None:
        """Take in what happens only where somebody waits, or changes a mode."""
        if isinstance(event, LeaseQueued):
            if self.is_remembered(request_id_of(event), event.tick):
                return f"request {request_id_of(event)} was granted, and waits again as {event.lease_id}"
            self.waiting[event.lease_id] = self.leases[event.lease_id] = TrueLease(event, position)
            return None
        if isinstance(event, LeaseLeft):
            waiter = self.waiting.pop(event.lease_id, None)
            if waiter is None:
                return f"{event.lease_id} left a queue it was not in"
            waiter.ended_position, waiter.end_request_id = position, request_id_of(event)
            return None
        lease = self.standing.get(event.lease_id)
        if lease is None:
            return f"{event.lease_id} was changed after its end"
        match event:
            case LeaseConfirmed():
                if event.tick.value >= lease.end_tick:
                    return f"{event.lease_id} was confirmed after it had expired"
                lease.end_tick = event.tick.value + lease.ttl_ns
                lease.confirmed, lease.granted_position = True, position
            case LeaseUpgradeQueued():
                lease.upgrade_end_tick, lease.doubted = event.tick.value + event.kept_ns, False
            case LeaseUpgradeLeft():
                lease.upgrade_end_tick, lease.changed_position, lease.doubted = None, position, False
            case LeaseModeChanged():
                lease.mode, lease.token, lease.upgrade_end_tick = event.mode, event.token, None
                lease.changed_position, lease.doubted = position, False
                lease.tokens.append(event.token)
                others = [
                    other
                    for other in self.standing.values()
                    if lease.holder not in (other.holder, other.delayed_for)
                ]
                if lease.mode is Mode.EXCLUSIVE and any(map(lease.touches, others)):
                    return f"{lease.lease_id} became exclusive, and was not alone"
        return None

    def _raise_epoch(self, event: EpochRaised) -> str | None:
        """Carry what leases had left when the registrar last looked into the new era, if one begins."""
        last_look = self.ticks[-1]
        if event.tick.era != last_look.era:
            rebooted = event.boot_id != self._boot_id
            for lease in (*self.standing.values(), *self.waiting.values()):
                left_ns = max(0, lease.end_tick - last_look.value)
                lease.rebooted = lease.rebooted or (rebooted and lease.bound)
                lease.end_tick = event.tick.value + (0 if lease.rebooted else left_ns)
                if lease.upgrade_end_tick is not None:
                    lease.upgrade_end_tick = event.tick.value  # Nobody knows when it was last asked for.
        self._boot_id = event.boot_id
        return None

    def _issue(self, event: LeaseIssued, position: int) -> str | None:
        lease = TrueLease(event, position)
        for other in self.standing.values():
            if lease.key == other.key and lease.holder == other.holder != REGISTRAR:
                return f"{lease.holder} was granted {lease.lease_id} beside its own {other.lease_id}"
            if _stands_in_the_way(other, lease):
                return f"{lease.lease_id} was granted while {other.lease_id} stood in its way"
        waiter = self.waiting.pop(lease.lease_id, None)
        if (waiter is None) == (event.claim_window_ns > 0):
            return f"{lease.lease_id} was granted as if it had waited, or as if it had not"
        if waiter is not None:
            lease.order, lease.wake = waiter.order, waiter.wake
            for other in self.waiting.values():
                ahead = other.order < waiter.order and other.holder != lease.holder
                if ahead and other.touches(lease) and other.mode.conflicts_with(lease.mode):
                    return f"{lease.lease_id} was granted before {other.lease_id}, who is ahead"
        first = self.grants.get(lease.request_id)
        together = event.group and first is not None and first.lease_id in event.group
        if waiter is None:
            again = self.is_remembered(lease.request_id, event.tick)
        else:
            # What was granted before it queued was looked at then; that may be remembered again since, in
            # another era, and does not take its place away.
            again = first is not None and first.issued_position > waiter.issued_position
        if again and not together:
            return f"request {lease.request_id} was granted twice: {lease.lease_id} is the second"
        self.leases[lease.lease_id] = lease
        self.standing[lease.lease_id] = lease
        self.grants[lease.request_id] = lease
        return None

    def prune(self, through: int, lease_ids: Iterable[str]) -> None:
        """Take in that entries, and leases, are gone: of those nothing has to be known any more."""
        self.pruned = through
        self.let_go |= {lease_id: self.leases[lease_id].token for lease_id in lease_ids}

    def is_remembered(self, request_id: str, now: Tick) -> bool:
        """Say whether the registrar must still know a grant: for an hour, and in another era for ever."""
        grant = self.grants.get(request_id)
        return grant is not None and self.is_known(grant.issued_position, now)

    def is_known(self, position: int, now: Tick) -> bool:
        """Say whether the registrar must still know what an entry was the answer to, unless it was pruned."""
        if position <= self.pruned:
            return False
        then = self.ticks[position - 1]
        return then.era != now.era or now.value - then.value < REQUEST_MEMORY_NS

    def _renew(self, event: LeaseRenewed, position: int) -> str | None:
        request_id, now = request_id_of(event), event.tick.value
        first = self.renewals.get(request_id) if request_id else None
        if first is not None and self.is_known(first, event.tick):
            return f"request {request_id} renewed a second time"
        self.renewals[request_id] = position
        for lease_id, end_tick in event.renewals.items():
            lease = self.standing.get(lease_id) or self.waiting.get(lease_id)
            if lease is None:
                return f"{lease_id} was renewed after its end"
            if now >= lease.end_tick:
                return f"{lease_id} was renewed {now - lease.end_tick} ns after it had expired"
            if end_tick < lease.end_tick:
                return f"{lease_id} was shortened by a renewal"
            lease.end_tick = end_tick
            if lease.pending:
                lease.doubted = False
            else:
                lease.ttl_ns = end_tick - now
            if not lease.pending and not lease.confirmed:
                lease.confirmed, lease.granted_position = True, position
        return None

    def _rearm(self, event: LeaseRearmed) -> str | None:
        lease = self.standing.get(event.lease_id) or self.waiting.get(event.lease_id)
        if lease is None:
            return f"{event.lease_id} was rearmed after its end"
        now = event.tick.value
        if max(event.expires_tick, now) != max(lease.end_tick, now):
            return f"{event.lease_id} was rearmed until {event.expires_tick}, and ends at {lease.end_tick}"
        return None

    def _end(self, event: LeaseReleased | LeaseRevoked | LeaseExpired, position: int) -> str | None:
        lease = self.standing.pop(event.lease_id, None)
        if lease is None:
            return f"{event.lease_id} ended a second time"
        lease.ended_position = position
        lease.end_request_id = request_id_of(event)
        if isinstance(event, LeaseExpired) and event.tick.value < lease.end_tick:
            return f"{event.lease_id} was expired {lease.end_tick - event.tick.value} ns too early"
        return None

    def next_end(self, tick: int) -> int | None:
        """Return the next tick at which a lease that stands now will end."""
        ends = (lease.end_tick for lease in self.standing.values() if lease.end_tick > tick)
        return min(ends, default=None)

    def count(self, tenant: str, holder: str | None = None) -> int:
        """Return how many leases of a tenant, or of one holder in it, the ledger says stand."""
        return sum(
            lease.key[0] == tenant and holder in (None, lease.holder)
            for lease in (*self.standing.values(), *self.waiting.values())
        )


def _stands_in_the_way(other: TrueLease, lease: TrueLease) -> bool:
    """Say whether a lease that stands, as far as is recorded, makes another impossible.

    What only keeps a resource closed follows a lease that stood there, and is no newcomer to who waits to be
    alone.
    """
    own = lease.holder in (other.holder, other.delayed_for) or lease.delayed_for == other.holder
    kept_alone = other.upgrade_end_tick is not None and lease.delayed_for is None
    return not own and other.touches(lease) and (other.mode.conflicts_with(lease.mode) or kept_alone)
