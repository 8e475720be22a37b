import itertools
from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from leasehold.reducer import (
    DecodeError,
    EventRecord,
    InvalidExpiration,
    InvalidInput,
    InvalidReleaseReason,
    LeaseAlreadyExists,
    LeaseAlreadyTerminal,
    LeaseError,
    LeaseExpired,
    LeaseNotFound,
    LeaseReducer,
    LeaseState,
    MissingSignature,
    ReducerContext,
    RenewalDoesNotExtend,
    Unauthorized,
    WorkAlreadyLeased,
    helpers,
)
from tests.reducer.histories import SECOND, History, tick

TOO_LONG = "é" * 65
"""65 characters, 130 bytes."""


def test_it_goes_by_the_name_of_the_contract() -> None:
    assert LeaseReducer().name == "lease-registrar"


def test_inv_0501_a_lease_goes_from_nothing_to_active_to_one_end() -> None:
    for end, state in (("release", LeaseState.RELEASED), ("expire", LeaseState.EXPIRED)):
        history = History()
        for early in (history.renew, history.release, history.expire):
            with pytest.raises(LeaseNotFound):
                early()
        history.issue()
        assert history.lease().state is LeaseState.ACTIVE
        history.renew()
        assert history.lease().state is LeaseState.ACTIVE
        history.expire(expired_at=3 * SECOND) if end == "expire" else history.release()
        assert history.lease().state is state


def test_inv_0502_the_same_events_give_the_same_state_and_the_same_bytes() -> None:
    def told() -> History:
        history = History()
        history.issue_with_ticks("lease-1", "work-1")
        history.issue("lease-2", "work-2")
        history.renew("lease-1", renewed_at_tick=tick(150), new_expires_at_tick=tick(250))
        history.release("lease-2", at=SECOND)
        return history

    first, second = told(), told()
    assert first.state == second.state
    assert first.reducer.checkpoint() == second.reducer.checkpoint()


@pytest.mark.parametrize("kind", ["work.opened", "lease", "leases.issued", "Lease.issued", "session.x", ""])
def test_inv_0503_events_of_other_families_are_ignored_whatever_they_hold(
    history: History, kind: str
) -> None:
    history.tell(kind, b"\xff not a payload at all")
    assert len(history.state) == 0
    assert history.reducer.position == 1


def test_ctr_0501_leased_work_is_not_leased_again(history: History) -> None:
    history.issue("lease-1")
    with pytest.raises(WorkAlreadyLeased) as refused:
        history.issue("lease-2", actor_id="bob")
    assert (refused.value.work_id, refused.value.existing_lease_id) == ("work-1", "lease-1")
    assert history.state.get("lease-2") is None


def test_ctr_0502_a_lease_that_exists_is_not_issued_again(history: History) -> None:
    history.issue()
    with pytest.raises(LeaseAlreadyExists) as refused:
        history.issue(work_id="work-2")
    assert refused.value.lease_id == "lease-1"


def test_ctr_0503_what_the_registrar_did_not_sign_does_not_count(history: History) -> None:
    with pytest.raises(MissingSignature) as refused:
        history.issue(registrar_signature=b"")
    assert refused.value.lease_id == "lease-1"
    history.issue()
    with pytest.raises(MissingSignature):
        history.renew(signature=b"")
    assert history.lease().renewal_count == 0


@pytest.mark.parametrize("operation", ["renew", "release", "expire"])
@pytest.mark.parametrize(("end", "state"), [("release", "RELEASED"), ("expire", "EXPIRED")])
def test_ctr_0504_nothing_happens_to_an_ended_lease(
    history: History, operation: str, end: str, state: str
) -> None:
    history.issue()
    getattr(history, end)()
    with pytest.raises(LeaseAlreadyTerminal) as refused:
        getattr(history, operation)()
    assert (refused.value.lease_id, refused.value.current_state) == ("lease-1", state)


def test_ctr_0505_only_the_holder_releases(history: History) -> None:
    history.issue()
    for actor in ("bob", "registrar", "", "Ann"):
        with pytest.raises(Unauthorized) as refused:
            history.release(actor=actor)
        assert (refused.value.lease_id, refused.value.actor_id) == ("lease-1", actor)
    assert history.state.has_active_lease("work-1")


Wrongs = list[tuple[dict[str, Any], type[LeaseError], str | None]]


def pairs(order: Wrongs) -> list[tuple[int, int]]:
    """Every fault alone, and every fault together with each one that comes after it."""
    return list(itertools.combinations_with_replacement(range(len(order)), 2))


