"""Several resources at once, paths, changes of mode, transfers, lock-delay, and who may not wait for whom."""

from itertools import pairwise
from typing import Any

import pytest

from leasehold.errors import error_of
from leasehold.kernel.lease.answers import Granted, Waiting
from leasehold.kernel.lease.budget import Budget
from leasehold.kernel.lease.commands import Acquire, Wanted
from leasehold.kernel.lease.model import LeaseState, Mode
from leasehold.kernel.lease.quotas import Quotas
from leasehold.kernel.lease.ticket import CLAIM_WINDOW_NS, KEPT_NS
from leasehold.kernel.ledger.refusals import Refusal, RefusalCode
from tests.kernel.registrar import SECOND, TTL, Registrar, expect

SHARED, EXCLUSIVE = Mode.SHARED, Mode.EXCLUSIVE


def also(*resources: str, mode: Mode = EXCLUSIVE) -> tuple[Wanted, ...]:
    return tuple(Wanted(resource=resource, mode=mode) for resource in resources)


class TestSeveralResources:
    def test_are_granted_together_with_tokens_that_rise(self) -> None:
        registrar = Registrar()
        claim = registrar.claim("ann", "a", also=(Wanted(resource="b", mode=SHARED), Wanted(resource="c")))

        granted = expect(Granted, registrar.ask(claim))

        leases = [granted.lease, *granted.also]
        assert [lease.resource for lease in leases] == ["a", "b", "c"]
        assert [lease.mode for lease in leases] == [EXCLUSIVE, SHARED, EXCLUSIVE]
        assert tuple(lease.lease_id for lease in leases) == claim.lease_ids
        assert granted.expires_in_ns == TTL
        again = expect(Granted, registrar.ask(claim))
        assert again.repeated
        assert (again.lease, again.also) == (granted.lease, granted.also)

    def test_are_refused_whole_if_one_is_held(self) -> None:
        registrar = Registrar()
        registrar.grant("ann", "b")

        refusal = registrar.deny("bob", "a", also=also("b"))

        assert (refusal.code, refusal.resource, refusal.holder) == (RefusalCode.HELD, "b", "ann")
        assert registrar.holders("a") == []

    def test_keep_one_ticket_in_all_queues_and_are_granted_together(self) -> None:
        registrar = Registrar()
        first, second = registrar.grant("ann", "a"), registrar.grant("ann", "b")
        claim = registrar.join("bob", "a", also=also("b"))
        later = registrar.join("cem", "b")
        assert [place.position for place in registrar.wait(later).places] == [2]
        registrar.end(first)

        waiting = registrar.wait(claim)
        assert [place.holder for place in waiting.places] == [None, "ann"]
        assert registrar.deny("dia", "a").holder == "bob", "what it is first for stays reserved"
        registrar.end(second)

        granted = registrar.win(claim)
        assert {lease.resource for lease in (granted.lease, *granted.also)} == {"a", "b"}
        assert all(not lease.is_unconfirmed for lease in (granted.lease, *granted.also))
        assert registrar.queue("b") == ["cem"]

    def test_are_passed_by_whoever_can_share_what_they_share(self) -> None:
        registrar = Registrar()
        first, second = registrar.grant("ann", "a"), registrar.grant("ann", "b")
        both = registrar.join("bob", "a", mode=SHARED, also=also("b"))
        one = registrar.join("cem", "a", mode=SHARED)

        registrar.end(first)

        assert registrar.holders("a") == ["cem"], "bob is first in line, and waits for b as well"
        registrar.win(one)
        registrar.end(second)
        registrar.win(both)

    def test_leave_all_queues_together(self) -> None:
        registrar = Registrar()
        registrar.grant("ann", "a")
        claim = registrar.join("bob", "a", also=also("b"))
        behind = registrar.join("cem", "b")

        registrar.release(registrar.lease(claim.lease_id))

        assert registrar.queue("a") == []
        assert registrar.holders("b") == ["cem"]
        registrar.win(behind)

    def test_fall_silent_together_and_soon(self) -> None:
        registrar = Registrar()
        registrar.grant("ann", "a", ttl_ns=3600 * SECOND)
        dead = registrar.join("bob", "a", also=also("b"))
        behind = registrar.join("cem", "b")
        registrar.clock += CLAIM_WINDOW_NS

        registrar.win(behind)

        assert {registrar.lease(name).state for name in dead.lease_ids} == {LeaseState.FAILED}

    def test_keep_their_place_by_asking_often(self) -> None:
        registrar = Registrar()
        registrar.grant("ann", "a", ttl_ns=3600 * SECOND)
        claim = registrar.join("bob", "a", also=also("b"))
        for _ in range(20):
            registrar.clock += registrar.wait(claim).ask_again_ns
        assert registrar.wait(claim).waited_ns == 10 * SECOND
        assert registrar.deny("cem", "b").holder == "bob"

    def test_are_swept_together(self) -> None:
        registrar = Registrar()
        registrar.grant("ann", "a", ttl_ns=3600 * SECOND)
        claim = registrar.join("bob", "a", also=also("b"))
        registrar.clock += CLAIM_WINDOW_NS

        registrar.sweep(registrar.lease(claim.lease_ids[1]))

        assert {registrar.lease(name).state for name in claim.lease_ids} == {LeaseState.FAILED}

    def test_that_were_partly_lost_before_they_were_confirmed_are_not_confirmed(self) -> None:
        registrar = Registrar()
        held = registrar.grant("ann", "a")
        claim = registrar.join("bob", "a", also=also("b"))
        registrar.end(held)
        registrar.revoke(registrar.lease(claim.lease_ids[1]))

        assert expect(Granted, registrar.ask(claim)).ended
        assert registrar.lease(claim.lease_id).is_unconfirmed

    def test_can_be_shared_past_somebody_who_shares_and_waits_elsewhere(self) -> None:
        registrar = Registrar()
        registrar.grant("ann", "a")
        registrar.join("bob", "a", also=also("b", mode=SHARED), mode=SHARED)

        assert registrar.grant("cem", "b", mode=SHARED).holder == "cem"

    def test_of_one_request_id_are_one_request(self) -> None:
        registrar = Registrar()
        claim = registrar.claim("ann", "a", lease_id="x", request_id="x", also=also("b"))
        expect(Granted, registrar.ask(claim))

        assert expect(Granted, registrar.ask(claim)).repeated
        other = registrar.claim("ann", "a", lease_id="x", request_id="x", also=also("b", "c"))
        assert expect(Refusal, registrar.ask(other)).code is RefusalCode.LEASE_EXISTS

    def test_can_be_adopted_together(self) -> None:
        registrar = Registrar()
        registrar.grant("ann", "a")
        registrar.grant("ann", "b")

        granted = expect(Granted, registrar.ask(registrar.claim("ann", "a", also=also("b"), adopt=True)))

        assert registrar.holders("a") == registrar.holders("b") == ["ann"]
        assert granted.lease.adopted_from is not None

    def test_count_in_quotas_as_many(self) -> None:
        registrar = Registrar(Quotas(leases_per_holder=2, leases_per_tenant=5))

        refusal = registrar.deny("ann", "a", also=also("b", "c"))
        assert (refusal.field, refusal.limit) == ("leases_per_holder", 2)
        assert registrar.grant("ann", "a", also=also("b")).resource == "a"


