"""Worlds in which the toy family of `tests/families` is played beside leases: what is wrong with it is found.

Each mistake is put where it would be made, in the family or in what all families are decided and kept with,
and the simulator, or those who play the family, have to say which promise it breaks. Where the family's own
invariants would notice it first, they are switched off.
"""

from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest
from msgspec.structs import replace

from leasehold.kernel.lease.commands import Release
from leasehold.kernel.lease.records import LEASE
from leasehold.kernel.ledger.draft import Draft
from leasehold.kernel.ledger.events import StoreCheckpointed
from leasehold.kernel.ledger.journal import Journal
from leasehold.kernel.ledger.key import split_key
from leasehold.kernel.ledger.state import State
from leasehold.kernel.ledger.table import Table
from leasehold.stores.memory.tables import MemoryTables
from simulator import simulate
from tests import lanes
from tests.families import toy
from tests.families.toy import COUNTER, OWN, Bump, Close, CounterBumped, Finish, Record, counter_family
from tests.mutations import search
from tests.simulator.counter_troupe import CounterTroupe

SEEDS = 60


def nothing_to_hold(state: object) -> tuple[str, ...]:
    del state
    return ()


@pytest.mark.deep
def test_a_family_that_nobody_here_knows_goes_through_everything_that_leases_do() -> None:
    troupe = CounterTroupe()
    for seed in range(SEEDS if lanes.is_full_length() else SEEDS // 3):
        simulate(seed, troupes=[troupe])
    noted = sum((Counter(play.noted) for play in troupe.plays), Counter[str]())
    # A troupe that has become tame would find nothing either.
    usual, rare = (100, 10) if lanes.is_full_length() else (80, 5)
    often = ("bumped", "repeated", "refused", "closed as asked", "closed with its lease", "closed by time")
    assert min(noted[name] for name in (*often, "finished")) > usual
    seldom = ("carried over", "let go of", "started over", "actor died", "actor paused")
    assert min(noted[name] for name in seldom) > rare


def test_a_world_with_a_troupe_is_the_same_every_time() -> None:
    worlds: list[list[str]] = [[], []]
    for lines in worlds:
        simulate(7, trace=lines.append, troupes=[CounterTroupe()])
    assert worlds[0] == worlds[1]
    assert any("CounterBumped" in line for line in worlds[0])


def evolving(
    change: Callable[[Record, CounterBumped], Record],
) -> Callable[[Record | None, Any, str], Record | None]:
    """The family's `evolve`, with something done to every counter that was bumped."""

    def evolve(record: Record | None, event: Any, key: str) -> Record | None:
        evolved = toy.evolve(record, event, key)
        bumped = isinstance(event, CounterBumped) and split_key(key)[1] == OWN
        return change(evolved, event) if bumped and evolved is not None else evolved

    return evolve


def test_a_record_that_forgets_what_was_before() -> None:
    forgetful = evolving(lambda record, event: replace(record, value=event.by))
    assert found("and the counter says", evolve=forgetful, invariants=nothing_to_hold)


def test_a_record_that_depends_on_more_than_the_ledger() -> None:
    bumps: list[Record] = []

    def moody(record: Record, event: CounterBumped) -> Record:
        del event
        bumps.append(record)
        return replace(record, fence=record.fence + 1) if len(bumps) % 3 == 0 else record

    assert found("was written as", evolve=evolving(moody))


def test_a_record_that_is_left_filed_as_it_was() -> None:
    def untidy(record: Record | None, event: Any, key: str) -> Record | None:
        return toy.evolve(record, event, key) or record

    assert found("counters are filed as", evolve=untidy)


def test_a_retry_that_is_counted_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Draft, "remembered", lambda self, command: None)
    assert found("was counted twice")


def test_a_number_that_is_drawn_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(CounterBumped, "draws", False)
    assert found(" drew ")


def test_an_end_of_a_lease_that_a_family_does_not_react_to() -> None:
    assert found("counts, and lease-", reacts={})
    assert found("counts after its lease", reacts={}, invariants=nothing_to_hold)


def test_time_that_does_nothing_to_a_record() -> None:
    assert found("after its time", age=lambda key, record, draft: None)


@pytest.mark.parametrize(("bound", "says"), [(True, "was released by None"), (False, "before its time")])
def test_a_record_that_time_ends_too_early(bound: bool, says: str) -> None:
    # Also what is from another era is looked at, before it is due.
    def impatient(key: str, record: Record, draft: Draft) -> None:
        over = replace(record, due=replace(draft.now.tick, value=0))
        toy.age(key, over if bool(record.bound) == bound else record, draft)

    assert found(says, age=impatient)


