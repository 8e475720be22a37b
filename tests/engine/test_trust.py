"""A holder stops believing in its lease before the registrar gives the resource away."""

from fractions import Fraction

from hypothesis import given
from hypothesis import strategies as st

from leasehold.engine.trust import PARTS_PER_MILLION, Trust

SECOND = 1_000_000_000
durations_ns = st.integers(min_value=0, max_value=30 * 24 * 3600 * SECOND)


def test_the_window_is_what_the_answer_says_less_drift_and_margin_from_before_the_request() -> None:
    trust = Trust(drift_ppm=1_000, margin_ns=5_000_000)

    assert trust.deadline_ns(sent_ns=7 * SECOND, expires_in_ns=10 * SECOND) == 17 * SECOND - 15_000_000


def test_a_window_never_closes_before_it_opened() -> None:
    assert Trust(margin_ns=SECOND).deadline_ns(sent_ns=100, expires_in_ns=SECOND // 2) == 100


def test_nothing_left_is_nothing_trusted() -> None:
    assert Trust(drift_ppm=0, margin_ns=0).deadline_ns(sent_ns=100, expires_in_ns=0) == 100


@given(
    expires_in_ns=durations_ns,
    decided_after_ns=durations_ns,
    drift_ppm=st.integers(min_value=0, max_value=100_000),
    margin_ns=st.integers(min_value=0, max_value=SECOND),
    slowness=st.fractions(min_value=0, max_value=1),
)
def test_belief_ends_before_the_lease_does_however_slow_the_clock_and_the_answer(
    expires_in_ns: int, decided_after_ns: int, drift_ppm: int, margin_ns: int, slowness: Fraction
) -> None:
    """All in the registrar's time, from the moment the request was sent."""
    holders_rate = 1 - slowness * Fraction(drift_ppm, PARTS_PER_MILLION)
    deadline_ns = Trust(drift_ppm=drift_ppm, margin_ns=margin_ns).deadline_ns(0, expires_in_ns)

    believed_until = deadline_ns / holders_rate
    expires = decided_after_ns + expires_in_ns

    # Drift is counted in whole nanoseconds, rounded down; the margin is there for more than that.
    assert believed_until <= expires + 2
