"""A retry is not a second request: what is remembered, for how long, and for whom."""

from typing import Any

import pytest
from msgspec.structs import replace

from leasehold.kernel.lease.answers import Ended, Granted, Renewal
from leasehold.kernel.lease.decision import age
from leasehold.kernel.lease.model import LeaseState, Mode, ReleaseReason
from leasehold.kernel.ledger.refusals import Refusal
from leasehold.kernel.ledger.tick import Tick
from tests.kernel.deciding import lease_view
from tests.kernel.records import a_lease, an_authority, at
from tests.kernel.registrar import HOUR, SECOND, TTL, Registrar, expect


@pytest.fixture
def registrar() -> Registrar:
    return Registrar()


def test_a_claim_whose_reply_was_lost_is_answered_with_the_same_lease(registrar: Registrar) -> None:
    claim = registrar.claim()
    first = expect(Granted, registrar.ask(claim))
    registrar.advance(4)

    retry = expect(Granted, registrar.ask(claim))

    assert retry == Granted(lease=first.lease, expires_in_ns=TTL - 4 * SECOND, repeated=True)
    assert registrar.history() == ["store.opened", "lease.issued"]


def test_a_retry_may_propose_another_lease_id(registrar: Registrar) -> None:
    claim = registrar.claim()
    first = expect(Granted, registrar.ask(claim))

    retry = expect(Granted, registrar.ask(replace(claim, lease_id="proposed-later")))

    assert retry.lease == first.lease


def test_a_retry_sees_the_lease_as_it_has_become(registrar: Registrar) -> None:
    claim = registrar.claim()
    lease = expect(Granted, registrar.ask(claim)).lease
    registrar.advance(5)
    registrar.extend(lease)
    registrar.advance(1)

    retry = expect(Granted, registrar.ask(claim))

    assert (retry.lease.renewal_count, retry.lease.token) == (1, lease.token)
    assert (retry.expires_in_ns, retry.ended) == (TTL - SECOND, False)


def test_a_retry_says_that_the_lease_was_released_since(registrar: Registrar) -> None:
    claim = registrar.claim()
    registrar.end(expect(Granted, registrar.ask(claim)).lease)

    retry = expect(Granted, registrar.ask(claim))

    assert (retry.repeated, retry.ended, retry.expires_in_ns) == (True, True, 0)
    assert retry.lease.state is LeaseState.RELEASED


def test_a_retry_says_that_the_lease_expired_since_and_records_it(registrar: Registrar) -> None:
    claim = registrar.claim()
    registrar.ask(claim)
    registrar.advance(10)

    retry = expect(Granted, registrar.ask(claim))

    assert (retry.repeated, retry.ended, retry.expires_in_ns) == (True, True, 0)
    assert retry.lease.state is LeaseState.EXPIRED
    assert registrar.history()[-1] == "lease.expired"


def test_a_retry_after_a_reboot_finds_a_remote_holders_lease_still_standing(registrar: Registrar) -> None:
    claim = registrar.claim(bound_to_boot=False)
    first = expect(Granted, registrar.ask(claim))
    registrar.reboot()
    registrar.now()
    registrar.advance(3)

    retry = expect(Granted, registrar.ask(claim))

    assert (retry.lease.lease_id, retry.ended) == (first.lease.lease_id, False)
    assert retry.expires_in_ns == TTL - 3 * SECOND


def test_a_retry_of_a_lease_with_unknown_time_must_not_be_used(registrar: Registrar) -> None:
    claim = registrar.claim(bound_to_boot=False)
    registrar.ask(claim)
    registrar.reboot()
    registrar.forget_eras()

    retry = expect(Granted, registrar.ask(claim))

    assert (retry.ended, retry.expires_in_ns) == (True, 0)
    assert retry.lease.state is LeaseState.ACTIVE


