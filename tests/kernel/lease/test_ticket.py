"""What happens to leases with tickets, event by event; and what is reported when their records are wrong."""

from typing import Any

import pytest
from msgspec.structs import replace

from leasehold.kernel.lease.commands import Wanted
from leasehold.kernel.lease.events import (
    LeaseConfirmed,
    LeaseDoubted,
    LeaseEvent,
    LeaseIssued,
    LeaseLeft,
    LeaseModeChanged,
    LeaseQueued,
    LeaseReleased,
    LeaseUpgradeLeft,
    LeaseUpgradeQueued,
)
from leasehold.kernel.lease.evolve import evolve
from leasehold.kernel.lease.invariants import invariants
from leasehold.kernel.lease.model import Lease, LeaseState, Mode, ReleaseReason
from leasehold.kernel.lease.paths import ancestors, covers, descendant_range, related
from leasehold.kernel.lease.records import LeaseFound, LeaseWanted
from leasehold.kernel.lease.ticket import AGEING_NS, LAST_PLACE, Ticket
from leasehold.kernel.ledger.authority import COUNTER_LIMIT, evolve_authority
from leasehold.kernel.ledger.events import Event, IllegalTransition
from leasehold.kernel.ledger.state import State
from leasehold.kernel.ledger.tick import Tick
from tests.kernel.deciding import lease_view
from tests.kernel.records import OF_LEASE, TOKEN, a_lease, an_authority
from tests.kernel.registrar import Registrar

TICKET = Ticket(number=TOKEN, since=Tick(value=50), since_ns=5_000)
UPGRADE = replace(TICKET, upgrade=True, kept_until=99)


def waiting(**fields: Any) -> Lease:
    return a_lease(**({"state": LeaseState.PENDING, "ticket": TICKET} | fields))


def unconfirmed(**fields: Any) -> Lease:
    return a_lease(ticket=TICKET, **fields)


def event(kind: type[Any], **fields: Any) -> Any:
    return kind(**(OF_LEASE | fields))


def granted(**fields: Any) -> LeaseIssued:
    made: LeaseIssued = event(
        LeaseIssued, **({"ttl_ns": 50, "claim_window_ns": 7, "token": TOKEN + 1} | fields)
    )
    return made


@pytest.mark.parametrize(
    ("lease", "happened", "problem"),
    [
        (None, granted(), "never waited"),
        (waiting(), granted(holder="bob"), "nobody asked for"),
        (waiting(), granted(mode=Mode.SHARED), "nobody asked for"),
        (waiting(), granted(claim_window_ns=0), "without a claim window"),
        (waiting(), granted(token=TOKEN), "or a higher token"),
        (waiting(), event(LeaseQueued, ttl_ns=1, kept_ns=1), "exists already"),
        (waiting(), event(LeaseReleased, reason=ReleaseReason.COMPLETED), "was pending"),
        (waiting(), event(LeaseConfirmed), "was pending"),
        (a_lease(), event(LeaseLeft, reason="x"), "was active"),
        (a_lease(), event(LeaseConfirmed), "could not be"),
        (unconfirmed(), event(LeaseConfirmed, tick=Tick(value=100)), "could not be"),
        (unconfirmed(expires_tick=None), event(LeaseConfirmed), "could not be"),
        (a_lease(), event(LeaseModeChanged, mode=Mode.EXCLUSIVE, token=TOKEN + 1), "became exclusive"),
        (a_lease(), event(LeaseModeChanged, mode=Mode.SHARED, token=TOKEN + 1), "became shared"),
        (a_lease(mode=Mode.SHARED), event(LeaseModeChanged, mode=Mode.EXCLUSIVE), "became exclusive"),
        (unconfirmed(), event(LeaseModeChanged, mode=Mode.SHARED), "became shared"),
        (a_lease(), event(LeaseUpgradeQueued, ticket=TOKEN + 1, kept_ns=9), "cannot be upgraded"),
        (
            unconfirmed(mode=Mode.SHARED),
            event(LeaseUpgradeQueued, ticket=TOKEN + 1, kept_ns=9),
            "cannot be upgraded",
        ),
        (a_lease(mode=Mode.SHARED), event(LeaseUpgradeLeft, reason="x"), "no upgrade to give up"),
        (a_lease(), event(LeaseDoubted), "does not wait undoubted"),
        (unconfirmed(), event(LeaseDoubted), "does not wait undoubted"),
        (evolve(waiting(), event(LeaseDoubted)), event(LeaseDoubted), "does not wait undoubted"),
    ],
)
def test_an_event_that_the_law_could_not_have_produced_is_refused(
    lease: Lease | None, happened: LeaseEvent, problem: str
) -> None:
    with pytest.raises(IllegalTransition, match=problem):
        evolve(lease, happened)


