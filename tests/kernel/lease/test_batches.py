"""Commands decided one after another on one view are decided as if each was committed before the next."""

import hypothesis.strategies as st
from hypothesis import given

from leasehold.kernel.lease.budget import Budget
from leasehold.kernel.lease.commands import (
    Acquire,
    ChangeMode,
    Derive,
    Release,
    Renew,
    Revoke,
    Transfer,
    Wanted,
)
from leasehold.kernel.lease.model import Mode
from leasehold.kernel.lease.quotas import Quotas
from leasehold.kernel.lease.scope import Scope
from leasehold.kernel.lease.view import LeaseView
from leasehold.kernel.ledger.commands import Command, Sweep
from leasehold.kernel.ledger.events import Event
from leasehold.kernel.ledger.records import Missing
from leasehold.kernel.ledger.refusals import Refusal
from tests.kernel.deciding import decide_for_good, outcome
from tests.kernel.registrar import SECOND, Registrar

LEASES = st.sampled_from(["lease-1", "lease-2", "lease-3", "lease-4", "lease-5"])
SEVERAL = st.lists(LEASES, min_size=1, max_size=4).map(tuple)
REQUESTS = st.sampled_from(["request-1", "request-2", "request-3"])
HOLDERS = st.sampled_from(["ann", "bob"])
TENANTS = st.sampled_from(["default", "acme"])

COMMANDS: st.SearchStrategy[Command] = st.one_of(
    st.builds(
        Acquire,
        tenant=TENANTS,
        request_id=REQUESTS,
        lease_id=LEASES,
        resource=st.sampled_from(["door", "window"]),
        holder=HOLDERS,
        ttl_ns=st.sampled_from([SECOND, 9 * SECOND]),
        mode=st.sampled_from(Mode),
        adopt=st.booleans(),
        bound_to_boot=st.booleans(),
        max_renewals=st.just(-1),
        metadata=st.just({}),
        config_version=st.just(""),
        zone_version=st.just(""),
    ),
    st.builds(
        Renew,
        tenant=TENANTS,
        request_id=REQUESTS,
        lease_ids=SEVERAL,
        holder=HOLDERS,
        ttl_ns=st.sampled_from([None, SECOND, 20 * SECOND]),
    ),
    st.builds(Release, tenant=TENANTS, request_id=REQUESTS, lease_ids=SEVERAL, holder=HOLDERS),
    st.builds(
        Revoke, tenant=TENANTS, request_id=REQUESTS, lease_id=LEASES, operator=HOLDERS, reason=st.just("why")
    ),
    st.builds(Sweep, request_id=REQUESTS, family=st.just("lease"), key=LEASES),
)
QUOTAS = st.builds(
    Quotas,
    leases_per_holder=st.sampled_from([None, 1, 2]),
    leases_per_tenant=st.sampled_from([None, 2, 3]),
)


@given(
    quotas=QUOTAS,
    before=st.lists(COMMANDS, max_size=6),
    pause=st.sampled_from(["none", "a second", "a reboot"]),
    batch=st.lists(COMMANDS, min_size=2, max_size=8),
    read_ahead=st.booleans(),
)
def test_a_batch_on_one_view_is_decided_like_its_commands_one_by_one(
    quotas: Quotas, before: list[Command], pause: str, batch: list[Command], read_ahead: bool
) -> None:
    registrar = Registrar(quotas)
    for command in before:
        registrar.ask(command)
    if pause == "a second":
        registrar.advance(1)
    elif pause == "a reboot":
        registrar.reboot()
    registrar.now()
    view = registrar.view()
    check_batch(registrar, view, batch, read_ahead=read_ahead)
    assert view.authority == registrar.authority


