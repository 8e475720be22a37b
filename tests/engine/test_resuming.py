"""A registrar that was down lets those come back first who could not renew meanwhile."""

import pytest

from leasehold.engine import recording
from leasehold.engine.audit import audit
from leasehold.engine.batch import Rules, run_batch
from leasehold.engine.port import Store
from leasehold.engine.recording import resume
from leasehold.kernel.lease.answers import Waiting
from leasehold.kernel.lease.commands import Renew
from leasehold.kernel.ledger.events import RegistrarResumed
from leasehold.kernel.ledger.refusals import Refusal
from leasehold.kernel.ledger.tick import NANOSECONDS_PER_SECOND as SECOND
from leasehold.testing.clock import FakeClock
from tests.engine.doubles import WatchedStore, claim, expect, granted

RULES = Rules()


def test_what_lapsed_while_it_was_down_is_kept_for_who_held_it(store: Store, clock: FakeClock) -> None:
    held = granted(run_batch(store, [claim("door", ttl_ns=10 * SECOND)], RULES)[0])
    clock.advance(60)
    resumed = resume(store)
    assert resumed is not None

    refusal = expect(Refusal, run_batch(store, [claim("door", "bob")], RULES)[0])
    back = granted(run_batch(store, [claim("door")], RULES)[0])

    assert (refusal.code, refusal.expires_in_ns) == ("HELD", 10 * SECOND)
    assert back.token > held.token
    assert audit(store).problems == []


def test_it_is_open_to_everybody_once_that_has_settled(store: Store, clock: FakeClock) -> None:
    run_batch(store, [claim("door", ttl_ns=10 * SECOND)], RULES)
    clock.advance(60)
    resume(store)
    clock.advance(10)
    granted(run_batch(store, [claim("door", "bob")], RULES)[0])


def test_it_settles_for_as_long_as_the_longest_lease_lasts_and_no_longer_than_is_said(
    store: Store, clock: FakeClock
) -> None:
    assert resume(store) is None, "nothing stands, so there is nothing to wait for"
    run_batch(store, [claim("door", ttl_ns=10 * SECOND), claim("gate", ttl_ns=3600 * SECOND)], RULES)
    clock.advance(60)
    for longest_ns, expected_ns in ((7200 * SECOND, 3600 * SECOND), (300 * SECOND, 300 * SECOND)):
        resumed = resume(store, longest_ns=longest_ns)
        assert resumed is not None
        assert resumed.settles_until - resumed.tick.value == expected_ns


def test_who_waits_is_served_when_it_has_settled(store: Store, clock: FakeClock) -> None:
    run_batch(store, [claim("door", ttl_ns=10 * SECOND)], RULES)
    clock.advance(20)
    resume(store)
    waiting = claim("door", "bob", wait=True)
    answer = expect(Waiting, run_batch(store, [waiting], RULES)[0])
    assert answer.places[0].expires_in_ns == 10 * SECOND
    clock.advance(10)
    granted(run_batch(store, [waiting], RULES)[0])


def test_a_lease_that_still_stands_is_renewed_as_ever(store: Store, clock: FakeClock) -> None:
    held = granted(run_batch(store, [claim("door", ttl_ns=100 * SECOND)], RULES)[0])
    clock.advance(60)
    resume(store)
    (renewed,) = run_batch(store, [Renew(lease_ids=(held.lease_id,), holder="ann", request_id="r")], RULES)
    assert renewed.outcomes[0].expires_in_ns == 100 * SECOND


def test_what_lapses_after_it_has_resumed_is_open_at_once(store: Store, clock: FakeClock) -> None:
    run_batch(store, [claim("door", ttl_ns=100 * SECOND)], RULES)
    clock.advance(60)
    resume(store)
    clock.advance(41)
    granted(run_batch(store, [claim("door", "bob")], RULES)[0])


def test_who_could_not_renew_comes_before_everybody_who_waits(store: Store, clock: FakeClock) -> None:
    run_batch(store, [claim("door", ttl_ns=10 * SECOND)], RULES)
    waiting = claim("door", "bob", wait=True)
    run_batch(store, [waiting], RULES)
    clock.advance(20)
    resume(store)
    granted(run_batch(store, [claim("door")], RULES)[0])
    expect(Waiting, run_batch(store, [waiting], RULES)[0])
    assert audit(store).problems == []


def test_an_outage_that_had_not_settled_goes_on_with_the_next(store: Store, clock: FakeClock) -> None:
    run_batch(store, [claim("door", ttl_ns=10 * SECOND), claim("gate", ttl_ns=100 * SECOND)], RULES)
    clock.advance(20)
    resume(store)
    run_batch(store, [claim("door", "bob")], RULES)  # So that what keeps it closed is on record.
    clock.advance(5)
    resume(store)
    assert expect(Refusal, run_batch(store, [claim("door", "bob")], RULES)[0]).code == "HELD"
    granted(run_batch(store, [claim("door")], RULES)[0])
    assert audit(store).problems == []


def test_an_outage_goes_on_until_it_has_settled_and_not_a_moment_longer(
    store: Store, clock: FakeClock
) -> None:
    run_batch(store, [claim("door", ttl_ns=10 * SECOND)], RULES)
    clock.advance(60)
    first = expect(RegistrarResumed, resume(store))
    clock.advance(9)
    second = expect(RegistrarResumed, resume(store))
    clock.advance(10)
    run_batch(store, [claim("gate")], RULES)  # At the very moment at which it has settled.
    clock.advance(5)
    third = expect(RegistrarResumed, resume(store))

    assert second.down_since == first.down_since
    assert third.down_since == second.settles_until


def test_the_longest_lease_is_found_among_more_than_a_page_of_them(
    store: Store, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(recording, "_PAGE", 2)
    lasting = [10, 30, 20, 10, 50]
    claims = [claim(f"door-{n}", lease_id=f"door-{n}", ttl_ns=ttl * SECOND) for n, ttl in enumerate(lasting)]
    run_batch(store, claims, RULES)
    clock.advance(5)

    resumed = expect(RegistrarResumed, resume(store))

    assert resumed.settles_until - resumed.tick.value == 50 * SECOND


def test_an_outage_is_made_durable_before_anybody_is_told_of_it(store: Store, clock: FakeClock) -> None:
    watched = WatchedStore(store)
    run_batch(watched, [claim("door")], RULES)
    clock.advance(60)
    watched.durable.clear()
    watched.commits.clear()

    resume(watched)

    assert [entry.event.type for batch in watched.commits for entry in batch.entries] == ["store.resumed"]
    assert set(watched.durable) == {True}
