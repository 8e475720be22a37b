from typing import Any

import pytest
from msgspec.structs import replace

from leasehold.kernel.lease.commands import Acquire, Command, Release, Renew, Revoke, Sweep, Wanted
from leasehold.kernel.lease.decide import decide
from leasehold.kernel.lease.decision import Decision
from leasehold.kernel.lease.delegation import Delegation
from leasehold.kernel.lease.events import IllegalTransition, LeaseIssued, LeaseReleased
from leasehold.kernel.lease.evolve import evolve
from leasehold.kernel.lease.model import Lease, LeaseState, Mode, ReleaseReason
from leasehold.kernel.lease.records import CHILDREN_PAGE, FIRST_IN_LINE, Keys, Missing, Records
from leasehold.kernel.lease.ticket import LAST_PLACE, Ticket
from leasehold.kernel.lease.view import View
from leasehold.kernel.ledger.limits import Quotas
from leasehold.kernel.ledger.tick import Tick
from tests.kernel.records import (
    ACQUIRE,
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


def issued(**fields: Any) -> LeaseIssued:
    return LeaseIssued(**(OF_LEASE | {"token": TOKEN + 1, "ttl_ns": 50} | fields))


def released(**fields: Any) -> LeaseReleased:
    return LeaseReleased(**(OF_LEASE | {"reason": ReleaseReason.VOLUNTARY} | fields))


def loaded(*leases: Lease, keys: Keys | None = None, **records: Any) -> View:
    view = View(an_authority(), Quotas(leases_per_holder=100, leases_per_tenant=100))
    keys = keys or Keys(leases={lease.lease_id for lease in leases}, resources={DOOR})
    view.load(keys, Records(leases=list(leases), **records))
    return view


def load_lacking(view: View, command: Command) -> Keys:
    """Load what a command lacks, of which the store has nothing."""
    keys = view.lacking([command])
    assert keys is not None
    view.load(keys, Records())
    return keys


def lacking(command: Command, quotas: Quotas | None = None) -> Keys:
    return load_lacking(View(an_authority(), quotas), command)


def happen(view: View, event: LeaseIssued | LeaseReleased) -> None:
    """Fold in what an event does to the lease it names, as far as the view knows that."""
    known = view._leases.get(event.lease_id)
    view.fold((event,), [evolve(known, event)])


def missing(ask: Any, *arguments: Any) -> Keys:
    with pytest.raises(Missing) as caught:
        ask(*arguments)
    assert caught.value.args == (caught.value.keys,), "an error that nobody catches says what was missing"
    return caught.value.keys


def test_a_claim_needs_its_lease_id_its_resource_and_its_request() -> None:
    request = ACQUIRE.request_key

    assert lacking(ACQUIRE) == Keys(leases={"lease-1"}, resources={DOOR}, requests={request})


def test_a_claim_that_is_its_own_request_needs_no_memory_of_requests() -> None:
    claim = replace(ACQUIRE, request_id=ACQUIRE.lease_id)

    assert lacking(claim) == Keys(leases={"lease-1"}, resources={DOOR})


def test_a_claim_can_be_presumed_to_be_sent_for_the_first_time() -> None:
    view = View(an_authority())
    claim = replace(ACQUIRE, request_id=ACQUIRE.lease_id)

    assert view.lacking([claim], presuming=True) == Keys(resources={DOOR})
    assert view.lease(claim.lease_id) is None
    assert view.doubtful(claim) == Keys(leases={claim.lease_id})
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
    keys = View(an_authority()).lacking([claim], presuming=True)

    assert keys is not None
    assert claim.lease_id in keys.leases


def test_what_was_presumed_is_certain_once_it_is_committed() -> None:
    view = View(an_authority())
    claim = replace(ACQUIRE, request_id=ACQUIRE.lease_id)
    view.lacking([claim], presuming=True)

    view.settle()

    assert view.doubtful(claim) is None


def test_a_command_lacks_nothing_that_is_here_already() -> None:
    view = View(an_authority())
    claim = replace(ACQUIRE, request_id=ACQUIRE.lease_id)
    for command in (claim, RENEW):
        load_lacking(view, command)

    assert view.lacking([claim, RENEW, RELEASE]) is None


def test_an_end_needs_who_comes_next_where_somebody_waits() -> None:
    view = View(an_authority())
    view.load(Keys(leases={"lease-1", "lease-2"}), Records(leases=[a_lease()], awaited={DOOR}))
    gone = replace(RELEASE, lease_ids=("lease-2",))

    assert view.lacking_in_crowds([RELEASE]) == Keys(queues={(*DOOR, FIRST_IN_LINE)})
    assert view.lacking_in_crowds([gone]) is None, "nothing ends that is not there"


def test_the_end_of_a_shared_lease_needs_who_else_stands_there() -> None:
    view = View(an_authority())
    view.load(Keys(leases={"lease-1"}), Records(leases=[a_lease(mode=Mode.SHARED)], awaited={DOOR}))

    assert view.lacking_in_crowds([RELEASE]) == Keys(resources={DOOR}, queues={(*DOOR, FIRST_IN_LINE)})


def test_whoever_follows_waiters_needs_what_stands_where_they_wait_and_who_holds_it() -> None:
    view = View(an_authority())
    ticket = Ticket(number=TOKEN, since=at(1).tick, since_ns=1)
    waiting = a_lease(state=LeaseState.PENDING, ticket=ticket)
    on_a_path = replace(waiting, lease_id="lease-2", resource="/a")
    view.load(Keys(waits={ANN}), Records(leases=[waiting, on_a_path]))

    needed = view.lacking_behind({ANN})
    assert needed == Keys(resources={DOOR}, queues={(*DOOR, FIRST_IN_LINE)}), "paths are not followed"
    held = a_lease(lease_id="lease-3", holder="bob")
    queue = {(*DOOR, FIRST_IN_LINE): (LAST_PLACE, LAST_PLACE)}
    view.load(needed, Records(leases=[waiting, held], queues=queue))
    assert view.lacking_behind({ANN}) is None

    bob = ("default", "bob")
    assert view.in_the_way({ANN}) == {bob}
    view.load(Keys(waits={bob}), Records())
    assert view.in_the_way({ANN}) == set(), "what bob waits for is known"


def test_a_settled_view_still_knows_what_was_committed() -> None:
    view = View(an_authority())
    view.load(Keys(leases={"lease-1"}, resources={DOOR}), Records())
    happen(view, issued())

    assert view.settle()
    assert not view.changed
    assert not view.created
    assert [lease.lease_id for lease in view.unended_on(*DOOR)] == ["lease-1"]


def test_counts_go_on_in_a_view_that_is_kept_and_are_asked_for_where_they_are_not_known() -> None:
    view = View(an_authority(), Quotas(leases_per_holder=5, leases_per_tenant=5))
    counted = Keys(leases={"lease-1"}, holders={("default", "ann")}, tenants={"default"})
    view.load(counted, Records(holders={("default", "ann"): 2}, tenants={"default": 3}))
    happen(view, issued())
    assert view.settle()
    assert (view.count_of_holder("default", "ann"), view.count_of_tenant("default")) == (3, 4)

    others = View(an_authority(), Quotas(leases_per_holder=5, leases_per_tenant=5))
    happen(others, issued())
    assert others.settle()
    others.load(counted, Records(holders={("default", "ann"): 1}, tenants={"default": 1}))
    assert (others.count_of_holder("default", "ann"), others.count_of_tenant("default")) == (1, 1)
    assert others.settle()


def test_a_view_that_has_grown_large_is_not_kept() -> None:
    large = View(an_authority())
    large.load(Keys(leases={f"lease-{number}" for number in range(5_000)}), Records())

    assert not large.settle()


def test_a_claim_under_quotas_needs_the_counts_that_have_a_limit() -> None:
    assert lacking(ACQUIRE, Quotas(leases_per_holder=1)).holders == {ANN}
    assert lacking(ACQUIRE, Quotas(leases_per_holder=1)).tenants == set()
    assert lacking(ACQUIRE, Quotas(leases_per_tenant=1)).tenants == {"default"}
    assert lacking(ACQUIRE, Quotas(leases_per_tenant=1)).holders == set()


def test_a_renewal_needs_its_leases_and_its_request() -> None:
    assert lacking(RENEW) == Keys(leases={"lease-1"}, requests={RENEW.request_key})


@pytest.mark.parametrize("command", [RELEASE, REVOKE, SWEEP])
def test_an_ending_needs_its_leases_only(command: Release | Revoke | Sweep) -> None:
    assert lacking(command, Quotas(leases_per_holder=1)) == Keys(leases={"lease-1"})


@pytest.mark.parametrize("command", [ACQUIRE, RENEW, RELEASE, REVOKE, SWEEP])
def test_what_a_command_is_sure_to_need_is_enough_to_decide_it(
    command: Acquire | Renew | Release | Revoke | Sweep,
) -> None:
    quotas = Quotas(leases_per_holder=5, leases_per_tenant=5)
    view = View(an_authority(), quotas)
    load_lacking(view, command)

    decide(command, view, at(60))


def test_a_record_that_nobody_loaded_is_missing_and_named() -> None:
    view = View(an_authority(era=4))

    assert missing(view.lease, "lease-1") == Keys(leases={"lease-1"})
    assert missing(view.unended_on, "default", "door") == Keys(resources={DOOR})
    assert missing(view.remembered, "r:1") == Keys(requests={"r:1"})
    assert missing(view.count_of_holder, "default", "ann") == Keys(holders={ANN})
    assert missing(view.count_of_tenant, "default") == Keys(tenants={"default"})
    assert missing(view.eras_for, a_lease(expires_tick=Tick(value=100, era=2))) == Keys(eras={2, 3})


def test_a_record_that_was_asked_for_and_not_found_does_not_exist() -> None:
    view = View(an_authority(era=2))
    keys = Keys(
        leases={"lease-1"}, resources={DOOR}, requests={"r:1"}, holders={ANN}, tenants={"default"}, eras={1}
    )
    view.load(keys, Records())

    assert view.lease("lease-1") is None
    assert view.unended_on(*DOOR) == []
    assert view.remembered("r:1") is None
    assert view.count_of_holder(*ANN) == 0
    assert view.count_of_tenant("default") == 0
    assert view.eras_for(a_lease()) == {}


def test_what_was_found_can_be_read() -> None:
    view = loaded(
        a_lease(),
        keys=Keys(leases={"lease-1"}, requests={"r:1"}, holders={ANN}, tenants={"default"}),
        requests={"r:1": issued()},
        holders={ANN: 3},
        tenants={"default": 7},
    )

    assert view.lease("lease-1") == a_lease()
    assert view.remembered("r:1") == issued()
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
    view = View(an_authority(era=2))

    assert view.eras_for(a_lease(expires_tick=None)) == {}
    assert view.eras_for(a_lease(expires_tick=Tick(value=1, era=2))) == {}


def test_eras_that_are_known_already_are_not_asked_for_again() -> None:
    view = View(an_authority(era=3))
    view.load(Keys(eras={1}), Records(eras={1: an_era()}))

    assert missing(view.eras_for, a_lease()) == Keys(eras={2})


def test_an_event_changes_what_the_view_says() -> None:
    view = loaded(keys=Keys(leases={"lease-1"}, resources={DOOR}, holders={ANN}, tenants={"default"}))

    happen(view, issued(request="r:1"))
    granted = evolve(None, issued(request="r:1"))
    assert view.lease("lease-1") == granted
    assert view.unended_on(*DOOR) == [granted]
    assert view.remembered("r:1") == issued(request="r:1")
    assert (view.count_of_holder(*ANN), view.count_of_tenant("default")) == (1, 1)
    assert view.authority.counter == 2

    happen(view, released())
    assert view.lease("lease-1") == evolve(granted, released())
    assert view.unended_on(*DOOR) == []
    assert (view.count_of_holder(*ANN), view.count_of_tenant("default")) == (0, 0)
    assert view.created == {"lease-1": evolve(granted, released())}


def test_the_view_tells_created_leases_from_changed_ones() -> None:
    view = loaded(a_lease())

    happen(view, issued(lease_id="lease-3"))
    happen(view, issued(lease_id="lease-2", token=TOKEN + 2))
    happen(view, released())

    assert list(view.created) == ["lease-3", "lease-2"]
    assert set(view.changed) == {"lease-1"}


def test_a_store_that_is_asked_late_does_not_undo_what_events_have_changed() -> None:
    # The records below are what a store says that has not seen the events: the first lease still stands.
    view = loaded(a_lease(), keys=Keys(leases={"lease-1"}))
    happen(view, released())
    happen(view, issued(lease_id="lease-2", request="r:1"))

    view.load(
        Keys(leases={"lease-1"}, resources={DOOR}, requests={"r:1"}, holders={ANN}, tenants={"default"}),
        Records(leases=[a_lease()], holders={ANN: 5}, tenants={"default": 9}),
    )

    assert view.lease("lease-1") == evolve(a_lease(), released())
    assert [lease.lease_id for lease in view.unended_on(*DOOR)] == ["lease-2"]
    assert view.remembered("r:1") == issued(lease_id="lease-2", request="r:1")
    assert view.count_of_holder(*ANN) == 5
    assert view.count_of_tenant("default") == 9
    happen(view, released(lease_id="lease-2", token=TOKEN + 1))
    assert (view.count_of_holder(*ANN), view.count_of_tenant("default")) == (4, 8)


def test_a_release_whose_id_reads_like_the_key_of_a_claim_is_not_taken_for_it() -> None:
    view = loaded(keys=Keys(leases={"lease-1"}, requests={"r:1"}))
    happen(view, issued(request="r:1"))

    happen(view, released(token=TOKEN + 1, request="r:1"))

    assert view.remembered("r:1") == issued(request="r:1")


def test_records_loaded_twice_count_once() -> None:
    view = loaded(a_lease())
    keys = Keys(holders={ANN}, tenants={"default"}, requests={"r:1"})
    view.load(keys, Records(holders={ANN: 1}, tenants={"default": 1}, requests={"r:1": issued()}))
    view.load(keys, Records(leases=[a_lease(version=9)]))

    assert view.lease("lease-1") == a_lease()
    assert (view.count_of_holder(*ANN), view.count_of_tenant("default")) == (1, 1)
    assert view.remembered("r:1") == issued()


def test_a_view_without_quotas_limits_nothing() -> None:
    assert View(an_authority()).quotas == Quotas(leases_per_holder=None, leases_per_tenant=None)


def test_an_event_that_the_law_could_not_have_produced_is_refused() -> None:
    with pytest.raises(IllegalTransition):
        happen(loaded(a_lease()), issued(token=TOKEN))


def test_the_commands_of_one_batch_see_what_the_ones_before_them_did() -> None:
    quotas = Quotas(leases_per_holder=1)
    view = View(an_authority(), quotas)
    again = Acquire(request_id="s", lease_id="lease-2", resource="window", holder="ann", ttl_ns=10**9)
    for command in (ACQUIRE, again):
        load_lacking(view, command)

    granted = decide(ACQUIRE, view, at(60))
    assert isinstance(granted, Decision)
    view.fold(granted.events, granted.leases)
    refusal = decide(again, view, at(60))

    assert not isinstance(refusal, Decision)
    assert (refusal.code, refusal.field) == ("LIMIT_EXCEEDED", "leases_per_holder")


def test_children_that_were_not_all_are_asked_for_again_once_the_view_is_settled() -> None:
    few, many = a_child("few", "small"), [a_child(f"child-{n}", "large") for n in range(CHILDREN_PAGE)]
    view = View(an_authority())
    view.load(Keys(children={"small", "large"}), Records(children={"small": [few], "large": many}))
    assert view.children_of("small") == ([few], True)
    assert view.children_of("large") == (many, False)

    view.settle()

    assert view.children_of("small") == ([few], True)
    assert missing(view.children_of, "large") == Keys(children={"large"})


def a_child(lease_id: str, parent: str) -> Lease:
    return a_lease(lease_id=lease_id, resource=lease_id, delegation=Delegation(ancestors=(parent,)))
