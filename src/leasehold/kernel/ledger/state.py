"""A history folded into the state it describes."""

from collections.abc import Iterable
from typing import Any

import msgspec

from leasehold.kernel.lease.events import OWN_EVENTS, Event, IllegalTransition, OwnEvent, StoreCheckpointed
from leasehold.kernel.lease.evolve import evolve
from leasehold.kernel.lease.forgotten import forgotten
from leasehold.kernel.lease.model import Lease
from leasehold.kernel.ledger.authority import Authority, Era, evolve_authority, go_on
from leasehold.kernel.ledger.keys import Key, evolve_keys


class State(msgspec.Struct, kw_only=True):
    """Everything the ledger says: every lease, and the registrar's own record."""

    leases: dict[str, Lease] = msgspec.field(default_factory=dict)
    authority: Authority | None = None
    eras: dict[int, Era] = msgspec.field(default_factory=dict)
    keys: dict[bytes, Key] = msgspec.field(default_factory=dict)
    """Every key that ever sealed this ledger, by its public half."""

    def apply(self, event: Event) -> None:
        """Fold one event in; raise IllegalTransition if the law could not have produced it."""
        # Known by its type: to ask for an instance of a union is slow, and a long history has millions.
        change: Any = event
        if type(event) in OWN_EVENTS:
            self._apply_own(change)
            return
        leases = self.leases
        for lease_id in change.lease_ids:
            leases[lease_id] = evolve(leases.get(lease_id), change)
        authority = self.authority
        self.authority = evolve_authority(None, change) if authority is None else go_on(authority, change)

    def _apply_own(self, event: OwnEvent) -> None:
        if self.authority is not None:
            self.eras |= {era.number: era for era in self.authority.eras_ended_by(event)}
        key = evolve_keys(self.keys, event)
        if key is not None:
            self.keys[key.public_key] = key
        if isinstance(event, StoreCheckpointed):
            self._forget(event)
        self.authority = evolve_authority(self.authority, event)

    def _forget(self, checkpoint: StoreCheckpointed) -> None:
        """Let go of the leases that a checkpoint leaves behind."""
        if self.authority is None or checkpoint.token_below > self.authority.next_token():
            raise IllegalTransition("a checkpoint lets go of leases that it does not cover")
        for lease_id in forgotten(self.leases, checkpoint):
            del self.leases[lease_id]


def replay(events: Iterable[Event]) -> State:
    """Return the state that a whole history leads to."""
    state = State()
    for event in events:
        state.apply(event)
    return state
