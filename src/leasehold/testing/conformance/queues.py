"""Who waits for what: queues, places in them, and what lies above and below a path."""

from pathlib import Path

from msgspec.structs import replace

from leasehold.errors import StoreRejected
from leasehold.kernel.lease.budget import Budget
from leasehold.kernel.lease.delegation import Delegation
from leasehold.kernel.lease.events import LeaseQueued
from leasehold.kernel.lease.model import Lease, LeaseState, Mode
from leasehold.kernel.lease.records import EVERYTHING, FIRST_IN_LINE, QueueKey, Records
from leasehold.kernel.lease.scope import Scope
from leasehold.kernel.lease.ticket import LAST_PLACE
from leasehold.kernel.ledger.tick import Tick
from leasehold.testing.conformance.opening import Opening, commit, read
from leasehold.testing.conformance.records import EMPTY, batch, head_of, lease, opened, waiter

DOOR = ("default", "door")


class Queues(Opening):
    """The questions that waiting asks."""

    def test_a_waiting_lease_reads_back(self, tmp_path: Path) -> None:
        with self.opened(tmp_path) as store:
            commit(store, batch(EMPTY, created=(waiter("a", 7),)))
            assert read(store, leases={"a"}).leases == [waiter("a", 7)]

    def test_a_lease_that_was_granted_to_a_waiter_reads_back(self, tmp_path: Path) -> None:
        granted = replace(
            waiter("a", 7),
            state=LeaseState.ACTIVE,
            token=99,
            issued_at_ns=6,
            expires_tick=Tick(value=9),
            version=2,
        )
        self._assert_reshaped(tmp_path, waiter("a", 7), granted)

    def test_a_confirmed_lease_reads_back_without_its_ticket(self, tmp_path: Path) -> None:
        unconfirmed = replace(waiter("a", 7), state=LeaseState.ACTIVE)
        self._assert_reshaped(tmp_path, unconfirmed, replace(unconfirmed, ticket=None, ttl_ns=77, version=2))

    def test_a_lease_of_another_mode_and_token_reads_back(self, tmp_path: Path) -> None:
        shared = lease("a", mode=Mode.SHARED)
        self._assert_reshaped(tmp_path, shared, replace(shared, mode=Mode.EXCLUSIVE, token=99, version=2))

    def test_a_waiter_that_left_reads_back_and_waits_no_more(self, tmp_path: Path) -> None:
        left = replace(
            waiter("a", 7),
            state=LeaseState.FAILED,
            terminated_at_ns=9,
            ended_by="x",
            end_reason="y",
            version=2,
        )
        first = batch(EMPTY, created=(waiter("a", 7),))
        with self.opened(tmp_path) as store:
            commit(store, first)
            commit(store, batch(head_of(first), opened(), reshaped=(left,)))
            assert read(store, leases={"a"}).leases == [left]
            assert read(store, queues={(*DOOR, 9)}).leases == []
            assert read(store, waits={("default", left.holder)}).leases == []
            assert read(store, resources={DOOR}).awaited == set()

    def test_a_waiter_does_not_stand_in_the_way_of_an_exclusive_lease(self, tmp_path: Path) -> None:
        with self.opened(tmp_path) as store:
            commit(store, batch(EMPTY, created=(waiter("a", 7), waiter("b", 8), lease("c"))))
            found = {one.lease_id for one in read(store, resources={DOOR}).leases if not one.is_waiting}
            assert found == {"c"}

    def test_a_second_exclusive_lease_is_rejected_however_it_comes_to_be(self, tmp_path: Path) -> None:
        first = batch(EMPTY, created=(lease("a"), waiter("b", 7)))
        granted = replace(waiter("b", 7), state=LeaseState.ACTIVE)
        with self.opened(tmp_path) as store:
            commit(store, first)
            try:
                commit(store, batch(head_of(first), opened(), reshaped=(granted,)))
            except StoreRejected:
                pass
            else:
                raise AssertionError("the store let two leases be exclusive")

    def test_a_lease_can_be_shared_while_another_becomes_exclusive_elsewhere(self, tmp_path: Path) -> None:
        first = batch(EMPTY, created=(lease("a"), lease("b", resource="gate", mode=Mode.SHARED)))
        after = (
            lease("b", resource="gate", mode=Mode.EXCLUSIVE, token=99, version=2),
            lease("a", mode=Mode.SHARED, version=2),
        )
        with self.opened(tmp_path) as store:
            commit(store, first)
            commit(
                store,
                batch(head_of(first), opened(), reshaped=after, created=(lease("c", mode=Mode.SHARED),)),
            )
            assert _names(read(store, leases={"a", "b"}).leases) == ["a", "b"]

    def test_that_a_resource_is_awaited_is_told_with_its_leases(self, tmp_path: Path) -> None:
        leases = (lease("a"), waiter("b", 7), lease("c", resource="gate"))
        with self.opened(tmp_path) as store:
            commit(store, batch(EMPTY, created=leases))
            assert read(store, leases={"a", "c"}).awaited == {DOOR}
            assert read(store, leases={"c"}).awaited == set()
            assert read(store, resources={DOOR, ("default", "gate")}).awaited == {DOOR}
            assert read(store, owners={("default", "ann")}).awaited == {DOOR}

    def test_that_the_resource_of_a_child_is_awaited_is_told_with_it(self, tmp_path: Path) -> None:
        child = lease("child", delegation=Delegation(scope=Scope(), budget=Budget(), ancestors=("parent",)))
        with self.opened(tmp_path) as store:
            commit(store, batch(EMPTY, created=(child, waiter("b", 7))))
            found = read(store, children={"parent"})
            assert found.children == {"parent": [child]}
            assert found.awaited == {DOOR}

    def test_that_nobody_holds_an_awaited_resource_does_not_hide_it(self, tmp_path: Path) -> None:
        with self.opened(tmp_path) as store:
            commit(store, batch(EMPTY, created=(waiter("b", 7),)))
            assert read(store, resources={DOOR}).awaited == {DOOR}
            assert read(store, resources={("other", "door")}).awaited == set()

    def test_an_upgrade_makes_a_resource_awaited_but_is_not_in_its_queue(self, tmp_path: Path) -> None:
        upgrading = waiter("a", 7, state=LeaseState.ACTIVE, mode=Mode.SHARED, upgrade=True)
        with self.opened(tmp_path) as store:
            commit(store, batch(EMPTY, created=(upgrading,)))
            assert read(store, leases={"a"}).awaited == {DOOR}
            assert read(store, queues={(*DOOR, 9)}).leases == []
            assert read(store, places={(*DOOR, LAST_PLACE)}).places == {(*DOOR, LAST_PLACE): 0}
            assert read(store, waits={("default", upgrading.holder)}).leases == [upgrading]

    def test_a_queue_is_read_in_order_and_each_mode_for_itself(self, tmp_path: Path) -> None:
        waiters = [waiter(f"x{number}", number) for number in (5, 3, 9)]
        waiters += [waiter(f"s{number}", number, mode=Mode.SHARED) for number in (4, 8)]
        waiters.append(waiter("urgent", 10, priority=10))
        key = (*DOOR, 2)
        with self.opened(tmp_path) as store:
            commit(store, batch(EMPTY, created=tuple(waiters)))
            found = read(store, queues={key})
            assert _names(found.leases) == ["s4", "s8", "urgent", "x3"]
            assert found.queues == {key: (waiters[1].place, waiters[4].place)}
            all_of_them = read(store, queues={(*DOOR, 5)})
            assert len(all_of_them.leases) == 6
            assert all_of_them.queues == {(*DOOR, 5): (LAST_PLACE, LAST_PLACE)}

    def test_those_ahead_are_counted_in_both_modes(self, tmp_path: Path) -> None:
        waiters = tuple(waiter(f"w{number}", number, mode=list(Mode)[number % 2]) for number in range(1, 6))
        others = (waiter("elsewhere", 1, resource="gate"), waiter("other", 1, tenant="other"))
        places = {(*DOOR, waiters[3].place), (*DOOR, LAST_PLACE), ("default", "wall", LAST_PLACE)}
        with self.opened(tmp_path) as store:
            commit(store, batch(EMPTY, created=waiters + others))
            counts = read(store, places=places).places
            assert counts == dict.fromkeys(places, 0) | {
                (*DOOR, waiters[3].place): 3,
                (*DOOR, LAST_PLACE): 5,
            }

    def test_what_a_holder_waits_for_and_what_it_holds_are_told_apart(self, tmp_path: Path) -> None:
        leases = (
            lease("held"),
            waiter("awaited", 7, holder="ann", resource="gate"),
            lease("ended", state=LeaseState.EXPIRED, terminated_at_ns=1, ended_by="registrar"),
            waiter("bob's", 8, holder="bob"),
        )
        with self.opened(tmp_path) as store:
            commit(store, batch(EMPTY, created=leases))
            assert _names(read(store, waits={("default", "ann")}).leases) == ["awaited"]
            assert _names(read(store, owners={("default", "ann")}).leases) == ["held"]

    def test_a_tree_is_what_lies_above_and_below_a_path(self, tmp_path: Path) -> None:
        names = ["/", "/a", "/a/b", "/a/b/c", "/a/b/c/d", "/a/b2", "/a/b!", "/a2", "/b", "a", "/a/b/ü"]
        leases = [lease(f"on {name}", resource=name) for name in names]
        leases.append(waiter("waits", 7, resource="/a/b/e"))
        leases.append(lease("reads", resource="/a", mode=Mode.SHARED, tenant="other"))
        leases.append(lease("shares", resource="/a/b/f", mode=Mode.SHARED))
        with self.opened(tmp_path) as store:
            commit(store, batch(EMPTY, created=tuple(leases)))
            below_and_above = _names(read(store, trees={("default", "/a/b", EVERYTHING)}).leases)
            assert below_and_above == sorted(
                ["on /", "on /a", "on /a/b", "on /a/b/c", "on /a/b/c/d", "on /a/b/ü", "shares", "waits"]
            )
            assert len(_names(read(store, trees={("default", "/", EVERYTHING)}).leases)) == len(names) - 1 + 2

    def test_of_very_many_around_a_path_the_first_in_each_mode_are_read(self, tmp_path: Path) -> None:
        above = (lease("root", resource="/", mode=Mode.SHARED), lease("itself", resource="/a"))
        few = lease("shared", resource="/a/x", mode=Mode.SHARED)
        exclusive = [lease(f"lease {number}", resource=f"/a/{number:03}") for number in range(4)]
        with self.opened(tmp_path) as store:
            commit(store, batch(EMPTY, created=(*above, few, *exclusive)))
            for limit, cut in ((3, {Mode.EXCLUSIVE}), (4, {Mode.EXCLUSIVE}), (5, set())):
                found = read(store, trees={("default", "/a", limit)})
                assert _names(found.leases) == _names([*above, few, *exclusive[:limit]])
                assert found.cut.get(("default", "/a", limit), set()) == cut
            assert not read(store, trees={("default", "/a/002", 3)}).cut.get(("default", "/a/002", 3))

    def test_of_very_many_above_a_path_all_are_read_that_wait_to_be_alone(self, tmp_path: Path) -> None:
        shared = [lease(f"shared {number}", resource="/a", mode=Mode.SHARED) for number in range(4)]
        last = waiter("upgrading", 7, resource="/b", state=LeaseState.ACTIVE, mode=Mode.SHARED, upgrade=True)
        with self.opened(tmp_path) as store:
            commit(store, batch(EMPTY, created=(*shared, last)))
            found = read(store, trees={("default", "/", 2)})
            assert found.cut[("default", "/", 2)] == {Mode.SHARED}
            assert "upgrading" in _names(found.leases)
            assert len(_names(found.leases)) == 3

    def test_the_queue_of_a_path_is_that_of_its_tree(self, tmp_path: Path) -> None:
        paths = ["/a/c", "/a", "/", "/b", "/a/c/d", "/a/d", "a"]
        waiters = [waiter(f"w{number}", number, resource=path) for number, path in enumerate(paths, 1)]
        waiters.append(waiter("s8", 8, resource="/a/c/e", mode=Mode.SHARED))
        around, last = (waiters[0], waiters[1], waiters[2], waiters[4]), ("default", "/a/c", LAST_PLACE)
        with self.opened(tmp_path) as store:
            commit(store, batch(EMPTY, created=tuple(waiters)))
            first = read(store, trees={("default", "/a/c", 1)})
            _assert_first_in_line(first, ("default", "/a/c", FIRST_IN_LINE), [*around, waiters[-1]])
            for limit in (1, 3, 4, 5):
                key = ("default", "/a/c", limit)
                _assert_first_in_line(read(store, queues={key}), key, [*around, waiters[-1]])
            counted = read(store, places={last, ("default", "/a/c", waiters[4].place)})
            assert counted.places == {last: len(around) + 1, ("default", "/a/c", waiters[4].place): 3}
            assert counted.ends == {("default", "/a/c"): waiters[-1].place}

    def test_a_path_may_be_as_deep_as_its_length_allows(self, tmp_path: Path) -> None:
        depths = (1, 2, 100, 255, 256)
        deepest = "/a" * 256
        held = [lease(f"on {depth}", resource="/a" * depth, mode=Mode.SHARED) for depth in depths]
        waiters = [waiter(f"waits {depth}", depth, resource="/a" * depth, holder="ann") for depth in depths]
        key, last = ("default", deepest, 3), ("default", deepest, LAST_PLACE)
        with self.opened(tmp_path) as store:
            commit(store, batch(EMPTY, created=(*held, *waiters)))
            found = read(store, trees={("default", deepest, EVERYTHING)})
            assert {one.lease_id for one in held} <= set(_names(found.leases))
            assert read(store, trees={key}).cut.get(key, set()) <= {Mode.SHARED}
            _assert_first_in_line(read(store, queues={key}), key, waiters)
            assert read(store, places={last}).places == {last: len(depths)}
            tangles = read(store, tangles={("default", deepest, "")}).tangles
            assert sorted(tangles[("default", deepest, "")]) == sorted(_names(held))

    def test_what_those_hold_around_a_path_who_wait_themselves_can_be_told(self, tmp_path: Path) -> None:
        leases = [
            lease("above", holder="ann", resource="/"),
            lease("below", holder="ann", resource="/a/b/c", mode=Mode.SHARED),
            lease("beside", holder="ann", resource="/b"),
            lease("idle", holder="bob", resource="/a/b/d"),
            waiter("waits", 7, holder="ann", resource="gate"),
            waiter("elsewhere", 8, holder="bob", resource="gate", tenant="other"),
        ]
        waiting, idle = ("default", "/a/b", ""), ("default", "/a/b", "bob")
        with self.opened(tmp_path) as store:
            commit(store, batch(EMPTY, created=tuple(leases)))
            found = read(store, tangles={waiting, idle})
            assert sorted(found.tangles[waiting]) == ["above", "below"]
            assert found.tangles[idle] == ["idle"]
            assert _names(found.leases) == ["above", "below", "idle"]

    def test_waiters_count_as_leases_of_their_holder_and_tenant(self, tmp_path: Path) -> None:
        with self.opened(tmp_path) as store:
            commit(store, batch(EMPTY, created=(lease("a"), waiter("b", 7, holder="ann"), waiter("c", 8))))
            found = read(store, holders={("default", "ann")}, tenants={"default"})
            assert (found.holders, found.tenants) == ({("default", "ann"): 2}, {"default": 3})

    def test_waiters_lapse_too_the_longest_overdue_first(self, tmp_path: Path) -> None:
        leases = (
            waiter("b", 7, expires_tick=Tick(value=20)),
            lease("a", expires_tick=Tick(value=10), issued_tick=Tick(value=1)),
            waiter("c", 8, expires_tick=Tick(value=30)),
        )
        with self.opened(tmp_path) as store:
            commit(store, batch(EMPTY, created=leases))
            with store.write() as transaction:
                assert transaction.lapsed(Tick(value=25), 9) == ["a", "b"]
                assert transaction.lapsed(Tick(value=35), 2) == ["a", "b"]

    def test_a_request_that_joined_a_queue_is_remembered(self, tmp_path: Path) -> None:
        one = waiter("a", 7)
        queued = LeaseQueued(
            tick=Tick(value=50),
            at_ns=5_000,
            actor=one.holder,
            request="r",
            lease_id="a",
            resource="door",
            holder=one.holder,
            token=7,
            ttl_ns=50,
            kept_ns=50,
        )
        with self.opened(tmp_path) as store:
            commit(store, batch(EMPTY, queued, created=(one,)))
            found = read(store, requests={"r"})
            assert found.requests == {"r": queued}
            assert found.leases == [one]

    def _assert_reshaped(self, folder: Path, before: Lease, after: Lease) -> None:
        first = batch(EMPTY, created=(before,))
        with self.opened(folder) as store:
            commit(store, first)
            commit(store, batch(head_of(first), opened(), reshaped=(after,)))
            assert read(store, leases={before.lease_id}).leases == [after]


def _assert_first_in_line(found: Records, key: QueueKey, around: list[Lease]) -> None:
    """Everybody is there up to the places that were named, and these are far enough."""
    names = _names(found.leases)
    assert set(names) <= {one.lease_id for one in around}
    for mode, end in zip((Mode.EXCLUSIVE, Mode.SHARED), found.queues[key], strict=True):
        read_up_to = [one.lease_id for one in around if one.mode is mode and one.place <= end]
        assert set(read_up_to) <= set(names)
        assert end == LAST_PLACE or len(read_up_to) >= key[-1]


def _names(leases: list[Lease]) -> list[str]:
    return sorted({one.lease_id for one in leases})
