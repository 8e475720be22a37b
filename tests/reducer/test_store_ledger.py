"""The events that a store really writes, folded by the reducer."""

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from leasehold.client.blocking.client import Client
from leasehold.engine.port import EntryQuery
from leasehold.engine.questions import ReadLedger
from leasehold.engine.registrar import Registrar
from leasehold.kernel.lease.budget import Amounts, Budget
from leasehold.kernel.lease.commands import Acquire, Derive, Release, Revoke, Spend
from leasehold.kernel.lease.events import (
    LeaseExpired,
    LeaseIssued,
    LeaseRearmed,
    LeaseReleased,
    LeaseRenewed,
    LeaseRevoked,
)
from leasehold.kernel.lease.family import LEASES
from leasehold.kernel.lease.model import Mode
from leasehold.kernel.lease.model import ReleaseReason as KernelReason
from leasehold.kernel.lease.scope import Scope
from leasehold.kernel.ledger.chain import Entry
from leasehold.kernel.ledger.events import Event, encode_event
from leasehold.kernel.ledger.state import replay
from leasehold.kernel.ledger.tick import Tick
from leasehold.reducer import (
    InvalidExpiration,
    InvalidInput,
    LeaseAlreadyTerminal,
    LeaseError,
    LeaseNotFound,
    LeaseReducer,
    LeaseState,
    MissingSignature,
    RenewalDoesNotExtend,
    Unauthorized,
    WorkAlreadyLeased,
    record_of,
    sealed_records,
)
from leasehold.reducer import LeaseExpired as Expired
from leasehold.testing.clock import FakeClock
from tests.client.worlds import World
from tests.engine.doubles import registrar_of
from tests.kernel.records import OF_LEASE

SEAL = b"sealed"


def fold(entries: list[Entry], tenant: str = "default") -> LeaseReducer:
    reducer = LeaseReducer(tenant)
    for record, context in sealed_records(entries):
        reducer.apply(record, context)
    return reducer


def told(*events: Event, seal: bytes = SEAL) -> LeaseReducer:
    reducer = LeaseReducer()
    for position, event in enumerate(events, start=1):
        entry = Entry(position=position, event=event, body=encode_event(event), hash=bytes(32))
        reducer.apply(*record_of(entry, seal=seal))
    return reducer


def issued(**fields: Any) -> LeaseIssued:
    return LeaseIssued(**(OF_LEASE | {"ttl_ns": 40} | fields))


@pytest.fixture(params=["memory", "sqlite"])
def leases(request: pytest.FixtureRequest, clock: FakeClock, tmp_path: Path) -> Iterator[Client]:
    world = World(request.param, "blocking", clock, tmp_path)
    yield world.connect(holder="ann").target
    asyncio.run(world.close())


def live_a_little(leases: Client, clock: FakeClock) -> None:
    """Everything that can happen to a lease, a reboot included."""
    leases.acquire("survivor", ttl=600, survives_reboot=True)
    leases.acquire("rebooted", ttl=600)
    clock.reboot(down_seconds=5)
    kept = leases.acquire("kept", ttl=60)
    leases.renew_many([kept, leases.acquire("kept too", ttl=60)])
    leases.acquire("adopted", ttl=60)
    leases.acquire("adopted", ttl=60, adopt=True)
    shared = [leases.acquire("shared", ttl=60, mode="shared", holder=holder) for holder in ("ann", "bob")]
    leases.acquire("lapsed", ttl=1)
    revoked = leases.acquire("revoked", ttl=60)
    clock.advance(5)
    leases.revoke(revoked.lease_id, reason="test")
    leases.acquire("lapsed", ttl=60, holder="bob")
    leases.acquire("rebooted", ttl=60, holder="bob")
    leases.renew(leases.inspect("survivor")[0].lease.lease_id, ttl=900)
    shared[1].release()
    hand_on(registrar_of(leases))
    queue_up(registrar_of(leases))


def queue_up(registrar: Registrar) -> None:
    """Let two wait: the first gets the lease and confirms it, the second goes on waiting."""
    claims = [
        Acquire(
            request_id=f"q-{name}",
            lease_id=f"queue-{name}",
            resource="queue",
            holder=name,
            ttl_ns=60 * 10**9,
            wait=True,
        )
        for name in ("ann", "bob", "cid")
    ]
    for claim in claims:
        registrar.call(claim)
    registrar.call(Release(request_id="q-0", lease_ids=("queue-ann",), holder="ann"))
    registrar.call(claims[1])


