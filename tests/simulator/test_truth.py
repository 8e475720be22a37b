"""What the second telling of the law says of ledgers that were made by hand."""

from typing import Any

from leasehold.kernel.lease.events import LeaseIssued, LeaseQueued, LeaseReleased
from leasehold.kernel.lease.model import ReleaseReason
from leasehold.kernel.ledger.commands import REQUEST_MEMORY_NS
from leasehold.kernel.ledger.events import Event
from leasehold.kernel.ledger.tick import Tick
from simulator.truth import Truth

REQUEST = "r1:key"


def facts(lease_id: str, resource: str, tick: Tick, **more: Any) -> dict[str, Any]:
    return {
        "tick": tick, "at_ns": 0, "actor": "ann", "lease_id": lease_id, "resource": resource,
        "holder": "ann", "token": 1,
    } | more  # fmt: skip


def queued(lease_id: str, resource: str, tick: Tick) -> Event:
    return LeaseQueued(**facts(lease_id, resource, tick, ttl_ns=10, kept_ns=10, request=REQUEST))


def issued(lease_id: str, resource: str, tick: Tick, window_ns: int = 0) -> Event:
    terms = {"ttl_ns": 10, "claim_window_ns": window_ns, "request": REQUEST}
    return LeaseIssued(**facts(lease_id, resource, tick, **terms))


def released(lease_id: str, resource: str, tick: Tick) -> Event:
    return LeaseReleased(**facts(lease_id, resource, tick, reason=ReleaseReason.COMPLETED))


def problems(*events: Event) -> list[str]:
    truth = Truth()
    return [problem for position, event in enumerate(events, 1) if (problem := truth.apply(event, position))]


def test_a_request_that_waits_in_two_places_is_granted_twice() -> None:
    now = Tick(value=1)
    assert problems(
        queued("a", "door", now),
        queued("b", "roof", now),
        issued("a", "door", now, 5),
        issued("b", "roof", now, 5),
    ) == ["request r1 was granted twice: b is the second"]


def test_what_was_forgotten_when_a_claim_queued_does_not_count_when_it_is_granted() -> None:
    # In another era nobody knows how long ago something was, so it counts as known again.
    later, rebooted = Tick(value=1 + REQUEST_MEMORY_NS), Tick(value=1, era=1)
    first = [issued("a", "door", Tick(value=1)), released("a", "door", Tick(value=2))]
    assert problems(*first, queued("b", "door", later), issued("b", "door", rebooted, 5)) == []