class TestQuotasOfWaiters:
    def test_a_waiter_counts_for_its_holder(self) -> None:
        registrar = Registrar(Quotas(leases_per_holder=1))
        registrar.grant("ann")
        claim = registrar.join("bob")
        assert registrar.deny("bob", "window").field == "leases_per_holder"
        assert registrar.deny("bob", "gate", also=also("wall")).field == "leases_per_holder"
        registrar.cancel(claim)
        registrar.grant("bob", "window")
        assert registrar.deny("bob", wait=True).field == "leases_per_holder"

    def test_a_waiter_counts_for_its_tenant(self) -> None:
        registrar = Registrar(Quotas(leases_per_tenant=2))
        held = registrar.grant("ann")
        registrar.join("bob")
        assert registrar.deny("cem", wait=True).field == "leases_per_tenant"
        registrar.end(held)
        registrar.join("cem")


class TestPaths:
    def test_a_directory_and_what_is_below_it_conflict(self) -> None:
        registrar = Registrar()
        registrar.grant("ann", "/src")

        assert registrar.deny("bob", "/src/a/b.c").holder == "ann"
        assert registrar.deny("bob", "/").holder == "ann"
        assert registrar.deny("bob", "/src").holder == "ann"
        assert registrar.grant("bob", "/src2").holder == "bob"
        assert registrar.grant("cem", "src").holder == "cem", "a plain name is no path"

    def test_shared_with_shared_does_not_conflict(self) -> None:
        registrar = Registrar()
        registrar.grant("ann", "/src", mode=SHARED)

        assert registrar.grant("bob", "/src/a", mode=SHARED).holder == "bob"
        assert registrar.deny("cem", "/src/a/b").holder in ("ann", "bob")

    def test_one_holder_may_have_a_directory_and_something_in_it(self) -> None:
        registrar = Registrar()
        registrar.grant("ann", "/src")

        assert registrar.grant("ann", "/src/a").holder == "ann"
        assert registrar.deny("ann", "/src").code is RefusalCode.ALREADY_HELD

    def test_a_tree_has_one_queue(self) -> None:
        registrar = Registrar()
        held = registrar.grant("ann", "/src/a")
        whole = registrar.join("bob", "/src")
        part = registrar.join("cem", "/src/b")
        assert registrar.wait(part).places[0].position == 2
        assert registrar.grant("dia", "/doc").holder == "dia"
        registrar.end(held)

        assert registrar.holders("/src") == ["bob"]
        registrar.end(registrar.win(whole).lease)
        assert registrar.holders("/src/b") == ["cem"]
        registrar.win(part)

    def test_what_ends_above_makes_way_for_several_below(self) -> None:
        registrar = Registrar()
        held = registrar.grant("ann", "/")
        names = ["/a", "/b", "/a/b", "/c"]
        for number, name in enumerate(names):
            registrar.join(f"waiter-{number}", name)
        registrar.end(held)

        assert [registrar.holders(name) for name in names] == [["waiter-0"], ["waiter-1"], [], ["waiter-3"]]

    def test_an_expired_lease_in_the_tree_is_in_nobodys_way(self) -> None:
        registrar = Registrar()
        registrar.grant("ann", "/src/a")
        registrar.clock += TTL

        assert registrar.grant("bob", "/src").holder == "bob"
        assert registrar.history()[-2:] == ["lease.expired", "lease.issued"]

    def test_tenants_have_trees_of_their_own(self) -> None:
        registrar = Registrar()
        registrar.grant("ann", "/", tenant="acme")

        assert registrar.grant("bob", "/src", tenant="umbrella").holder == "bob"

    @pytest.mark.parametrize("path", ["//", "/a/", "/a//b", "/./a", "/a/..", "/..", "/a/./b"])
    def test_a_path_has_one_spelling(self, path: str) -> None:
        refusal = Registrar().deny("ann", path)

        assert (refusal.code, refusal.field) == (RefusalCode.INVALID_INPUT, "resource")

    def test_one_claim_does_not_name_a_directory_and_what_is_in_it(self) -> None:
        assert Registrar().deny("ann", "/a", also=also("/a/b")).field == "resources"
        assert Registrar().deny("ann", "a", also=also("a")).field == "resources"
        assert Registrar().grant("ann", "/a", also=also("/ab")).resource == "/a"


