"""Listing leases: filters, prefixes, pages."""

from pathlib import Path
from typing import Any

from leasehold.engine.port import LeaseQuery, Store
from leasehold.kernel.lease.model import Lease, LeaseState, Mode
from leasehold.testing.conformance.opening import Opening, commit
from leasehold.testing.conformance.records import EMPTY, batch, lease

_ENDED = {"terminated_at_ns": 1, "ended_by": "registrar", "version": 2}


class Listing(Opening):
    """What `leases` returns for a query."""

    def test_leases_are_listed_in_the_order_of_their_ids(self, tmp_path: Path) -> None:
        names = ["b", "a", "é", "B", "\uff61", "😀", "a/1"]
        with self.opened(tmp_path) as store:
            commit(store, batch(EMPTY, created=tuple(_on(name, f"r-{name}") for name in names)))
            assert _listed(store) == sorted(names)

    def test_a_list_can_be_read_page_by_page(self, tmp_path: Path) -> None:
        names = [f"lease-{number:02}" for number in range(7)]
        with self.opened(tmp_path, batch(EMPTY, created=tuple(_on(name, name) for name in names))) as store:
            assert _listed(store, limit=3) == names[:3]
            assert _listed(store, limit=3, after=names[2]) == names[3:6]
            assert _listed(store, limit=3, after=names[5]) == names[6:]
            assert _listed(store, limit=3, after=names[6]) == []
            assert _listed(store, after="lease-025") == names[3:]

    def test_leases_are_filtered_by_tenant_resource_and_holder(self, tmp_path: Path) -> None:
        leases = (
            lease("a", resource="door"),
            lease("b", resource="gate"),
            lease("c", resource="gate", tenant="other"),
            lease("d", resource="wall", holder="bob"),
        )
        with self.opened(tmp_path, batch(EMPTY, created=leases)) as store:
            assert _listed(store, tenant="default") == ["a", "b", "d"]
            assert _listed(store, tenant="other") == ["c"]
            assert _listed(store, resource="gate") == ["b", "c"]
            assert _listed(store, tenant="default", resource="gate") == ["b"]
            assert _listed(store, holder="bob") == ["d"]
            assert _listed(store, tenant="other", holder="bob") == []

    def test_leases_are_filtered_by_the_moment_at_which_they_were_held(self, tmp_path: Path) -> None:
        times = {"issued_at_ns": 1_000, "expires_at_ns": 2_000}
        ended = {"state": LeaseState.EXPIRED, **_ENDED}
        leases = (
            _on("ended", "r", **times, **(ended | {"terminated_at_ns": 1_500})),
            _on("standing", "s", **times),
        )
        with self.opened(tmp_path, batch(EMPTY, created=leases)) as store:
            assert _listed(store, held_at_ns=999) == []
            assert _listed(store, held_at_ns=1_000) == ["ended", "standing"]
            assert _listed(store, held_at_ns=1_500) == ["standing"]
            assert _listed(store, held_at_ns=2_000) == []

    def test_leases_are_filtered_by_state(self, tmp_path: Path) -> None:
        leases = (
            _on("active", "r"),
            _on("expired", "r", state=LeaseState.EXPIRED, **_ENDED),
            _on("revoked", "r", state=LeaseState.REVOKED, end_reason="why not", **_ENDED),
            _on("shared", "s", mode=Mode.SHARED),
        )
        with self.opened(tmp_path, batch(EMPTY, created=leases)) as store:
            assert _listed(store) == ["active", "expired", "revoked", "shared"]
            assert _listed(store, states=(LeaseState.ACTIVE,)) == ["active", "shared"]
            assert _listed(store, states=(LeaseState.EXPIRED, LeaseState.REVOKED)) == ["expired", "revoked"]
            assert _listed(store, states=(LeaseState.FAILED,)) == []
            assert _listed(store, states=(LeaseState.ACTIVE,), resource="r") == ["active"]

    def test_a_prefix_means_itself_and_never_a_pattern(self, tmp_path: Path) -> None:
        resources = ["a%b/1", "aXb/1", "a_b/1", "a_b", "a*b", "a[b]c", "A_B/1", "a\\b"]
        with self.opened(tmp_path) as store:
            created = tuple(_on(f"{number}", name) for number, name in enumerate(resources))
            commit(store, batch(EMPTY, created=created))
            for prefix in ["a%", "a_b", "a_b/", "a*", "a[b]", "A", "a\\", "a", "", "%", "_"]:
                expected = [name for name in resources if name.startswith(prefix)]
                assert _resources(store, prefix) == expected, f"prefix {prefix!r}"

    def test_a_prefix_can_be_any_text(self, tmp_path: Path) -> None:
        resources = ["straße/1", "strasse/1", "straß", "☕/1", "☕☕", "e\u0301/1", "\u00e9/1", "😀/1"]
        with self.opened(tmp_path) as store:
            created = tuple(_on(f"{number}", name) for number, name in enumerate(resources))
            commit(store, batch(EMPTY, created=created))
            for prefix in ["straß", "straße/", "☕", "☕/", "e", "\u00e9", "😀", "😀/1", "😀/12"]:
                expected = [name for name in resources if name.startswith(prefix)]
                assert _resources(store, prefix) == expected, f"prefix {prefix!r}"

    def test_filters_and_pages_go_together(self, tmp_path: Path) -> None:
        created = tuple(
            _on(f"lease-{number:02}", f"{'even' if number % 2 == 0 else 'odd'}/{number}", holder="bob")
            for number in range(10)
        )
        with self.opened(tmp_path, batch(EMPTY, created=created)) as store:
            query: dict[str, Any] = {"resource_prefix": "even/", "holder": "bob", "limit": 2}
            assert _listed(store, **query) == ["lease-00", "lease-02"]
            assert _listed(store, after="lease-02", **query) == ["lease-04", "lease-06"]
            assert _listed(store, after="lease-07", states=(LeaseState.ACTIVE,), **query) == ["lease-08"]

    def test_a_listed_lease_is_the_whole_lease(self, tmp_path: Path) -> None:
        one = lease(metadata={"ключ": [1]}, config_version="c", signature=b"\x00\xff", mode=Mode.SHARED)
        with self.opened(tmp_path, batch(EMPTY, created=(one,))) as store, store.snapshot() as snapshot:
            assert snapshot.leases(LeaseQuery()) == [one]


def _on(lease_id: str, resource: str, **fields: Any) -> Lease:
    return lease(lease_id, resource=resource, **fields)


def _listed(store: Store, **query: Any) -> list[str]:
    with store.snapshot() as snapshot:
        return [one.lease_id for one in snapshot.leases(LeaseQuery(**query))]


def _resources(store: Store, prefix: str) -> list[str]:
    with store.snapshot() as snapshot:
        return [one.resource for one in snapshot.leases(LeaseQuery(resource_prefix=prefix))]
