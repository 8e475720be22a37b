from collections.abc import Iterable
from typing import Any

import pytest
from msgspec.structs import replace

from leasehold.kernel.lease.commands import Acquire, Release, Renew, Revoke, Wanted
from leasehold.kernel.lease.decision import Decision
from leasehold.kernel.lease.delegation import Delegation
from leasehold.kernel.lease.events import LeaseIssued, LeaseReleased
from leasehold.kernel.lease.evolve import evolve
from leasehold.kernel.lease.model import Lease, LeaseState, Mode, ReleaseReason
from leasehold.kernel.lease.needs import needs
from leasehold.kernel.lease.quotas import Quotas
from leasehold.kernel.lease.records import (
    CHILDREN_PAGE,
    FIRST_IN_LINE,
    LeaseFound,
    LeaseWanted,
    children_of,
    count_of_holder,
    count_of_tenant,
    held_by,
    lease_keys,
    waits_of,
)
from leasehold.kernel.lease.ticket import LAST_PLACE, Ticket
from leasehold.kernel.lease.view import LeaseView
from leasehold.kernel.ledger.commands import Command, Sweep
from leasehold.kernel.ledger.draft import Draft
from leasehold.kernel.ledger.events import IllegalTransition
from leasehold.kernel.ledger.records import Keys, Missing, Records, Scan
from leasehold.kernel.ledger.refusals import Refusal
from leasehold.kernel.ledger.tick import Tick
from tests.kernel.deciding import decide, decide_for_good, lease_view
from tests.kernel.records import (
    ACQUIRE,
    DERIVE,
    OF_LEASE,
    RELEASE,
    RENEW,
    REVOKE,
    SWEEP,
    TOKEN,
    a_lease,
    an_authority,
    an_era,
    at,
)

DOOR = ("default", "door")
ANN = ("default", "ann")
OF_ANN = count_of_holder(ANN)
OF_TENANT = count_of_tenant("default")


def issued(**fields: Any) -> LeaseIssued:
    return LeaseIssued(**(OF_LEASE | {"token": TOKEN + 1, "ttl_ns": 50} | fields))


def released(**fields: Any) -> LeaseReleased:
    return LeaseReleased(**(OF_LEASE | {"reason": ReleaseReason.VOLUNTARY} | fields))


def loaded(*leases: Lease, keys: Keys | None = None, requests: Any = None, **found: Any) -> LeaseView:
    view = lease_view(an_authority(), Quotas(leases_per_holder=100, leases_per_tenant=100))
    keys = keys or lease_keys(keys={lease.lease_id for lease in leases}, resources={DOOR})
    load(view, keys, *leases, requests=requests, **found)
    return view


def keys_of(requests: Iterable[str] = (), **wanted: Any) -> Keys:
    keys = lease_keys(**wanted)
    keys.requests.update(requests)
    return keys


def load(view: LeaseView, keys: Keys, *leases: Lease, requests: Any = None, **found: Any) -> None:
    """Load what a store found, in which these leases are: of all that is counted or scanned, nothing else."""
    wanted = keys.families.get("lease", LeaseWanted())
    answer = LeaseFound(
        records={lease.lease_id: lease for lease in leases},
        scans={scan: [] for scan in wanted.scans} | found.pop("scans", {}),
        counts=dict.fromkeys(wanted.counts, 0) | found.pop("counts", {}),
        **found,
    )
    view.ledger.load(keys, Records(requests=requests or {}, families={"lease": answer}))


def load_needs(view: LeaseView, command: Command) -> Keys:
    """Load what a command needs, of which the store has nothing."""
    keys = needs([command], view.ledger)
    assert keys is not None
    load(view, keys)
    return keys


def needed(command: Command, quotas: Quotas | None = None) -> Keys:
    return load_needs(lease_view(an_authority(), quotas), command)


def wanted_for(command: Command, quotas: Quotas) -> LeaseWanted:
    wanted = needed(command, quotas).families["lease"]
    assert isinstance(wanted, LeaseWanted)
    return wanted


def happen(view: LeaseView, event: LeaseIssued | LeaseReleased) -> None:
    """Fold in what an event does to the lease it names, as far as the view knows that."""
    known = view.records.get(event.lease_id)
    view.fold((event,), [evolve(known, event)])
    Draft(view.ledger, at(event.tick.value)).took((event,))


def changed(view: LeaseView) -> dict[str, Lease | None]:
    return {change.key: change.after for change in view.ledger.changes()}


def missing(ask: Any, *arguments: Any) -> Keys:
    with pytest.raises(Missing) as caught:
        ask(*arguments)
    assert caught.value.args == (caught.value.keys,), "an error that nobody catches says what was missing"
    return caught.value.keys


