from typing import Any

import pytest
from msgspec.structs import replace

from leasehold.kernel.lease.events import LeaseExpired
from leasehold.kernel.lease.family import LEASES, lease_family
from leasehold.kernel.lease.model import LeaseState
from leasehold.kernel.ledger.checkpoint import decode_state, encode_state
from leasehold.kernel.ledger.events import Event, IllegalTransition, StoreCheckpointed, StoreOpened
from leasehold.kernel.ledger.family import Families
from leasehold.kernel.ledger.state import Folding, State, forgotten, invariants, replay
from leasehold.kernel.ledger.tick import Tick
from tests.kernel.counters import (
    COUNTER,
    COUNTERS,
    Counter,
    CounterGone,
    CounterSet,
    bystander,
    families,
    nothing,
    state_of,
)
from tests.kernel.records import OF_LEASE, OF_STORE
from tests.kernel.registrar import SECOND, Registrar


def checkpoint_of_all() -> StoreCheckpointed:
    return StoreCheckpointed(
        tick=Tick(value=60),
        at_ns=6_000,
        actor="ops",
        covers=2,
        covers_hash=b"",
        state_digest=b"",
        ended_before_ns=0,
        token_below=0,
    )


def test_no_history_is_an_empty_state() -> None:
    assert replay([], LEASES) == State(records={"lease": {}})


def test_a_history_is_folded_into_leases_the_registrars_record_and_the_ended_eras() -> None:
    registrar = Registrar()
    released = registrar.grant("ann", "a")
    kept = registrar.grant("ann", "b", bound_to_boot=False)
    registrar.end(released)
    registrar.advance(1)
    registrar.extend(kept)
    registrar.reboot(clock=7 * SECOND)
    fresh = registrar.grant("bob", "a")

    state = replay(registrar.ledger, LEASES)

    assert {lease_id: lease.state for lease_id, lease in state.of("lease").items()} == {
        released.lease_id: LeaseState.RELEASED,
        kept.lease_id: LeaseState.ACTIVE,
        fresh.lease_id: LeaseState.ACTIVE,
    }
    assert state.authority is not None
    assert (state.authority.epoch, state.authority.era, state.authority.counter) == (2, 2, 1)
    assert state.eras.keys() == {1}
    assert (state.eras[1].first_tick, state.eras[1].last_tick) == (1_000 * SECOND, 1_001 * SECOND)


def test_a_new_epoch_in_the_same_era_ends_no_era() -> None:
    registrar = Registrar()
    registrar.now()
    registrar.identity = "8:78"
    registrar.now()

    state = replay(registrar.ledger, LEASES)

    assert state.eras == {}
    assert state.authority is not None
    assert (state.authority.epoch, state.authority.era) == (2, 1)


def test_a_history_can_be_folded_in_two_parts() -> None:
    registrar = Registrar()
    registrar.grant("ann")
    registrar.reboot()
    registrar.grant("bob")

    for cut in range(len(registrar.ledger) + 1):
        folding = Folding(LEASES, replay(registrar.ledger[:cut], LEASES))
        for event in registrar.ledger[cut:]:
            folding.apply(event)
        assert folding.state == registrar.state


def test_a_history_that_does_not_begin_at_the_beginning_is_illegal() -> None:
    with pytest.raises(IllegalTransition):
        replay([LeaseExpired(**OF_LEASE)], LEASES)


def opened() -> StoreOpened:
    return StoreOpened(**OF_STORE, epoch=1)


def happened(event: type[Event], name: str, **fields: Any) -> Event:
    return event(tick=Tick(value=60), at_ns=6_000, actor="ann", name=name, **fields)  # type: ignore[call-arg]


def test_records_of_every_family_come_and_go_with_their_events() -> None:
    known = Families((lease_family(), COUNTERS))
    history = [opened(), happened(CounterSet, "a", value=1), happened(CounterSet, "b", value=2)]

    assert replay(history, known).records == {"lease": {}, **state_of(a=1, b=2).records}
    gone = [*history, happened(CounterGone, "a")]
    assert replay(gone, known).records == {"lease": {}, **state_of(b=2).records}
    assert replay([*gone, happened(CounterGone, "a")], known).of(COUNTER).keys() == {"b"}


def test_a_state_knows_no_records_of_a_family_that_has_none() -> None:
    state = State()

    assert state.of("work") == {}
    state.of("work")["a"] = 1
    assert state.records == {"work": {"a": 1}}


def test_each_family_says_what_is_broken_and_what_a_checkpoint_lets_go_of() -> None:
    def forgotten_of(state: State, checkpoint: StoreCheckpointed) -> list[str]:
        return [name for name in state.of(COUNTER) if name < str(checkpoint.covers)]

    known = families(
        nothing,
        bystander("other", invariants=lambda state: ["other is broken"]),
        invariants=lambda state: [f"{name} is broken" for name in state.of(COUNTER)],
        forgotten=forgotten_of,
    )
    history = [opened(), happened(CounterSet, "1", value=1), happened(CounterSet, "3", value=3)]
    checkpoint = checkpoint_of_all()
    state = replay(history, known)

    assert invariants(state, known) == ["1 is broken", "3 is broken", "other is broken"]
    assert forgotten(state, checkpoint, known) == {COUNTER: ["1"], "other": []}
    assert replay([*history, checkpoint], known).of(COUNTER).keys() == {"3"}
    kept = decode_state(encode_state(state, checkpoint, known), known)
    assert kept.of(COUNTER) == {"3": Counter(name="3", number=3)}


def test_every_family_lets_go_of_its_own_records_at_a_checkpoint() -> None:
    counters = replace(COUNTERS, forgotten=lambda state, checkpoint: ["1"])
    known = Families((lease_family(), bystander("other"), counters))
    history = [opened(), happened(CounterSet, "1", value=1), happened(CounterSet, "3", value=3)]
    checkpoint = checkpoint_of_all()

    assert replay([*history, checkpoint], known).of(COUNTER).keys() == {"3"}
