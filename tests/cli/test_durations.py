import argparse

import pytest

from leasehold.cli.durations import format_duration, parse_duration


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("90", 90), ("0.5", 0.5), ("90s", 90), ("5m", 300), ("1h30m", 5400), ("500ms", 0.5),
        ("1m500ms", 60.5), ("2d", 172_800), ("1d2h3m4s5ms", 93_784.005), ("1.5h", 5400),
    ],
)  # fmt: skip
def test_durations_are_read_as_people_write_them(text: str, seconds: float) -> None:
    assert parse_duration(text) == pytest.approx(seconds)


@pytest.mark.parametrize(
    "text", ["", "5x", "m", "-5", "5 m", "1m1h", "1s2s", "nan", "1e9", "٣s", "inf", "s5"]
)
def test_what_is_no_duration_is_refused_with_examples(text: str) -> None:
    with pytest.raises(argparse.ArgumentTypeError, match="write 90, 90s, 5m, 1h30m or 500ms"):
        parse_duration(text)


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0.0004, "0ms"), (0.5, "500ms"), (1.0, "1s"), (1.54, "1.5s"), (9.96, "10s"), (59.6, "1m"), (60, "1m"),
        (90, "1m30s"), (3600, "1h"), (3660, "1h1m"), (5400.4, "1h30m"), (90_000, "1d1h"),
    ],
)  # fmt: skip
def test_durations_are_spelled_with_their_two_largest_units(seconds: float, text: str) -> None:
    assert format_duration(seconds) == text
