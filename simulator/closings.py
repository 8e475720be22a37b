"""What is kept closed to others after its lease has ended, told a second time.

Its holder has asked for that; or the registrar was down when the lease lapsed, and its holder comes first.
The registrar keeps nothing closed for any other reason, for longer, or to that very holder.
"""

from leasehold.kernel.lease.events import REBOOT, LeaseExpired, LeaseIssued, LeaseModeChanged, LeaseRevoked
from leasehold.kernel.lease.model import Mode
from leasehold.kernel.lease.records import ResourceKey
from leasehold.kernel.ledger.events import REGISTRAR, EpochRaised, Event
from simulator.patterns import lies_in
from simulator.true_lease import TrueLease, touch
from simulator.truth import Truth


class _Closing:
    def __init__(self, lease: TrueLease, until_tick: int) -> None:
        self.lease = lease
        self.until_tick = until_tick

    def keeps_away(self, holder: str, key: ResourceKey, mode: Mode) -> bool:
        lease = self.lease
        return lease.holder != holder and touch(lease.key, key) and lease.mode.conflicts_with(mode)

    def is_replaced_by(self, holder: str, key: ResourceKey, mode: Mode) -> bool:
        """Say whether its last holder has come back, and holds all of it again."""
        whole = self.lease.key == key or (self.lease.key[0] == key[0] and lies_in(self.lease.key[1], key[1]))
        return self.lease.holder == holder and whole and self.lease.mode.conflicts_with(mode)


class Closings:
    """All that is closed, whatever the registrar does to keep it so."""

    def __init__(self) -> None:
        self._closed: dict[str, _Closing] = {}

    def problem_before(self, event: Event, truth: Truth) -> str | None:
        """Take in an event that the truth does not know yet; return what is wrong with it."""
        match event:
            case EpochRaised():
                if event.tick.era != truth.ticks[-1].era:
                    self._carry_over(truth.ticks[-1].value, event.tick.value)
            case LeaseExpired() | LeaseRevoked():
                self._close(event, truth)
            case LeaseIssued(delayed_for=holder) if holder:
                return self._keep(event)
            case LeaseIssued():
                return self._enter(event)
            case LeaseModeChanged():
                return None if event.mode is Mode.SHARED else self._enter(event)
            case _:
                pass
        return None

    def _carry_over(self, last_look: int, first_tick: int) -> None:
        for closing in self._closed.values():
            closing.until_tick = first_tick + max(0, closing.until_tick - last_look)

    def _close(self, event: LeaseExpired | LeaseRevoked, truth: Truth) -> None:
        lease = truth.standing.get(event.lease_id)
        if isinstance(event, LeaseRevoked):
            # An operator may open what the registrar itself keeps closed.
            self._closed.pop(ended_before(event.lease_id), None)
        if lease is None or not lease.confirmed:
            return  # Nobody was ever told of it, so nobody's work can be on its way.
        if isinstance(event, LeaseExpired):
            until_tick = truth.settling.open_again_at(lease, lease.end_tick)
        else:
            until_tick = event.tick.value + (0 if event.reason == REBOOT else lease.lock_delay_ns)
        if until_tick > event.tick.value:
            self._closed[lease.lease_id] = _Closing(lease, until_tick)

    def _keep(self, event: LeaseIssued) -> str | None:
        """See that what the registrar keeps closed is to be, for that holder, and for so long."""
        closing = self._closed.get(ended_before(event.lease_id))
        if closing is None or event.holder != REGISTRAR:
            return f"{event.lease_id} keeps {event.resource} closed without reason"
        lease = closing.lease
        said = (
            (event.tenant, event.resource),
            event.mode,
            event.delayed_for,
            event.tick.value + event.ttl_ns,
        )
        if said != (lease.key, lease.mode, lease.holder, closing.until_tick):
            return f"{event.lease_id} keeps {said} closed after what is closed until {closing.until_tick}"
        return None

    def _enter(self, event: LeaseIssued | LeaseModeChanged) -> str | None:
        key = (event.tenant, event.resource)
        for lease_id, closing in list(self._closed.items()):
            if closing.until_tick <= event.tick.value or closing.is_replaced_by(
                event.holder, key, event.mode
            ):
                del self._closed[lease_id]
            elif closing.keeps_away(event.holder, key, event.mode):
                return f"{event.lease_id} was granted while {lease_id} kept others away"
        return None


def ended_before(lease_id: str) -> str:
    """Return which lease has ended where a lock-delay goes by this id; of any other lease, its own id."""
    return lease_id.partition(".delay-")[0]
