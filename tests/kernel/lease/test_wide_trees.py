"""Paths around which very much is held, or waited for: not all of it is read to say what becomes of a claim.

A store is asked for two leases of a kind at first. What would be found by reading all has to be found anyway:
nothing is granted in conflict, nobody waits for what is free, and no circle goes unseen.
"""

from collections.abc import Iterable

import pytest

from leasehold.kernel.lease import plan
from leasehold.kernel.lease.answers import Answer, Waiting
from leasehold.kernel.lease.commands import Acquire, Wanted
from leasehold.kernel.lease.decision import Decision
from leasehold.kernel.lease.model import Lease, Mode
from leasehold.kernel.ledger.commands import Swept
from leasehold.kernel.ledger.events import Event
from leasehold.kernel.ledger.records import Keys, Missing, Records
from leasehold.kernel.ledger.refusals import Refusal, RefusalCode
from leasehold.kernel.ledger.state import State
from tests.kernel import registrar as desk
from tests.kernel import shelf
from tests.kernel.deciding import decide_for_good, outcome
from tests.kernel.registrar import SECOND, Registrar, expect

FILES = tuple(f"/a/{number:02}" for number in range(12))
LAST = FILES[-1]


class Desk:
    """What a store was asked for."""

    def __init__(self) -> None:
        self.rounds = 0
        self.leases = 0
        """How many it gave back."""
        self.widest = 0
        """The largest number of leases around a path that was asked for."""

    def forget(self) -> None:
        self.__init__()  # type: ignore[misc]


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> Desk:
    """Let two leases of a kind be read at first, and note what is read."""
    noted, find = Desk(), shelf.found

    def found(state: State, ledger: Iterable[Event], keys: Keys) -> Records:
        records = find(state, ledger, keys)
        noted.rounds += 1
        for wanted, answer in ((keys.families[name], one) for name, one in records.families.items()):
            noted.leases += len(answer.records)
            noted.widest = max([noted.widest, *(limit for _, _, limit in wanted.trees)])
        return records

    monkeypatch.setattr(plan, "FIRST_AROUND", 2)
    monkeypatch.setattr(desk, "found", found)
    return noted


def crowded(mode: Mode = Mode.EXCLUSIVE, ttl_ns: int = 60 * SECOND) -> Registrar:
    """A directory of twelve leased files, each of its own holder."""
    registrar = Registrar()
    for path in FILES:
        registrar.grant(f"holder of {path}", path, mode=mode, ttl_ns=ttl_ns)
    return registrar


def held(registrar: Registrar, path: str) -> Lease:
    leases: Iterable[Lease] = registrar.state.of("lease").values()
    return next(one for one in leases if one.resource == path)


def test_a_directory_is_refused_without_reading_all_that_is_in_it(asked: Desk) -> None:
    refusal = crowded().deny("ann", "/a")

    assert (refusal.code, refusal.holder) == (RefusalCode.HELD, "holder of /a/00")
    assert asked.widest == 2


def test_who_waits_for_a_directory_does_not_read_all_that_is_in_it(asked: Desk) -> None:
    registrar = crowded()
    claim = registrar.join("ann", "/a")
    registrar.advance(5)
    place = registrar.wait(claim).places[0]

    assert (place.position, place.holder) == (1, "holder of /a/00")
    assert asked.widest == 2


def test_who_waits_for_a_directory_asks_when_the_first_that_it_knows_of_have_expired(asked: Desk) -> None:
    registrar = Registrar()
    for number, path in enumerate(FILES):
        registrar.grant(f"holder of {path}", path, ttl_ns=(number + 1) * SECOND)
    claim = registrar.claim("ann", "/a", wait=True)
    asked_again = 0
    while isinstance(answer := registrar.ask(claim), Waiting):
        registrar.advance(answer.ask_again_ns / SECOND)
        asked_again += 1

    assert registrar.holders("/a") == ["ann"]
    assert asked_again < len(FILES)


def test_of_sharers_below_that_are_in_no_sharers_way_only_the_first_are_read(asked: Desk) -> None:
    crowded(Mode.SHARED).grant("ann", "/a", mode=Mode.SHARED)

    assert asked.widest == 2


def test_a_sharer_below_that_waits_to_be_alone_is_in_the_way_wherever_it_is(asked: Desk) -> None:
    registrar = crowded(Mode.SHARED)
    registrar.grant("ann", LAST, mode=Mode.SHARED)
    expect(Waiting, registrar.ask(registrar.change(held(registrar, LAST), Mode.EXCLUSIVE, wait=True)))

    assert registrar.deny("bob", "/a", mode=Mode.SHARED).holder == f"holder of {LAST}"
    assert asked.widest == 2