class TestUpgrade:
    def test_of_the_only_sharer_happens_at_once_with_a_higher_token(self) -> None:
        registrar = Registrar()
        lease = registrar.grant("ann", mode=SHARED)
        registrar.advance(1)

        granted = expect(Granted, registrar.ask(registrar.change(lease, EXCLUSIVE)))

        assert granted.lease.mode is EXCLUSIVE
        assert granted.lease.lease_id == lease.lease_id
        assert granted.lease.token > lease.token
        assert granted.expires_in_ns == TTL - SECOND

    def test_without_waiting_is_refused_while_others_share(self) -> None:
        registrar = Registrar()
        lease = registrar.grant("ann", mode=SHARED)
        registrar.grant("bob", mode=SHARED)

        refusal = expect(Refusal, registrar.ask(registrar.change(lease, EXCLUSIVE)))

        assert (refusal.code, refusal.holder) == (RefusalCode.HELD, "bob")

    def test_goes_before_the_queue_when_the_other_sharers_have_gone(self) -> None:
        registrar = Registrar()
        lease, other = registrar.grant("ann", mode=SHARED), registrar.grant("bob", mode=SHARED)
        writer = registrar.join("cem", priority=10)
        upgrade = registrar.change(lease, EXCLUSIVE, wait=True, wake="ann's bell")
        waiting = expect(Waiting, registrar.ask(upgrade))
        assert (waiting.places[0].position, waiting.places[0].holder) == (1, "bob")
        assert waiting.lease_id == lease.lease_id
        registrar.end(other)

        upgraded = registrar.lease(lease.lease_id)
        assert upgraded.mode is EXCLUSIVE
        granted = expect(Granted, registrar.ask(upgrade))
        assert granted.lease == upgraded
        registrar.end(upgraded)
        registrar.win(writer)

    def test_lets_nobody_new_share_while_it_waits(self) -> None:
        registrar = Registrar()
        lease = registrar.grant("ann", mode=SHARED)
        other = registrar.grant("bob", mode=SHARED)
        expect(Waiting, registrar.ask(registrar.change(lease, EXCLUSIVE, wait=True)))

        assert registrar.deny("cem", mode=SHARED).holder == "ann"
        reader = registrar.join("dia", mode=SHARED)
        registrar.end(other)
        assert registrar.holders() == ["ann"]
        registrar.end(registrar.lease(lease.lease_id))
        registrar.win(reader)

    def test_of_a_second_sharer_is_refused_as_the_deadlock_it_is(self) -> None:
        registrar = Registrar()
        first, second = registrar.grant("ann", mode=SHARED), registrar.grant("bob", mode=SHARED)
        upgrade = registrar.change(first, EXCLUSIVE, wait=True)
        expect(Waiting, registrar.ask(upgrade))

        refusal = expect(Refusal, registrar.ask(registrar.change(second, EXCLUSIVE, wait=True)))

        assert refusal.code is RefusalCode.DEADLOCK
        assert refusal.cycle == ("bob", "door", "ann", "door", "bob")
        registrar.end(second)
        assert expect(Granted, registrar.ask(upgrade)).lease.mode is EXCLUSIVE

    def test_that_is_not_asked_for_again_lapses(self) -> None:
        registrar = Registrar()
        lease = registrar.grant("ann", mode=SHARED, ttl_ns=3600 * SECOND)
        registrar.grant("bob", mode=SHARED, ttl_ns=3600 * SECOND)
        expect(Waiting, registrar.ask(registrar.change(lease, EXCLUSIVE, wait=True)))
        registrar.clock += KEPT_NS

        assert registrar.grant("cem", mode=SHARED).holder == "cem"
        assert not registrar.lease(lease.lease_id).is_upgrading

    def test_that_is_asked_for_again_stays(self) -> None:
        registrar = Registrar()
        lease = registrar.grant("ann", mode=SHARED, ttl_ns=3600 * SECOND)
        registrar.grant("bob", mode=SHARED, ttl_ns=3600 * SECOND)
        upgrade = registrar.change(lease, EXCLUSIVE, wait=True)
        for _ in range(10):
            waiting = expect(Waiting, registrar.ask(upgrade))
            registrar.advance(10)

        assert waiting.waited_ns == 90 * SECOND
        assert registrar.deny("cem", mode=SHARED).holder == "ann"
        assert registrar.history().count("lease.upgrade_queued") == 5

    def test_does_not_outlive_the_clock_it_waits_on(self) -> None:
        registrar = Registrar()
        lease = registrar.grant("ann", mode=SHARED, bound_to_boot=False)
        registrar.grant("bob", mode=SHARED, bound_to_boot=False)
        expect(Waiting, registrar.ask(registrar.change(lease, EXCLUSIVE, wait=True)))
        registrar.reboot()

        assert registrar.grant("cem", mode=SHARED).holder == "cem"

    def test_can_be_taken_back(self) -> None:
        registrar = Registrar()
        lease = registrar.grant("ann", mode=SHARED)
        registrar.grant("bob", mode=SHARED)
        expect(Waiting, registrar.ask(registrar.change(lease, EXCLUSIVE, wait=True)))
        reader = registrar.join("cem", mode=SHARED)

        back = expect(Granted, registrar.ask(registrar.change(lease, SHARED)))

        assert back.lease.mode is SHARED
        assert not back.lease.is_upgrading
        registrar.win(reader)

    def test_of_what_is_exclusive_already_changes_nothing(self) -> None:
        registrar = Registrar()
        lease = registrar.grant("ann")
        entries = len(registrar.ledger)

        assert expect(Granted, registrar.ask(registrar.change(lease, EXCLUSIVE))).lease == lease
        assert len(registrar.ledger) == entries

    def test_sees_sharers_above_and_below(self) -> None:
        registrar = Registrar()
        lease = registrar.grant("ann", "/src", mode=SHARED)
        other = registrar.grant("bob", "/src/a", mode=SHARED)
        upgrade = registrar.change(lease, EXCLUSIVE, wait=True)
        expect(Waiting, registrar.ask(upgrade))
        second = expect(Refusal, registrar.ask(registrar.change(other, EXCLUSIVE, wait=True)))
        assert second.code is RefusalCode.DEADLOCK
        registrar.end(other)

        assert expect(Granted, registrar.ask(upgrade)).lease.mode is EXCLUSIVE

    def test_a_retry_is_told_what_the_first_was(self) -> None:
        registrar = Registrar()
        lease = registrar.grant("ann", mode=SHARED)
        upgrade = registrar.change(lease, EXCLUSIVE)
        first = expect(Granted, registrar.ask(upgrade))
        again = expect(Granted, registrar.ask(upgrade))

        assert again.repeated
        assert again.lease == first.lease


