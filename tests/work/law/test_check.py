"""What can never be right is refused before anything is read, and names its field."""

from typing import Any

import pytest

from leasehold.work.law.commands import DOMAIN_BYTES, ENQUEUE_OFFSETS, RETRIES_MAXIMUM
from leasehold.work.law.model import OFFSET_MAXIMUM
from tests.work.house import WorkHouse, refused


@pytest.mark.parametrize(
    ("verb", "given", "more", "said"),
    [
        ("acquire", ("", 1), {}, ("INVALID_INPUT", "domain")),
        ("acquire", ("a\x01b", 1), {}, ("INVALID_INPUT", "domain")),
        ("acquire", ("d" * (DOMAIN_BYTES + 1), 1), {}, ("LIMIT_EXCEEDED", "domain")),
        ("acquire", ("A", 1), {"holder": ""}, ("INVALID_INPUT", "holder")),
        ("acquire", ("A", 1), {"holder": "registrar"}, ("INVALID_INPUT", "holder")),
        ("acquire", ("A", 1), {"tenant": ""}, ("INVALID_INPUT", "tenant")),
        ("acquire", ("A", 1), {"request_id": ""}, ("INVALID_INPUT", "request_id")),
        ("acquire", ("A", -1), {}, ("INVALID_INPUT", "offset")),
        ("acquire", ("A", OFFSET_MAXIMUM + 1), {}, ("LIMIT_EXCEEDED", "offset")),
        ("acquire", ("A", 1), {"ttl_ns": 1}, ("INVALID_INPUT", "ttl")),
        ("acquire", ("A", 1), {"ttl_ns": -1}, ("INVALID_INPUT", "ttl")),
        ("acquire", ("A", 1), {"ttl_ns": 10**18}, ("LIMIT_EXCEEDED", "ttl")),
        ("acquire", ("A", 1), {"max_retries": -1}, ("INVALID_INPUT", "max_retries")),
        ("acquire", ("A", 1), {"max_retries": RETRIES_MAXIMUM + 1}, ("LIMIT_EXCEEDED", "max_retries")),
        ("acquire", ("A", 1), {"wake": "w" * 257}, ("LIMIT_EXCEEDED", "wake")),
        ("enqueue", ("A",), {}, ("INVALID_INPUT", "offsets")),
        ("enqueue", ("A", 1, -1), {}, ("INVALID_INPUT", "offsets")),
        ("enqueue", ("A", *range(ENQUEUE_OFFSETS + 1)), {}, ("LIMIT_EXCEEDED", "offsets")),
        ("succeed", ("A", ""), {}, ("INVALID_INPUT", "token")),
        ("give_back", ("A", ""), {}, ("INVALID_INPUT", "token")),
        ("give_back", ("A", ""), {"acquired_by": "r" * 257}, ("LIMIT_EXCEEDED", "acquired_by")),
        ("fail", ("A", ""), {}, ("INVALID_INPUT", "token")),
        ("fail", ("A", "1"), {"reason": "r" * 1025}, ("LIMIT_EXCEEDED", "reason")),
        ("fail", ("A", "1"), {"reason": "a\nb"}, ("INVALID_INPUT", "reason")),
        ("fail", ("A", "1"), {"max_retries": -1}, ("INVALID_INPUT", "max_retries")),
        ("keep_alive", ("A", ""), {}, ("INVALID_INPUT", "token")),
        ("keep_alive", ("A", "1"), {"ttl_ns": 1}, ("INVALID_INPUT", "ttl")),
        ("start_at", ("A", -1), {}, ("INVALID_INPUT", "offset")),
    ],
)
def test_bad_input_is_refused_and_changes_nothing(
    house: WorkHouse, verb: str, given: tuple[Any, ...], more: dict[str, Any], said: tuple[str, str]
) -> None:
    house.token("X", 1)
    before, position = house.records(), house.position()
    refusal = getattr(house, verb)(*given, **more)
    assert (refused(refusal), refusal.field) == said
    assert refusal.detail
    assert (house.records(), house.position()) == (before, position)


def test_what_is_at_its_limit_is_taken(house: WorkHouse) -> None:
    token = house.token("d" * DOMAIN_BYTES, OFFSET_MAXIMUM, max_retries=RETRIES_MAXIMUM)
    assert house.fail("d" * DOMAIN_BYTES, token, reason="r" * 1024, max_retries=5).retry_count == 1
    assert house.enqueue("A", *range(ENQUEUE_OFFSETS)).added == ENQUEUE_OFFSETS
    house.ensure_sound()