def test_what_has_expired_below_is_in_nobodys_way(asked: Desk) -> None:
    registrar = crowded(ttl_ns=SECOND)
    registrar.advance(2)
    registrar.grant("ann", "/a")

    assert asked.widest > len(FILES)


def test_who_holds_the_directory_is_told_so(asked: Desk) -> None:
    registrar = crowded(Mode.SHARED)
    registrar.grant("ann", "/a", mode=Mode.SHARED)

    assert registrar.deny("ann", "/a").code is RefusalCode.ALREADY_HELD


def test_who_waits_for_a_directory_has_it_when_the_last_below_is_gone(asked: Desk) -> None:
    registrar = crowded()
    registrar.join("ann", "/a")
    for path in reversed(FILES):
        assert registrar.holders("/a") == []
        registrar.release(held(registrar, path))

    assert registrar.holders("/a") == ["ann"]
    assert asked.widest == 2


def test_who_wants_to_be_alone_with_a_directory_is_when_the_last_sharer_below_is_gone(asked: Desk) -> None:
    registrar = crowded(Mode.SHARED)
    alone = registrar.grant("ann", "/a", mode=Mode.SHARED)
    waits = registrar.change(alone, Mode.EXCLUSIVE, wait=True)
    expect(Waiting, registrar.ask(waits))
    for path in FILES:
        assert registrar.lease(alone.lease_id).mode is Mode.SHARED
        registrar.release(held(registrar, path))

    assert registrar.lease(alone.lease_id).mode is Mode.EXCLUSIVE


def test_a_circle_through_one_of_very_many_below_a_directory_is_found(asked: Desk) -> None:
    registrar = crowded()
    registrar.grant("ann", "door")
    registrar.join(f"holder of {LAST}", "door")
    refusal = registrar.deny("ann", "/a", wait=True)

    assert refusal.code is RefusalCode.DEADLOCK
    assert refusal.cycle == ("ann", "/a", f"holder of {LAST}", "door", "ann")
    assert asked.widest == 2


def test_a_circle_is_found_by_who_holds_one_of_very_many_that_somebody_waits_for(asked: Desk) -> None:
    registrar = crowded()
    registrar.grant("ann", "door")
    registrar.join("ann", "/a")
    refusal = registrar.deny(f"holder of {LAST}", "door", wait=True)

    assert refusal.code is RefusalCode.DEADLOCK
    assert refusal.cycle == (f"holder of {LAST}", "door", "ann", "/a", f"holder of {LAST}")


def test_a_circle_through_who_wants_to_be_alone_with_very_many_is_found(asked: Desk) -> None:
    registrar = crowded(Mode.SHARED)
    registrar.grant("ann", "door")
    alone = registrar.grant("ann", "/a", mode=Mode.SHARED)
    expect(Waiting, registrar.ask(registrar.change(alone, Mode.EXCLUSIVE, wait=True)))

    assert registrar.deny(f"holder of {LAST}", "door", wait=True).code is RefusalCode.DEADLOCK


def test_a_circle_is_found_by_somebody_who_holds_very_many(asked: Desk) -> None:
    registrar = Registrar()
    for number in range(20):
        registrar.grant("bob", f"/b/{number}")
    registrar.grant("ann", "door")
    registrar.join("ann", "/b/19/deep")

    assert registrar.deny("bob", "door", wait=True).code is RefusalCode.DEADLOCK


def test_no_circle_is_seen_where_one_of_very_many_below_is_only_shared(asked: Desk) -> None:
    registrar = crowded(Mode.SHARED)
    registrar.grant("cem", "/a/x")
    registrar.grant("ann", "door")
    registrar.join(f"holder of {LAST}", "door")
    registrar.join("ann", "/a", mode=Mode.SHARED)


def test_no_circle_is_seen_through_what_has_expired_below(asked: Desk) -> None:
    registrar = Registrar()
    for path in FILES[:-1]:
        registrar.grant(f"holder of {path}", path, ttl_ns=60 * SECOND)
    registrar.grant("bob", LAST, ttl_ns=SECOND)
    registrar.grant("ann", "door", ttl_ns=60 * SECOND)
    registrar.join("bob", "door")
    registrar.advance(2)
    registrar.join("ann", "/a")


def test_a_circle_is_found_among_claims_of_one_batch(asked: Desk) -> None:
    registrar = crowded()
    registrar.grant("ann", "door")
    bobs, anns = (
        registrar.claim(f"holder of {LAST}", "door", wait=True),
        registrar.claim("ann", "/a", wait=True),
    )
    for first, second in ((bobs, anns), (anns, bobs)):
        assert expect(Refusal, last_of_batch(registrar, first, second)).code is RefusalCode.DEADLOCK