class TestDowngrade:
    def test_always_works_keeps_the_token_and_lets_readers_in(self) -> None:
        registrar = Registrar()
        lease = registrar.grant("ann")
        reader = registrar.join("bob", mode=SHARED)
        writer = registrar.join("cem")

        granted = expect(Granted, registrar.ask(registrar.change(lease, SHARED)))

        assert (granted.lease.mode, granted.lease.token) == (SHARED, lease.token)
        registrar.win(reader)
        registrar.wait(writer)

    def test_of_what_is_shared_already_changes_nothing(self) -> None:
        registrar = Registrar()
        lease = registrar.grant("ann", mode=SHARED)

        assert expect(Granted, registrar.ask(registrar.change(lease, SHARED))).lease == lease


class TestChangeIsRefused:
    def test_to_strangers_and_for_what_is_not_there_or_over(self) -> None:
        registrar = Registrar()
        lease = registrar.grant("ann", mode=SHARED)

        def code(**fields: object) -> RefusalCode:
            return expect(Refusal, registrar.ask(registrar.change(lease, EXCLUSIVE, **fields))).code

        assert code(holder="bob") is RefusalCode.NOT_HOLDER
        assert code(lease_id="nobody's") is RefusalCode.LEASE_NOT_FOUND
        assert code(tenant="umbrella") is RefusalCode.LEASE_NOT_FOUND
        registrar.clock += TTL
        assert code() is RefusalCode.LEASE_EXPIRED
        registrar.end(lease)
        assert code() is RefusalCode.LEASE_TERMINAL

    def test_for_what_a_reboot_has_ended(self) -> None:
        registrar = Registrar()
        lease = registrar.grant("ann")
        registrar.reboot()

        refusal = expect(Refusal, registrar.ask(registrar.change(lease, SHARED)))
        assert refusal.code is RefusalCode.LEASE_TERMINAL

    def test_for_what_waits_or_is_not_confirmed(self) -> None:
        registrar = Registrar()
        held = registrar.grant("ann")
        claim = registrar.join("bob")

        def code() -> RefusalCode:
            change = registrar.change(registrar.lease(claim.lease_id), SHARED)
            return expect(Refusal, registrar.ask(change)).code

        assert code() is RefusalCode.LEASE_PENDING
        registrar.end(held)
        assert code() is RefusalCode.LEASE_PENDING

    def test_while_time_is_unknown(self) -> None:
        registrar = Registrar()
        lease = registrar.grant("ann", bound_to_boot=False)
        registrar.reboot()
        registrar.forget_eras()

        refusal = expect(Refusal, registrar.ask(registrar.change(lease, SHARED)))
        assert refusal.code is RefusalCode.UNKNOWN_TIME


