"""Keys of work, and what answers say of time."""

from leasehold.work.law.answers import Acquired, AcquireOutcome, Kept
from leasehold.work.law.model import domain_key, domains_of


def test_domains_are_found_in_order_after_one_of_them() -> None:
    low, high = domains_of("acme")
    assert low <= domain_key("acme", "a") < high
    assert not low <= domain_key("acmf", "a") < high
    low, _ = domains_of("acme", "b")
    assert domain_key("acme", "b") < low <= domain_key("acme", "b c")
    assert domain_key("acme", "az") < low


def test_time_is_told_in_seconds_too() -> None:
    assert Kept().expires_in is None
    assert Kept(expires_in_ns=1_500_000_000).expires_in == 1.5
    assert Acquired(outcome=AcquireOutcome.ACQUIRED, offset=1, expires_in_ns=500_000_000).expires_in == 0.5
    assert Acquired(outcome=AcquireOutcome.ENQUEUED, offset=1).expires_in is None