def test_a_retry_for_a_lease_that_was_pruned_is_refused(registrar: Registrar) -> None:
    claim = registrar.claim()
    registrar.end(expect(Granted, registrar.ask(claim)).lease)
    del registrar.state.of("lease")[claim.lease_id]
    registrar.replayable = False

    assert expect(Refusal, registrar.ask(claim)).code == "LEASE_NOT_FOUND"


@pytest.mark.parametrize(
    "other",
    [
        {"tenant": "acme"},
        {"holder": "bob"},
        {"resource": "window"},
        {"ttl_ns": TTL + 1},
        {"mode": Mode.SHARED},
        {"adopt": True},
        {"max_renewals": 3},
        {"metadata": {"try": 2}},
        {"request_id": "another"},
    ],
    ids=lambda other: next(iter(other)),
)
def test_anything_else_in_a_claim_makes_it_another_request(
    registrar: Registrar, other: dict[str, Any]
) -> None:
    claim = registrar.claim()
    first = expect(Granted, registrar.ask(claim))

    second = registrar.ask(replace(claim, **({"lease_id": "lease-second"} | other)))

    if isinstance(second, Granted):
        assert not second.repeated
        assert second.lease.lease_id != first.lease.lease_id
    else:
        assert expect(Refusal, second).code in ("HELD", "ALREADY_HELD")


def test_a_request_is_remembered_for_an_hour_and_not_a_tick_longer(registrar: Registrar) -> None:
    claim = registrar.claim(ttl_ns=2 * HOUR)
    registrar.ask(claim)

    registrar.clock += HOUR - 1
    assert expect(Granted, registrar.ask(claim)).repeated
    registrar.clock += 1
    assert expect(Refusal, registrar.ask(claim)).code == "LEASE_EXISTS"
    assert expect(Refusal, registrar.ask(replace(claim, lease_id="fresh"))).code == "ALREADY_HELD"


def test_a_request_of_an_earlier_era_is_remembered_whatever_its_age(registrar: Registrar) -> None:
    claim = registrar.claim()
    registrar.ask(claim)
    registrar.reboot(clock=9 * HOUR)

    assert expect(Granted, registrar.ask(claim)).repeated


def test_a_refused_claim_is_decided_anew(registrar: Registrar) -> None:
    lease = registrar.grant("ann")
    claim = registrar.claim("bob")
    assert expect(Refusal, registrar.ask(claim)).code == "HELD"
    registrar.end(lease)

    assert not expect(Granted, registrar.ask(claim)).repeated


def test_an_adoption_whose_reply_was_lost_is_not_a_second_adoption(registrar: Registrar) -> None:
    registrar.grant("ann")
    claim = registrar.claim("ann", adopt=True)
    adopted = expect(Granted, registrar.ask(claim)).lease

    retry = expect(Granted, registrar.ask(claim))

    assert (retry.lease, retry.repeated, retry.ended) == (adopted, True, False)


def test_a_renewal_whose_reply_was_lost_is_not_a_second_renewal(registrar: Registrar) -> None:
    lease = registrar.grant("ann", max_renewals=1)
    registrar.advance(5)
    registrar.extend(lease, request_id="again")
    registrar.advance(2)

    retry = registrar.extend(lease, request_id="again")

    assert retry == Renewal(lease=registrar.lease(lease.lease_id), expires_in_ns=TTL - 2 * SECOND)
    assert retry.lease.renewal_count == 1
    assert registrar.history().count("lease.renewed") == 1


def test_a_retried_renewal_extends_nothing_more_however_often_it_is_retried(registrar: Registrar) -> None:
    # The second lease lasts too long to be extended at first, and could be extended at the second try. If
    # it were, the memory of the first try would be gone, and the third would renew the first lease again.
    short, long = registrar.grant("ann", "a"), registrar.grant("ann", "b", ttl_ns=2 * TTL)
    registrar.advance(5)
    first = registrar.renew(short, long, ttl_ns=TTL, request_id="again")
    assert isinstance(first[0], Renewal)
    assert expect(Refusal, first[1]).code == "RENEWAL_DOES_NOT_EXTEND"

    for _ in range(3):
        registrar.advance(3)
        registrar.renew(short, long, ttl_ns=TTL, request_id="again")

    assert registrar.history().count("lease.renewed") == 1
    assert registrar.lease(short.lease_id).renewal_count == 1
    assert registrar.lease(long.lease_id).renewal_count == 0