class TestTransfer:
    def test_ends_the_old_lease_and_issues_the_new_one_in_one_commit(self) -> None:
        registrar = Registrar()
        lease = registrar.grant("ann", metadata={"why": "because"}, lock_delay_ns=SECOND)
        registrar.advance(3)
        transfer = registrar.hand_over(lease, "bob")

        granted = expect(Granted, registrar.ask(transfer))

        assert granted.lease.holder == "bob"
        assert granted.lease.token > lease.token
        assert granted.lease.adopted_from == lease.lease_id
        assert granted.lease.metadata == lease.metadata
        assert granted.lease.lock_delay_ns == SECOND
        assert granted.expires_in_ns == TTL
        assert registrar.lease(lease.lease_id).state is LeaseState.RELEASED
        assert expect(Granted, registrar.ask(transfer)).repeated

    def test_can_give_another_time(self) -> None:
        registrar = Registrar()
        lease = registrar.grant("ann")

        granted = expect(Granted, registrar.ask(registrar.hand_over(lease, "bob", ttl_ns=2 * TTL)))

        assert granted.expires_in_ns == 2 * TTL

    def test_a_shared_lease_can_be_handed_over_beside_those_of_others(self) -> None:
        registrar = Registrar()
        lease = registrar.grant("ann", mode=Mode.SHARED)
        registrar.grant("cem", mode=Mode.SHARED)
        expect(Granted, registrar.ask(registrar.hand_over(lease, "bob")))

        assert registrar.holders() == ["cem", "bob"]

    def test_is_not_for_those_who_wait(self) -> None:
        registrar = Registrar()
        lease = registrar.grant("ann")
        claim = registrar.join("bob")

        refusal = expect(Refusal, registrar.ask(registrar.hand_over(lease, "bob")))
        assert refusal.code is RefusalCode.ALREADY_WAITING
        assert str(error_of(refusal)) == (
            f"bob waits for door already, as lease {claim.lease_id}: release your lease instead, and it is "
            "granted to them when they are first in line; to hand it over before others, let them stop "
            "waiting first"
        )
        granted = expect(Granted, registrar.ask(registrar.hand_over(lease, "cem")))
        assert registrar.wait(claim).places[0].holder == "cem"
        registrar.end(granted.lease)
        registrar.win(claim)

    def test_is_not_for_who_shares_it_already(self) -> None:
        registrar = Registrar()
        lease = registrar.grant("ann", mode=SHARED)
        registrar.grant("bob", mode=SHARED)

        refusal = expect(Refusal, registrar.ask(registrar.hand_over(lease, "bob")))
        assert refusal.code is RefusalCode.ALREADY_HELD

    def test_does_not_tear_a_tree_apart(self) -> None:
        registrar = Registrar()
        whole = registrar.grant("ann", "/src")
        registrar.grant("ann", "/src/a")

        refusal = expect(Refusal, registrar.ask(registrar.hand_over(whole, "bob")))
        assert (refusal.code, refusal.holder) == (RefusalCode.HELD, "ann")

    def test_respects_the_quota_of_who_gets_it(self) -> None:
        registrar = Registrar(Quotas(leases_per_holder=1))
        lease = registrar.grant("ann")
        registrar.grant("bob", "window")

        refusal = expect(Refusal, registrar.ask(registrar.hand_over(lease, "bob")))
        assert refusal.field == "leases_per_holder"

    def test_needs_a_new_id_and_a_lease_of_ones_own(self) -> None:
        registrar = Registrar()
        lease, other = registrar.grant("ann"), registrar.grant("bob", "window")

        def code(**fields: object) -> RefusalCode:
            return expect(Refusal, registrar.ask(registrar.hand_over(lease, "cem", **fields))).code

        assert code(new_lease_id=other.lease_id) is RefusalCode.LEASE_EXISTS
        assert code(holder="bob") is RefusalCode.NOT_HOLDER
        assert code(ttl_ns=-1) is RefusalCode.INVALID_INPUT
        refusal = expect(Refusal, registrar.ask(registrar.hand_over(lease, "registrar")))
        assert refusal.code is RefusalCode.INVALID_INPUT

    def test_that_closes_a_circle_makes_the_youngest_waiter_leave(self) -> None:
        registrar = Registrar()
        first = registrar.grant("ann", "a")
        registrar.grant("cem", "c")
        older = registrar.join("bob", "c")
        younger = registrar.join("cem", "a", wake="cem's bell")

        granted = expect(Granted, registrar.ask(registrar.hand_over(first, "bob")))

        assert granted.lease.holder == "bob"
        refusal = expect(Refusal, registrar.ask(younger))
        assert refusal.code is RefusalCode.DEADLOCK
        assert "bob waits for cem because of c" in (refusal.detail or "")
        registrar.wait(older)

    def test_that_closes_a_circle_makes_an_upgrade_lapse_if_that_is_the_youngest(self) -> None:
        registrar = Registrar()
        first = registrar.grant("ann", "a")
        sharer = registrar.grant("bob", "b", mode=SHARED)
        registrar.grant("cem", "b", mode=SHARED)
        older = registrar.join("cem", "a")
        upgrade = registrar.change(sharer, EXCLUSIVE, wait=True, wake="bob's bell")
        expect(Waiting, registrar.ask(upgrade))

        granted = expect(Granted, registrar.ask(registrar.hand_over(first, "bob")))

        assert granted.lease.holder == "bob"
        assert not registrar.lease(sharer.lease_id).is_upgrading
        assert registrar.wait(older).places[0].holder == "bob"
        assert expect(Refusal, registrar.ask(upgrade)).code is RefusalCode.DEADLOCK


