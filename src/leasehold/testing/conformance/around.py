"""What lies around a path: what is held there, who waits, and who is entangled."""

from pathlib import Path

from leasehold.kernel.lease.model import Lease, LeaseState, Mode
from leasehold.kernel.lease.paths import related
from leasehold.kernel.lease.records import (
    FIRST_IN_LINE,
    LeaseFound,
    QueueKey,
)
from leasehold.kernel.lease.ticket import LAST_PLACE
from leasehold.kernel.ledger.records import EVERYTHING
from leasehold.testing.conformance.opening import Opening, find, find_leases, names_of
from leasehold.testing.conformance.records import EMPTY, batch, lease, waiter


class Around(Opening):
    """The questions that paths ask."""

    def test_a_tree_is_what_lies_above_and_below_a_path(self, tmp_path: Path) -> None:
        names = ["/", "/a", "/a/b", "/a/b/c", "/a/b/c/d", "/a/b2", "/a/b!", "/a2", "/b", "a", "/a/b/ü"]
        leases = [lease(f"on {name}", resource=name) for name in names]
        leases.append(waiter("waits", 7, resource="/a/b/e"))
        leases.append(lease("reads", resource="/a", mode=Mode.SHARED, tenant="other"))
        leases.append(lease("shares", resource="/a/b/f", mode=Mode.SHARED))
        with self.opened(tmp_path, batch(EMPTY, created=tuple(leases))) as store:
            below_and_above = names_of(find_leases(store, trees={("default", "/a/b", EVERYTHING)}))
            assert below_and_above == sorted(
                ["on /", "on /a", "on /a/b", "on /a/b/c", "on /a/b/c/d", "on /a/b/ü", "shares", "waits"]
            )
            everywhere = names_of(find_leases(store, trees={("default", "/", EVERYTHING)}))
            assert len(everywhere) == len(names) - 1 + 2

    def test_of_very_many_around_a_path_the_first_in_each_mode_are_read(self, tmp_path: Path) -> None:
        above = (lease("root", resource="/", mode=Mode.SHARED), lease("itself", resource="/a"))
        few = lease("shared", resource="/a/x", mode=Mode.SHARED)
        exclusive = [lease(f"lease {number}", resource=f"/a/{number:03}") for number in range(4)]
        with self.opened(tmp_path, batch(EMPTY, created=(*above, few, *exclusive))) as store:
            for limit, cut in ((3, {Mode.EXCLUSIVE}), (4, {Mode.EXCLUSIVE}), (5, set())):
                found = find(store, trees={("default", "/a", limit)})
                assert sorted(found.records) == names_of([*above, few, *exclusive[:limit]])
                assert found.cut.get(("default", "/a", limit), set()) == cut
            assert not find(store, trees={("default", "/a/002", 3)}).cut.get(("default", "/a/002", 3))

    def test_of_very_many_above_a_path_all_are_read_that_wait_to_be_alone(self, tmp_path: Path) -> None:
        shared = [lease(f"shared {number}", resource="/a", mode=Mode.SHARED) for number in range(4)]
        last = waiter("upgrading", 7, resource="/b", state=LeaseState.ACTIVE, mode=Mode.SHARED, upgrade=True)
        with self.opened(tmp_path, batch(EMPTY, created=(*shared, last))) as store:
            found = find(store, trees={("default", "/", 2)})
            assert found.cut[("default", "/", 2)] == {Mode.SHARED}
            assert "upgrading" in sorted(found.records)
            assert len(sorted(found.records)) == 3

    def test_the_queue_of_a_path_is_that_of_its_tree(self, tmp_path: Path) -> None:
        paths = ["/a/c", "/a", "/", "/b", "/a/c/d", "/a/d", "a"]
        waiters = [waiter(f"w{number}", number, resource=path) for number, path in enumerate(paths, 1)]
        waiters.append(waiter("s8", 8, resource="/a/c/e", mode=Mode.SHARED))
        around, last = (waiters[0], waiters[1], waiters[2], waiters[4]), ("default", "/a/c", LAST_PLACE)
        with self.opened(tmp_path, batch(EMPTY, created=tuple(waiters))) as store:
            first = find(store, trees={("default", "/a/c", 1)})
            _assert_first_in_line(first, ("default", "/a/c", FIRST_IN_LINE), [*around, waiters[-1]])
            for limit in (1, 3, 4, 5):
                key = ("default", "/a/c", limit)
                _assert_first_in_line(find(store, queues={key}), key, [*around, waiters[-1]])
            counted = find(store, places={last, ("default", "/a/c", waiters[4].place)})
            assert counted.places == {last: len(around) + 1, ("default", "/a/c", waiters[4].place): 3}
            assert counted.ends == {("default", "/a/c"): waiters[-1].place}

    def test_a_path_may_be_as_deep_as_its_length_allows(self, tmp_path: Path) -> None:
        depths = (1, 2, 100, 255, 256)
        deepest = "/a" * 256
        held = [lease(f"on {depth}", resource="/a" * depth, mode=Mode.SHARED) for depth in depths]
        waiters = [waiter(f"waits {depth}", depth, resource="/a" * depth, holder="ann") for depth in depths]
        key, last = ("default", deepest, 3), ("default", deepest, LAST_PLACE)
        with self.opened(tmp_path, batch(EMPTY, created=(*held, *waiters))) as store:
            found = find(store, trees={("default", deepest, EVERYTHING)})
            assert {one.lease_id for one in held} <= found.records.keys()
            assert find(store, trees={key}).cut.get(key, set()) <= {Mode.SHARED}
            _assert_first_in_line(find(store, queues={key}), key, waiters)
            assert find(store, places={last}).places == {last: len(depths)}
            tangles = find(store, tangles={("default", deepest, "")}).tangles
            assert sorted(tangles[("default", deepest, "")]) == sorted(names_of(held))

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
        with self.opened(tmp_path, batch(EMPTY, created=tuple(leases))) as store:
            found = find(store, tangles={waiting, idle})
            assert sorted(found.tangles[waiting]) == ["above", "below"]
            assert found.tangles[idle] == ["idle"]
            assert sorted(found.records) == ["above", "below", "idle"]

    def test_patterns_are_around_a_path_that_they_can_match(self, tmp_path: Path) -> None:
        names = [
            "/a/*.py",
            "/a/b*",
            "/a/**",
            "/**/*.py",
            "/{a,b}/x",
            "/b/*",
            "/a/\\*.py",
            "/a/b.py",
            "/a",
            "/b/x",
        ]
        leases = [lease(f"on {name}", resource=name) for name in names]
        shared = [lease(f"shares {name}", resource=name, mode=Mode.SHARED, tenant="other") for name in names]
        with self.opened(tmp_path, batch(EMPTY, created=(*leases, *shared))) as store:
            for path in (*names, "/", "/a/b", "/a/b/x.py", "/*/b*", "/a/[bc].py", "/**", "/é*"):
                for tenant, there in (("default", leases), ("other", shared)):
                    found = find_leases(store, trees={(tenant, path, EVERYTHING)})
                    expected = [one for one in there if related(one.resource, path)]
                    assert names_of(expected) == names_of(
                        [one for one in found if related(one.resource, path)]
                    ), path

    def test_of_very_many_patterns_the_first_in_each_mode_are_read(self, tmp_path: Path) -> None:
        patterns = [lease(f"lease {number}", resource=f"/a/*{number:03}") for number in range(4)]
        with self.opened(tmp_path, batch(EMPTY, created=tuple(patterns))) as store:
            for path in ("/a/x003", "/a/?003"):
                for limit in (2, 5):
                    key = ("default", path, limit)
                    found = find(store, trees={key})
                    assert "lease 3" in found.records or Mode.EXCLUSIVE in found.cut[key], (path, limit)
                assert not found.cut.get(key), path

    def test_who_waits_for_patterns_waits_around_what_they_match(self, tmp_path: Path) -> None:
        paths = ["/a/*.py", "/a/x.py", "/a/*.md", "/a", "/**/x.*", "/b/*", "/a/{x,y}.py"]
        waiters = [waiter(f"w{number}", number, resource=path) for number, path in enumerate(paths, 1)]
        with self.opened(tmp_path, batch(EMPTY, created=tuple(waiters))) as store:
            for path in (*paths, "/a/y.py", "/a/?.py"):
                last, key = ("default", path, LAST_PLACE), ("default", path, EVERYTHING)
                around = [one for one in waiters if related(one.resource, path)]
                counted = find(store, places={last, ("default", path, waiters[4].place)})
                assert counted.places[last] == len(around), path
                assert counted.places[("default", path, waiters[4].place)] == len(
                    [one for one in around if one.place < waiters[4].place]
                )
                assert counted.ends == {("default", path): around[-1].place}
                assert {one.lease_id for one in around} <= find(store, queues={key}).records.keys()
                for limit in (1, 3):
                    first = find(store, queues={("default", path, limit)})
                    end = first.queues[("default", path, limit)][0]
                    assert {one.lease_id for one in around if one.place <= end} <= first.records.keys()

    def test_who_waits_and_holds_a_pattern_is_entangled_around_what_it_matches(self, tmp_path: Path) -> None:
        leases = [
            lease("pattern", holder="ann", resource="/a/*.py"),
            lease("elsewhere", holder="ann", resource="/b/*.py"),
            lease("idle", holder="bob", resource="/a/x*", mode=Mode.SHARED),
            waiter("waits", 7, holder="ann", resource="gate"),
        ]
        waiting, idle = ("default", "/a/x.py", ""), ("default", "/a/[xy].py", "bob")
        with self.opened(tmp_path, batch(EMPTY, created=tuple(leases))) as store:
            found = find(store, tangles={waiting, idle})
            assert found.tangles[waiting] == ["pattern"]
            assert found.tangles[idle] == ["idle"]


def _assert_first_in_line(found: LeaseFound, key: QueueKey, around: list[Lease]) -> None:
    """Everybody is there up to the places that were named, and these are far enough."""
    names = sorted(found.records)
    assert set(names) <= {one.lease_id for one in around}
    for mode, end in zip((Mode.EXCLUSIVE, Mode.SHARED), found.queues[key], strict=True):
        read_up_to = [one.lease_id for one in around if one.mode is mode and one.place <= end]
        assert set(read_up_to) <= set(names)
        assert end == LAST_PLACE or len(read_up_to) >= key[-1]
