"""Patterns in the law: in the way, in queues, in deadlocks and upgrades, exactly as directories are."""

import pytest
from msgspec.structs import replace

from leasehold.kernel.lease.answers import Granted, Waiting
from leasehold.kernel.lease.commands import Wanted
from leasehold.kernel.lease.family import LEASES
from leasehold.kernel.lease.model import Mode
from leasehold.kernel.lease.records import LeaseFound, LeaseWanted
from leasehold.kernel.ledger.records import Missing
from leasehold.kernel.ledger.refusals import Refusal, RefusalCode
from leasehold.kernel.ledger.state import invariants
from tests.kernel.deciding import lease_view
from tests.kernel.records import an_authority
from tests.kernel.registrar import SECOND, Registrar, expect


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("/app/**", "/app/models/user.py"),
        ("/app/*.py", "/app"),
        ("/app/*.py", "/app/main.*"),
        ("/{src,tests}/a.py", "/*/a.py"),
    ],
)
def test_what_overlaps_is_held_whichever_came_first(first: str, second: str) -> None:
    for held, wanted in ((first, second), (second, first)):
        registrar = Registrar()
        registrar.grant("ann", held)
        refusal = registrar.deny("bob", wanted)
        assert (refusal.code, refusal.holder, refusal.resource) == (RefusalCode.HELD, "ann", held)


def test_patterns_that_do_not_overlap_are_held_side_by_side() -> None:
    registrar = Registrar()
    registrar.grant("ann", "/src/*.py")
    registrar.grant("bob", "/src/**/*.md")
    registrar.grant("cem", "/src/NOTES.txt")
    assert registrar.deny("dia", "/src").holder in ("ann", "bob", "cem")


def test_who_shares_a_pattern_shares_it_with_what_it_matches() -> None:
    registrar = Registrar()
    registrar.grant("ann", "/src/*.py", mode=Mode.SHARED)
    registrar.grant("bob", "/src/a.py", mode=Mode.SHARED)
    assert registrar.deny("cem", "/src/a*").code is RefusalCode.HELD


def test_nobody_overtakes_who_waits_for_a_pattern() -> None:
    registrar = Registrar()
    held = registrar.grant("ann", "/src/a.py")
    first = registrar.join("bob", "/src/*.py")
    second = registrar.join("cem", "/src/b.py")
    place = registrar.wait(second).places[0]
    assert (place.holder, place.position) == ("bob", 2)
    assert registrar.deny("dia", "/src/c.py").holder == "bob"
    registrar.end(held)
    assert registrar.win(first).lease.resource == "/src/*.py"
    registrar.wait(second)


def test_a_wait_for_patterns_that_would_lead_back_is_refused() -> None:
    registrar = Registrar()
    registrar.grant("ann", "/a/*.py")
    registrar.grant("bob", "/b/*.py")
    registrar.join("ann", "/b/x.py")
    refusal = expect(Refusal, registrar.ask(registrar.claim("bob", "/a/{x,y}.py", wait=True)))
    assert (refusal.code, refusal.holder) == (RefusalCode.DEADLOCK, "ann")


def test_an_upgrade_waits_for_those_who_share_what_a_pattern_matches() -> None:
    registrar = Registrar()
    mine = registrar.grant("ann", "/src/*.py", mode=Mode.SHARED)
    theirs = registrar.grant("bob", "/src/a.py", mode=Mode.SHARED)
    change = registrar.change(mine, Mode.EXCLUSIVE, wait=True)
    expect(Waiting, registrar.ask(change))
    assert registrar.deny("cem", "/src/b.py", mode=Mode.SHARED).holder == "ann"
    refusal = expect(Refusal, registrar.ask(registrar.change(theirs, Mode.EXCLUSIVE, wait=True)))
    assert refusal.code is RefusalCode.DEADLOCK
    registrar.end(theirs)
    assert expect(Granted, registrar.ask(change)).lease.mode is Mode.EXCLUSIVE


def test_patterns_that_overlap_can_be_claimed_together() -> None:
    registrar = Registrar()
    registrar.grant("ann", "/src/*.py", also=(Wanted(resource="/src/a*"), Wanted(resource="/docs/**")))
    assert registrar.deny("bob", "/src/b.py").holder == "ann"


def test_what_lies_in_another_of_one_claim_is_refused() -> None:
    registrar = Registrar()
    refusal = registrar.deny("ann", "/src", also=(Wanted(resource="/src/*.py"),))
    assert refusal.code is RefusalCode.INVALID_INPUT


def test_who_waits_behind_a_file_is_not_kept_by_who_waits_for_what_looks_like_one() -> None:
    """`/a/b.d` has an extension: what only `/*/x` relates to below it does not wait for it."""
    registrar = Registrar()
    held = registrar.grant("ann", "/a/b.d/x")
    file = registrar.grant("bob", "/a/b.d/y")
    first = registrar.join("cem", "/a/b.d")
    second = registrar.join("dia", "/a/*/x")
    registrar.end(held)
    assert registrar.win(second).lease.resource == "/a/*/x"
    registrar.end(file)
    assert registrar.win(first).lease.resource == "/a/b.d"


def test_a_delay_is_ended_by_who_comes_back_for_the_same_pattern() -> None:
    registrar = Registrar()
    registrar.grant("ann", "/src/*.py", ttl_ns=SECOND, lock_delay_ns=60 * SECOND)
    registrar.advance(2)
    assert registrar.deny("bob", "/src/a.py").holder == "registrar"
    again = registrar.grant("ann", "/src/*.py")
    registrar.end(again)
    registrar.grant("bob", "/src/a.py")


def test_a_pattern_that_cannot_be_read_is_refused() -> None:
    registrar = Registrar()
    refusal = registrar.deny("ann", "/src/[a")
    assert refusal.code is RefusalCode.INVALID_INPUT
    assert "not closed" in (refusal.detail or "")


def test_a_child_is_checked_for_how_its_path_is_spelled() -> None:
    registrar = Registrar()
    parent = registrar.grant("ann", "door")
    for path in ("/a/", "/a/[b", "/a\\b"):
        assert registrar.refuse_child(parent, resource=path).code is RefusalCode.INVALID_INPUT


def test_patterns_in_conflict_break_an_invariant() -> None:
    registrar = Registrar()
    first = registrar.grant("ann", "/src/*.py")
    second = registrar.grant("bob", "/docs/*")
    assert not invariants(registrar.state, LEASES)
    registrar.put(replace(second, resource="/src/a.*"))
    (problem,) = invariants(registrar.state, LEASES)
    assert first.lease_id in problem
    assert "in conflict" in problem


def test_who_knows_all_around_what_looks_like_a_file_does_not_know_all_around_what_lies_in_it() -> None:
    view = lease_view(an_authority())
    for above in ("/a/b.d", "/a/c"):
        view.load(LeaseWanted(trees={("default", above, 16)}), LeaseFound())
    assert view.tree_of("default", "/a/c/x", 16) == ([], frozenset())
    with pytest.raises(Missing):
        view.tree_of("default", "/a/b.d/x", 16)