def test_a_claim_whose_further_leases_would_get_ids_that_are_taken_is_refused() -> None:
    registrar = Registrar()
    registrar.grant("ann", "shelf", lease_id="many.1")

    refusal = registrar.deny("bob", lease_id="many", also=(Wanted(resource="gate"),))

    assert refusal == Refusal(code=RefusalCode.LEASE_EXISTS, lease_id="many.1")


class TestLockDelay:
    def test_keeps_an_expired_resource_closed_to_others(self) -> None:
        registrar = Registrar()
        registrar.grant("ann", lock_delay_ns=5 * SECOND)
        registrar.clock += TTL

        refusal = registrar.deny("bob")
        assert (refusal.code, refusal.holder, refusal.expires_in_ns) == (
            RefusalCode.HELD,
            "registrar",
            5 * SECOND,
        )
        registrar.clock += 5 * SECOND
        assert registrar.grant("bob").holder == "bob"

    def test_counts_from_the_expiry_not_from_when_it_was_noticed(self) -> None:
        registrar = Registrar()
        lease = registrar.grant("ann", lock_delay_ns=5 * SECOND)
        registrar.clock += TTL + 3 * SECOND
        registrar.sweep(lease)

        assert registrar.deny("bob").expires_in_ns == 2 * SECOND

    def test_that_is_over_when_the_expiry_is_noticed_leaves_no_trace(self) -> None:
        registrar = Registrar()
        registrar.grant("ann", lock_delay_ns=5 * SECOND)
        registrar.clock += TTL + 5 * SECOND

        assert registrar.grant("bob").holder == "bob"
        assert registrar.history()[-2:] == ["lease.expired", "lease.issued"]

    def test_follows_a_revocation_but_not_a_clean_release(self) -> None:
        registrar = Registrar()
        registrar.end(registrar.grant("ann", lock_delay_ns=5 * SECOND))
        lease = registrar.grant("bob", lock_delay_ns=5 * SECOND)
        registrar.revoke(lease)

        assert registrar.deny("cem").expires_in_ns == 5 * SECOND

    def test_does_not_follow_a_reboot_which_leaves_nothing_on_its_way(self) -> None:
        registrar = Registrar()
        registrar.grant("ann", lock_delay_ns=5 * SECOND)
        registrar.reboot()

        assert registrar.grant("bob").holder == "bob"

    def test_does_not_keep_the_last_holder_away(self) -> None:
        registrar = Registrar()
        registrar.grant("ann", lock_delay_ns=5 * SECOND)
        registrar.clock += TTL

        assert registrar.grant("ann").holder == "ann"
        assert registrar.holders() == ["ann"]

    def test_makes_waiters_wait_for_it(self) -> None:
        registrar = Registrar()
        lease = registrar.grant("ann", lock_delay_ns=5 * SECOND)
        claim = registrar.join("bob")
        registrar.revoke(lease)

        assert registrar.wait(claim).places[0].expires_in_ns == 5 * SECOND
        registrar.clock += 5 * SECOND
        registrar.win(claim)

    def test_closes_the_tree_as_its_lease_did(self) -> None:
        registrar = Registrar()
        lease = registrar.grant("ann", "/src", lock_delay_ns=5 * SECOND)
        registrar.revoke(lease)

        assert registrar.deny("bob", "/src/a").holder == "registrar"
        assert registrar.grant("ann", "/src/a").holder == "ann"
        assert registrar.deny("bob", "/src/b").holder == "registrar"

    def test_begins_once_where_leases_have_budgets(self) -> None:
        registrar = Registrar()
        lease = registrar.grant("ann", lock_delay_ns=5 * SECOND, budget=Budget(tokens=10))
        registrar.revoke(lease)

        assert registrar.history().count("lease.issued") == 2
        assert registrar.deny("bob").expires_in_ns == 5 * SECOND

    def test_begins_once_where_a_claim_that_is_granted_finds_the_end_of_a_lease_with_a_budget(self) -> None:
        registrar = Registrar()
        registrar.grant("ann", mode=SHARED, lock_delay_ns=5 * SECOND, budget=Budget(tokens=10))
        registrar.clock += TTL

        registrar.grant("bob", mode=SHARED)

        assert registrar.holders() == ["registrar", "bob"]

    def test_ends_when_a_waiter_comes_back_through_it(self) -> None:
        registrar = Registrar()
        registrar.revoke(registrar.grant("ann", lock_delay_ns=5 * SECOND))
        other = registrar.join("bob")
        back = registrar.join("ann")
        assert registrar.wait(back).places[0].holder == "bob"
        registrar.cancel(other)

        registrar.win(back)
        assert registrar.holders() == ["ann"]

    @pytest.mark.parametrize("wait", [False, True])
    def test_ends_when_its_last_holder_wants_to_be_alone(self, *, wait: bool) -> None:
        registrar = Registrar()
        registrar.revoke(registrar.grant("ann", mode=SHARED, lock_delay_ns=5 * SECOND))
        lease = registrar.grant("ann", mode=SHARED)
        assert registrar.holders() == ["registrar", "ann"]
        if wait:
            other = registrar.grant("bob", mode=SHARED)
            expect(Waiting, registrar.ask(registrar.change(lease, EXCLUSIVE, wait=True)))
            registrar.end(other)
        else:
            expect(Granted, registrar.ask(registrar.change(lease, EXCLUSIVE)))

        assert registrar.holders() == ["ann"]
        assert registrar.lease(lease.lease_id).mode is EXCLUSIVE

    def test_above_something_else_of_the_last_holder_leaves_that_alone(self) -> None:
        registrar = Registrar()
        registrar.grant("ann", "/d/x")
        registrar.revoke(registrar.grant("ann", "/", lock_delay_ns=5 * SECOND))

        assert registrar.holders("/") == ["registrar"]
        assert registrar.holders("/d/x") == ["ann"]
        assert registrar.deny("bob", "/e").holder == "registrar"

    def test_of_two_sharers_keeps_out_who_wants_it_alone(self) -> None:
        registrar = Registrar()
        for name in ("ann", "bob"):
            registrar.grant(name, mode=SHARED, lock_delay_ns=5 * SECOND)
        registrar.clock += TTL

        assert registrar.deny("cem").holder == "registrar"
        assert registrar.grant("cem", mode=SHARED).holder == "cem"