def test_a_claim_needs_its_lease_id_its_resource_and_its_request() -> None:
    request = ACQUIRE.request_key

    assert needed(ACQUIRE) == keys_of(keys={"lease-1"}, resources={DOOR}, requests={request})


def test_a_claim_that_is_its_own_request_needs_no_memory_of_requests() -> None:
    claim = replace(ACQUIRE, request_id=ACQUIRE.lease_id)

    assert needed(claim) == lease_keys(keys={"lease-1"}, resources={DOOR})


def test_a_claim_on_several_resources_needs_all_of_them_and_all_its_ids() -> None:
    claim = replace(ACQUIRE, request_id=ACQUIRE.lease_id, also=(Wanted(resource="window"),))

    assert needed(claim) == lease_keys(keys={"lease-1", "lease-1.1"}, resources={DOOR, ("default", "window")})


def test_a_claim_can_be_presumed_to_be_sent_for_the_first_time() -> None:
    view = lease_view(an_authority())
    view.ledger.presuming = True
    claim = replace(ACQUIRE, request_id=ACQUIRE.lease_id)

    assert needs([claim], view.ledger) == lease_keys(resources={DOOR})
    assert view.proposed(claim.lease_id) is None
    with pytest.raises(Missing):
        view.lease(claim.lease_id)  # For everybody else it is a lease that nobody has looked for.
    assert view.doubtful(claim) == lease_keys(keys={claim.lease_id})
    assert view.doubtful(claim) is None, "doubted once"
    assert view.doubtful(RELEASE) is None


@pytest.mark.parametrize(
    "claim",
    [
        ACQUIRE,
        replace(ACQUIRE, request_id=ACQUIRE.lease_id, wait=True),
        replace(ACQUIRE, request_id=ACQUIRE.lease_id, also=(Wanted(resource="window"),)),
    ],
    ids=["named by its caller", "waiting", "of several resources"],
)
def test_a_claim_that_may_well_be_a_repeat_is_not_presumed_to_be_new(claim: Acquire) -> None:
    view = lease_view(an_authority())
    view.ledger.presuming = True
    keys = needs([claim], view.ledger)

    assert keys is not None
    assert claim.lease_id in keys.families["lease"].keys


def test_what_was_presumed_is_certain_once_it_is_committed() -> None:
    view = lease_view(an_authority())
    view.ledger.presuming = True
    claim = replace(ACQUIRE, request_id=ACQUIRE.lease_id)
    needs([claim], view.ledger)

    view.ledger.settle()

    assert view.doubtful(claim) is None


def test_a_command_needs_nothing_that_is_here_already() -> None:
    view = lease_view(an_authority())
    claim = replace(ACQUIRE, request_id=ACQUIRE.lease_id)
    for command in (claim, RENEW):
        load_needs(view, command)

    assert needs([claim, RENEW, RELEASE], view.ledger) is None


@pytest.mark.parametrize("command", [RELEASE, REVOKE, SWEEP])
def test_an_end_needs_who_comes_next_where_somebody_waits(command: Command) -> None:
    view = lease_view(an_authority())
    load(view, lease_keys(keys={"lease-1", "lease-2"}), a_lease(), awaited={DOOR})
    gone = replace(RELEASE, lease_ids=("lease-2",))

    assert needs([gone], view.ledger) is None, "nothing ends that is not there"
    assert needs([command], view.ledger) == lease_keys(queues={(*DOOR, FIRST_IN_LINE)})


def test_the_end_of_a_shared_lease_needs_who_else_stands_there() -> None:
    view = lease_view(an_authority())
    load(view, lease_keys(keys={"lease-1"}), a_lease(mode=Mode.SHARED), awaited={DOOR})

    assert needs([RELEASE], view.ledger) == lease_keys(resources={DOOR}, queues={(*DOOR, FIRST_IN_LINE)})


def test_whoever_follows_waiters_needs_what_stands_where_they_wait_and_who_holds_it() -> None:
    view = lease_view(an_authority())
    ticket = Ticket(number=TOKEN, since=at(1).tick, since_ns=1)
    waiting = a_lease(state=LeaseState.PENDING, ticket=ticket)
    on_a_path = replace(waiting, lease_id="lease-2", resource="/a")
    load(view, lease_keys(scans={waits_of(ANN)}), waiting, on_a_path, awaited={DOOR})

    keys = needs([], view.ledger)
    assert keys == lease_keys(resources={DOOR}, queues={(*DOOR, FIRST_IN_LINE)}), "paths are not followed"
    held = a_lease(lease_id="lease-3", holder="bob")
    queue = {(*DOOR, FIRST_IN_LINE): (LAST_PLACE, LAST_PLACE)}
    load(view, keys, waiting, held, queues=queue)

    bob = lease_keys(scans={waits_of(("default", "bob"))})
    assert needs([], view.ledger) == bob
    load(view, bob)
    assert needs([], view.ledger) is None, "what bob waits for is known, and it is nothing"


