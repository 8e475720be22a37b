import pytest

from leasehold.kernel.lease.events import IllegalTransition, LeaseExpired
from leasehold.kernel.lease.model import LeaseState
from leasehold.kernel.ledger.state import State, replay
from tests.kernel.records import OF_LEASE
from tests.kernel.registrar import SECOND, Registrar


def test_no_history_is_an_empty_state() -> None:
    assert replay([]) == State()


def test_a_history_is_folded_into_leases_the_registrars_record_and_the_ended_eras() -> None:
    registrar = Registrar()
    released = registrar.grant("ann", "a")
    kept = registrar.grant("ann", "b", bound_to_boot=False)
    registrar.end(released)
    registrar.advance(1)
    registrar.extend(kept)
    registrar.reboot(clock=7 * SECOND)
    fresh = registrar.grant("bob", "a")

    state = replay(registrar.ledger)

    assert {lease_id: lease.state for lease_id, lease in state.leases.items()} == {
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

    state = replay(registrar.ledger)

    assert state.eras == {}
    assert state.authority is not None
    assert (state.authority.epoch, state.authority.era) == (1_025, 1)


def test_a_history_can_be_folded_in_two_parts() -> None:
    registrar = Registrar()
    registrar.grant("ann")
    registrar.reboot()
    registrar.grant("bob")

    for cut in range(len(registrar.ledger) + 1):
        state = replay(registrar.ledger[:cut])
        for event in registrar.ledger[cut:]:
            state.apply(event)
        assert state == registrar.state


def test_a_history_that_does_not_begin_at_the_beginning_is_illegal() -> None:
    with pytest.raises(IllegalTransition):
        replay([LeaseExpired(**OF_LEASE)])
