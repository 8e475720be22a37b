from collections.abc import Callable
from typing import Any

import pytest

from leasehold.kernel.lease.family import LEASES, lease_family, lease_part
from leasehold.kernel.lease.records import LeaseFound, LeaseWanted
from leasehold.kernel.ledger.draft import Draft
from leasehold.kernel.ledger.family import Families
from leasehold.kernel.ledger.journal import Change
from leasehold.kernel.ledger.records import Count, Found, Keys, Missing, Records, Scan, Wanted
from leasehold.kernel.ledger.table import Table
from leasehold.kernel.ledger.tick import Tick
from leasehold.kernel.ledger.view import View
from tests.kernel.counters import COUNTER, COUNTERS, Counter, CounterDrawn, CounterGone, CounterSet
from tests.kernel.records import TOKEN, a_lease, an_authority, an_era, at

NOW: dict[str, Any] = {"tick": Tick(value=60), "at_ns": 6_000, "actor": "ann"}
A = Counter(name="a", number=1)


def a_view(**authority: Any) -> View:
    return View(Families((COUNTERS,)), an_authority(**authority))


def missing(ask: Callable[..., object], *arguments: Any) -> Keys:
    with pytest.raises(Missing) as caught:
        ask(*arguments)
    return caught.value.keys


def test_a_view_has_a_table_for_each_family_that_makes_nothing_else() -> None:
    view = View(Families((lease_family(), COUNTERS)), an_authority())

    assert isinstance(view.parts[COUNTER], Table)
    assert lease_part(view) is view.parts["lease"]
    assert lease_part(view).ledger is view


def test_what_a_store_found_goes_to_the_part_of_its_family() -> None:
    view = View(Families((lease_family(), COUNTERS)), an_authority())
    keys = Keys(families={COUNTER: Wanted(keys={"a", "b"}), "lease": LeaseWanted(keys={"lease-1"})})
    view.load(
        keys,
        Records(
            families={COUNTER: Found(records={"a": A}), "lease": LeaseFound(records={"lease-1": a_lease()})}
        ),
    )

    assert view.parts[COUNTER].get("a") == A
    assert view.parts[COUNTER].get("b") is None
    assert lease_part(view).get("lease-1") == a_lease()


def test_a_store_may_have_found_more_than_was_asked_for() -> None:
    view = a_view()
    view.load(Keys(), Records(families={COUNTER: Found(records={"a": A})}))

    assert view.parts[COUNTER].get("a") == A


@pytest.mark.parametrize(
    ("records", "anything"),
    [
        (Records(), False),
        (Records(families={COUNTER: Found()}), False),
        (Records(families={COUNTER: Found(records={"a": A})}), True),
        (Records(families={COUNTER: Found(counts={Count("a", "b"): 0})}), True),
        (Records(requests={"r:1": CounterGone(**NOW, name="a")}), True),
    ],
    ids=["nothing at all", "no records", "a record", "a count", "a request"],
)
def test_a_view_says_whether_a_store_found_anything(records: Records, anything: bool) -> None:
    assert a_view().load(Keys(), records) == anything


def test_what_a_request_has_caused_is_known_once_it_was_asked_for() -> None:
    view = a_view()
    event = CounterSet(**NOW, name="a", value=1, request="r:1")
    assert missing(view.remembered, "r:1") == Keys(requests={"r:1"})
    assert not view.knows_request("r:1")

    view.load(Keys(requests={"r:1", "r:2"}), Records(requests={"r:1": event}))

    assert view.remembered("r:1") == event
    assert view.remembered("r:2") is None
    assert view.knows_request("r:2")


def test_what_a_request_has_caused_in_this_batch_goes_before_what_the_store_says() -> None:
    view = a_view()
    event = CounterSet(**NOW, name="a", value=1, request="r:1")
    Draft(view, at(60)).took((event,))
    view.load(Keys(requests={"r:1"}), Records())

    assert view.remembered("r:1") == event


