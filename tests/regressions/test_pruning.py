"""Mistakes that were once in pruning, or in what goes on behind a checkpoint, and must not come back."""

from leasehold.engine.audit import audit
from leasehold.engine.pruning import prune
from leasehold.engine.registrar import Registrar
from leasehold.stores.memory import MemoryStore
from leasehold.testing.clock import FakeClock
from tests.engine.doubles import claim, granted

HOUR_NS = 3600 * 10**9


def test_a_lease_id_that_comes_again_after_its_lease_was_pruned_is_no_broken_invariant() -> None:
    """A late retry of a pruned claim was granted anew; `verify` then missed a higher token in its adopter."""
    clock = FakeClock()
    store = MemoryStore(clock=clock)
    registrar = Registrar(store)
    first = claim("door", lease_id="first", request_id="first", ttl_ns=10 * HOUR_NS)
    granted(registrar.call(first))
    clock.advance(2 * 3600)
    adopting = claim("door", lease_id="second", request_id="second", adopt=True, ttl_ns=10 * HOUR_NS)
    assert granted(registrar.call(adopting)).adopted_from == "first"
    clock.advance(2 * 3600)
    registrar.call(claim("gate"))
    assert prune(store, actor="ops", keep_ns=HOUR_NS).records == 1
    again = claim("window", lease_id="first", request_id="first")
    assert granted(registrar.call(again)).lease_id == "first"
    assert audit(store).problems == []
