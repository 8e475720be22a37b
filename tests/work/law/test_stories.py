"""What history says of work, in words."""

from typing import Any

import pytest

from leasehold.kernel.ledger.tick import Tick
from leasehold.work.law import events
from leasehold.work.law.model import Reach

_DONE = Reach(first=7, last=7)


@pytest.mark.parametrize(
    ("kind", "facts", "story"),
    [
        ("WorkEnqueued", {"place": 1}, "offset 7 of orders was put into the backlog"),
        (
            "WorkAcquired",
            {"acquired_at_ns": 1, "max_retries": 3, "retry_count": 1},
            "offset 7 of orders is in flight, attempt 2",
        ),
        ("WorkSucceeded", {"done": _DONE}, "offset 7 of orders was processed"),
        ("WorkRetried", {"retry_count": 1}, "offset 7 of orders failed in attempt 1, and is tried again"),
        (
            "WorkFailed",
            {"done": _DONE, "failed": _DONE, "retry_count": 3},
            "offset 7 of orders was given up after attempt 4",
        ),
        (
            "WorkReturned",
            {"place": 1, "before": None, "reason": "stopped"},
            "offset 7 of orders went back to the head of the backlog",
        ),
        ("WorkKept", {"ttl_ns": 1_500_000_000, "due": 9}, "offset 7 of orders was given 1.5 s more"),
        ("WorkCarried", {"due": 9}, "offset 7 of orders goes on after a reboot, with the time it had left"),
        ("WorkAwaited", {"wake": "bell"}, "offset 7 of orders is waited for"),
    ],
)
def test_an_event_of_an_offset_is_told_as_a_sentence(kind: str, facts: dict[str, Any], story: str) -> None:
    event = getattr(events, kind)(
        tick=Tick(value=1, era=1), at_ns=1, actor="ann", domain="orders", offset=7, **facts
    )
    assert event.story == story


def test_where_a_domain_starts_is_told_as_a_sentence() -> None:
    event = events.WorkStarted(tick=Tick(value=1, era=1), at_ns=1, actor="ann", domain="orders", start=5)
    assert event.story == "orders starts at offset 5: all below counts as processed"
