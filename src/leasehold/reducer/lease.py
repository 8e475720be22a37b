"""A lease as the reducer's contract names its parts.

`record` is the kernel's own lease, which only `evolve` changes; everything else here is read from it. Ticks
stand beside it, because a registrar's ticks need not count wall nanoseconds as the kernel's do.
"""

import warnings

import msgspec

from leasehold.kernel.lease import model as kernel
from leasehold.kernel.ledger.tick import Tick
from leasehold.reducer.words import LeaseState, ReleaseReason

HtfTick = Tick
"""A reading of a monotonic clock: value and rate, comparable only at the same rate."""

RENEWAL_COUNT_MAXIMUM = 2**32 - 1


class LeaseSummary(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A lease at a glance, without the signature."""

    lease_id: str
    work_id: str
    actor_id: str
    state: LeaseState
    issued_at: int
    expires_at: int
    renewal_count: int


class Lease(msgspec.Struct, frozen=True, kw_only=True, gc=False, omit_defaults=True):
    """A time-bounded claim on a work item. Ticks decide about expiry; wall times are for the audit."""

    record: kernel.Lease
    issued_at_tick: Tick | None = None
    expires_at_tick: Tick | None = None

    @property
    def lease_id(self) -> str:
        """Return the lease's own name."""
        return self.record.lease_id

    @property
    def work_id(self) -> str:
        """Return what is claimed."""
        return self.record.resource

    @property
    def actor_id(self) -> str:
        """Return who holds it."""
        return self.record.holder

    @property
    def token(self) -> int:
        """Return the fencing token; where events have none, the ledger position of the grant."""
        return self.record.token

    @property
    def state(self) -> LeaseState:
        """Return where the lease is in its life."""
        return LeaseState[self.record.state.name]

    @property
    def issued_at(self) -> int:
        """Return the wall time of the grant."""
        return self.record.issued_at_ns

    @property
    def expires_at(self) -> int:
        """Return the wall time of the expiry."""
        return self.record.expires_at_ns

    @property
    def registrar_signature(self) -> bytes:
        """Return the registrar's signature over the grant."""
        return self.record.signature

    @property
    def renewal_count(self) -> int:
        """Return how often the lease was renewed, up to what 32 bits can count."""
        return min(self.record.renewal_count, RENEWAL_COUNT_MAXIMUM)

    @property
    def last_renewed_at(self) -> int | None:
        """Return the wall time of the last renewal."""
        return self.record.last_renewed_at_ns

    @property
    def release_reason(self) -> ReleaseReason | None:
        """Return why the holder gave it back."""
        reason = self.record.release_reason
        return None if reason is None else ReleaseReason[reason.name]

    @property
    def terminated_at(self) -> int | None:
        """Return the wall time of the end: for an expired lease its `expires_at`, whatever the event said."""
        return self.record.terminated_at_ns

    @property
    def is_active(self) -> bool:
        """Say whether the lease stands."""
        return self.record.state is kernel.LeaseState.ACTIVE

    def is_expired_at_tick(self, now: Tick) -> bool:
        """Say whether the holder must regard the lease as expired. Unknown time counts as expired."""
        if self.expires_at_tick is None or not self.expires_at_tick.comparable(now):
            return True
        return self.is_active and now.value >= self.expires_at_tick.value

    def ticks_remaining(self, now: Tick) -> int:
        """Return how many ticks are left; 0 when it is over, ended, or unknown."""
        if self.expires_at_tick is None or not self.is_active:
            return 0
        return max(0, now.until(self.expires_at_tick) or 0)

    def is_expired_at(self, now: int) -> bool:
        """Deprecated: wall time can be turned. Use `is_expired_at_tick`."""
        warn_of_wall_time("is_expired_at", "is_expired_at_tick")
        return self.lapsed_by_wall_time(now)

    def time_remaining(self, now: int) -> int:
        """Deprecated: wall time can be turned. Use `ticks_remaining`."""
        warn_of_wall_time("time_remaining", "ticks_remaining")
        return max(0, self.expires_at - now) if self.is_active else 0

    def lapsed_by_wall_time(self, now: int) -> bool:
        """Say whether an active lease's wall time is over."""
        return self.is_active and now >= self.expires_at

    def summary(self) -> LeaseSummary:
        """Return the lease at a glance."""
        return LeaseSummary(
            lease_id=self.lease_id,
            work_id=self.work_id,
            actor_id=self.actor_id,
            state=self.state,
            issued_at=self.issued_at,
            expires_at=self.expires_at,
            renewal_count=self.renewal_count,
        )


def warn_of_wall_time(name: str, instead: str) -> None:
    """Warn the caller of our caller."""
    warnings.warn(
        f"{name} looks at wall time, which can be turned; use {instead}", DeprecationWarning, stacklevel=3
    )