def test_a_retried_renewal_says_that_the_lease_is_lost_since(registrar: Registrar) -> None:
    lease = registrar.grant("ann")
    registrar.advance(5)
    registrar.extend(lease, request_id="again")
    registrar.revoke(lease)

    assert registrar.refuse_renewal(lease, request_id="again") == "LEASE_TERMINAL"


def test_a_retried_renewal_after_expiry_does_not_resurrect(registrar: Registrar) -> None:
    lease = registrar.grant("ann")
    registrar.advance(5)
    registrar.extend(lease, request_id="again")
    registrar.advance(10)

    assert registrar.refuse_renewal(lease, request_id="again") == "LEASE_EXPIRED"


def test_a_renewal_is_remembered_for_an_hour(registrar: Registrar) -> None:
    lease = registrar.grant("ann", ttl_ns=3 * HOUR)
    registrar.advance(5)
    registrar.extend(lease, request_id="again")

    registrar.clock += HOUR - 1
    assert registrar.extend(lease, request_id="again").lease.renewal_count == 1
    registrar.clock += 1
    assert registrar.extend(lease, request_id="again").lease.renewal_count == 2


def test_a_release_or_revocation_whose_reply_was_lost_is_told_what_the_first_try_was(
    registrar: Registrar,
) -> None:
    released, revoked = registrar.grant("ann", "a"), registrar.grant("ann", "b")
    for _ in range(2):
        ended = registrar.release(released, request_id="release")[0]
        stopped = registrar.revoke(revoked, reason="fire", request_id="revoke")
        assert isinstance(ended, Ended)
        assert isinstance(stopped, Ended)
        assert not ended.already
        assert not stopped.already

    assert registrar.history()[-2:] == ["lease.released", "lease.revoked"]


def test_another_request_to_end_what_has_ended_is_told_that_it_has(registrar: Registrar) -> None:
    lease = registrar.grant("ann")
    registrar.release(lease, request_id="first")

    for again in (
        registrar.release(lease, request_id="second")[0],
        registrar.revoke(lease, request_id="first"),
    ):
        assert isinstance(again, Ended)
        assert again.already


@pytest.mark.parametrize("state", [state for state in LeaseState if state.is_terminal])
@pytest.mark.parametrize("expires", [None, Tick(value=1), Tick(value=1, era=2), Tick(value=99, era=2)])
def test_time_does_nothing_to_a_lease_that_has_ended_and_needs_no_memory_of_eras(
    state: LeaseState, expires: Tick | None
) -> None:
    ended = a_lease(state=state, expires_tick=expires)

    assert age(ended, lease_view(an_authority(era=2)), at(60, era=2)) == ([], ended)


def test_nobody_makes_a_claim_forgotten_with_an_id_that_reads_like_its_key(registrar: Registrar) -> None:
    claim = registrar.claim("ann")
    registrar.ask(claim)
    registrar.end(registrar.grant("eve", "window"))
    registrar.release(registrar.grant("eve", "window"), request_id=claim.request_key)

    assert expect(Granted, registrar.ask(claim)).repeated


def test_only_the_request_that_ended_a_lease_is_told_that_it_did(registrar: Registrar) -> None:
    lease = registrar.grant("ann")
    registrar.release(lease, request_id="the same id")

    somebody_else = registrar.release(lease, holder="bob", request_id="the same id")[0]
    for_another_reason = registrar.release(lease, reason=ReleaseReason.ABORTED, request_id="the same id")[0]

    assert expect(Ended, somebody_else).already
    assert expect(Ended, for_another_reason).already
    assert not expect(Ended, registrar.release(lease, request_id="the same id")[0]).already