@pytest.mark.parametrize(
    ("happened", "problem"),
    [
        (event(LeaseModeChanged, mode=Mode.EXCLUSIVE), "not above all others"),
        (event(LeaseQueued, ttl_ns=1, kept_ns=1, token=2 * COUNTER_LIMIT), "out of range"),
        (event(LeaseUpgradeQueued, ticket=2 * COUNTER_LIMIT, kept_ns=1), "out of range"),
    ],
)
def test_tickets_and_tokens_are_counted_together(happened: Event, problem: str) -> None:
    with pytest.raises(IllegalTransition, match=problem):
        evolve_authority(an_authority(), happened)


def test_a_ticket_that_comes_again_does_not_count_again() -> None:
    authority = an_authority(counter=1)
    first = evolve_authority(authority, event(LeaseQueued, ttl_ns=1, kept_ns=1, token=TOKEN + 1))

    assert first.counter == 2
    assert evolve_authority(first, event(LeaseQueued, ttl_ns=1, kept_ns=1, token=TOKEN + 1)).counter == 2
    assert evolve_authority(first, event(LeaseModeChanged, mode=Mode.SHARED)).counter == 2


def other(**fields: Any) -> Lease:
    return a_lease(**({"lease_id": "lease-2", "token": TOKEN + 1, "holder": "bob"} | fields))


def behind(number: int = 1, **fields: Any) -> Lease:
    """Another waiter, of bob's unless said otherwise."""
    ticket = replace(TICKET, number=TOKEN + number)
    return other(state=LeaseState.PENDING, token=TOKEN + number, ticket=ticket, **fields)


PATH = {"resource": "/a"}


@pytest.mark.parametrize(
    ("leases", "problem"),
    [
        ([waiting(ticket=None)], "waits without its ticket"),
        ([waiting(token=TOKEN + 9)], "waits without its ticket"),
        ([waiting(), behind(holder="ann"), other(lease_id="l3", token=TOKEN + 5)], "ann waits twice"),
        ([waiting(ticket=replace(TICKET, group=("lease-1", "lease-9"))), other()], "the rest of its claim"),
        (
            [
                waiting(ticket=replace(TICKET, group=("lease-1", "lease-2"))),
                other(ticket=TICKET, holder="ann", resource="window"),
            ],
            "another of its claim does not",
        ),
        ([waiting()], f"ticket {TOKEN} of default waits, and nothing is in its way"),
        ([a_lease(**PATH), other(resource="/a/b")], "lease-1 on /a and lease-2 on /a/b are in conflict"),
        (
            [a_lease(mode=Mode.SHARED, ticket=UPGRADE), other(mode=Mode.SHARED, ticket=UPGRADE)],
            "is to be upgraded twice",
        ),
        (
            [a_lease(mode=Mode.SHARED, ticket=UPGRADE), other(mode=Mode.SHARED, ticket=UPGRADE)],
            "these wait for each other, for ever: default/ann, default/bob",
        ),
        ([a_lease(ticket=UPGRADE), other(resource="w")], "is exclusive, and waits to be exclusive"),
        (
            [
                a_lease(),
                other(resource="window"),
                behind(2, lease_id="l3", holder="ann", resource="window"),
                behind(3, lease_id="l4"),
            ],
            "these wait for each other, for ever",
        ),
    ],
)
def test_a_broken_queue_is_reported(leases: list[Lease], problem: str) -> None:
    state = State(
        records={"lease": {lease.lease_id: lease for lease in leases}}, authority=an_authority(counter=99)
    )

    assert any(problem in sentence for sentence in invariants(state)), invariants(state)


@pytest.mark.parametrize(
    "leases",
    [
        [a_lease(), behind()],
        [a_lease(**PATH), behind(resource="/a/b")],
        [a_lease(resource="/a/b"), behind(resource="/a")],
        [a_lease(**PATH), other(holder="ann", resource="/a/b")],
        [a_lease(mode=Mode.SHARED, ticket=UPGRADE), other(mode=Mode.SHARED)],
        [
            a_lease(holder="registrar", mode=Mode.SHARED),
            other(holder="registrar", mode=Mode.SHARED),
        ],
    ],
)
def test_a_sound_queue_is_not_reported(leases: list[Lease]) -> None:
    state = State(
        records={"lease": {lease.lease_id: lease for lease in leases}}, authority=an_authority(counter=99)
    )

    assert invariants(state) == []


