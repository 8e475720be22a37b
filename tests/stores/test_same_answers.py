"""Every store gives the same answers to the same commands at the same times, and its history replays."""

import tempfile
from pathlib import Path
from typing import Any

import hypothesis.strategies as st
from hypothesis import settings
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule
from msgspec.structs import replace

from leasehold.engine.audit import audit
from leasehold.engine.batch import Rules, run_batch
from leasehold.engine.port import EntryQuery, LeaseQuery, Store
from leasehold.kernel.lease.commands import (
    Acquire,
    Release,
    Renew,
    Revoke,
)
from leasehold.kernel.lease.family import lease_family
from leasehold.kernel.lease.model import Lease, Mode, ReleaseReason
from leasehold.kernel.lease.quotas import Quotas
from leasehold.kernel.lease.records import LEASE
from leasehold.kernel.ledger.commands import Command, Sweep
from leasehold.kernel.ledger.events import EpochRaised, StoreOpened
from leasehold.kernel.ledger.family import Families
from leasehold.stores.memory import MemoryStore
from leasehold.stores.sqlite import SqliteStore
from leasehold.testing.clock import FakeClock

SECOND = 1_000_000_000

tenants = st.sampled_from(["default", "default", "other"])
resources = st.sampled_from(["door", "straße/%_", "/ü/a.py", "/ü/*.py", "/ü"])
holders = st.sampled_from(["ann", "bob", "cyd"])
requests = st.sampled_from([f"request-{number}" for number in range(8)])
lease_ids = st.sampled_from([f"lease-{number}" for number in range(12)])
batches_of_ids = st.lists(lease_ids, min_size=1, max_size=6).map(tuple)
seconds = st.sampled_from([1, 2, 5, 30]).map(lambda number: number * SECOND)

acquires = st.builds(
    Acquire,
    tenant=tenants,
    request_id=requests,
    lease_id=lease_ids,
    resource=resources,
    holder=holders,
    ttl_ns=seconds,
    mode=st.sampled_from(Mode),
    adopt=st.booleans(),
    max_renewals=st.sampled_from([-1, 0, 1]),
    bound_to_boot=st.booleans(),
    metadata=st.sampled_from([{}, {"ключ": ["☕", None, 1.5]}]),
)
renewals = st.builds(
    Renew,
    tenant=tenants,
    request_id=requests,
    lease_ids=batches_of_ids,
    holder=holders,
    ttl_ns=st.none() | seconds,
)
releases = st.builds(
    Release,
    tenant=tenants,
    request_id=requests,
    lease_ids=batches_of_ids,
    holder=holders,
    reason=st.sampled_from(ReleaseReason),
)
revocations = st.builds(
    Revoke, tenant=tenants, request_id=requests, lease_id=lease_ids, operator=holders, reason=st.just("test")
)
sweeps = st.builds(Sweep, request_id=requests, family=st.just(LEASE), key=lease_ids)
commands = acquires | acquires | renewals | releases | revocations | sweeps


class SameAnswers(RuleBasedStateMachine):
    """One history of commands and clock troubles, played on all stores side by side."""

    @initialize(quotas=st.sampled_from([Quotas(), Quotas(leases_per_holder=2, leases_per_tenant=3)]))
    def open_stores(self, quotas: Quotas) -> None:
        families = Families((lease_family(quotas),))
        self.clock = FakeClock()
        self.folder = tempfile.TemporaryDirectory()
        folder = Path(self.folder.name)
        self.stores: list[Store] = [
            MemoryStore(clock=self.clock, families=families),
            SqliteStore(folder / "full.db", clock=self.clock, families=families),
            SqliteStore(folder / "fast.db", durability="fast", clock=self.clock, families=families),
        ]

    @rule(batch=st.lists(commands, min_size=1, max_size=5), sweep_limit=st.sampled_from([0, 1, 10]))
    def run_commands(self, batch: list[Command], sweep_limit: int) -> None:
        rules = Rules(sweep_limit=sweep_limit)
        expected, *others = [run_batch(store, batch, rules) for store in self.stores]
        assert [outcome for outcome in expected if isinstance(outcome, Exception)] == []
        for outcomes in others:
            assert outcomes == expected

    @rule(moments=st.integers(0, 40))
    def let_time_pass(self, moments: int) -> None:
        self.clock.advance(moments / 2)

    @rule(tick=st.sampled_from([0, 5 * SECOND, 10_000 * SECOND]))
    def reboot(self, tick: int) -> None:
        self.clock.reboot(tick_ns=tick, down_seconds=1)

    @rule(how_far=st.sampled_from([0.5, 3, 60]))
    def set_the_clock_back(self, how_far: float) -> None:
        self.clock.set_back(how_far)

    @rule(how_far=st.sampled_from([-7200, 7200]))
    def jump_in_wall_time(self, how_far: float) -> None:
        self.clock.jump_wall(how_far)

    @invariant()
    def all_stores_hold_the_same(self) -> None:
        expected, *others = [contents(store) for store in self.stores]
        for found in others:
            assert found == expected

    def teardown(self) -> None:
        if not hasattr(self, "stores"):
            return
        for store in self.stores:
            assert audit(store).problems == []
            store.close()
        self.folder.cleanup()


def contents(store: Store) -> tuple[list[Lease], object, list[Any]]:
    """Everything in a store but what names the store itself: its identity, its key, its hashes."""
    with store.snapshot() as snapshot:
        record = snapshot.authority
        events = [entry.event for entry in snapshot.entries(EntryQuery())]
        anonymous = [
            replace(event, identity="", public_key=b"")
            if isinstance(event, StoreOpened)
            else replace(event, identity="")
            if isinstance(event, EpochRaised)
            else event
            for event in events
        ]
        return (
            snapshot.leases(LeaseQuery()),
            None if record is None else replace(record, identity=""),
            anonymous,
        )


SameAnswers.TestCase.settings = settings(stateful_step_count=25)
TestSameAnswers = SameAnswers.TestCase