class TestDeadlock:
    def test_of_two_is_refused_at_once_and_named(self) -> None:
        registrar = Registrar()
        registrar.grant("ann", "a")
        registrar.grant("bob", "b")
        registrar.join("ann", "b")

        refusal = registrar.deny("bob", "a", wait=True)

        assert refusal.code is RefusalCode.DEADLOCK
        assert refusal.cycle == ("bob", "a", "ann", "b", "bob")
        assert registrar.queue("a") == []

    def test_of_many_is_found_all_the_way_round(self) -> None:
        registrar = Registrar()
        names = [f"h{number}" for number in range(6)]
        for name in names:
            registrar.grant(name, f"of-{name}")
        for name, following in pairwise(names):
            registrar.join(name, f"of-{following}")

        refusal = registrar.deny(names[-1], f"of-{names[0]}", wait=True)

        assert refusal.code is RefusalCode.DEADLOCK
        assert refusal.cycle is not None
        assert refusal.cycle[0::2] == (names[-1], *names)

    def test_through_a_waiter_ahead_is_found(self) -> None:
        registrar = Registrar()
        registrar.grant("ann", "a")
        registrar.grant("bob", "b")
        registrar.join("cem", "a", also=also("b"))

        refusal = registrar.deny("ann", "b", wait=True)

        assert refusal.code is RefusalCode.DEADLOCK
        assert refusal.cycle == ("ann", "b", "cem", "a", "ann")

    def test_through_those_it_would_overtake_is_found(self) -> None:
        registrar = Registrar()
        registrar.grant("dia", "b")
        registrar.grant("ann", "a", mode=SHARED)
        registrar.grant("bob", "c")
        registrar.join("bob", "b", also=also("a", mode=SHARED))
        registrar.join("ann", "c")
        registrar.grant("cem", "d")

        refusal = registrar.deny("cem", "a", wait=True, priority=10)

        assert refusal.code is RefusalCode.DEADLOCK
        assert refusal.cycle == ("cem", "a", "ann", "c", "bob", "a", "cem")
        assert registrar.queue("a") == ["bob"]

    def test_through_shared_modes_is_found(self) -> None:
        registrar = Registrar()
        registrar.grant("ann", "a", mode=SHARED)
        registrar.grant("bob", "a", mode=SHARED)
        registrar.grant("bob", "b")
        registrar.join("ann", "b")

        assert registrar.deny("bob", "c", wait=True, also=also("b")).code is RefusalCode.ALREADY_HELD
        registrar.grant("cem", "c")
        registrar.join("cem", "a")
        refusal = registrar.deny("bob", "c", wait=True)
        assert refusal.code is RefusalCode.DEADLOCK
        assert refusal.cycle is not None
        assert refusal.cycle[:4] == ("bob", "c", "cem", "a")

    def test_through_trees_is_found(self) -> None:
        registrar = Registrar()
        registrar.grant("ann", "/x/a")
        registrar.grant("bob", "/y/b")
        registrar.join("ann", "/y")

        refusal = registrar.deny("bob", "/x", wait=True)
        assert refusal.code is RefusalCode.DEADLOCK

    def test_by_taking_what_others_wait_behind_is_found(self) -> None:
        registrar = Registrar()
        registrar.grant("ann", "b")
        registrar.grant("ann", "c")
        registrar.join("bob", "b", also=also("a"))
        registrar.grant("bob", "d")
        registrar.join("cem", "d")

        refusal = registrar.deny("cem", "a", priority=10)
        assert refusal.code is RefusalCode.DEADLOCK
        assert refusal.cycle == ("cem", "d", "bob", "a", "cem")
        assert registrar.holders("a") == []

    def test_is_not_what_a_long_chain_is(self) -> None:
        registrar = Registrar()
        registrar.grant("ann", "a")
        registrar.grant("bob", "b")
        registrar.join("bob", "a")
        registrar.join("cem", "b")

        registrar.join("dia", "b", also=also("a"))

    def test_is_not_there_any_more_once_somebody_has_left(self) -> None:
        registrar = Registrar()
        registrar.grant("ann", "a")
        registrar.grant("bob", "b")
        claim = registrar.join("ann", "b")
        assert registrar.deny("bob", "a", wait=True).code is RefusalCode.DEADLOCK
        registrar.cancel(claim)

        registrar.join("bob", "a")

    def test_is_not_seen_in_leases_and_waits_that_time_has_ended(self) -> None:
        registrar = Registrar()
        registrar.grant("ann", "a", ttl_ns=3600 * SECOND)
        registrar.grant("bob", "b", ttl_ns=3600 * SECOND)
        registrar.join("ann", "b")
        registrar.clock += KEPT_NS

        registrar.join("bob", "a")