def test_an_event_that_is_not_remembered_or_has_no_request_is_not_filed_under_one() -> None:
    view = a_view()
    Draft(view, at(60)).took((CounterGone(**NOW, name="a", request="r:1"),))
    Draft(view, at(60)).took((CounterSet(**NOW, name="a", value=1),))

    assert not view.knows_request("r:1")
    assert view.authority.tick == 60


def test_an_event_that_draws_a_number_moves_the_counter_of_the_store() -> None:
    view = a_view(counter=1)
    Draft(view, at(60)).took((CounterDrawn(**NOW, name="a", value=TOKEN + 1),))

    assert view.authority.counter == 2


def test_the_eras_since_a_tick_are_asked_for_once() -> None:
    view = a_view(era=4)
    assert view.eras_since(Tick(value=1, era=4)) == {}
    assert view.eras_since(Tick(value=1, era=5)) == {}
    assert missing(view.eras_since, Tick(value=1, era=2)) == Keys(eras={2, 3})

    view.load(Keys(eras={2, 3}), Records(eras={2: an_era(number=2)}))

    assert view.eras_since(Tick(value=1, era=2)) == {2: an_era(number=2)}, "nobody remembers the third"
    assert missing(view.eras_since, Tick(value=1)) == Keys(eras={1})


def test_the_changes_of_all_families_come_in_their_order_until_they_are_settled() -> None:
    view = View(Families((lease_family(), COUNTERS)), an_authority())
    keys = Keys(families={COUNTER: Wanted(keys={"a"})})
    view.load(keys, Records(families={COUNTER: Found(records={"a": A})}))
    view.parts[COUNTER].put("a", None)
    lease_part(view).put("lease-1", a_lease())

    assert view.changes() == [Change("lease", "lease-1", None, a_lease()), Change(COUNTER, "a", A, None)]
    assert view.settle()
    assert view.changes() == []
    assert view.parts[COUNTER].get("a") is None


def test_what_was_settled_is_not_undone() -> None:
    view = a_view()
    view.load(Keys(families={COUNTER: Wanted(keys={"a"})}), Records(families={COUNTER: Found()}))
    view.parts[COUNTER].put("a", A)
    view.settle()

    view.journal.undo()

    assert view.parts[COUNTER].get("a") == A


@pytest.mark.parametrize(
    ("counters", "leases", "kept"), [(4_096, 0, True), (4_096, 1, False), (0, 4_097, False)]
)
def test_a_view_that_has_grown_large_in_all_its_parts_is_not_kept(
    counters: int, leases: int, kept: bool
) -> None:
    view = View(Families((lease_family(), COUNTERS)), an_authority())
    keys = Keys(
        families={
            COUNTER: Wanted(keys={f"counter-{number}" for number in range(counters)}),
            "lease": LeaseWanted(keys={f"lease-{number}" for number in range(leases)}),
        }
    )
    view.load(keys, Records(families={COUNTER: Found(), "lease": LeaseFound()}))

    assert view.settle() == kept


def test_a_view_that_remembers_very_many_requests_is_not_kept() -> None:
    view = a_view()
    view.load(Keys(requests={f"request-{number}" for number in range(4_097)}), Records())

    assert not view.settle()


def test_a_view_that_knows_very_many_ranges_is_not_kept() -> None:
    view = a_view()
    scans: dict[Scan, list[str]] = {Scan(f"{number:05}a", f"{number:05}b"): [] for number in range(4_097)}
    view.load(Keys(families={COUNTER: Wanted()}), Records(families={COUNTER: Found(scans=scans)}))

    assert not view.settle()


def test_nothing_is_presumed_unless_somebody_says_so() -> None:
    assert not View(LEASES, an_authority()).presuming


def test_what_was_settled_is_settled_again_only_after_it_was_touched() -> None:
    view = a_view()
    view.load(Keys(families={COUNTER: Wanted(keys={"a"})}), Records(families={COUNTER: Found()}))
    assert view.settle()
    table = view.parts[COUNTER]
    assert not table.is_touched

    table.put("a", A)
    assert view.changes() == [Change(COUNTER, "a", None, A)]
    assert view.settle()
    assert view.changes() == []
    assert not table.is_touched
