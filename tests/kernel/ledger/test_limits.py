from datetime import UTC, datetime
from typing import Any

import pytest

from leasehold.kernel.ledger.limits import (
    BATCH_LEASES,
    ID_BYTES,
    METADATA_BYTES,
    METADATA_LEVELS,
    TTL_MAXIMUM_NS,
    TTL_MINIMUM_NS,
    check_batch,
    check_metadata,
    check_text,
    check_ttl,
)
from leasehold.kernel.ledger.refusals import Refusal, RefusalCode


def invalid(refusal: Refusal | None) -> str:
    assert refusal is not None
    assert refusal.code is RefusalCode.INVALID_INPUT
    assert refusal.detail is not None
    return f"{refusal.field} {refusal.detail}"


def over_limit(refusal: Refusal | None) -> tuple[str | None, int | None]:
    assert refusal is not None
    assert refusal.code is RefusalCode.LIMIT_EXCEEDED
    assert refusal.detail
    return refusal.field, refusal.limit


def test_the_limits_are_the_documented_ones() -> None:
    assert (ID_BYTES, METADATA_BYTES, BATCH_LEASES) == (128, 16_384, 1_000)
    assert (TTL_MINIMUM_NS, TTL_MAXIMUM_NS) == (1_000_000, 2_592_000_000_000_000)


@pytest.mark.parametrize("text", ["a", "a" * 128, "ä" * 64, "a b", "ä b", "日本" * 21, "€" * 42])
def test_text_up_to_the_limit_is_fine(text: str) -> None:
    assert check_text("holder", text) is None


def test_empty_text_is_refused() -> None:
    assert invalid(check_text("holder", "")) == "holder must not be empty"


@pytest.mark.parametrize("text", ["a" * 129, "ä" * 65, "€" * 43, "\n" * 129])
def test_text_is_measured_in_bytes_and_the_refusal_names_the_limit(text: str) -> None:
    assert over_limit(check_text("holder", text)) == ("holder", 128)


def test_a_field_can_have_a_limit_of_its_own() -> None:
    assert check_text("resource", "a" * 512, 512) is None
    assert over_limit(check_text("resource", "a" * 513, 512)) == ("resource", 512)


@pytest.mark.parametrize("character", ["\x00", "\n", "\t", "\x1f", "\x7f", "ä\n"])
def test_control_characters_are_refused(character: str) -> None:
    assert invalid(check_text("holder", f"ann{character}")) == "holder must not contain control characters"


def test_text_that_utf8_cannot_carry_is_refused() -> None:
    assert invalid(check_text("holder", "ann\ud800")) == "holder must be text that UTF-8 can carry"


@pytest.mark.parametrize("ttl_ns", [-1, 0, TTL_MINIMUM_NS - 1])
def test_a_time_to_live_of_nothing_is_refused(ttl_ns: int) -> None:
    assert invalid(check_ttl(ttl_ns)) == "ttl must be at least 1 millisecond"


def test_a_time_to_live_lies_between_a_millisecond_and_thirty_days() -> None:
    assert check_ttl(TTL_MINIMUM_NS) is None
    assert check_ttl(TTL_MAXIMUM_NS) is None
    assert over_limit(check_ttl(TTL_MAXIMUM_NS + 1)) == ("ttl", TTL_MAXIMUM_NS)


@pytest.mark.parametrize(
    "metadata",
    [{}, {"task": "42"}, {"list": [1, 2.5, None, True, {"deep": []}]}, {"big": 2**200}, {"é": "日本"}],
)
def test_json_is_fine_as_metadata(metadata: dict[str, Any]) -> None:
    assert check_metadata(metadata) is None


@pytest.mark.parametrize(
    "stranger",
    [
        pytest.param(object(), id="an object"),
        pytest.param((1, 2), id="a tuple"),
        pytest.param({1: "one"}, id="a number as key"),
        pytest.param(datetime(2026, 1, 1, tzinfo=UTC), id="a date"),
        pytest.param(b"bytes", id="bytes"),
        pytest.param(float("nan"), id="not a number"),
        pytest.param(float("inf"), id="infinity"),
        pytest.param("\ud800", id="half a character"),
        pytest.param(10**5000, id="a number of 5000 digits"),
    ],
)
def test_metadata_that_would_not_read_back_as_it_was_written_is_refused(stranger: object) -> None:
    assert invalid(check_metadata({"value": stranger})).startswith("metadata must be JSON")


def test_metadata_is_measured_as_it_is_stored() -> None:
    around = len('{"text":""}')

    assert check_metadata({"text": "a" * (METADATA_BYTES - around)}) is None
    assert over_limit(check_metadata({"text": "a" * (METADATA_BYTES - around + 1)})) == (
        "metadata",
        METADATA_BYTES,
    )


@pytest.mark.parametrize("wrap", [lambda inner: {"in": inner}, lambda inner: [inner]])
def test_metadata_nests_only_so_deep_that_every_reader_can_follow(wrap: Any) -> None:
    value: object = "bottom"
    for _ in range(METADATA_LEVELS - 1):
        value = wrap(value)

    assert check_metadata({"in": value}) is None
    assert over_limit(check_metadata({"in": wrap(value)})) == ("metadata", METADATA_LEVELS)


def test_metadata_that_contains_itself_is_refused() -> None:
    circle: dict[str, Any] = {}
    circle["self"] = circle

    assert over_limit(check_metadata(circle)) == ("metadata", METADATA_LEVELS)


def test_a_nest_of_something_else_than_json_is_refused_however_deep() -> None:
    nest: tuple[object, ...] = ()
    for _ in range(100_000):
        nest = (nest,)

    assert invalid(check_metadata({"nest": nest})).startswith("metadata must be JSON")


def test_a_batch_names_between_one_and_a_thousand_leases() -> None:
    assert check_batch(("one",)) is None
    assert check_batch(("same",) * BATCH_LEASES) is None
    assert invalid(check_batch(())) == "lease_ids must name at least one lease"
    assert over_limit(check_batch(("same",) * (BATCH_LEASES + 1))) == ("lease_ids", BATCH_LEASES)


def test_one_malformed_id_spoils_the_batch() -> None:
    assert invalid(check_batch(("good", ""))) == "lease_id must not be empty"
    assert over_limit(check_batch(("good", "a" * 129, "good"))) == ("lease_id", 128)
