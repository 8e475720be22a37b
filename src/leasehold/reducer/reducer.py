"""Lease events folded into the leases they lead to.

Promised: the same events give the same state, whenever they are folded; at most one exclusive lease stands
on a work; an event that is refused has changed nothing; what an event does to a lease is decided by the
kernel's `evolve`, as it is for every store. Not promised: that the events are authentic, or come only once.
The reducer looks whether the registrar signed; to verify the signature, and to let no event in twice, is
for whoever keeps the ledger. Not for several threads at once.
"""

from leasehold.kernel.lease.events import LeaseEvent
from leasehold.reducer import checkpoint as checkpoints
from leasehold.reducer import ledger, rules
from leasehold.reducer.errors import DecodeError
from leasehold.reducer.lease import Lease
from leasehold.reducer.payloads import (
    FAMILY,
    Conflict,
    Denied,
    EventRecord,
    Expired,
    Issued,
    ReducerContext,
    Released,
    Renewed,
    decode,
)
from leasehold.reducer.state import LeaseReducerState

NAME = "lease-registrar"


class LeaseReducer:
    """The leases of one tenant, as a ledger's events leave them."""

    def __init__(self, tenant: str = "default") -> None:
        self._tenant = tenant
        self._state = LeaseReducerState()
        self._position = 0

    @property
    def name(self) -> str:
        """Return the name under which checkpoints and logs know this reducer."""
        return NAME

    @property
    def state(self) -> LeaseReducerState:
        """Return the leases, to be looked at."""
        return self._state

    @property
    def state_mut(self) -> LeaseReducerState:
        """Return the leases, to be pruned."""
        return self._state

    @property
    def position(self) -> int:
        """Return the highest ledger position that was folded; a replay continues after it."""
        return self._position

    def apply(self, event: EventRecord, context: ReducerContext) -> None:
        """Fold one event in; raise a LeaseError, and change nothing, if it cannot have happened."""
        if event.event_type.startswith(FAMILY):
            for lease in self._changed(event, context):
                self._state.put(lease)
        self._position = max(self._position, context.position)

    def reset(self) -> None:
        """Forget everything."""
        self._state = LeaseReducerState()
        self._position = 0

    def checkpoint(self) -> bytes:
        """Return the state as bytes, for `restore`."""
        leases = list(self._state.leases.values())
        return checkpoints.to_bytes(
            checkpoints.Checkpoint(tenant=self._tenant, position=self._position, leases=leases)
        )

    def restore(self, kept: bytes) -> None:
        """Replace the state by a checkpoint; raise DecodeError, and change nothing, if it is none."""
        checkpoint = checkpoints.from_bytes(kept)
        if checkpoint.tenant != self._tenant:
            reason = f"the checkpoint is of tenant {checkpoint.tenant}, and this reducer of {self._tenant}"
            raise DecodeError(reason=reason)
        self._state = LeaseReducerState(checkpoint.leases)
        self._position = checkpoint.position

    def _changed(self, record: EventRecord, context: ReducerContext) -> list[Lease]:
        state = self._state
        match decode(record):
            case Issued() as payload:
                return [rules.issue(state, payload, record, tenant=self._tenant, position=context.position)]
            case Renewed() as payload:
                return [rules.renew(state, payload, record)]
            case Released() as payload:
                return [rules.release(state, payload, record)]
            case Expired() as payload:
                return [rules.expire(state, payload, record)]
            case Conflict() | Denied():
                return []
            case event:
                return self._changed_by_store(event, record)

    def _changed_by_store(self, event: LeaseEvent, record: EventRecord) -> list[Lease]:
        return ledger.fold_event(self._state, event, record) if event.tenant == self._tenant else []