def test_whoever_follows_waiters_does_not_ask_again_what_a_holder_in_the_way_waits_for() -> None:
    view = lease_view(an_authority())
    ticket = Ticket(number=TOKEN, since=at(1).tick, since_ns=1)
    waiting = a_lease(state=LeaseState.PENDING, ticket=ticket)
    held = a_lease(lease_id="lease-3", holder="bob")
    queue = {(*DOOR, FIRST_IN_LINE): (LAST_PLACE, LAST_PLACE)}
    keys = lease_keys(
        scans={waits_of(ANN), waits_of(("default", "bob"))}, resources={DOOR}, queues=set(queue)
    )
    load(view, keys, waiting, held, queues=queue, awaited={DOOR})

    assert needs([], view.ledger) is None


def test_whom_the_batch_before_had_to_follow_is_not_followed_any_more() -> None:
    view = lease_view(an_authority())
    ticket = Ticket(number=TOKEN, since=at(1).tick, since_ns=1)
    waiting = a_lease(state=LeaseState.PENDING, ticket=ticket)
    load(view, keys_of(scans={waits_of(ANN)}), waiting, awaited={DOOR})
    assert view.following == {ANN}

    view.ledger.settle()

    assert needs([], view.ledger) is None
    assert view.waits_of(*ANN) == [waiting], "but what it waits for is still known"


def test_a_scan_in_another_order_says_nothing_about_a_single_holder() -> None:
    view = lease_view(an_authority())
    load(view, keys_of(scans={Scan("a", "z")}), a_lease())

    assert view.lease("lease-1") == a_lease()
    assert missing(view.waits_of, *ANN) == keys_of(scans={waits_of(ANN)})
    assert missing(view.owned_by, *ANN) == keys_of(scans={held_by(ANN)})


def test_a_settled_view_still_knows_what_was_committed() -> None:
    view = lease_view(an_authority())
    load(view, keys_of(keys={"lease-1"}, resources={DOOR}))
    happen(view, issued())

    assert view.ledger.settle()
    assert changed(view) == {}
    assert [lease.lease_id for lease in view.unended_on(*DOOR)] == ["lease-1"]


def test_counts_go_on_in_a_view_that_is_kept_and_are_asked_for_where_they_are_not_known() -> None:
    view = lease_view(an_authority(), Quotas(leases_per_holder=5, leases_per_tenant=5))
    counted = keys_of(keys={"lease-1"}, counts={OF_ANN, OF_TENANT})
    load(view, counted, counts={OF_ANN: 2, OF_TENANT: 3})
    happen(view, issued())
    assert view.ledger.settle()
    assert (view.count_of_holder("default", "ann"), view.count_of_tenant("default")) == (3, 4)

    others = lease_view(an_authority(), Quotas(leases_per_holder=5, leases_per_tenant=5))
    happen(others, issued())
    assert others.ledger.settle()
    load(others, counted, counts={OF_ANN: 1, OF_TENANT: 1})
    assert (others.count_of_holder("default", "ann"), others.count_of_tenant("default")) == (1, 1)
    assert others.ledger.settle()


def test_a_view_that_has_grown_large_is_not_kept() -> None:
    large = lease_view(an_authority())
    load(large, keys_of(keys={f"lease-{number}" for number in range(5_000)}))

    assert not large.ledger.settle()


def test_a_claim_under_quotas_needs_the_counts_that_have_a_limit() -> None:
    assert wanted_for(ACQUIRE, Quotas(leases_per_holder=1)).counts == {OF_ANN}
    assert wanted_for(ACQUIRE, Quotas(leases_per_tenant=1)).counts == {OF_TENANT}
    assert wanted_for(DERIVE, Quotas(leases_per_holder=1)).counts == {count_of_holder(("default", "bob"))}


def test_a_renewal_needs_its_leases_and_its_request() -> None:
    assert needed(RENEW) == keys_of(keys={"lease-1"}, requests={RENEW.request_key})


@pytest.mark.parametrize("command", [RELEASE, REVOKE, SWEEP])
def test_an_ending_needs_its_leases_only(command: Release | Revoke | Sweep) -> None:
    assert needed(command, Quotas(leases_per_holder=1)) == keys_of(keys={"lease-1"})


