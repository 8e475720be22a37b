import pytest

from leasehold.kernel.lease.records import LeaseFound, LeaseWanted, lease_keys
from leasehold.kernel.ledger.records import (
    BY_KEY,
    EVERYTHING,
    Count,
    Found,
    Gathering,
    Keys,
    Missing,
    Records,
    Scan,
    Wanted,
)


def test_a_scan_is_of_everything_in_the_order_of_the_keys_unless_it_says_otherwise() -> None:
    assert Scan("a", "b") == Scan("a", "b", EVERYTHING, BY_KEY, False)
    assert Count("a", "b") == Count("a", "b", BY_KEY)
    assert len({Scan("a", "b"), Scan("a", "b", 1), Scan("a", "b", reverse=True), Scan("a", "c")}) == 4


@pytest.mark.parametrize(
    "keys",
    [
        Keys(requests={"r"}),
        Keys(eras={1}),
        Keys(families={"note": Wanted(keys={"a"})}),
        Keys(families={"note": Wanted(scans={Scan("a", "b")})}),
        Keys(families={"note": Wanted(counts={Count("a", "b")})}),
        lease_keys(resources={("default", "door")}),
    ],
)
def test_keys_that_ask_for_anything_are_something(keys: Keys) -> None:
    assert keys


def test_keys_that_ask_for_nothing_are_nothing_whatever_families_they_name() -> None:
    assert not Keys()
    assert not Keys(families={"note": Wanted(), "lease": LeaseWanted()})


def test_keys_are_added_up_family_by_family() -> None:
    keys = Keys(requests={"r"}, families={"note": Wanted(keys={"a"})})
    keys.add(Keys(requests={"s"}, eras={1}, families={"note": Wanted(keys={"b"}, counts={Count("a", "b")})}))
    more = lease_keys(keys={"lease-1"}, resources={("default", "door")})
    keys.add(more)

    assert keys == Keys(
        requests={"r", "s"},
        eras={1},
        families={
            "note": Wanted(keys={"a", "b"}, counts={Count("a", "b")}),
            "lease": LeaseWanted(keys={"lease-1"}, resources={("default", "door")}),
        },
    )
    keys.families["lease"].keys.add("lease-2")
    assert more.families["lease"].keys == {"lease-1"}, "what was added is a copy"


def test_only_questions_about_those_who_wait_and_about_paths_are_crowded() -> None:
    assert not LeaseWanted(keys={"a"}, resources={("t", "r")}, grants={"a"}).is_crowded
    assert LeaseWanted(queues={("t", "r", 2)}).is_crowded
    assert LeaseWanted(trees={("t", "/r", 2)}).is_crowded
    assert LeaseWanted(tangles={("t", "/r", "")}).is_crowded
    assert LeaseWanted(places={("t", "r", "p")}).is_crowded


def test_what_was_found_is_nothing_at_first_and_nobody_elses() -> None:
    for one, other in ((Found(), Found()), (LeaseFound(), LeaseFound())):
        one.records["a"] = 1
        assert other.records == {}
    assert Records() == Records(requests={}, eras={}, families={})


class TestGathering:
    def test_what_each_step_lacks_is_said_at_the_end_for_all_of_them(self) -> None:
        gathering, done = Gathering(), list[int]()
        for number in range(4):
            with gathering.step():
                if number % 2:
                    raise Missing(Keys(eras={number}))
                done.append(number)

        with pytest.raises(Missing) as missing:
            gathering.end()
        assert missing.value.keys == Keys(eras={1, 3})
        assert done == [0, 2]

    def test_where_nothing_is_lacking_nothing_is_said(self) -> None:
        gathering = Gathering()
        with gathering.step():
            pass

        gathering.end()

    def test_another_error_is_not_held_back(self) -> None:
        with pytest.raises(ZeroDivisionError), Gathering().step():
            raise ZeroDivisionError
