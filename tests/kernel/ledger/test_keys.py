"""Which keys may seal: the first is pinned, others are vouched for, or show that they are not."""

from typing import Any

import pytest

from leasehold.kernel.lease.family import LEASES
from leasehold.kernel.ledger.authority import evolve_authority
from leasehold.kernel.ledger.events import (
    EpochRaised,
    IllegalTransition,
    KeyEnrolled,
    KeyRetired,
    KeyVouched,
    OwnEvent,
    StoreOpened,
)
from leasehold.kernel.ledger.keys import Key, evolve_keys, voucher_message
from leasehold.kernel.ledger.state import Folding, State, replay
from tests.kernel.records import OF_STORE

FIRST, SECOND, THIRD = b"1" * 32, b"2" * 32, b"3" * 32
OF_KEY: dict[str, Any] = {name: OF_STORE[name] for name in ("tick", "at_ns", "actor")}
OPENED = StoreOpened(**OF_STORE, epoch=1, public_key=FIRST)


def enrolled(public_key: bytes, vouched_by: bytes = b"", **fields: Any) -> KeyEnrolled:
    return KeyEnrolled(**OF_KEY, public_key=public_key, vouched_by=vouched_by, voucher=b"signed", **fields)


def retired(public_key: bytes) -> KeyRetired:
    return KeyRetired(**OF_KEY, public_key=public_key, reason="old")


def vouched(public_key: bytes, vouched_by: bytes) -> KeyVouched:
    return KeyVouched(**OF_KEY, public_key=public_key, vouched_by=vouched_by, voucher=b"signed")


def keys_after(*events: OwnEvent) -> dict[bytes, Key]:
    return replay(events, LEASES).keys


def test_the_event_that_opens_a_store_pins_the_first_key() -> None:
    (key,) = keys_after(OPENED).values()
    assert (key.public_key, key.number, key.is_admitted, key.is_vouched_for) == (FIRST, 1, True, True)


def test_a_store_from_before_there_were_seals_has_no_keys_until_one_is_enrolled() -> None:
    opened = StoreOpened(**OF_STORE, epoch=1)
    assert keys_after(opened) == {}
    assert keys_after(opened, enrolled(FIRST))[FIRST].is_vouched_for


def test_an_admitted_key_enrols_others() -> None:
    key = keys_after(OPENED, enrolled(SECOND, FIRST, reason="a colleague"))[SECOND]
    assert (key.number, key.vouched_by, key.voucher, key.reason) == (2, FIRST, b"signed", "a colleague")
    assert key.is_vouched_for


def test_a_key_that_enrols_itself_is_not_vouched_for_until_an_admitted_one_does() -> None:
    assert not keys_after(OPENED, enrolled(SECOND))[SECOND].is_vouched_for
    assert keys_after(OPENED, enrolled(SECOND), vouched(SECOND, FIRST))[SECOND].is_vouched_for


def test_a_retired_key_is_remembered_and_not_admitted() -> None:
    key = keys_after(OPENED, enrolled(SECOND, FIRST), retired(FIRST))[FIRST]
    assert (key.is_admitted, key.retired_by, key.retire_reason) == (False, OF_STORE["actor"], "old")


@pytest.mark.parametrize(
    ("events", "problem"),
    [
        ([OPENED, enrolled(FIRST)], "enrolled twice"),
        ([OPENED, enrolled(SECOND, THIRD)], "not admitted"),
        ([OPENED, enrolled(SECOND, FIRST), retired(FIRST), enrolled(THIRD, FIRST)], "not admitted"),
        ([OPENED, enrolled(SECOND), enrolled(THIRD, SECOND)], "not vouched for itself"),
        ([OPENED, vouched(SECOND, FIRST)], "unknown"),
        ([OPENED, enrolled(SECOND, FIRST), vouched(SECOND, FIRST)], "vouched for already"),
        ([OPENED, enrolled(SECOND), vouched(SECOND, SECOND)], "not vouched for itself"),
        ([OPENED, retired(SECOND)], "not admitted"),
        ([OPENED, retired(FIRST)], "the last key"),
        ([OPENED, enrolled(SECOND, FIRST), retired(FIRST), retired(FIRST)], "not admitted"),
    ],
)
def test_what_the_law_could_not_have_produced_is_refused(events: list[OwnEvent], problem: str) -> None:
    with pytest.raises(IllegalTransition, match=problem):
        replay(events, LEASES)


def test_the_registrars_record_counts_the_changes_of_keys() -> None:
    state = State()
    counts = []
    for event in (OPENED, enrolled(SECOND), vouched(SECOND, FIRST), retired(FIRST)):
        Folding(LEASES, state).apply(event)
        assert state.authority is not None
        counts.append(state.authority.key_changes)
    raised = EpochRaised(**OF_STORE, epoch=2, reason="copied")
    assert counts == [1, 2, 3, 4]
    assert evolve_authority(state.authority, raised).key_changes == 4
    assert evolve_keys(state.keys, raised) is None


def test_what_is_signed_for_a_key_cannot_be_taken_for_anything_else() -> None:
    assert voucher_message(FIRST) == b"leasehold key voucher 1" + FIRST
