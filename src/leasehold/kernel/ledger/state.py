"""A history folded into the state it describes."""

from collections.abc import Iterable
from typing import Any

import msgspec

from leasehold.kernel.ledger.authority import Authority, Era, evolve_authority, go_on
from leasehold.kernel.ledger.events import Event, IllegalTransition, StoreCheckpointed
from leasehold.kernel.ledger.family import Families
from leasehold.kernel.ledger.keys import Key, evolve_keys


class State(msgspec.Struct, kw_only=True):
    """Everything the ledger says: every record of every family, and the registrar's own."""

    records: dict[str, dict[str, Any]] = msgspec.field(default_factory=dict)
    """By family, then by key."""
    authority: Authority | None = None
    eras: dict[int, Era] = msgspec.field(default_factory=dict)
    keys: dict[bytes, Key] = msgspec.field(default_factory=dict)
    """Every key that ever sealed this ledger, by its public half."""

    def of(self, family: str) -> dict[str, Any]:
        """Return the records of a family, by key."""
        found = self.records.get(family)
        if found is None:
            found = self.records[family] = {}
        return found


class Folding:
    """A state that a history is folded into, event by event."""

    def __init__(self, families: Families, state: State | None = None) -> None:
        self._families = families
        self._folds = {event: (family.evolve, family.name) for event, family in families.of_event.items()}
        self.state = State() if state is None else state
        for family in families:
            self.state.of(family.name)

    def apply(self, event: Event) -> None:
        """Fold one event in; raise IllegalTransition if the law could not have produced it."""
        state = self.state
        if event.is_own:
            self._apply_own(event)
            return
        evolve, name = self._folds[type(event)]
        records = state.records[name]
        for key in event.keys:
            record = evolve(records.get(key), event, key)
            if record is None:
                records.pop(key, None)
            else:
                records[key] = record
        authority = state.authority
        state.authority = evolve_authority(None, event) if authority is None else go_on(authority, event)

    def _apply_own(self, event: Event) -> None:
        state = self.state
        if state.authority is not None:
            state.eras |= {era.number: era for era in state.authority.eras_ended_by(event)}
        key = evolve_keys(state.keys, event)
        if key is not None:
            state.keys[key.public_key] = key
        if isinstance(event, StoreCheckpointed):
            self._forget(event)
        state.authority = evolve_authority(state.authority, event)

    def _forget(self, checkpoint: StoreCheckpointed) -> None:
        """Let go of the records that a checkpoint leaves behind."""
        state = self.state
        if state.authority is None or checkpoint.token_below > state.authority.next_token():
            raise IllegalTransition("a checkpoint lets go of records that it does not cover")
        for name, keys in forgotten(state, checkpoint, self._families).items():
            records = state.of(name)
            for key in keys:
                del records[key]


def forgotten(state: State, checkpoint: StoreCheckpointed, families: Families) -> dict[str, list[str]]:
    """Return the records that are gone after a checkpoint, by family."""
    return {family.name: list(family.forgotten(state, checkpoint)) for family in families}


def replay(events: Iterable[Event], families: Families) -> State:
    """Return the state that a whole history leads to."""
    folding = Folding(families)
    for event in events:
        folding.apply(event)
    return folding.state


def invariants(state: State, families: Families) -> list[str]:
    """Return a sentence for everything that must always hold and does not; an empty list is good news."""
    return [problem for family in families for problem in family.invariants(state)]
