"""The leases that a history leads to, and what can be asked of them.

Only the reducer puts leases in. Which of them stand on which work is kept beside them, always in step: an
entry there names a lease that exists and is active.
"""

from collections.abc import Iterable

from leasehold.kernel.ledger.tick import Tick
from leasehold.reducer.lease import Lease, warn_of_wall_time
from leasehold.reducer.words import LeaseState


class LeaseReducerState:
    """Every lease that events have made and nobody has pruned. Not for several threads at once."""

    def __init__(self, leases: Iterable[Lease] = ()) -> None:
        self.leases: dict[str, Lease] = {}
        self._standing: dict[str, dict[str, None]] = {}
        """Work id to its active leases: one, or several that share it, in the order of their grants."""
        for lease in leases:
            self.put(lease)

    def put(self, lease: Lease) -> None:
        """Take in a lease as an event has left it."""
        self.leases[lease.lease_id] = lease
        if lease.is_active:
            self._standing.setdefault(lease.work_id, {})[lease.lease_id] = None
            return
        standing = self._standing.get(lease.work_id, {})
        standing.pop(lease.lease_id, None)
        if not standing:
            self._standing.pop(lease.work_id, None)

    @property
    def active_leases_by_work(self) -> dict[str, str]:
        """Return the active lease of each work that has one; where several share it, the newest."""
        return {work_id: next(reversed(standing)) for work_id, standing in self._standing.items()}

    def standing_on(self, work_id: str) -> list[Lease]:
        """Return every active lease of a work, in the order of their grants."""
        return [self.leases[lease_id] for lease_id in self._standing.get(work_id, ())]

    def get(self, lease_id: str) -> Lease | None:
        """Return the lease with this id."""
        return self.leases.get(lease_id)

    def get_active_lease_for_work(self, work_id: str) -> Lease | None:
        """Return the active lease of a work; where several share it, the newest."""
        standing = self._standing.get(work_id)
        return self.leases[next(reversed(standing))] if standing else None

    def has_active_lease(self, work_id: str) -> bool:
        """Say whether the work is claimed."""
        return work_id in self._standing

    def active_leases(self) -> list[Lease]:
        """Return all active leases."""
        return [lease for lease in self.leases.values() if lease.is_active]

    def leases_by_actor(self, actor_id: str) -> list[Lease]:
        """Return all leases of an actor, ended ones too."""
        return [lease for lease in self.leases.values() if lease.actor_id == actor_id]

    def get_expired_but_active_at_tick(self, current_tick: Tick) -> list[Lease]:
        """Return leases that are marked active and that no holder may rely on at this tick.

        A lease without ticks is among them. Its holder has nothing to rely on; the work stays claimed all
        the same, until an event ends it.
        """
        return [lease for lease in self.active_leases() if lease.is_expired_at_tick(current_tick)]

    def get_expired_but_active(self, current_time: int) -> list[Lease]:
        """Deprecated: wall time can be turned. Use `get_expired_but_active_at_tick`."""
        warn_of_wall_time("get_expired_but_active", "get_expired_but_active_at_tick")
        return [lease for lease in self.active_leases() if lease.lapsed_by_wall_time(current_time)]

    def __len__(self) -> int:
        return len(self.leases)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, LeaseReducerState):
            return NotImplemented
        return self.leases == other.leases and self._standing == other._standing

    __hash__ = None  # type: ignore[assignment]

    def _count(self, state: LeaseState) -> int:
        return sum(lease.state is state for lease in self.leases.values())

    def active_count(self) -> int:
        """Return how many leases stand."""
        return self._count(LeaseState.ACTIVE)

    def released_count(self) -> int:
        """Return how many leases were given back."""
        return self._count(LeaseState.RELEASED)

    def expired_count(self) -> int:
        """Return how many leases ended by time."""
        return self._count(LeaseState.EXPIRED)

    def revoked_count(self) -> int:
        """Return how many leases were ended over their holder's head."""
        return self._count(LeaseState.REVOKED)

    def terminal_count(self) -> int:
        """Return how many leases have ended, in whatever way."""
        return sum(lease.state.is_terminal for lease in self.leases.values())

    def prune_terminal_leases(self) -> int:
        """Forget every ended lease; return how many. The ledger has to refuse their ids from now on."""
        return self._forget([lease for lease in self.leases.values() if lease.state.is_terminal])

    def prune_terminal_leases_before(self, before_timestamp: int) -> int:
        """Forget the leases whose own end lies strictly before this wall time; return how many."""
        ended = [
            lease
            for lease in self.leases.values()
            if lease.terminated_at is not None and lease.terminated_at < before_timestamp
        ]
        return self._forget(ended)

    def _forget(self, ended: list[Lease]) -> int:
        for lease in ended:
            del self.leases[lease.lease_id]
        return len(ended)