def hand_on(registrar: Registrar) -> None:
    """Derive a lease, spend some of it, and let the line end."""
    registrar.call(
        Acquire(
            request_id="r-1",
            lease_id="parent",
            resource="work",
            holder="ann",
            ttl_ns=60 * 10**9,
            scope=Scope(unlimited=True),
            budget=Budget(tool_calls=10),
        )
    )
    for number in (1, 2):
        registrar.call(
            Derive(
                request_id=f"r-2-{number}",
                parent_id="parent",
                holder="ann",
                lease_id=f"child-{number}",
                resource=f"part-{number}",
                child_holder="bob",
                budget=Budget(tool_calls=4),
            )
        )
    registrar.call(Spend(request_id="r-3", lease_id="child-1", holder="bob", amounts=Amounts(tool_calls=3)))
    registrar.call(Release(request_id="r-4", lease_ids=("child-1",), holder="bob"))
    registrar.call(Revoke(request_id="r-5", lease_id="parent", operator="olga", reason="test"))


def test_a_real_history_leads_to_the_very_leases_that_the_store_has(leases: Client, clock: FakeClock) -> None:
    live_a_little(leases, clock)
    entries = leases._session.desk.ask(ReadLedger(query=EntryQuery()))
    assert {entry.event.type for entry in entries} >= {
        "lease.issued",
        "lease.renewed",
        "lease.released",
        "lease.expired",
        "lease.revoked",
        "lease.rearmed",
        "lease.delegated",
        "lease.spent",
        "lease.reclaimed",
        "lease.queued",
        "lease.confirmed",
    }

    reducer = fold(entries)

    replayed = replay([entry.event for entry in entries], LEASES)
    assert {lease_id: lease.record for lease_id, lease in reducer.state.leases.items()} == replayed.of(
        "lease"
    )
    assert reducer.position == entries[-1].position
    counts = (reducer.state.released_count(), reducer.state.expired_count(), reducer.state.revoked_count())
    assert counts == (4, 1, 4)
    assert reducer.state.active_leases_by_work["queue"] == "queue-bob"
    assert [lease.state.name for lease in reducer.state.leases_by_actor("cid")] == ["PENDING"]
    survivor = reducer.state.get_active_lease_for_work("survivor")
    assert survivor is not None
    assert survivor.ticks_remaining(Tick(value=clock.tick_ns(), era=2)) == 900 * 10**9


def test_a_checkpoint_of_a_real_history_restores_it(leases: Client, clock: FakeClock) -> None:
    live_a_little(leases, clock)
    reducer = fold(leases._session.desk.ask(ReadLedger(query=EntryQuery())))
    restored = LeaseReducer()
    restored.restore(reducer.checkpoint())
    assert restored.state == reducer.state


def test_only_the_reducer_s_own_tenant_counts(leases: Client, clock: FakeClock) -> None:
    live_a_little(leases, clock)
    reducer = fold(leases._session.desk.ask(ReadLedger(query=EntryQuery())), tenant="acme")
    assert len(reducer.state) == 0
    assert reducer.position > 0


def test_shared_leases_stand_together_and_the_newest_is_named() -> None:
    first = issued(mode=Mode.SHARED)
    second = replace(first, lease_id="lease-2", holder="bob")
    reducer = told(first, second)
    assert [lease.lease_id for lease in reducer.state.standing_on("door")] == ["lease-1", "lease-2"]
    assert reducer.state.active_leases_by_work == {"door": "lease-2"}
    ended = told(
        first,
        second,
        LeaseReleased(
            **OF_LEASE | {"lease_id": "lease-2", "holder": "bob", "actor": "bob"},
            reason=KernelReason.COMPLETED,
        ),
    )
    assert ended.state.active_leases_by_work == {"door": "lease-1"}
    assert ended.state.has_active_lease("door")


