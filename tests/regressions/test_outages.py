"""Mistakes about times without a registrar that the simulator found, and that must not come back.

Each test is the shortest sequence that shows one of them; docs/track-record.md lists them.
"""

from leasehold.engine.batch import Rules, run_batch
from leasehold.engine.recording import resume
from leasehold.kernel.ledger.refusals import Refusal
from leasehold.stores.memory import MemoryStore
from leasehold.testing.clock import FakeClock
from tests.engine.doubles import claim, expect, granted

SECOND = 1_000_000_000
RULES = Rules()


def test_a_registrar_that_falls_again_before_an_outage_has_settled_still_knows_of_it() -> None:
    """The second outage took the place of the first, in which something had lapsed: that was open at once."""
    clock = FakeClock()
    store = MemoryStore(clock=clock)
    run_batch(store, [claim("door", ttl_ns=10 * SECOND)], RULES)
    clock.advance(60)
    resume(store)
    clock.advance(1)

    resume(store)

    assert expect(Refusal, run_batch(store, [claim("door", "bob")], RULES)[0]).holder == "registrar"
    granted(run_batch(store, [claim("door")], RULES)[0])


def test_what_had_lapsed_before_the_registrar_was_last_there_is_not_kept_closed_by_a_reboot() -> None:
    """It had nothing left to carry over, so it ended with the new era's first tick, as if in the outage."""
    clock = FakeClock()
    store = MemoryStore(clock=clock)
    run_batch(store, [claim("door", ttl_ns=10 * SECOND)], RULES)
    clock.advance(20)
    run_batch(store, [claim("gate", ttl_ns=100 * SECOND)], RULES)
    clock.reboot()

    resume(store)

    granted(run_batch(store, [claim("door", "bob")], RULES)[0])
