"""Old history goes, and what is left can still be proved, rebuilt and followed."""

from typing import Any

import pytest

from leasehold.engine import pruning
from leasehold.engine.audit import audit, rebuild
from leasehold.engine.keyholding import rotate
from leasehold.engine.port import EntryQuery, Head, Store
from leasehold.engine.pruning import Pruning, prune
from leasehold.engine.questions import FindBeginning, FindHead, FindLease, FollowLedger, ReadLedger
from leasehold.engine.registrar import Registrar
from leasehold.errors import HistoryPruned, InvalidInput
from leasehold.kernel.lease.answers import Granted
from leasehold.kernel.lease.budget import Budget
from leasehold.kernel.lease.commands import (
    Acquire,
    Derive,
)
from leasehold.kernel.lease.model import LeaseState
from leasehold.kernel.lease.scope import Scope
from leasehold.kernel.ledger.checkpoint import decode_state, encode_state
from leasehold.kernel.ledger.commands import Sweep
from leasehold.kernel.ledger.events import StoreCheckpointed
from leasehold.kernel.ledger.family import Families
from leasehold.kernel.ledger.records import Keys
from leasehold.kernel.ledger.state import State
from leasehold.testing.clock import FakeClock
from tests.engine.doubles import claim, expect, granted, release

HOUR = 3600
DAY = 24 * HOUR
LONG_NS = 29 * DAY * 10**9


@pytest.fixture
def registrar(store: Store) -> Registrar:
    return Registrar(store)


def pruned(store: Store, keep: float = 30 * DAY, *, dry_run: bool = False) -> Pruning:
    """What pruning removes; afterwards everything has to be in order."""
    found = prune(store, actor="ops", keep_ns=int(keep * 10**9), dry_run=dry_run)
    assert audit(store).problems == []
    return found


def positions(store: Store) -> list[int]:
    with store.snapshot() as snapshot:
        return [entry.position for entry in snapshot.entries(EntryQuery())]


def lease_ids(store: Store) -> set[str]:
    with store.snapshot() as snapshot:
        return set(snapshot.state().of("lease"))


def test_what_is_older_goes_and_a_checkpoint_stands_for_it(
    store: Store, registrar: Registrar, clock: FakeClock
) -> None:
    old = granted(registrar.call(claim("door")))
    registrar.call(release(old))
    clock.advance(20 * DAY)
    young = granted(registrar.call(claim("gate")))
    registrar.call(release(young))
    clock.advance(11 * DAY)
    planned = pruned(store, dry_run=True)
    assert (planned.entries, planned.records, planned.through, planned.checkpoint) == (3, 1, 3, None)
    assert positions(store) == [1, 2, 3, 4, 5]
    done = pruned(store)
    assert (done.entries, done.records, done.through, done.checkpoint) == (3, 1, 3, 6)
    assert positions(store) == [4, 5, 6]
    assert lease_ids(store) == {young.lease_id}
    found = audit(store)
    assert (found.entries, found.pruned, found.sealed) == (6, 3, 6)


def test_pruning_again_changes_nothing(store: Store, registrar: Registrar, clock: FakeClock) -> None:
    registrar.call(release(granted(registrar.call(claim("door")))))
    clock.advance(31 * DAY)
    assert pruned(store).entries == 3
    for _ in range(3):
        assert pruned(store) == Pruning(entries=0, records=0, through=3, checkpoint=None)
        clock.advance(31 * DAY)  # A checkpoint alone is not worth another.
    assert positions(store) == [4]


def test_a_store_that_nobody_has_used_has_nothing_to_prune(store: Store) -> None:
    assert prune(store, actor="ops", dry_run=True).entries == 0
    assert prune(store, actor="ops").entries == 0