# Each list is the order of checks: what is wrong further up is what the answer names.
ISSUE_ORDER: Wrongs = [
    ({"lease_id": TOO_LONG}, InvalidInput, "lease_id"),
    ({"work_id": TOO_LONG}, InvalidInput, "work_id"),
    ({"actor_id": TOO_LONG}, InvalidInput, "actor_id"),
    ({"registrar_signature": bytes(513)}, InvalidInput, "registrar_signature"),
    ({"lease_id": "lease-0"}, LeaseAlreadyExists, None),
    ({"work_id": "work-0"}, WorkAlreadyLeased, None),
    ({"registrar_signature": b""}, MissingSignature, None),
    ({"expires_at": 1 * SECOND}, InvalidInput, "expires_at"),
    ({"expires_at_tick": tick(100)}, InvalidInput, "expires_at_tick"),
]


@pytest.mark.parametrize(("first", "second"), pairs(ISSUE_ORDER))
def test_a_grant_is_checked_in_the_order_of_the_contract(history: History, first: int, second: int) -> None:
    history.issue("lease-0", "work-0")
    fields, error, field = ISSUE_ORDER[first]
    later = ISSUE_ORDER[second][0]
    with pytest.raises(error) as refused:
        history.issue_with_ticks(**({"lease_id": "lease-1", "work_id": "work-1"} | later | fields))
    assert type(refused.value) is error
    assert refused.value.field == field
    assert len(history.state) == 1


RENEW_ORDER: Wrongs = [
    ({"lease_id": TOO_LONG}, InvalidInput, "lease_id"),
    ({"lease_id": "nobody"}, LeaseNotFound, None),
    ({"lease_id": "ended"}, LeaseAlreadyTerminal, None),
    ({"new_expires_at": 2 * SECOND}, RenewalDoesNotExtend, None),
    ({"signature": b""}, MissingSignature, None),
    ({"signature": bytes(513)}, InvalidInput, "registrar_signature"),
    ({"renewed_at_tick": tick(200)}, LeaseExpired, None),
]


@pytest.mark.parametrize(("first", "second"), pairs(RENEW_ORDER))
def test_a_renewal_is_checked_in_the_order_of_the_contract(history: History, first: int, second: int) -> None:
    history.issue_with_ticks("lease-1", "work-1")
    history.issue("ended", "work-2")
    history.release("ended")
    before = history.reducer.checkpoint()
    fields, error, field = RENEW_ORDER[first]
    with pytest.raises(error) as refused:
        history.renew(**(RENEW_ORDER[second][0] | fields))
    assert refused.value.field == field
    assert history.reducer.checkpoint() == before


RELEASE_ORDER: Wrongs = [
    ({"lease_id": TOO_LONG}, InvalidInput, "lease_id"),
    ({"lease_id": "nobody"}, LeaseNotFound, None),
    ({"lease_id": "ended"}, LeaseAlreadyTerminal, None),
    ({"actor": "bob"}, Unauthorized, None),
    ({"reason": "bored"}, InvalidReleaseReason, None),
]


@pytest.mark.parametrize(("first", "second"), pairs(RELEASE_ORDER))
def test_a_release_is_checked_in_the_order_of_the_contract(history: History, first: int, second: int) -> None:
    history.issue("lease-1", "work-1")
    history.issue("ended", "work-2")
    history.expire("ended")
    fields, error, field = RELEASE_ORDER[first]
    with pytest.raises(error) as refused:
        history.release(**(RELEASE_ORDER[second][0] | fields))
    assert refused.value.field == field
    assert history.lease().state is LeaseState.ACTIVE


EXPIRE_ORDER: Wrongs = [
    ({"lease_id": TOO_LONG}, InvalidInput, "lease_id"),
    ({"lease_id": "nobody"}, LeaseNotFound, None),
    ({"lease_id": "ended"}, LeaseAlreadyTerminal, None),
    ({"expired_at": 2 * SECOND - 1}, InvalidExpiration, None),
    ({"expired_at_tick": tick(199)}, InvalidExpiration, None),
]


@pytest.mark.parametrize(("first", "second"), pairs(EXPIRE_ORDER))
def test_an_expiry_is_checked_in_the_order_of_the_contract(history: History, first: int, second: int) -> None:
    history.issue_with_ticks("lease-1", "work-1")
    history.issue("ended", "work-2")
    history.release("ended")
    fields, error, field = EXPIRE_ORDER[first]
    with pytest.raises(error) as refused:
        history.expire(**(EXPIRE_ORDER[second][0] | fields))
    assert refused.value.field == field
    assert history.lease().state is LeaseState.ACTIVE