@pytest.mark.parametrize("command", [ACQUIRE, RENEW, RELEASE, REVOKE, SWEEP])
def test_what_a_command_is_sure_to_need_is_enough_to_decide_it(
    command: Acquire | Renew | Release | Revoke | Sweep,
) -> None:
    quotas = Quotas(leases_per_holder=5, leases_per_tenant=5)
    view = lease_view(an_authority(), quotas)
    load_needs(view, command)

    decide(command, view, at(60))


def test_a_record_that_nobody_loaded_is_missing_and_named() -> None:
    view = lease_view(an_authority(era=4))

    assert missing(view.lease, "lease-1") == keys_of(keys={"lease-1"})
    assert missing(view.unended_on, "default", "door") == keys_of(resources={DOOR})
    assert missing(view.ledger.remembered, "r:1") == Keys(requests={"r:1"})
    assert missing(view.count_of_holder, "default", "ann") == keys_of(counts={OF_ANN})
    assert missing(view.count_of_tenant, "default") == keys_of(counts={OF_TENANT})
    assert missing(view.eras_for, a_lease(expires_tick=Tick(value=100, era=2))) == Keys(eras={2, 3})


def test_a_record_that_was_asked_for_and_not_found_does_not_exist() -> None:
    view = lease_view(an_authority(era=2))
    keys = keys_of(keys={"lease-1"}, resources={DOOR}, requests={"r:1"}, counts={OF_ANN, OF_TENANT})
    keys.eras.add(1)
    load(view, keys)

    assert view.lease("lease-1") is None
    assert view.unended_on(*DOOR) == []
    assert view.ledger.remembered("r:1") is None
    assert view.count_of_holder(*ANN) == 0
    assert view.count_of_tenant("default") == 0
    assert view.eras_for(a_lease()) == {}


def test_what_was_found_can_be_read() -> None:
    view = loaded(
        a_lease(),
        keys=keys_of(keys={"lease-1"}, requests={"r:1"}, counts={OF_ANN, OF_TENANT}),
        requests={"r:1": issued()},
        counts={OF_ANN: 3, OF_TENANT: 7},
    )

    assert view.lease("lease-1") == a_lease()
    assert view.ledger.remembered("r:1") == issued()
    assert view.count_of_holder(*ANN) == 3
    assert view.count_of_tenant("default") == 7


def test_the_unended_leases_of_a_resource_come_in_the_order_of_their_tokens() -> None:
    first, second = a_lease(lease_id="b", token=1), a_lease(lease_id="a", token=2)
    elsewhere = a_lease(lease_id="c", resource="window")
    foreign = a_lease(lease_id="d", tenant="acme")
    over = evolve(a_lease(lease_id="e"), released(lease_id="e"))

    view = loaded(second, elsewhere, first, foreign, over)

    assert view.unended_on(*DOOR) == [first, second]


def test_a_lease_of_the_present_era_or_without_ticks_needs_no_eras() -> None:
    view = lease_view(an_authority(era=2))

    assert view.eras_for(a_lease(expires_tick=None)) == {}
    assert view.eras_for(a_lease(expires_tick=Tick(value=1, era=2))) == {}


def test_eras_that_are_known_already_are_not_asked_for_again() -> None:
    view = lease_view(an_authority(era=3))
    view.ledger.load(Keys(eras={1}), Records(eras={1: an_era()}))

    assert missing(view.eras_for, a_lease()) == Keys(eras={2})


def test_an_event_changes_what_the_view_says() -> None:
    view = loaded(keys=keys_of(keys={"lease-1"}, resources={DOOR}, counts={OF_ANN, OF_TENANT}))

    happen(view, issued(request="r:1"))
    granted = evolve(None, issued(request="r:1"))
    assert view.lease("lease-1") == granted
    assert view.unended_on(*DOOR) == [granted]
    assert view.ledger.remembered("r:1") == issued(request="r:1")
    assert (view.count_of_holder(*ANN), view.count_of_tenant("default")) == (1, 1)
    assert view.authority.counter == 2

    happen(view, released())
    assert view.lease("lease-1") == evolve(granted, released())
    assert view.unended_on(*DOOR) == []
    assert (view.count_of_holder(*ANN), view.count_of_tenant("default")) == (0, 0)
    assert changed(view) == {"lease-1": evolve(granted, released())}


def test_what_is_undone_leaves_what_an_earlier_command_has_changed() -> None:
    view = loaded(a_lease())
    happen(view, issued(lease_id="lease-3"))
    before = changed(view)

    draft = Draft(view.ledger, at(60))
    draft.begin()
    happen(view, released(lease_id="lease-3", token=TOKEN + 1))
    assert changed(view) != before
    draft.undo()

    assert changed(view) == before