def check_batch(registrar: Registrar, view: LeaseView, batch: list[Command], *, read_ahead: bool) -> None:
    """Decide a batch on one view, then its commands one by one, and compare.

    The store is asked while the batch is decided, and knows nothing of what the batch has done so far.
    """
    now = registrar.now()
    answers: list[object] = []
    events: list[Event] = []
    if read_ahead:
        registrar.load_needs(view, *batch)
    for command in batch:
        while True:
            try:
                decided = decide_for_good(command, view, now)
                break
            except Missing as missing:
                view.ledger.load(missing.keys, registrar.found(missing.keys))
        answers.append(outcome(decided))
        if not isinstance(decided, Refusal):
            events += decided.events

    history = len(registrar.ledger)
    assert answers == [registrar.ask(command) for command in batch]
    assert events == registrar.ledger[history:]
    assert {change.key: change.after for change in view.ledger.changes()} == {
        lease_id: registrar.lease(lease_id) for event in events for lease_id in event.keys
    }


RESOURCES = st.sampled_from(["door", "gate", "/", "/d", "/d/x"])
CROWDED: st.SearchStrategy[Command] = st.one_of(
    st.builds(
        Acquire,
        request_id=REQUESTS,
        lease_id=LEASES,
        resource=RESOURCES,
        holder=HOLDERS,
        ttl_ns=st.sampled_from([SECOND, 9 * SECOND]),
        mode=st.sampled_from(Mode),
        wait=st.booleans(),
        adopt=st.booleans(),
        also=st.sampled_from([(), (), (Wanted(resource="door"),), (Wanted(resource="/d/x"),)]),
        priority=st.sampled_from([5, 9]),
        lock_delay_ns=st.sampled_from([0, 0, 2 * SECOND]),
        budget=st.sampled_from([None, None, Budget(tokens=5)]),
        scope=st.none(),
        metadata=st.just({}),
        max_renewals=st.just(-1),
        wake=st.just(""),
        config_version=st.just(""),
        zone_version=st.just(""),
        tenant=st.just("default"),
    ),
    st.builds(
        Derive,
        request_id=REQUESTS,
        parent_id=LEASES,
        lease_id=LEASES,
        resource=RESOURCES,
        holder=HOLDERS,
        child_holder=HOLDERS,
        budget=st.just(Budget(tokens=1)),
        scope=st.just(Scope()),
        metadata=st.just({}),
        max_renewals=st.just(-1),
        ttl_ns=st.none(),
        mode=st.just(Mode.EXCLUSIVE),
        tenant=st.just("default"),
    ),
    st.builds(Renew, request_id=REQUESTS, lease_ids=SEVERAL, holder=HOLDERS, tenant=st.just("default")),
    st.builds(Release, request_id=REQUESTS, lease_ids=SEVERAL, holder=HOLDERS, tenant=st.just("default")),
    st.builds(Revoke, request_id=REQUESTS, lease_id=LEASES, operator=HOLDERS, reason=st.just("why")),
    st.builds(ChangeMode, request_id=REQUESTS, lease_id=LEASES, holder=HOLDERS, mode=st.sampled_from(Mode)),
    st.builds(
        Transfer, request_id=REQUESTS, lease_id=LEASES, holder=HOLDERS, to=HOLDERS, new_lease_id=LEASES
    ),
    st.builds(Sweep, request_id=REQUESTS, family=st.just("lease"), key=LEASES),
)


@given(
    quotas=QUOTAS,
    batches=st.lists(
        st.tuples(st.sampled_from([0, 1, 3, 30]), st.lists(CROWDED, min_size=1, max_size=4), st.booleans()),
        min_size=2,
        max_size=5,
    ),
)
def test_a_view_that_is_kept_decides_batch_after_batch_as_a_new_one_would(
    quotas: Quotas, batches: list[tuple[int, list[Command], bool]]
) -> None:
    registrar = Registrar(quotas)
    registrar.now()
    view = registrar.view()
    for pause, batch, read_ahead in batches:
        registrar.advance(pause)
        check_batch(registrar, view, batch, read_ahead=read_ahead)
        assert view.authority == registrar.authority
        view.ledger.settle()
