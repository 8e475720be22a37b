"""Who waits for what: queues, and places in them."""

from pathlib import Path

from msgspec.structs import replace

from leasehold.kernel.lease.budget import Budget
from leasehold.kernel.lease.delegation import Delegation
from leasehold.kernel.lease.events import LeaseQueued
from leasehold.kernel.lease.model import Lease, LeaseState, Mode
from leasehold.kernel.lease.records import (
    LEASE,
    children_of,
    count_of_holder,
    count_of_tenant,
    held_by,
    waits_of,
)
from leasehold.kernel.lease.scope import Scope
from leasehold.kernel.lease.ticket import LAST_PLACE
from leasehold.kernel.ledger.tick import Tick
from leasehold.testing.conformance.opening import Opening, commit, find, find_leases, names_of, read, reject
from leasehold.testing.conformance.records import EMPTY, batch, head_of, lease, opened, waiter

DOOR = ("default", "door")


class Queues(Opening):
    """The questions that waiting asks."""

    def test_a_waiting_lease_reads_back(self, tmp_path: Path) -> None:
        with self.opened(tmp_path, batch(EMPTY, created=(waiter("a", 7),))) as store:
            assert find_leases(store, keys={"a"}) == [waiter("a", 7)]

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
        with self.opened(tmp_path, first) as store:
            commit(store, batch(head_of(first), opened(), changed=((waiter("a", 7), left),)))
            assert find_leases(store, keys={"a"}) == [left]
            assert find_leases(store, queues={(*DOOR, 9)}) == []
            assert find_leases(store, scans={waits_of(("default", left.holder))}) == []
            assert find(store, resources={DOOR}).awaited == set()

    def test_a_waiter_does_not_stand_in_the_way_of_an_exclusive_lease(self, tmp_path: Path) -> None:
        with self.opened(tmp_path) as store:
            commit(store, batch(EMPTY, created=(waiter("a", 7), waiter("b", 8), lease("c"))))
            found = {one.lease_id for one in find_leases(store, resources={DOOR}) if not one.is_waiting}
            assert found == {"c"}

    def test_a_second_exclusive_lease_is_rejected_however_it_comes_to_be(self, tmp_path: Path) -> None:
        first = batch(EMPTY, created=(lease("a"), waiter("b", 7)))
        granted = replace(waiter("b", 7), state=LeaseState.ACTIVE)
        with self.opened(tmp_path, first) as store:
            reject(store, batch(head_of(first), opened(), changed=((waiter("b", 7), granted),)))

    def test_a_lease_can_be_shared_while_another_becomes_exclusive_elsewhere(self, tmp_path: Path) -> None:
        first = batch(EMPTY, created=(lease("a"), lease("b", resource="gate", mode=Mode.SHARED)))
        changed = (
            (
                lease("b", resource="gate", mode=Mode.SHARED),
                lease("b", resource="gate", mode=Mode.EXCLUSIVE, token=99, version=2),
            ),
            (lease("a"), lease("a", mode=Mode.SHARED, version=2)),
        )
        with self.opened(tmp_path, first) as store:
            commit(
                store,
                batch(head_of(first), opened(), changed=changed, created=(lease("c", mode=Mode.SHARED),)),
            )
            assert names_of(find_leases(store, keys={"a", "b"})) == ["a", "b"]

    def test_that_a_resource_is_awaited_is_told_with_its_leases(self, tmp_path: Path) -> None:
        leases = (lease("a"), waiter("b", 7), lease("c", resource="gate"))
        with self.opened(tmp_path, batch(EMPTY, created=leases)) as store:
            assert find(store, keys={"a", "c"}).awaited == {DOOR}
            assert find(store, keys={"c"}).awaited == set()
            assert find(store, resources={DOOR, ("default", "gate")}).awaited == {DOOR}
            assert find(store, scans={held_by(("default", "ann"))}).awaited == {DOOR}

    def test_that_the_resource_of_a_child_is_awaited_is_told_with_it(self, tmp_path: Path) -> None:
        child = lease("child", delegation=Delegation(scope=Scope(), budget=Budget(), ancestors=("parent",)))
        with self.opened(tmp_path, batch(EMPTY, created=(child, waiter("b", 7)))) as store:
            found = find(store, scans={children_of("parent")})
            assert found.scans == {children_of("parent"): ["child"]}
            assert found.records == {"child": child}
            assert found.awaited == {DOOR}

    def test_that_nobody_holds_an_awaited_resource_does_not_hide_it(self, tmp_path: Path) -> None:
        with self.opened(tmp_path, batch(EMPTY, created=(waiter("b", 7),))) as store:
            assert find(store, resources={DOOR}).awaited == {DOOR}
            assert find(store, resources={("other", "door")}).awaited == set()

    def test_an_upgrade_makes_a_resource_awaited_but_is_not_in_its_queue(self, tmp_path: Path) -> None:
        upgrading = waiter("a", 7, state=LeaseState.ACTIVE, mode=Mode.SHARED, upgrade=True)
        with self.opened(tmp_path, batch(EMPTY, created=(upgrading,))) as store:
            assert find(store, keys={"a"}).awaited == {DOOR}
            assert find_leases(store, queues={(*DOOR, 9)}) == []
            assert find(store, places={(*DOOR, LAST_PLACE)}).places == {(*DOOR, LAST_PLACE): 0}
            assert find_leases(store, scans={waits_of(("default", upgrading.holder))}) == [upgrading]

    def test_a_queue_is_read_in_order_and_each_mode_for_itself(self, tmp_path: Path) -> None:
        waiters = [waiter(f"x{number}", number) for number in (5, 3, 9)]
        waiters += [waiter(f"s{number}", number, mode=Mode.SHARED) for number in (4, 8)]
        waiters.append(waiter("urgent", 10, priority=10))
        key = (*DOOR, 2)
        with self.opened(tmp_path, batch(EMPTY, created=tuple(waiters))) as store:
            found = find(store, queues={key})
            assert sorted(found.records) == ["s4", "s8", "urgent", "x3"]
            assert found.queues == {key: (waiters[1].place, waiters[4].place)}
            all_of_them = find(store, queues={(*DOOR, 5)})
            assert len(all_of_them.records) == 6
            assert all_of_them.queues == {(*DOOR, 5): (LAST_PLACE, LAST_PLACE)}

    def test_many_queues_are_read_at_once_like_each_for_itself(self, tmp_path: Path) -> None:
        names = ["door", "/a", "/a/b", *(f"r{number}" for number in range(9))]
        waiters = [
            waiter(f"w{number}", number + 1, resource=names[number % 10], mode=list(Mode)[number % 3 // 2])
            for number in range(60)
        ]
        queues = {("default", name, limit) for name in names for limit in (1, 3)} | {("other", "door", 3)}
        with self.opened(tmp_path, batch(EMPTY, created=tuple(waiters))) as store:
            together = find(store, queues=queues)
            singly = [find(store, queues={queue}) for queue in queues]
            assert together.records == {key: one for each in singly for key, one in each.records.items()}
            assert together.queues == {key: end for each in singly for key, end in each.queues.items()}
            assert together.awaited == {key for each in singly for key in each.awaited}

    def test_those_ahead_are_counted_in_both_modes(self, tmp_path: Path) -> None:
        waiters = tuple(waiter(f"w{number}", number, mode=list(Mode)[number % 2]) for number in range(1, 6))
        others = (waiter("elsewhere", 1, resource="gate"), waiter("other", 1, tenant="other"))
        places = {(*DOOR, waiters[3].place), (*DOOR, LAST_PLACE), ("default", "wall", LAST_PLACE)}
        with self.opened(tmp_path, batch(EMPTY, created=waiters + others)) as store:
            counts = find(store, places=places).places
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
        with self.opened(tmp_path, batch(EMPTY, created=leases)) as store:
            assert names_of(find_leases(store, scans={waits_of(("default", "ann"))})) == ["awaited"]
            assert names_of(find_leases(store, scans={held_by(("default", "ann"))})) == ["held"]

    def test_waiters_count_as_leases_of_their_holder_and_tenant(self, tmp_path: Path) -> None:
        with self.opened(tmp_path) as store:
            commit(store, batch(EMPTY, created=(lease("a"), waiter("b", 7, holder="ann"), waiter("c", 8))))
            counts = {count_of_holder(("default", "ann")): 2, count_of_tenant("default"): 3}
            assert find(store, counts=counts).counts == counts

    def test_waiters_lapse_too_the_longest_overdue_first(self, tmp_path: Path) -> None:
        leases = (
            waiter("b", 7, expires_tick=Tick(value=20)),
            lease("a", expires_tick=Tick(value=10), issued_tick=Tick(value=1)),
            waiter("c", 8, expires_tick=Tick(value=30)),
        )
        with self.opened(tmp_path, batch(EMPTY, created=leases)) as store, store.write() as transaction:
            assert transaction.due(Tick(value=25), 9) == [(LEASE, "a"), (LEASE, "b")]
            assert transaction.due(Tick(value=35), 2) == [(LEASE, "a"), (LEASE, "b")]

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
        with self.opened(tmp_path, batch(EMPTY, queued, created=(one,))) as store:
            found = read(store, requests={"r"})
            assert found.requests == {"r": queued}
            assert found.families[LEASE].records == {"a": one}

    def _assert_reshaped(self, folder: Path, before: Lease, after: Lease) -> None:
        first = batch(EMPTY, created=(before,))
        with self.opened(folder, first, batch(head_of(first), opened(), changed=((before, after),))) as store:
            assert find_leases(store, keys={before.lease_id}) == [after]