def test_nothing_that_stands_goes_however_old_it_is(
    store: Store, registrar: Registrar, clock: FakeClock
) -> None:
    lease = granted(registrar.call(claim("door", ttl_ns=LONG_NS)))
    clock.advance(28 * DAY)
    registrar.call(claim("gate"))
    assert pruned(store, keep=DAY).entries == 2
    status = registrar.ask(FindLease(lease_id=lease.lease_id))
    assert status is not None
    assert status.is_live
    assert registrar.call(claim("door", "bob")).code == "HELD"
    registrar.call(release(lease))
    assert audit(store).problems == []


def test_the_parents_of_what_stands_stay_although_they_have_ended(
    store: Store, registrar: Registrar, clock: FakeClock
) -> None:
    everything = Scope(tools=("*",))
    parent = granted(
        registrar.call(claim("p", ttl_ns=LONG_NS, scope=everything, budget=Budget(tool_calls=9)))
    )
    child = granted(
        registrar.call(
            Derive(
                parent_id=parent.lease_id,
                holder="ann",
                lease_id="child",
                resource="c",
                child_holder="ann",
                scope=everything,
                budget=Budget(tool_calls=1),
                request_id="derive",
            )
        )
    )
    clock.advance(2 * DAY)
    registrar.call(claim("gate"))
    assert pruned(store, keep=DAY).entries == 4
    assert {parent.lease_id, child.lease_id} <= lease_ids(store)
    registrar.call(release(parent))
    status = registrar.ask(FindLease(lease_id=child.lease_id))
    assert status is not None
    assert status.lease.state is LeaseState.REVOKED
    clock.advance(2 * DAY)
    pruned(store, keep=DAY)
    assert not {parent.lease_id, child.lease_id} & lease_ids(store)


def test_an_end_that_was_noticed_late_does_not_keep_a_lease(
    store: Store, registrar: Registrar, clock: FakeClock
) -> None:
    lease = granted(registrar.call(claim("door")))
    clock.advance(31 * DAY)
    granted(registrar.call(claim("door", "bob")))  # which records that the first has expired
    with store.snapshot() as snapshot:
        assert snapshot.entries(EntryQuery())[-2].event.type == "lease.expired"
    done = pruned(store)
    assert (done.entries, done.records) == (2, 1)
    assert lease.lease_id not in lease_ids(store)


def test_tokens_go_on_rising(store: Store, registrar: Registrar, clock: FakeClock) -> None:
    highest = granted(registrar.call(claim("door")))
    registrar.call(release(highest))
    clock.advance(31 * DAY)
    pruned(store)
    assert granted(registrar.call(claim("door"))).token > highest.token
    assert audit(store).problems == []


@pytest.mark.parametrize("jump", [0, 60 * DAY])
@pytest.mark.parametrize("own", [True, False])
def test_a_request_that_is_remembered_is_never_granted_twice(
    store: Store, registrar: Registrar, clock: FakeClock, own: bool, jump: int
) -> None:
    """Neither with the least retention, nor when the wall clock makes everything look old."""
    registrar.call(release(granted(registrar.call(claim("old")))))
    clock.advance(2 * HOUR)
    request: Acquire = claim("door", **({"lease_id": "mine", "request_id": "mine"} if own else {}))
    lease = granted(registrar.call(request))
    registrar.call(release(lease))
    clock.jump_wall(jump)
    clock.advance(HOUR - 1)
    assert pruned(store, keep=HOUR).entries == 3
    again = expect(Granted, registrar.call(request))
    assert (again.lease.token, again.repeated, again.ended) == (lease.token, True, True)


def test_a_request_from_before_a_reboot_is_remembered_for_an_hour_after_it(
    store: Store, registrar: Registrar, clock: FakeClock
) -> None:
    request = claim("door")
    lease = granted(registrar.call(request))
    registrar.call(release(lease))
    clock.reboot(down_seconds=60 * DAY)
    assert pruned(store, keep=HOUR).entries == 0
    assert expect(Granted, registrar.call(request)).lease.token == lease.token
    clock.advance(HOUR)
    assert pruned(store, keep=HOUR).entries > 0