def test_a_change_says_whether_the_lease_is_new_and_changes_come_in_order() -> None:
    view = loaded(a_lease())

    happen(view, issued(lease_id="lease-3"))
    happen(view, issued(lease_id="lease-2", token=TOKEN + 2))
    happen(view, released())

    assert list(view.before) == ["lease-3", "lease-2", "lease-1"]
    assert [change.key for change in view.ledger.changes() if change.before is None] == ["lease-3", "lease-2"]
    assert [(change.before, change.after) for change in view.ledger.changes()][2] == (
        a_lease(),
        evolve(a_lease(), released()),
    )


def test_a_store_that_is_asked_late_does_not_undo_what_events_have_changed() -> None:
    # The records below are what a store says that has not seen the events: the first lease still stands.
    view = loaded(a_lease(), keys=keys_of(keys={"lease-1"}))
    happen(view, released())
    happen(view, issued(lease_id="lease-2", request="r:1"))

    load(
        view,
        keys_of(keys={"lease-1"}, resources={DOOR}, requests={"r:1"}, counts={OF_ANN, OF_TENANT}),
        a_lease(),
        counts={OF_ANN: 5, OF_TENANT: 9},
    )

    assert view.lease("lease-1") == evolve(a_lease(), released())
    assert [lease.lease_id for lease in view.unended_on(*DOOR)] == ["lease-2"]
    assert view.ledger.remembered("r:1") == issued(lease_id="lease-2", request="r:1")
    assert view.count_of_holder(*ANN) == 5
    assert view.count_of_tenant("default") == 9
    happen(view, released(lease_id="lease-2", token=TOKEN + 1))
    assert (view.count_of_holder(*ANN), view.count_of_tenant("default")) == (4, 8)


def test_a_release_whose_id_reads_like_the_key_of_a_claim_is_not_taken_for_it() -> None:
    view = loaded(keys=keys_of(keys={"lease-1"}, requests={"r:1"}))
    happen(view, issued(request="r:1"))

    happen(view, released(token=TOKEN + 1, request="r:1"))

    assert view.ledger.remembered("r:1") == issued(request="r:1")


def test_records_loaded_twice_count_once() -> None:
    view = loaded(a_lease())
    keys = keys_of(counts={OF_ANN, OF_TENANT}, requests={"r:1"})
    load(view, keys, counts={OF_ANN: 1, OF_TENANT: 1}, requests={"r:1": issued()})
    load(view, keys, a_lease(version=9))

    assert view.lease("lease-1") == a_lease()
    assert (view.count_of_holder(*ANN), view.count_of_tenant("default")) == (1, 1)
    assert view.ledger.remembered("r:1") == issued()


def test_a_view_without_quotas_limits_nothing() -> None:
    assert lease_view(an_authority()).quotas == Quotas(leases_per_holder=None, leases_per_tenant=None)


def test_an_event_that_the_law_could_not_have_produced_is_refused() -> None:
    with pytest.raises(IllegalTransition):
        happen(loaded(a_lease()), issued(token=TOKEN))


def test_the_commands_of_one_batch_see_what_the_ones_before_them_did() -> None:
    quotas = Quotas(leases_per_holder=1)
    view = lease_view(an_authority(), quotas)
    again = Acquire(request_id="s", lease_id="lease-2", resource="window", holder="ann", ttl_ns=10**9)
    for command in (ACQUIRE, again):
        load_needs(view, command)

    assert isinstance(decide_for_good(ACQUIRE, view, at(60)), Decision)
    refusal = decide(again, view, at(60))

    assert isinstance(refusal, Refusal)
    assert (refusal.code, refusal.field) == ("LIMIT_EXCEEDED", "leases_per_holder")


def test_children_that_were_not_all_are_asked_for_again_once_the_view_is_settled() -> None:
    few, many = a_child("few", "small"), [a_child(f"child-{n}", "large") for n in range(CHILDREN_PAGE)]
    view = lease_view(an_authority())
    small, large = children_of("small"), children_of("large")
    found = {small: [few.lease_id], large: [one.lease_id for one in many]}
    load(view, keys_of(scans={small, large}), few, *many, scans=found)
    assert view.children_of("small") == ([few], True)
    assert view.children_of("large") == (many, False)

    view.ledger.settle()

    assert view.children_of("small") == ([few], True)
    assert missing(view.children_of, "large") == keys_of(scans={large})


def a_child(lease_id: str, parent: str) -> Lease:
    return a_lease(lease_id=lease_id, resource=lease_id, delegation=Delegation(ancestors=(parent,)))
