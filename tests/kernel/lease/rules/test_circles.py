"""Waits for a limited time that close a circle: they wait until everybody in it has shown that it lives."""

from leasehold.kernel.lease.answers import Granted, Waiting
from leasehold.kernel.lease.commands import Acquire, Wanted
from leasehold.kernel.lease.decision import Decision
from leasehold.kernel.lease.model import Lease, LeaseState, Mode
from leasehold.kernel.ledger.refusals import Refusal, RefusalCode
from tests.kernel.registrar import SECOND, TTL, Registrar, expect


class Circle:
    """Ann holds a and waits for b; Bob holds b and waits for a, for a while."""

    def __init__(self) -> None:
        self.registrar = Registrar()
        self.a = self.registrar.grant("ann", "a")
        self.b = self.registrar.grant("bob", "b", ttl_ns=3600 * SECOND)
        self.ann = self.registrar.join("ann", "b", wake="ann")
        self.bob = self.registrar.claim("bob", "a", wait=True, gives_up=True, wake="bob")

    def is_doubted(self, claim: Acquire) -> bool:
        ticket = self.registrar.lease(claim.lease_id).ticket
        return ticket is not None and ticket.doubted


def test_a_wait_without_end_that_closes_a_circle_is_refused_at_once() -> None:
    circle = Circle()

    refusal = circle.registrar.deny("bob", "a", wait=True)

    assert refusal.code is RefusalCode.DEADLOCK
    assert refusal.cycle == ("bob", "a", "ann", "b", "bob")


def test_a_wait_that_ends_by_itself_is_queued_and_everybody_in_the_circle_is_woken() -> None:
    circle = Circle()

    decided = expect(Decision, circle.registrar.decide(circle.bob))

    assert isinstance(decided.answer, Waiting)
    assert sorted(decided.wakes) == ["ann", "bob"]
    expect(Waiting, circle.registrar.ask(circle.bob))
    assert circle.is_doubted(circle.ann)
    assert circle.is_doubted(circle.bob)


def test_a_party_that_has_died_makes_way_when_its_lease_ends() -> None:
    circle = Circle()
    circle.registrar.ask(circle.bob)
    for _ in range(3):
        circle.registrar.advance(3)
        assert circle.registrar.wait(circle.bob).places[0].holder == "ann"
        assert not circle.is_doubted(circle.bob)
    circle.registrar.clock = 1_000 * SECOND + TTL

    granted = circle.registrar.win(circle.bob)

    assert granted.lease.token > circle.a.token


def test_once_all_in_the_circle_have_asked_again_the_last_to_come_is_refused() -> None:
    circle = Circle()
    circle.registrar.ask(circle.bob)
    circle.registrar.wait(circle.ann)

    refusal = expect(Refusal, circle.registrar.ask(circle.bob))

    assert refusal.code is RefusalCode.DEADLOCK
    assert refusal.cycle == ("bob", "a", "ann", "b", "bob")
    circle.registrar.cancel(circle.bob)
    assert circle.registrar.wait(circle.ann).places[0].holder == "bob"


def test_whoever_came_last_and_asked_first_is_woken_once_more_and_then_refused() -> None:
    circle = Circle()
    circle.registrar.ask(circle.bob)
    circle.registrar.wait(circle.bob)

    decided = expect(Decision, circle.registrar.decide(circle.ann))

    assert isinstance(decided.answer, Waiting)
    assert decided.wakes == ["bob"]
    circle.registrar.ask(circle.ann)
    assert circle.is_doubted(circle.bob)
    assert expect(Refusal, circle.registrar.ask(circle.bob)).code is RefusalCode.DEADLOCK


def test_whoever_came_last_and_died_lapses_like_any_waiter() -> None:
    circle = Circle()
    circle.registrar.ask(circle.bob)
    for _ in range(6):
        circle.registrar.advance(5)
        circle.registrar.extend(circle.a)
        circle.registrar.wait(circle.ann)
    circle.registrar.sweep(circle.registrar.lease(circle.bob.lease_id))

    assert circle.registrar.lease(circle.bob.lease_id).state is LeaseState.FAILED
    assert circle.registrar.queue("b") == ["ann"]


def test_a_claim_in_doubt_that_is_granted_is_not_in_doubt_any_more() -> None:
    circle = Circle()
    circle.registrar.ask(circle.bob)
    circle.registrar.end(circle.a)

    lease = circle.registrar.lease(circle.bob.lease_id)
    assert lease.state is LeaseState.ACTIVE
    assert not circle.is_doubted(circle.bob)
    assert circle.is_doubted(circle.ann), "she has not asked yet"
    circle.registrar.win(circle.bob)
    assert circle.registrar.wait(circle.ann).places[0].holder == "bob"


