"""Mistakes that were once in the keeper, and must not come back."""

from collections.abc import Callable

from leasehold.engine.batch import Outcome
from leasehold.engine.committer import Call
from leasehold.engine.keeper import Keeper, Kept
from leasehold.engine.registrar import Registrar
from leasehold.engine.trust import Trust
from leasehold.errors import LeaseholdError
from leasehold.kernel.answers import Granted
from leasehold.kernel.budget import Budget
from leasehold.kernel.commands import Acquire, Command, Derive
from leasehold.stores.memory import MemoryStore
from leasehold.testing.clock import FakeClock

SECOND = 1_000_000_000


class Desk(Registrar):
    """A registrar that answers at once."""

    def submit(self, command: Command, deliver: Callable[[Outcome], None]) -> Call:
        deliver(self.call(command))
        return Call(command, deliver)


class PatientKeeper(Keeper):
    """A keeper that says so when it goes round in circles, instead of doing it for ever."""

    plans = 0

    def _plan(self, kept: Kept, when_ns: int) -> None:
        self.plans += 1
        assert self.plans < 1_000, "the keeper goes round in circles"
        super()._plan(kept, when_ns)


def test_a_child_whose_parent_is_not_renewed_does_not_stop_its_keeper() -> None:
    """A renewal that could not extend left a plan for after the window: the keeper looked for ever."""
    clock = FakeClock()
    registrar = Desk(MemoryStore(clock))
    losses: list[LeaseholdError] = []
    keeper = PatientKeeper(registrar, clock, Trust(drift_ppm=0, margin_ns=0), seed=1, threaded=False)
    parent = Acquire(
        request_id="parent",
        lease_id="parent",
        resource="project",
        holder="ann",
        ttl_ns=30 * SECOND,
        budget=Budget(tokens=10),
    )
    granted(registrar.call(parent))
    child = Derive(
        request_id="child",
        parent_id="parent",
        holder="ann",
        lease_id="child",
        resource="task",
        child_holder="ben",
        budget=Budget(tokens=1),
    )
    answer = granted(registrar.call(child))
    deadline_ns = clock.tick_ns() + answer.expires_in_ns
    keeper.keep(Kept(answer.lease, deadline_ns, clock, on_lost=losses.append))

    for _ in range(61):
        assert losses == []
        keeper.step()
        clock.advance(0.5)
    keeper.step()

    assert len(losses) == 1


def granted(outcome: Outcome) -> Granted:
    assert isinstance(outcome, Granted)
    return outcome
