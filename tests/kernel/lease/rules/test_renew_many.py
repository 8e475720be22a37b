"""One renewal of several leases: each is answered on its own, and one event covers all that were extended."""

import pytest

from leasehold.kernel.lease.answers import Renewal
from leasehold.kernel.lease.events import LeaseRenewed
from tests.kernel.records import a_lease
from tests.kernel.registrar import SECOND, TTL, Registrar, expect


@pytest.fixture
def registrar() -> Registrar:
    return Registrar()


def test_one_renewal_of_many_leases_is_one_event(registrar: Registrar) -> None:
    first, second = registrar.grant("ann", "a"), registrar.grant("ann", "b", ttl_ns=2 * TTL)
    registrar.advance(3)

    outcomes = registrar.renew(second, first, request_id="both")

    assert [expect(Renewal, outcome).lease.lease_id for outcome in outcomes] == [
        second.lease_id,
        first.lease_id,
    ]
    assert [expect(Renewal, outcome).expires_in_ns for outcome in outcomes] == [2 * TTL, TTL]
    event = registrar.ledger[-1]
    assert isinstance(event, LeaseRenewed)
    assert event.renewals == {
        second.lease_id: registrar.clock + 2 * TTL,
        first.lease_id: registrar.clock + TTL,
    }
    assert (event.resource, event.token, event.lease_id, event.actor) == (None, None, None, "ann")
    assert registrar.history().count("lease.renewed") == 1


def test_the_event_of_one_renewed_lease_names_its_resource_and_token(registrar: Registrar) -> None:
    lost, kept = registrar.grant("ann", "a", ttl_ns=SECOND), registrar.grant("ann", "b")
    registrar.advance(2)

    registrar.renew(lost, kept, tenant="default", request_id="both")

    event = registrar.ledger[-1]
    assert isinstance(event, LeaseRenewed)
    assert (event.lease_id, event.resource, event.token) == (kept.lease_id, "b", kept.token)
    assert event.request is not None
    assert event.request.startswith("both:")


def test_each_lease_of_a_batch_stands_or_falls_on_its_own(registrar: Registrar) -> None:
    good, released = registrar.grant("ann", "a"), registrar.grant("ann", "b")
    short, foreign = registrar.grant("ann", "c", ttl_ns=SECOND), registrar.grant("bob", "d")
    spent, missing = registrar.grant("ann", "e", max_renewals=0), a_lease(lease_id="nowhere")
    registrar.end(released)
    registrar.advance(2)

    outcomes = registrar.renew(good, released, short, foreign, spent, missing, good)

    assert [getattr(outcome, "code", "renewed") for outcome in outcomes] == [
        "renewed",
        "LEASE_TERMINAL",
        "LEASE_EXPIRED",
        "NOT_HOLDER",
        "RENEWALS_EXHAUSTED",
        "LEASE_NOT_FOUND",
        "renewed",
    ]
    event = registrar.ledger[-1]
    assert isinstance(event, LeaseRenewed)
    assert list(event.renewals) == [good.lease_id]


def test_a_lease_that_cannot_be_extended_yet_is_no_part_of_the_batchs_event(registrar: Registrar) -> None:
    older = registrar.grant("ann", "a")
    registrar.advance(5)
    newer = registrar.grant("ann", "b")

    outcomes = registrar.renew(older, newer)

    assert [expect(Renewal, outcome).expires_in_ns for outcome in outcomes] == [TTL, TTL]
    assert [expect(Renewal, outcome).lease.renewal_count for outcome in outcomes] == [1, 0]
    assert registrar.ledger[-1].keys == (older.lease_id,)


def test_a_lease_named_twice_in_a_batch_is_renewed_once(registrar: Registrar) -> None:
    lease = registrar.grant("ann")
    registrar.advance(1)

    first, second = registrar.renew(lease, lease)

    assert first == second
    assert expect(Renewal, first).lease.renewal_count == 1


def test_a_batch_in_which_everything_is_refused_is_no_event(registrar: Registrar) -> None:
    lease = registrar.grant("ann")
    before = registrar.history()

    registrar.renew(lease, lease, holder="bob")

    assert registrar.history() == before


def test_a_batch_rearms_what_needs_it_before_it_renews(registrar: Registrar) -> None:
    old = registrar.grant("ann", "a", bound_to_boot=False)
    registrar.reboot()
    new = registrar.grant("ann", "b")
    registrar.advance(1)

    registrar.renew(old, new)

    assert registrar.history()[-2:] == ["lease.rearmed", "lease.renewed"]
    assert registrar.lease(old.lease_id).renewal_count == 1