def test_less_than_requests_are_remembered_for_cannot_be_kept(store: Store) -> None:
    with pytest.raises(InvalidInput, match="an hour at least"):
        prune(store, actor="ops", keep_ns=HOUR * 10**9 - 1)


def test_the_tables_are_rebuilt_from_the_checkpoint_on(
    store: Store, registrar: Registrar, clock: FakeClock
) -> None:
    standing = granted(registrar.call(claim("door", ttl_ns=LONG_NS)))
    registrar.call(release(granted(registrar.call(claim("gate")))))
    clock.advance(10 * DAY)
    request = claim("window")
    granted(registrar.call(request))
    pruned(store, keep=DAY)
    with store.snapshot() as snapshot:
        before = snapshot.state()
    assert rebuild(store) == before
    with store.snapshot() as snapshot:
        assert snapshot.state() == before
        assert snapshot.read(Keys(requests={request.request_key})).requests
    assert audit(store).problems == []
    assert standing.lease_id in before.of("lease")


def test_keys_from_before_the_checkpoint_still_count(
    store: Store, registrar: Registrar, clock: FakeClock
) -> None:
    registrar.call(claim("door"))
    first = store.sealer.ring.at_hand()[0]
    rotate(store, actor="ops")
    clock.advance(31 * DAY)
    registrar.call(claim("gate"))
    assert pruned(store).entries == 4
    assert audit(store, first_key=first).problems == []
    assert audit(store, first_key="00" * 8).problems != []
    rotate(store, actor="ops")
    assert audit(store, first_key=first).problems == []


def test_several_checkpoints_one_after_another(store: Store, registrar: Registrar, clock: FakeClock) -> None:
    tokens = []
    for _ in range(6):
        lease = granted(registrar.call(claim("door")))
        tokens.append(lease.token)
        registrar.call(release(lease))
        clock.advance(10 * DAY)
        pruned(store, keep=15 * DAY)
    assert tokens == sorted(set(tokens))
    assert positions(store) == list(range(positions(store)[0], positions(store)[-1] + 1))
    assert len(lease_ids(store)) == 1


def test_who_follows_from_a_place_that_is_gone_is_told(
    store: Store, registrar: Registrar, clock: FakeClock
) -> None:
    registrar.call(release(granted(registrar.call(claim("door")))))
    clock.advance(31 * DAY)
    pruned(store)
    for gone in (1, 2):
        with pytest.raises(HistoryPruned, match="continue after 3") as caught:
            registrar.ask(FollowLedger(query=EntryQuery(after=gone)))
        assert caught.value.position == 3
    for there in (0, 3):
        assert [
            entry.position for entry in registrar.ask(FollowLedger(query=EntryQuery(after=there))).entries
        ] == [4]


def test_a_head_that_was_pruned_cannot_be_compared_and_the_last_one_can(
    store: Store, registrar: Registrar, clock: FakeClock
) -> None:
    heads = [registrar.ask(FindHead())]
    registrar.call(claim("door"))
    heads.append(registrar.ask(FindHead()))
    clock.advance(31 * DAY)
    registrar.call(claim("gate"))
    heads.append(registrar.ask(FindHead()))
    assert pruned(store).through == 2
    found = audit(store, expected=heads[0])
    assert found.first_bad == 1
    assert "can no longer be compared" in found.problems[0]
    for head in heads[1:]:
        assert audit(store, expected=head).problems == []
        forged = Head(position=head.position, hash=bytes(32))
        assert audit(store, expected=forged).first_bad == head.position


