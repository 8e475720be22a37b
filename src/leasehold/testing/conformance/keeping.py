"""What is written is what is read, field by field."""

from pathlib import Path

from msgspec.structs import asdict, replace

from leasehold.kernel.lease.budget import Amounts, Budget
from leasehold.kernel.lease.delegation import Delegation
from leasehold.kernel.lease.model import Lease, LeaseState, Mode, ReleaseReason
from leasehold.kernel.lease.records import LEASE, LeaseFound
from leasehold.kernel.lease.scope import Scope
from leasehold.kernel.lease.ticket import Ticket
from leasehold.kernel.ledger.authority import Outage
from leasehold.kernel.ledger.tick import Tick
from leasehold.testing.conformance.opening import Opening, commit, find, find_leases, read
from leasehold.testing.conformance.records import (
    EMPTY,
    authority,
    batch,
    era,
    head_of,
    issued,
    lease,
    opened,
    released,
    renewed,
)

FULL = lease(
    tenant="mandant ü",
    resource="straße/☕/%_'\"\\",
    holder="ann@host:7",
    token=(1 << 53) - 1,
    ttl_ns=30 * 24 * 3600 * 10**9,
    mode=Mode.SHARED,
    issued_tick=Tick(value=-5, era=3),
    expires_tick=Tick(value=2**62, era=3),
    issued_at_ns=1_700_000_000_123_456_789,
    expires_at_ns=1_700_000_060_123_456_789,
    max_renewals=2**31 - 1,
    adopted_from="lease-0",
    bound_to_boot=False,
    signature=bytes(range(256)),
    metadata={"ключ": ["☕", None, True, 1.5, {"deep": -(2**53)}], "": 'quote " and \\ and \u2028'},
    config_version="sha256:00",
    zone_version="zone-7",
    delegation=Delegation(
        scope=Scope(work_ids=("job ☕",), tools=("a'b",), namespaces=("/srv",)),
        budget=Budget(episodes=1, tool_calls=2, tokens=3, duration_ms=2**53 - 1),
        ancestors=("lease-0", "lease ☕"),
        ttl_ns=7,
        spent=Amounts(episodes=1),
        delegated=Amounts(tokens=2),
    ),
    lock_delay_ns=2**40,
    delayed_for="bob ☕",
    ticket=Ticket(
        number=(1 << 53) - 2,
        since=Tick(value=-7, era=3),
        since_ns=1_600_000_000_123_456_789,
        priority=10,
        group=("lease-1", "lease-1.1"),
        request="id:ключ",
        wake="glocke ☕",
        upgrade=True,
        kept_until=2**61,
    ),
)
"""A lease in which no field has its default."""

STANDING = {"renewal_count", "last_renewed_at_ns", "version", "state"}
ENDINGS = {"terminated_at_ns", "release_reason", "ended_by", "end_reason", "end_request"}