def test_the_registrars_own_name_is_taken() -> None:
    assert Registrar().deny("registrar").code is RefusalCode.INVALID_INPUT


@pytest.mark.parametrize(
    ("field", "value", "code"),
    [
        ("priority", 0, RefusalCode.INVALID_INPUT),
        ("priority", 11, RefusalCode.INVALID_INPUT),
        ("lock_delay_ns", -1, RefusalCode.INVALID_INPUT),
        ("lock_delay_ns", 31 * 24 * 3600 * SECOND, RefusalCode.LIMIT_EXCEEDED),
        ("wake", "x" * 257, RefusalCode.LIMIT_EXCEEDED),
        ("also", also(*(f"r{number}" for number in range(64))), RefusalCode.LIMIT_EXCEEDED),
        ("also", also(""), RefusalCode.INVALID_INPUT),
        ("also", also("/a/"), RefusalCode.INVALID_INPUT),
    ],
)
def test_a_claim_that_can_never_be_right_is_refused(field: str, value: Any, code: RefusalCode) -> None:
    assert Registrar().deny("ann", **{field: value}).code is code


def test_a_lease_id_leaves_room_for_the_numbers_of_its_claim() -> None:
    claim = Acquire(
        request_id="r", lease_id="x" * 128, resource="a", holder="ann", ttl_ns=TTL, also=also("b")
    )

    refusal = expect(Refusal, Registrar().ask(claim))
    assert (refusal.code, refusal.field) == (RefusalCode.LIMIT_EXCEEDED, "lease_id")