def test_all_who_wait_in_any_circle_with_the_newcomer_are_in_doubt_and_nobody_else() -> None:
    registrar = Registrar()
    for holder, resource in (("ann", "a"), ("bob", "b"), ("cem", "c"), ("dia", "d")):
        registrar.grant(holder, resource, ttl_ns=3600 * SECOND)
    onward, short = registrar.join("cem", "b"), registrar.join("ann", "b")
    long, aside = registrar.join("ann", "c"), registrar.join("ann", "d")
    closing = registrar.claim("bob", "a", wait=True, gives_up=True)
    registrar.ask(closing)

    def doubted(claim: Acquire) -> bool:
        ticket = registrar.lease(claim.lease_id).ticket
        return ticket is not None and ticket.doubted

    assert [doubted(claim) for claim in (short, long, onward, closing)] == [True] * 4
    assert not doubted(aside)


def test_a_claim_on_several_resources_is_out_of_doubt_on_all_of_them_when_it_has_asked() -> None:
    registrar = Registrar()
    registrar.grant("ann", "a")
    registrar.grant("bob", "b")
    registrar.join("ann", "b")
    claim = registrar.claim("bob", "c", wait=True, gives_up=True, also=(Wanted(resource="a"),))
    registrar.ask(claim)
    registrar.advance(0.5)

    registrar.wait(claim)

    leases = [registrar.lease(lease_id) for lease_id in claim.lease_ids]
    assert all(lease.ticket is not None and not lease.ticket.doubted for lease in leases)
    assert len({lease.expires_tick for lease in leases}) == 1, "they lapse together"


class TestAnUpgrade:
    def sharers(self) -> tuple[Registrar, Lease, Lease]:
        registrar = Registrar()
        first = registrar.grant("ann", "pool", mode=Mode.SHARED, ttl_ns=3600 * SECOND)
        second = registrar.grant("bob", "pool", mode=Mode.SHARED, ttl_ns=3600 * SECOND)
        return registrar, first, second

    def test_is_in_doubt_like_any_wait_and_out_of_it_when_asked_for_again(self) -> None:
        registrar, first, _ = self.sharers()
        registrar.grant("ann", "a", ttl_ns=3600 * SECOND)
        upgrade = registrar.change(first, Mode.EXCLUSIVE, wait=True)
        registrar.ask(upgrade)
        closing = registrar.claim("bob", "a", wait=True, gives_up=True)
        registrar.ask(closing)
        ticket = registrar.lease(first.lease_id).ticket
        assert ticket is not None
        assert ticket.doubted

        expect(Waiting, registrar.ask(upgrade))

        ticket = registrar.lease(first.lease_id).ticket
        assert ticket is not None
        assert not ticket.doubted
        assert expect(Refusal, registrar.ask(closing)).code is RefusalCode.DEADLOCK, "it came last"
        registrar.cancel(closing)
        expect(Waiting, registrar.ask(upgrade))

    def test_that_closes_a_circle_is_refused_at_once(self) -> None:
        registrar, first, second = self.sharers()
        registrar.ask(registrar.change(first, Mode.EXCLUSIVE, wait=True))

        refusal = expect(Refusal, registrar.ask(registrar.change(second, Mode.EXCLUSIVE, wait=True)))

        assert refusal.code is RefusalCode.DEADLOCK

    def test_that_need_not_wait_is_refused_where_it_makes_others_wait_in_a_circle(self) -> None:
        registrar = Registrar()
        registrar.grant("dia", "gate")
        shared = registrar.grant("ann", mode=Mode.SHARED)
        registrar.grant("bob", "shelf")
        registrar.join("bob", mode=Mode.SHARED, also=(Wanted(resource="gate"),))
        registrar.join("ann", "shelf")

        refusal = expect(Refusal, registrar.ask(registrar.change(shared, Mode.EXCLUSIVE)))

        assert refusal.cycle == ("ann", "shelf", "bob", "door", "ann")

    def test_that_came_last_in_a_circle_is_refused_when_all_others_have_asked(self) -> None:
        registrar, first, _ = self.sharers()
        registrar.grant("ann", "a", ttl_ns=3600 * SECOND)
        closing = registrar.claim("bob", "a", wait=True, gives_up=True, priority=1)
        registrar.ask(closing)
        upgrade = registrar.change(first, Mode.EXCLUSIVE, wait=True)
        assert expect(Refusal, registrar.ask(upgrade)).code is RefusalCode.DEADLOCK, "and so at once"


def test_a_transfer_into_a_circle_has_everybody_in_it_asked_again() -> None:
    circle = Circle()
    circle.registrar.ask(circle.bob)
    circle.registrar.wait(circle.bob)
    assert not circle.is_doubted(circle.bob)
    other = circle.registrar.grant("cem", "c")

    expect(Granted, circle.registrar.ask(circle.registrar.hand_over(other, "ann")))

    assert circle.is_doubted(circle.bob)
