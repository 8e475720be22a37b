"""Commands decided one after another on one view are decided as if each was committed before the next."""

import hypothesis.strategies as st
import pytest
from hypothesis import given, settings

from leasehold.kernel.lease.commands import Acquire, Command, Release, Renew, Revoke, Sweep
from leasehold.kernel.lease.decide import decide
from leasehold.kernel.lease.events import Event
from leasehold.kernel.lease.model import Mode
from leasehold.kernel.lease.records import Keys, Missing
from leasehold.kernel.ledger.limits import Quotas
from leasehold.kernel.ledger.refusals import Refusal
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
    st.builds(Sweep, tenant=TENANTS, request_id=REQUESTS, lease_ids=SEVERAL),
)
QUOTAS = st.builds(
    Quotas,
    leases_per_holder=st.sampled_from([None, 1, 2]),
    leases_per_tenant=st.sampled_from([None, 2, 3]),
)


@pytest.mark.slow
@settings(max_examples=500, deadline=None, print_blob=True)
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
    now = registrar.now()

    # The store is asked while the batch is decided, and knows nothing of what the batch has done so far.
    view = registrar.view()
    answers: list[object] = []
    events: list[Event] = []
    if read_ahead:
        keys = view.lacking(batch) or Keys()
        view.load(keys, registrar.found(keys))
    for command in batch:
        while True:
            try:
                decided = decide(command, view, now)
                break
            except Missing as missing:
                view.load(missing.keys, registrar.found(missing.keys))
        answers.append(decided if isinstance(decided, Refusal) else decided.answer)
        if not isinstance(decided, Refusal):
            view.fold(decided.events, decided.leases)
            events += decided.events

    history = len(registrar.ledger)
    assert answers == [registrar.ask(command) for command in batch]
    assert events == registrar.ledger[history:]
    assert view.created | view.changed == {
        lease_id: registrar.lease(lease_id) for event in events for lease_id in event.lease_ids
    }
    assert view.authority == registrar.authority