def test_a_circle_is_found_through_what_was_granted_in_the_same_batch(asked: Desk) -> None:
    registrar = crowded()
    registrar.grant("ann", "door")
    registrar.join("bob", "door")
    granted, waiting = registrar.claim("bob", "/a/x"), registrar.claim("ann", "/a", wait=True)

    assert expect(Refusal, last_of_batch(registrar, granted, waiting)).code is RefusalCode.DEADLOCK


def last_of_batch(registrar: Registrar, *commands: Acquire) -> Answer | Swept | Refusal | None:
    """Decide claims on one view, and return what the last is told."""
    view, now = registrar.view(), registrar.now()
    told: Answer | Swept | Refusal | None = None
    for command in commands:
        decided: Decision | Refusal | None = None
        while decided is None:
            try:
                decided = decide_for_good(command, view, now)
            except Missing as missing:
                view.ledger.load(missing.keys, registrar.found(missing.keys))
        told = outcome(decided)
    return told


def test_who_joins_a_long_queue_for_a_path_reads_its_beginning_only(asked: Desk) -> None:
    registrar = Registrar()
    registrar.grant("ann", "/a")
    for number in range(40):
        registrar.join(f"waiter {number}", "/a/x" if number % 2 else "/a")
    asked.forget()
    claim = registrar.join("last", "/a")

    assert asked.leases < 40
    assert registrar.wait(claim).places[0].position == 41


def test_those_who_join_the_queue_of_a_tree_in_one_batch_are_counted(asked: Desk) -> None:
    registrar = Registrar()
    registrar.grant("ann", "/a")
    for number in range(40):
        registrar.join(f"waiter {number}", "/a")
    below, last = registrar.claim("bob", "/a/x", wait=True), registrar.claim("cem", "/a", wait=True)

    assert expect(Waiting, last_of_batch(registrar, below, last)).places[0].position == 42


def test_a_path_that_is_released_goes_to_the_head_of_a_long_queue_whose_end_is_not_read(asked: Desk) -> None:
    registrar = Registrar()
    first = registrar.grant("ann", "/a")
    claims = [registrar.join(f"waiter {number}", "/a") for number in range(40)]
    asked.forget()
    registrar.release(first)

    assert registrar.holders("/a") == ["waiter 0"]
    registrar.win(claims[0])
    assert asked.leases < 40


def test_a_directory_that_is_released_goes_to_all_who_wait_below_it_at_once(asked: Desk) -> None:
    registrar = Registrar()
    whole = registrar.grant("ann", "/a")
    for path in FILES:
        registrar.join(f"waiter for {path}", path)
        registrar.join(f"second waiter for {path}", path)
    asked.forget()
    registrar.release(whole)

    assert [registrar.holders(path) for path in FILES] == [[f"waiter for {path}"] for path in FILES]
    assert asked.rounds < len(FILES)


def test_nobody_is_behind_itself_in_the_queue_of_a_tree(asked: Desk) -> None:
    registrar = Registrar()
    other, part = registrar.grant("bob", "/a/c"), registrar.grant("cem", "/a/b")
    registrar.join("ann", "/a")
    registrar.join("ann", "/a/b")
    registrar.join("dia", "/a/b")
    registrar.release(part)
    assert registrar.holders("/a/b") == ["ann"]
    registrar.release(other)

    assert registrar.holders("/a") == ["ann"]


def test_a_claim_on_several_paths_that_is_behind_its_own_holder_is_granted_once(asked: Desk) -> None:
    registrar = Registrar()
    registrar.grant("bob", "/a/c")
    part = registrar.grant("cem", "/a/b")
    registrar.join("ann", "/a")
    claim = registrar.join("ann", "/a/b", also=(Wanted(resource="/a/d"),))
    registrar.release(part)

    assert (registrar.holders("/a/b"), registrar.holders("/a/d")) == (["ann"], ["ann"])
    registrar.win(claim)


def test_an_upgrade_is_not_granted_with_what_its_holder_waits_for_besides(asked: Desk) -> None:
    registrar = Registrar()
    mine = registrar.grant("ann", "/b", mode=Mode.SHARED)
    registrar.grant("bob", "/b", mode=Mode.SHARED)
    registrar.grant("cem", "/a/c")
    part = registrar.grant("dia", "/a/b")
    registrar.join("ann", "/a")
    expect(Waiting, registrar.ask(registrar.change(mine, Mode.EXCLUSIVE, wait=True)))
    registrar.release(part)

    assert registrar.lease(mine.lease_id).is_upgrading