def test_a_new_era_that_gives_a_record_more_than_it_had_left(monkeypatch: pytest.MonkeyPatch) -> None:
    carried = Draft.carried

    def generous(self: Draft, tick: Any) -> Any:
        exact = carried(self, tick)
        return exact and replace(exact, value=exact.value + 1)

    monkeypatch.setattr(Draft, "carried", generous)
    assert found("and ends at")


def test_a_record_that_is_pruned_while_it_is_in_use() -> None:
    def careless(state: State, checkpoint: StoreCheckpointed) -> list[str]:
        return [key for key, record in state.of(COUNTER).items() if 0 < record.fence < checkpoint.token_below]

    assert found("and is in use", forgotten=careless, invariants=nothing_to_hold)


def test_a_record_that_goes_although_what_made_it_stays() -> None:
    def hasty(state: State, checkpoint: StoreCheckpointed) -> list[str]:
        return [key for key, record in state.of(COUNTER).items() if record.closed_at_ns is not None]

    assert found("what had raised it was not pruned", forgotten=hasty)


def test_a_rebuild_that_leaves_a_family_out(monkeypatch: pytest.MonkeyPatch) -> None:
    rebuild = MemoryTables.rebuild

    def partial(self: MemoryTables, state: State) -> None:
        rebuild(self, replace(state, records={**state.records, COUNTER: {}}))

    monkeypatch.setattr(MemoryTables, "rebuild", partial)
    assert found("made anew are not what they were")


def test_a_range_that_is_taken_from_the_wrong_end() -> None:
    def turned(command: Close, draft: Draft) -> Any:
        return toy.close(replace(command, furthest=not command.furthest), draft)

    assert found("was closed at", rules={**counter_family().rules, Close: turned})


def test_a_scan_that_does_not_see_what_its_batch_has_made(monkeypatch: pytest.MonkeyPatch) -> None:
    scan = Table.scan

    def blind(self: Table, low: str, high: str, limit: int, *, reverse: bool = False) -> list[str]:
        keys = scan(self, low, high, limit + len(self.before), reverse=reverse)
        return [key for key in keys if self.before.get(key, key) is not None][:limit]

    monkeypatch.setattr(Table, "scan", blind)
    assert found("was closed at")


def test_a_count_that_does_not_see_what_its_batch_has_removed(monkeypatch: pytest.MonkeyPatch) -> None:
    count = Table.count

    def blind(self: Table, low: str, high: str) -> int:
        gone = [key for key, before in self.before.items() if before and not self.records[key]]
        return count(self, low, high) + sum(low <= key < high for key in gone)

    monkeypatch.setattr(Table, "count", blind)
    assert found(" left ")


def test_a_lease_that_a_family_releases_for_no_reason() -> None:
    # Each bump ends the lease that it is made for.
    def rash(command: Bump, draft: Draft) -> Any:
        made = toy.bump(command, draft)
        lease = draft.get(LEASE, command.lease_id) if command.lease_id else None
        if lease is not None:
            ids = (command.lease_id,)
            draft.call(Release(lease_ids=ids, holder=lease.holder, request_id=command.request_id))
        return made

    assert found("is not what", rules={**counter_family().rules, Bump: rash})


def test_a_lease_that_is_released_for_who_does_not_hold_it() -> None:
    def obliging(command: Finish, draft: Draft) -> Any:
        record = draft.get(COUNTER, toy.own_key(command.tenant, command.name))
        lease = draft.get(LEASE, record.bound) if record is not None and record.bound else None
        return toy.finish(command if lease is None else replace(command, holder=lease.holder), draft)

    assert found("is not what", rules={**counter_family().rules, Finish: obliging})


def test_an_answer_that_was_not_committed() -> None:
    def silent(command: Finish, draft: Draft) -> Any:
        record = draft.get(COUNTER, toy.own_key(command.tenant, command.name))
        return toy.Value(value=0, fence=0) if record is not None else toy.finish(command, draft)

    assert found("and it counts", rules={**counter_family().rules, Finish: silent})


def test_a_command_that_is_refused_and_leaves_something(monkeypatch: pytest.MonkeyPatch) -> None:
    # Nothing that a refused command has done to records is taken back; its events are gone.
    monkeypatch.setattr(Journal, "undo", lambda self, steps=0: self.steps.clear())
    assert found("does not replay")


def found(*says: str, **others: Any) -> str:
    """Return the first promise that is seen to be broken by a family with something else in its place."""
    family = search.change_family(counter_family(), **others)
    return search.found(
        *says, seeds=range(SEEDS), play=lambda seed: simulate(seed, troupes=[CounterTroupe(family)])
    )
