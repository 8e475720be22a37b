"""Stores from before there were seals: what came before is chained, what comes now is sealed."""

from msgspec.structs import replace

from leasehold.engine.audit import audit
from leasehold.engine.port import Batch, Store
from leasehold.engine.pruning import prune
from leasehold.engine.registrar import Registrar
from leasehold.kernel.ledger.authority import evolve_authority, observe
from leasehold.kernel.ledger.chain import GENESIS_HASH, Entry, link
from leasehold.kernel.ledger.events import StoreOpened, encode_event
from leasehold.testing.clock import FakeClock
from tests.engine.doubles import claim, granted


def make_old(store: Store) -> None:
    """Leave what a version without seals has left: one entry, and no key."""
    with store.write() as transaction:
        event = observe(None, transaction.reading())
        assert isinstance(event, StoreOpened)
        event = replace(event, families=store.families.versions)
        body = encode_event(event)
        batch = Batch(
            entries=[Entry(position=1, event=event, body=body, hash=link(GENESIS_HASH, 1, body))],
            changes=(),
            authority=evolve_authority(None, event),
            ended_eras=[],
        )
        transaction.commit(batch)


def test_a_new_epoch_and_the_first_key_of_an_old_ledger_are_one_commit(
    store: Store, clock: FakeClock
) -> None:
    make_old(store)
    clock.reboot()
    registrar = Registrar(store)
    found = audit(store)
    assert (found.problems, found.unsealed_before, found.sealed) == ([], 1, 3)
    registrar.close()


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
    assert found.sealed == found.entries == 4
    registrar.close()


def test_a_key_that_must_be_the_first_is_missed_in_a_ledger_without_seals(store: Store) -> None:
    make_old(store)
    assert audit(store, first_key="0123456789abcdef").first_bad == 1


def test_what_was_never_sealed_is_pruned_with_the_first_sealed_commit_behind_it(
    store: Store, clock: FakeClock
) -> None:
    make_old(store)
    month = 31 * 24 * 3600
    clock.advance(month)
    assert prune(store, actor="ops").entries == 0
    found = audit(store)
    assert (found.problems, found.unsealed_before, found.sealed) == ([], 1, 2)
    clock.advance(month)
    assert prune(store, actor="ops").entries == 2
    assert audit(store).problems == []
