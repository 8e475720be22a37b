"""What lapsed while the registrar was down, told a second time.

Nobody could renew anything meanwhile. So what ended by time since the last entry before, and no later than
when the registrar was back, stays closed to newcomers until the outage has settled. If it goes down again
before that, both are one. That is told here from the ledger's own times; all that is believed is until when
it settles. A new era begins with what leases had left, so nothing has lapsed then.
"""

from typing import TYPE_CHECKING, NamedTuple

from leasehold.kernel.ledger.events import EpochRaised, Event, RegistrarResumed

if TYPE_CHECKING:
    from simulator.true_lease import TrueLease
    from simulator.truth import Truth


class Outage(NamedTuple):
    """A time without a registrar, in ticks of the present era."""

    since: int
    until: int
    settles_until: int


class Settling:
    """The last outage of the present era."""

    def __init__(self, truth: "Truth") -> None:
        self._truth = truth
        self._outage: Outage | None = None

    def take_in(self, event: Event) -> str | None:
        """Take in an event that the truth does not know yet; return what is wrong with it."""
        if isinstance(event, EpochRaised) and event.tick.era != self._truth.ticks[-1].era:
            self._outage = None
        elif isinstance(event, RegistrarResumed):
            return self._resume(event)
        return None

    def _resume(self, event: RegistrarResumed) -> str | None:
        now, since, earlier = event.tick.value, self._truth.ticks[-1].value, self._outage
        if earlier is not None and earlier.settles_until > since:
            since = earlier.since
        self._outage = Outage(since, now, event.settles_until)
        if event.down_since != since:
            return f"the registrar was down since {since}, and said {event.down_since}"
        if not now < event.settles_until <= now + self.longest_ns():
            return f"an outage settles until {event.settles_until}, which is longer than any lease lasts"
        return None

    def longest_ns(self) -> int:
        """Return how long the longest lease that stands, as far as is recorded, was granted for."""
        return max((lease.ttl_ns for lease in self._truth.standing.values()), default=0)

    def open_again_at(self, lease: "TrueLease", end_tick: int) -> int:
        """Return from which tick on others may have what a lease leaves that time ends.

        One that was never confirmed leaves nothing closed, and one that only keeps something closed neither.
        """
        if not lease.confirmed or lease.delayed_for is not None:
            return end_tick
        outage, after_delay = self._outage, end_tick + lease.lock_delay_ns
        if outage is None or not self.has_lapsed(end_tick):
            return after_delay
        return max(after_delay, outage.settles_until)

    def has_lapsed(self, end_tick: int) -> bool:
        """Say whether what ended at a tick did so in the last outage."""
        return self._outage is not None and self._outage.since < end_tick <= self._outage.until

    def is_kept_for(self, holder: str, key: tuple[str, str], tick: int) -> bool:
        """Say whether a resource is kept, or was until now, for who could not renew its lease there."""
        outage = self._outage
        return (
            outage is not None
            and tick < outage.settles_until
            and any(
                lease.delayed_for == holder
                and lease.key == key
                and lease.end_tick == outage.settles_until
                and not self._was_given_up(lease, tick)
                for lease in self._truth.leases.values()
            )
        )

    def _was_given_up(self, lease: "TrueLease", tick: int) -> bool:
        """Say whether what is kept closed was opened before a tick: its holder came back, maybe higher up."""
        ended = lease.ended_position
        return ended is not None and self._truth.ticks[ended - 1].value < tick