@pytest.mark.parametrize("field", ["lease_id", "work_id", "actor_id"])
def test_an_empty_id_is_refused_and_128_bytes_are_not(history: History, field: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        history.issue(**{field: ""})
    assert refused.value.field == field
    history.issue(**{field: "é" * 64})
    assert len(history.state) == 1


def test_a_signature_may_have_512_bytes(history: History) -> None:
    history.issue(registrar_signature=bytes(512))
    assert len(history.lease().registrar_signature) == 512


def test_conflicts_and_denials_are_taken_in_and_change_nothing(history: History) -> None:
    history.issue()
    before = history.state.leases.copy()
    history.tell("lease.conflict", helpers.lease_conflict_payload("work-1", ["lease-1", "lease-9"], "kept"))
    history.tell("lease.denied", helpers.lease_denied_payload("work-1", "bob", "held by ann"))
    assert history.state.leases == before


GOOD = helpers.lease_issued_payload("lease-1", "work-1", "ann", 1, 2, b"signed")
UNDECODABLE = {
    "nothing": b"",
    "no structure": b"\x01",
    "text": b"lease-1",
    "json of nobody": b'{"type":"lease.issued"}',
    "deep json": b'{"a":' + b"[" * 100_000,
    "cut off": GOOD[:-1],
    "more behind it": GOOD + b"\x00",
    "another type": helpers.lease_released_payload("lease-1", "COMPLETED"),
    "a negative time": msgspec.msgpack.encode(
        {"type": "lease.issued", "lease_id": "l", "work_id": "w", "actor_id": "a", "issued_at": -1}
        | {"expires_at": 1, "registrar_signature": b"s"}
    ),
    "a missing field": msgspec.msgpack.encode({"type": "lease.issued", "lease_id": "lease-1"}),
}


@pytest.mark.parametrize("payload", UNDECODABLE.values(), ids=UNDECODABLE.keys())
def test_what_cannot_be_decoded_is_refused_as_such(history: History, payload: bytes) -> None:
    with pytest.raises(DecodeError):
        history.tell("lease.issued", payload)
    assert len(history.state) == 0
    assert history.reducer.position == 0


def test_a_lease_event_of_an_unknown_type_is_refused_because_it_might_matter(history: History) -> None:
    with pytest.raises(DecodeError):
        history.tell("lease.sublet", GOOD)


@pytest.mark.parametrize(
    "make",
    [
        lambda: helpers.lease_expired_payload("lease-1", 2**64),
        lambda: helpers.lease_released_payload("\ud800", "COMPLETED"),
        lambda: helpers.lease_conflict_payload("work-1", [object()], "kept"),  # type: ignore[list-item]
    ],
    ids=["65 bits", "half a character", "no text"],
)
def test_what_no_payload_can_carry_is_refused_when_it_is_made(make: Callable[[], bytes]) -> None:
    with pytest.raises(InvalidInput) as refused:
        make()
    assert refused.value.field == "payload"


def test_the_largest_time_of_the_contract_fits(history: History) -> None:
    history.issue(expires_at=2**64 - 1)
    history.expire(expired_at=2**64 - 1)
    assert history.lease().terminated_at == 2**64 - 1


def test_a_newer_registrar_may_say_more_than_is_understood_here(history: History) -> None:
    fields = msgspec.msgpack.decode(GOOD) | {"colour": "green"}
    history.tell("lease.issued", msgspec.msgpack.encode(fields))
    assert history.lease().actor_id == "ann"


def test_reset_forgets_everything(history: History) -> None:
    history.issue()
    history.reducer.reset()
    assert history.reducer.state == LeaseReducer().state
    assert history.reducer.position == 0
    history.issue()


def test_the_position_is_that_of_the_furthest_event() -> None:
    reducer = LeaseReducer()
    for position in (3, 9, 4):
        reducer.apply(EventRecord("other", "s", "a", b""), ReducerContext(position))
    assert reducer.position == 9


def test_work_is_free_again_after_a_release_and_goes_to_whoever_asks_next(history: History) -> None:
    history.issue("lease-1", actor_id="ann")
    history.release("lease-1")
    history.issue("lease-2", actor_id="bob")
    lease = history.state.get_active_lease_for_work("work-1")
    assert (lease.lease_id, lease.actor_id) == ("lease-2", "bob")
    assert lease.token > history.lease("lease-1").token
