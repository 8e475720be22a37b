"""Each invariant finds what breaks it, and nothing else."""

from typing import Any

import pytest
from msgspec.structs import replace

from leasehold.kernel.ledger.state import State
from leasehold.work.law.invariants import invariants
from leasehold.work.law.model import (
    WORK,
    Domain,
    Flight,
    Place,
    Queued,
    Range,
    domain_key,
    flight_key,
    place_key,
    queued_key,
    range_key,
)

TENANT = ("default", "A")
FLIGHT = Flight(offset=10, fence=1, holder="ann", acquired_at_ns=1, max_retries=3)


def sound() -> dict[str, Any]:
    """A domain with something of everything."""
    return {
        domain_key(*TENANT): Domain(
            name="A", created_at_ns=1, first=3, next=5, processed=3, failed=1, start=1
        ),
        flight_key(*TENANT): FLIGHT,
        queued_key(*TENANT, 3): Queued(offset=12),
        queued_key(*TENANT, 4): Queued(offset=11),
        place_key(*TENANT, 12): Place(place=3),
        place_key(*TENANT, 11): Place(place=4),
        range_key(*TENANT, 1): Range(last=3),
        range_key(*TENANT, 7): Range(last=7),
        range_key(*TENANT, 2, failed=True): Range(last=2),
    }


def problems(records: dict[str, Any]) -> list[str]:
    return list(invariants(State(records={WORK: records})))


def test_nothing_is_wrong_with_a_sound_domain() -> None:
    assert problems(sound()) == []
    assert problems({}) == []


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({domain_key(*TENANT): None}, "none of the domain itself"),
        ({queued_key(*TENANT, 3): None, place_key(*TENANT, 12): None}, "places are not those"),
        ({place_key(*TENANT, 12): None}, "by place and the backlog by offset differ"),
        (
            {flight_key(*TENANT): replace(FLIGHT, offset=12, fence=1)},
            "twice",
        ),
        (
            {flight_key(*TENANT): replace(FLIGHT, offset=9, fence=0)},
            "no offset",
        ),
        (
            {flight_key(*TENANT): replace(FLIGHT, offset=0, fence=1)},
            "terminal",
        ),
        (
            {flight_key(*TENANT): replace(FLIGHT, offset=7, fence=1)},
            "terminal",
        ),
        ({range_key(*TENANT, 4): Range(last=4), range_key(*TENANT, 7): None}, "not behind"),
        ({range_key(*TENANT, 7): None, range_key(*TENANT, 8): Range(last=7)}, "not behind"),
        ({range_key(*TENANT, 2, failed=True): Range(last=4)}, "and are not terminal"),
        ({range_key(*TENANT, 7): Range(last=8)}, "not what its ranges say"),
    ],
)
def test_what_is_broken_is_named(changes: dict[str, Any], says: str) -> None:
    records = {key: record for key, record in (sound() | changes).items() if record is not None}
    found = problems(records)
    assert any(says in problem for problem in found), found
    assert all(problem.startswith("A: ") for problem in found)