def test_it_goes_batch_by_batch_and_others_write_in_between(
    store: Store, registrar: Registrar, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(6):
        registrar.call(release(granted(registrar.call(claim(f"old-{number}")))))
    clock.advance(31 * DAY)
    pruned_to: list[int] = []

    def spell_and_let_others_in(*arguments: Any) -> bytes:
        """Called before each batch, when nobody has to wait for anybody."""
        granted(registrar.call(claim(f"young-{len(pruned_to)}")))
        found = audit(store)
        assert found.problems == []
        pruned_to.append(found.pruned)
        return encode_state(*arguments)

    monkeypatch.setattr(pruning, "encode_state", spell_and_let_others_in)
    done = prune(store, actor="ops", batch_entries=4)
    assert pruned_to == [0, 4, 8, 12]
    assert (done.entries, done.records, done.through, done.checkpoint) == (13, 6, 13, 21)
    assert positions(store) == [*range(14, 22)]
    assert len(lease_ids(store)) == 4
    assert audit(store).problems == []
    assert rebuild(store).of("lease").keys() == lease_ids(store)


def test_no_more_leases_are_written_than_entries_go_and_once_at_the_end(
    store: Store, registrar: Registrar, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(20):
        granted(registrar.call(claim(f"standing-{number}", ttl_ns=LONG_NS)))
    for number in range(40):
        registrar.call(release(granted(registrar.call(claim(f"old-{number}")))))
    clock.advance(28 * DAY)
    written: list[int] = []

    def spell(state: State, checkpoint: StoreCheckpointed, families: Families) -> bytes:
        spelled = encode_state(state, checkpoint, families)
        written.append(len(decode_state(spelled, families).of("lease")))
        return spelled

    monkeypatch.setattr(pruning, "encode_state", spell)
    done = prune(store, actor="ops", keep_ns=DAY * 10**9, batch_entries=4)

    assert done.entries == 101
    assert 2 < len(written) < done.entries // 4 // 2
    assert sum(written[:-1]) <= done.entries
    assert audit(store).problems == []


def test_who_prunes_at_the_same_time_is_not_in_the_way(
    store: Store, registrar: Registrar, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(4):
        registrar.call(release(granted(registrar.call(claim(f"old-{number}")))))
    clock.advance(31 * DAY)
    others: list[Any] = []

    def spell_and_be_overtaken(*arguments: Any) -> bytes:
        if not others:
            others.append(None)
            others.append(prune(store, actor="another", batch_entries=2))
        return encode_state(*arguments)

    monkeypatch.setattr(pruning, "encode_state", spell_and_be_overtaken)
    done = prune(store, actor="ops", batch_entries=2)
    assert (others[1].entries, done.entries) == (9, 0)
    assert audit(store).problems == []


def test_what_only_says_what_would_be_removed_leaves_everything_as_it_is(
    store: Store, registrar: Registrar, clock: FakeClock
) -> None:
    registrar.call(release(granted(registrar.call(claim("door")))))
    clock.advance(31 * DAY)
    clock.reboot()  # Whoever writes would have to begin a new epoch first.
    with store.snapshot() as snapshot:
        before = (snapshot.rows(0, 100), snapshot.state(), snapshot.checkpoint(), snapshot.head)
    prune(store, actor="ops", dry_run=True)
    with store.snapshot() as snapshot:
        assert (snapshot.rows(0, 100), snapshot.state(), snapshot.checkpoint(), snapshot.head) == before


def test_what_is_left_of_the_history_of_a_pruned_lease_is_found(
    store: Store, registrar: Registrar, clock: FakeClock
) -> None:
    old = granted(registrar.call(claim("door")))
    clock.advance(20 * DAY)
    registrar.call(Sweep(family="lease", key=old.lease_id, request_id="late"))
    assert registrar.ask(FindBeginning()) is None
    pruned(store, keep=15 * DAY)
    assert lease_ids(store) == set()
    left = registrar.ask(ReadLedger(query=EntryQuery(lease_id=old.lease_id)))
    assert [(entry.position, entry.event.type) for entry in left] == [(3, "lease.expired")]
    begins = registrar.ask(FindBeginning())
    assert begins is not None
    assert (begins.pruned, begins.checkpoint, begins.actor) == (2, 4, "ops")
