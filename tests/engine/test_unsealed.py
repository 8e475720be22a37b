"""Stores from before there were seals: what came before is chained, what comes now is sealed."""

from leasehold.engine.audit import audit
from leasehold.engine.port import Store
from leasehold.engine.registrar import Registrar
from leasehold.testing.clock import FakeClock
from leasehold.testing.conformance.opening import commit
from leasehold.testing.conformance.records import EMPTY, authority, batch, opened
from tests.engine.doubles import claim, granted


def make_old(store: Store) -> None:
    """Leave what a version without seals has left: one entry, and no key."""
    with store.snapshot() as snapshot:
        reading = snapshot.reading()
    event = opened(tick=10, at_ns=5_000)
    record = authority(counter=0, era_first_tick=10, tick=10, boot_id=event.boot_id, identity=event.identity)
    assert reading.tick_value > 10
    commit(store, batch(EMPTY, event, record=record))


def test_an_old_ledger_that_was_not_used_since_has_no_problems_and_no_seals(store: Store) -> None:
    make_old(store)
    found = audit(store)
    assert (found.problems, found.sealed, found.unsealed_before, found.keys) == ([], 0, 1, [])


def test_an_old_ledger_is_sealed_from_its_next_change_on(store: Store, clock: FakeClock) -> None:
    make_old(store)
    registrar = Registrar(store)
    granted(registrar.call(claim("door")))
    clock.advance(1)
    granted(registrar.call(claim("gate")))
    found = audit(store)
    assert found.problems == []
    assert (found.unsealed_before, len(found.keys)) == (1, 1)
    assert found.sealed == found.entries > 3
    registrar.close()


def test_a_key_that_must_be_the_first_is_missed_in_a_ledger_without_seals(store: Store) -> None:
    make_old(store)
    assert audit(store, first_key="0123456789abcdef").first_bad == 1