def test_the_order_is_era_then_aged_priority_then_ticket() -> None:
    def place(**fields: Any) -> str:
        return replace(TICKET, **fields).place

    assert place(number=TOKEN) < place(number=TOKEN + 1)
    assert place(priority=6) < place(priority=5)
    later = Tick(value=50 + AGEING_NS)
    assert place(number=TOKEN) < place(since=later, priority=6, number=TOKEN + 1)
    assert place(since=Tick(value=49 + AGEING_NS), priority=6, number=TOKEN + 1) < place(number=TOKEN)
    assert place(since=Tick(value=10**18), priority=1) < place(since=Tick(value=0, era=2), priority=10)
    assert place() < replace(UPGRADE).place == LAST_PLACE
    assert place(since=Tick(value=0), priority=10) < place(since=Tick(value=2**62), priority=1)


def test_paths_relate_by_whole_names() -> None:
    assert ancestors("/") == []
    assert ancestors("/a/b/c") == ["/", "/a", "/a/b"]
    assert covers("/", "/a")
    assert covers("/a", "/a/b")
    assert not covers("/a", "/ab")
    assert related("/a/b", "/a")
    assert related("a", "a")
    assert not related("a", "a/b")
    for path in ("/", "/a", "/a/é"):
        first, end = descendant_range(path)
        below = f"{path.rstrip('/')}/x"
        assert first < below < end
        assert not first < f"{path}0" < end or path == "/"


def test_a_view_that_serves_a_second_batch_reads_its_queues_anew() -> None:
    view = lease_view(an_authority())
    key = ("default", "door", 8)
    last = ("default", "door", LAST_PLACE)
    found = LeaseFound(
        records={"lease-1": waiting()},
        queues={key: (TICKET.place, LAST_PLACE)},
        awaited={key[:2]},
        places={last: 1},
    )
    view.load(LeaseWanted(queues={key}, places={last}), found)
    left = event(LeaseLeft, reason="x")
    view.fold([left], [evolve(waiting(), left)])
    assert view.count_ahead("default", "door", LAST_PLACE) == 0
    view.settle()

    assert view.is_awaited("default", "door"), "to be on the safe side"
    with pytest.raises(LookupError):
        view.count_ahead("default", "door", LAST_PLACE)
    with pytest.raises(LookupError):
        view.queue_of("default", "door", None, 1)


def test_a_claim_of_which_a_part_is_missing_is_not_guessed_at() -> None:
    registrar = Registrar()
    registrar.grant("ann", "a")
    claim = registrar.join("bob", "a", also=(Wanted(resource="b"),))
    del registrar.state.of("lease")[claim.lease_ids[1]]
    registrar.replayable = False

    with pytest.raises(LookupError, match="does not exist"):
        registrar.ask(claim)


def test_a_waiter_may_hold_something_that_nobody_wants() -> None:
    registrar = Registrar()
    registrar.grant("ann", "a")
    registrar.grant("bob", "b")
    registrar.grant("bob", "/c")

    registrar.join("bob", "a")


def test_one_holder_may_wait_for_two_things_at_once() -> None:
    registrar = Registrar()
    registrar.grant("ann", "a")
    registrar.grant("ann", "b")

    registrar.join("bob", "a")
    registrar.join("bob", "b")


def test_an_own_wait_ahead_in_the_tree_is_in_nobodys_way_but_others() -> None:
    registrar = Registrar()
    held = registrar.grant("ann", "/d/x")
    registrar.join("bob", "/d")
    below = registrar.join("bob", "/d/x")

    assert registrar.wait(below).places[0].holder == "ann"
    registrar.end(held)
    assert registrar.holders("/d") == registrar.holders("/d/x") == ["bob"]


@pytest.mark.parametrize("state", [LeaseState.PENDING, LeaseState.FAILED])
def test_what_was_only_waited_for_was_never_held(state: LeaseState) -> None:
    assert a_lease().was_held_at(5_010)
    assert not waiting(state=state).was_held_at(5_010)
