"""Mistakes that were once in the keeper, and must not come back."""

from collections.abc import Callable

from msgspec.structs import replace

from leasehold.engine.batch import Outcome
from leasehold.engine.call import Call
from leasehold.engine.keeper import Keeper
from leasehold.engine.kept import Kept
from leasehold.engine.registrar import Registrar
from leasehold.engine.trust import Trust
from leasehold.errors import LeaseholdError
from leasehold.kernel.answers import Granted, Renewal
from leasehold.kernel.budget import Budget
from leasehold.kernel.commands import Acquire, Command, Derive
from leasehold.kernel.lease import Mode
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


def test_an_upgrade_that_the_registrar_has_forgotten_is_a_loss() -> None:
    """After an older copy of the store was put in place, renewals of the shared lease kept the holder in the
    belief that it was alone."""
    clock = FakeClock()
    registrar = Desk(MemoryStore(clock))
    losses: list[LeaseholdError] = []
    keeper = PatientKeeper(registrar, clock, Trust(drift_ppm=0, margin_ns=0), seed=1, threaded=False)
    claim = Acquire(
        request_id="ann", lease_id="ann", resource="door", holder="ann", ttl_ns=30 * SECOND, mode=Mode.SHARED
    )
    lease = granted(registrar.call(claim)).lease
    kept = Kept(lease, clock.tick_ns() + 30 * SECOND, clock, on_lost=losses.append)
    keeper.keep(kept)
    keeper.changed(kept, replace(lease, mode=Mode.EXCLUSIVE, token=lease.token + 1, version=2))

    clock.advance(10)
    keeper.step()

    assert [loss.code for loss in losses] == ["LEASE_TERMINAL"]


def test_an_answer_from_before_an_upgrade_is_no_loss() -> None:
    """The renewal was on its way when the lease was upgraded, and was answered as things were then."""
    clock = FakeClock()
    registrar = Desk(MemoryStore(clock))
    losses: list[LeaseholdError] = []
    keeper = PatientKeeper(registrar, clock, Trust(drift_ppm=0, margin_ns=0), seed=1, threaded=False)
    claim = Acquire(
        request_id="ann", lease_id="ann", resource="door", holder="ann", ttl_ns=30 * SECOND, mode=Mode.SHARED
    )
    lease = granted(registrar.call(claim)).lease
    kept = Kept(lease, clock.tick_ns() + 30 * SECOND, clock, on_lost=losses.append)
    keeper.keep(kept)
    sent_ns = clock.tick_ns()
    clock.advance(1)
    upgraded = replace(lease, mode=Mode.EXCLUSIVE, token=lease.token + 1, version=2)
    keeper.renewed([(kept, Renewal(lease=upgraded, expires_in_ns=30 * SECOND))], sent_ns)

    keeper.renewed([(kept, Renewal(lease=lease, expires_in_ns=30 * SECOND))], sent_ns)

    assert losses == []
    assert kept.lease == upgraded