class Keeping(Opening):
    """Records come back as they went in."""

    def test_a_created_lease_reads_back_field_by_field(self, tmp_path: Path) -> None:
        usual = asdict(lease())
        changed = {name for name, value in asdict(FULL).items() if value != usual[name]}
        assert changed >= usual.keys() - STANDING - ENDINGS - {"lease_id"}, "FULL leaves out a field"
        self._assert_reads_back(tmp_path, FULL)

    def test_one_lease_is_found_by_its_id_and_no_other(self, tmp_path: Path) -> None:
        with self.opened(tmp_path) as store:
            commit(store, batch(EMPTY, created=(FULL, lease("lease-2", resource="gate", token=9))))
            with store.snapshot() as snapshot:
                assert snapshot.lease(FULL.lease_id) == FULL
                assert snapshot.lease("lease-0") is None
                assert snapshot.lease("lease-3") is None

    def test_a_lease_of_defaults_reads_back(self, tmp_path: Path) -> None:
        self._assert_reads_back(tmp_path, lease())

    def test_a_lease_without_ticks_reads_back_without_them(self, tmp_path: Path) -> None:
        self._assert_reads_back(tmp_path, lease(issued_tick=None, expires_tick=None))

    def test_a_lease_that_was_issued_on_an_ended_clock_reads_back(self, tmp_path: Path) -> None:
        self._assert_reads_back(tmp_path, lease(issued_tick=None, expires_tick=Tick(value=7, era=2)))

    def test_a_tick_at_another_rate_keeps_its_rate(self, tmp_path: Path) -> None:
        issued_tick, expires_tick = Tick(value=1, rate=1_000), Tick(value=2, rate=1_000)
        self._assert_reads_back(tmp_path, lease(issued_tick=issued_tick, expires_tick=expires_tick))

    def test_a_renewed_lease_reads_back(self, tmp_path: Path) -> None:
        self._assert_change_reads_back(
            tmp_path,
            replace(
                FULL,
                ttl_ns=77,
                expires_tick=Tick(value=2**62 + 1, era=3),
                expires_at_ns=1_700_000_099_000_000_000,
                renewal_count=3,
                last_renewed_at_ns=1_700_000_022_000_000_000,
                version=2,
            ),
        )

    def test_a_rearmed_lease_reads_back(self, tmp_path: Path) -> None:
        rearmed = replace(
            FULL, issued_tick=None, expires_tick=Tick(value=12, era=4), expires_at_ns=1, version=2
        )
        self._assert_change_reads_back(tmp_path, rearmed)

    def test_every_kind_of_end_reads_back(self, tmp_path: Path) -> None:
        ends: dict[str, dict[str, object]] = {
            "released": {"state": LeaseState.RELEASED, "release_reason": ReleaseReason.TRANSFERRED},
            "expired": {"state": LeaseState.EXPIRED},
            "revoked": {"state": LeaseState.REVOKED, "end_reason": "späte Einsicht"},
            "failed": {"state": LeaseState.FAILED},
        }
        before = [replace(FULL, lease_id=name) for name in ends]
        after = [
            replace(
                one, terminated_at_ns=9, ended_by="olga", end_request="r9", version=2, **ends[one.lease_id]
            )
            for one in before
        ]
        first = batch(EMPTY, created=tuple(before))
        with self.opened(tmp_path, first) as store:
            commit(
                store, batch(head_of(first), released(FULL), changed=tuple(zip(before, after, strict=True)))
            )
            found = find_leases(store, keys=set(ends))
            assert _by_id(found) == _by_id(after)

    def test_a_lease_that_was_renewed_and_ended_in_one_batch_reads_back(self, tmp_path: Path) -> None:
        self._assert_change_reads_back(
            tmp_path,
            replace(
                FULL,
                ttl_ns=99,
                expires_tick=Tick(value=2**62 + 5, era=3),
                renewal_count=1,
                last_renewed_at_ns=8,
                state=LeaseState.RELEASED,
                release_reason=ReleaseReason.COMPLETED,
                terminated_at_ns=9,
                ended_by="ann@host:7",
                version=3,
            ),
        )

    def test_a_change_to_one_lease_leaves_the_others_alone(self, tmp_path: Path) -> None:
        bystander = lease("lease-2", resource="gate")
        first = batch(EMPTY, created=(lease(), bystander))
        longer = replace(lease(), expires_tick=Tick(value=200), renewal_count=1, version=2)
        with self.opened(tmp_path, first) as store:
            commit(store, batch(head_of(first), renewed(longer), changed=((lease(), longer),)))
            assert find_leases(store, keys={"lease-2"}) == [bystander]

    def test_many_leases_are_found_by_id_at_once(self, tmp_path: Path) -> None:
        leases = tuple(lease(f"lease-{number}", resource=f"r-{number}") for number in range(50))
        wanted = {one.lease_id for one in leases[::2]}
        with self.opened(tmp_path, batch(EMPTY, created=leases)) as store:
            found = find_leases(store, keys=wanted | {"nobody's"})
            assert _by_id(found) == _by_id(list(leases[::2]))

    def test_the_registrars_record_reads_back_and_is_replaced_by_the_next(self, tmp_path: Path) -> None:
        second = authority(
            epoch=(1 << 21) - 1,
            counter=(1 << 23) - 1,
            era=5,
            era_first_tick=-3,
            boot_id="boot é",
            identity="9:78",
            tick=2**62,
            wall_ns=-1,
            rate=1_000,
            key_changes=3,
            families={"lease": 1, "note": 7},
            outage=Outage(since=-4, until=2**61, settles_until=2**62),
        )
        first = batch(EMPTY)
        with self.opened(tmp_path, first) as store:
            commit(store, batch(head_of(first), opened(tick=2**62, at_ns=-1), record=second))
            with store.snapshot() as snapshot:
                assert snapshot.authority == second
                assert snapshot.state().authority == second

    def test_ended_eras_read_back_and_unknown_ones_are_left_out(self, tmp_path: Path) -> None:
        first = batch(EMPTY, ended_eras=(era(1),))
        with self.opened(tmp_path, first) as store:
            commit(store, batch(head_of(first), ended_eras=(era(2, boot_id="boot-1", last_tick=-4),)))
            eras = read(store, eras={1, 2, 3}).eras
            assert eras == {1: era(1), 2: era(2, boot_id="boot-1", last_tick=-4)}
            assert read(store, eras={1}).eras == {1: era(1)}

    def test_a_request_is_remembered_with_what_it_caused(self, tmp_path: Path) -> None:
        made = batch(EMPTY, issued(FULL, request="id:ключ"), created=(FULL,))
        with self.opened(tmp_path, made) as store:
            found = read(store, requests={"id:ключ", "id:"}).requests
            assert found == {"id:ключ": made.entries[0].event}

    def test_many_requests_are_found_at_once_with_the_leases_they_concern(self, tmp_path: Path) -> None:
        leases = [lease(f"lease-{number}", resource=f"r-{number}") for number in range(20)]
        events = [issued(one, request=f"of {one.lease_id}") for one in leases]
        wanted = [event.request or "" for event in events[::2]]
        with self.opened(tmp_path, batch(EMPTY, *events, created=tuple(leases))) as store:
            found = read(store, requests=[*wanted, "nobody's"])
            assert found.requests == dict(zip(wanted, events[::2], strict=True))
            assert found.families[LEASE].records == _by_id(leases[::2])

    def test_a_request_adds_its_leases_to_those_that_are_asked_for(self, tmp_path: Path) -> None:
        caused, asked = lease("a", resource="a"), lease("b", resource="b")
        with self.opened(tmp_path) as store:
            commit(store, batch(EMPTY, issued(caused, request="r"), issued(asked), created=(caused, asked)))
            assert read(store, requests={"r"}, keys={"b"}).families[LEASE].records == _by_id([caused, asked])
            assert read(store, requests={"s"}, keys={"b"}).families[LEASE].records == _by_id([asked])
            assert read(store, requests={"s"}).families == {}
            assert find(store, keys={"nobody's"}) == LeaseFound()

    def test_the_last_of_several_events_of_one_request_is_remembered(self, tmp_path: Path) -> None:
        events = [renewed(lease(name, resource=name), request="r") for name in ("a", "b")]
        first = batch(EMPTY, *events)
        later = renewed(lease("c"), request="r")
        with self.opened(tmp_path, first) as store:
            assert read(store, requests={"r"}).requests == {"r": events[-1]}
            commit(store, batch(head_of(first), later))
            assert read(store, requests={"r"}).requests == {"r": later}

    def test_the_id_of_a_release_is_not_taken_for_the_key_of_a_claim(self, tmp_path: Path) -> None:
        first = batch(EMPTY, renewed(lease("a"), request="r"))
        second = batch(head_of(first), released(lease("a"), request="r"), released(lease("b"), request="s"))
        with self.opened(tmp_path, first, second) as store:
            assert read(store, requests={"r", "s"}).requests == {"r": first.entries[0].event}

    def test_a_lease_leads_to_the_event_that_granted_it(self, tmp_path: Path) -> None:
        elsewhere, never = lease("lease-2", resource=FULL.resource, mode=Mode.SHARED), lease("lease-3")
        granted = issued(FULL, request="r")
        first = batch(EMPTY, issued(elsewhere), granted, opened(), created=(FULL, elsewhere, never))
        with self.opened(tmp_path, first) as store:
            commit(store, batch(head_of(first), renewed(FULL), released(FULL), changed=((FULL, FULL),)))
            found = find(store, grants={FULL.lease_id, "lease-3", "lease-4"}).grants
            assert found == {FULL.lease_id: granted}

    def _assert_reads_back(self, folder: Path, one: Lease) -> None:
        with self.opened(folder, batch(EMPTY, created=(one,))) as store:
            assert find_leases(store, keys={one.lease_id}) == [one]

    def _assert_change_reads_back(self, folder: Path, after: Lease) -> None:
        first = batch(EMPTY, created=(FULL,))
        with self.opened(folder, first) as store:
            commit(store, batch(head_of(first), renewed(after), changed=((FULL, after),)))
            assert find_leases(store, keys={FULL.lease_id}) == [after]


def _by_id(leases: list[Lease]) -> dict[str, Lease]:
    return {one.lease_id: one for one in leases}
