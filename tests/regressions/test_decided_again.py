"""What a waiter is promoted to is undone with a command that lacks a record, and is decided again.

It was once folded into the view for good, because nothing follows a promotion. But other steps of the same
command come after it, or were left out before it, and one of them may lack a record. Decided again, the
command found the waiter promoted already, and committed the lease without the event.
"""

from collections.abc import Callable
from pathlib import Path

import pytest

from leasehold.engine.audit import audit
from leasehold.engine.batch import Outcome, Rules, run_batch
from leasehold.engine.port import LeaseQuery, Store
from leasehold.kernel.lease.commands import Release, Wanted
from leasehold.kernel.lease.model import LeaseState, Mode
from leasehold.kernel.ledger.commands import Command
from leasehold.kernel.ledger.tick import NANOSECONDS_PER_SECOND as SECOND
from leasehold.stores.memory import MemoryStore
from leasehold.stores.sqlite import SqliteStore
from leasehold.testing.clock import FakeClock
from tests.engine.doubles import claim, granted
from tests.families.toy import Bump, Close, Closed, toy_families


@pytest.mark.parametrize("make", [MemoryStore, SqliteStore])
def test_a_waiter_whose_turn_it_is_on_two_resources_at_once(
    tmp_path: Path, make: Callable[..., Store]
) -> None:
    """Of the two that bob leaves, only the queue of the first had to be read further."""
    store = make(tmp_path / "leases") if make is SqliteStore else make()
    run_batch(store, [claim("gate", "ann", mode=Mode.SHARED)], Rules())
    for holder, mode in (("bob", Mode.EXCLUSIVE), ("cem", Mode.SHARED)):
        also = (Wanted(resource="gate", mode=mode),)
        run_batch(store, [claim("door", holder, also=also, wait=True, lease_id=holder)], Rules())

    run_batch(store, [Release(lease_ids=("bob", "bob.1"), holder="bob", request_id="leave")], Rules())

    assert audit(store).problems == []
    assert holders(store) == {"ann": ["gate"], "cem": ["door", "gate"]}
    store.close()


@pytest.mark.parametrize("make", [MemoryStore, SqliteStore])
def test_a_waiter_whose_turn_it_is_while_another_family_has_something_to_count(
    tmp_path: Path, make: Callable[..., Store]
) -> None:
    """How many counters are left is asked last, when the first one's end has ended the lease waited for."""
    clock, families = FakeClock(), toy_families()
    path = (tmp_path / "leases",) if make is SqliteStore else ()
    store = make(*path, clock=clock, families=families)
    lease = granted(one(store, claim("door", "ann", ttl_ns=60 * SECOND)))
    one(store, claim("door", "bob", wait=True))
    one(store, Bump(name="first", ttl_ns=SECOND, lease_id=lease.lease_id, request_id="1"))
    one(store, Bump(name="second", request_id="2"))
    clock.advance(1)

    assert one(store, Close(most=1, furthest=False, request_id="3")) == Closed(names=("first",), left=1)

    assert audit(store).problems == []
    assert holders(store) == {"bob": ["door"]}
    store.close()


def one(store: Store, command: Command) -> Outcome:
    return run_batch(store, [command], Rules())[0]


def holders(store: Store) -> dict[str, list[str]]:
    """Who holds what."""
    held: dict[str, list[str]] = {}
    with store.snapshot() as snapshot:
        for lease in snapshot.leases(LeaseQuery()):
            if lease.state is LeaseState.ACTIVE:
                held.setdefault(lease.holder, []).append(lease.resource)
    return {holder: sorted(resources) for holder, resources in held.items()}