RENEWED = LeaseRenewed(tick=Tick(value=60), at_ns=6_000, actor="ann", holder="ann", renewals={"lease-1": 150})
EXPIRED = LeaseExpired(**OF_LEASE | {"tick": Tick(value=100)})
RELEASED = LeaseReleased(**OF_LEASE, reason=KernelReason.COMPLETED)
IMPOSSIBLE: dict[str, tuple[list[Event], type[LeaseError]]] = {
    "a second exclusive lease": ([issued(), issued(lease_id="lease-2", holder="bob")], WorkAlreadyLeased),
    "a sharer beside it": (
        [issued(), issued(lease_id="lease-2", holder="bob", mode=Mode.SHARED)],
        WorkAlreadyLeased,
    ),
    "a lease of no time": ([issued(ttl_ns=0)], InvalidInput),
    "a resource beyond its limit": ([issued(resource="x" * 513)], InvalidInput),
    "a renewal of nothing": ([RENEWED], LeaseNotFound),
    "a renewal that shortens": ([issued(), replace(RENEWED, renewals={"lease-1": 99})], RenewalDoesNotExtend),
    "a renewal after expiry": ([issued(), replace(RENEWED, tick=Tick(value=100))], Expired),
    "a renewal on another clock": ([issued(), replace(RENEWED, tick=Tick(value=60, era=2))], InvalidInput),
    "a release by a stranger": ([issued(), replace(RELEASED, actor="bob")], Unauthorized),
    "an early expiry": ([issued(), replace(EXPIRED, tick=Tick(value=99))], InvalidExpiration),
    "an expiry on another clock": ([issued(), replace(EXPIRED, tick=Tick(value=100, era=2))], InvalidInput),
    "a holder that changed": ([issued(), replace(EXPIRED, holder="bob")], InvalidInput),
    "a rearming in the same era": ([issued(), LeaseRearmed(**OF_LEASE, expires_tick=300)], InvalidInput),
    "an end after the end": ([issued(), RELEASED, RELEASED], LeaseAlreadyTerminal),
}


@pytest.mark.parametrize(("events", "error"), IMPOSSIBLE.values(), ids=IMPOSSIBLE.keys())
def test_what_no_store_could_have_written_is_refused(events: list[Event], error: type[LeaseError]) -> None:
    told(*events[:-1])
    with pytest.raises(error) as refused:
        told(*events)
    assert type(refused.value) is error


def test_one_bad_lease_in_a_batch_of_renewals_leaves_all_as_they_were() -> None:
    other = issued(lease_id="lease-2", resource="window")
    batch = replace(RENEWED, renewals={"lease-1": 150, "lease-2": 99})
    reducer = told(issued(), other)
    before = reducer.checkpoint()
    entry = Entry(position=3, event=batch, body=encode_event(batch), hash=bytes(32))
    with pytest.raises(RenewalDoesNotExtend):
        reducer.apply(*record_of(entry, seal=SEAL))
    assert reducer.checkpoint() == before


def test_without_a_seal_nothing_is_granted_or_renewed() -> None:
    with pytest.raises(MissingSignature):
        told(issued(), seal=b"")
    signed = issued(signature=b"signed")
    assert told(signed, seal=b"").state.active_count() == 1
    with pytest.raises(MissingSignature):
        told(signed, RENEWED, seal=b"")


def test_what_comes_after_the_last_seal_is_vouched_for_by_nobody(leases: Client) -> None:
    leases.acquire("door")
    leases.acquire("window")
    entries = leases._session.desk.ask(ReadLedger(query=EntryQuery()))
    assert fold(entries).state.active_count() == 2
    cut_off = [*entries[:-1], replace(entries[-1], seal=None)]
    with pytest.raises(MissingSignature):
        fold(cut_off)


def test_every_entry_gets_the_first_seal_that_comes_with_or_after_it() -> None:
    seals = [None, b"first", b"second", None, None, b"third", None]
    events = [issued(lease_id=f"lease-{number}") for number in range(len(seals))]
    entries = [
        Entry(position=number, event=event, body=encode_event(event), hash=bytes(32), seal=seal)
        for number, (event, seal) in enumerate(zip(events, seals, strict=True), start=1)
    ]
    given = [(context.position, record.seal) for record, context in sealed_records(entries)]
    expected = [b"first", b"first", b"second", b"third", b"third", b"third", b""]
    assert given == list(enumerate(expected, start=1))


def test_revoked_is_an_end_like_any_other() -> None:
    revoked = LeaseRevoked(**OF_LEASE | {"actor": "olga"}, reason="maintenance")
    reducer = told(issued(), revoked)
    lease = reducer.state.get("lease-1")
    assert lease is not None
    assert (lease.state, lease.terminated_at) == (LeaseState.REVOKED, 6_000)
    assert reducer.state_mut.prune_terminal_leases() == 1
