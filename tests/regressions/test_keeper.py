"""Mistakes that were once in the keeper, and must not come back."""

from collections.abc import Callable
from typing import Any

from msgspec.structs import replace

from leasehold.engine.batch import Outcome, Request
from leasehold.engine.call import Call
from leasehold.engine.keeper import Keeper
from leasehold.engine.kept import Kept
from leasehold.engine.registrar import Registrar
from leasehold.engine.trust import Trust
from leasehold.errors import LeaseholdError
from leasehold.kernel.lease.answers import Granted, Renewal
from leasehold.kernel.lease.budget import Budget
from leasehold.kernel.lease.commands import Acquire, Derive
from leasehold.kernel.lease.model import Mode
from leasehold.kernel.ledger.commands import Command
from leasehold.stores.memory import MemoryStore
from leasehold.testing.clock import FakeClock

SECOND = 1_000_000_000


class Desk(Registrar):
    """A registrar that answers at once."""

    def submit(self, command: Command, deliver: Callable[[Outcome], None]) -> Call:
        deliver(self.call(command))
        return Call(Request(command), deliver)


class PatientKeeper(Keeper):
    """A keeper that says so when it goes round in circles, instead of doing it for ever."""

    plans = 0

    def _plan(self, kept: Kept, when_ns: int) -> None:
        self.plans += 1
        assert self.plans < 1_000, "the keeper goes round in circles"
        super()._plan(kept, when_ns)


class Keeping:
    """A lease for 30 seconds, and its keeper."""

    def __init__(self, mode: Mode) -> None:
        self.clock = FakeClock()
        self.losses: list[str] = []
        registrar = Desk(MemoryStore(self.clock))
        trust = Trust(drift_ppm=0, margin_ns=0)
        self.keeper = PatientKeeper(registrar, self.clock, trust, seed=1, threaded=False)
        claim = Acquire(
            request_id="ann", lease_id="ann", resource="door", holder="ann", ttl_ns=30 * SECOND, mode=mode
        )
        self.lease = granted(registrar.call(claim)).lease
        deadline_ns = self.clock.tick_ns() + 30 * SECOND
        self.kept = Kept(
            self.lease, deadline_ns, self.clock, on_lost=lambda loss: self.losses.append(loss.code)
        )
        self.keeper.keep(self.kept)

    def change(self, **facts: Any) -> None:
        """Tell the keeper that the lease has changed."""
        self.keeper.changed(self.kept, replace(self.lease, **facts))

    def renew(self) -> None:
        """Let it be time to renew the lease."""
        self.clock.advance(10)
        self.keeper.step()


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
    keeping = Keeping(Mode.SHARED)
    keeping.change(mode=Mode.EXCLUSIVE, token=keeping.lease.token + 1, version=2)

    keeping.renew()

    assert keeping.losses == ["LEASE_TERMINAL"]


def test_a_lease_that_was_granted_anew_under_its_old_id_is_a_loss() -> None:
    """Where the older copy had a waiter, it was granted the lease a second time, perhaps after others; its
    holder went on with the first, in another mode and with an old token."""
    keeping = Keeping(Mode.SHARED)
    first = replace(keeping.lease, token=1, version=9, mode=Mode.EXCLUSIVE, issued_at_ns=1)
    keeping.kept.lease = first

    keeping.renew()

    assert keeping.losses == ["LEASE_TERMINAL"]
    assert keeping.kept.lease == first


def test_a_change_of_a_lease_that_was_granted_anew_is_a_loss() -> None:
    keeping = Keeping(Mode.EXCLUSIVE)

    keeping.change(mode=Mode.SHARED, token=keeping.lease.token + 7, issued_at_ns=1)

    assert keeping.losses == ["LEASE_TERMINAL"]


def test_an_upgrade_that_was_made_again_after_it_was_forgotten_counts_by_its_token() -> None:
    """Versions begin anew where history was forgotten; the holder went on with its old token."""
    keeping = Keeping(Mode.SHARED)
    token = keeping.lease.token
    keeping.change(mode=Mode.EXCLUSIVE, token=token + 1, version=9)

    keeping.change(mode=Mode.EXCLUSIVE, token=token + 2, version=3)

    assert keeping.kept.lease.token == token + 2
    assert keeping.losses == []


def test_an_answer_from_before_an_upgrade_is_no_loss() -> None:
    """The renewal was on its way when the lease was upgraded, and was answered as things were then."""
    keeping = Keeping(Mode.SHARED)
    kept, lease, sent_ns = keeping.kept, keeping.lease, keeping.clock.tick_ns()
    keeping.clock.advance(1)
    upgraded = replace(lease, mode=Mode.EXCLUSIVE, token=lease.token + 1, version=2)
    keeping.keeper.renewed([(kept, Renewal(lease=upgraded, expires_in_ns=30 * SECOND))], sent_ns)

    keeping.keeper.renewed([(kept, Renewal(lease=lease, expires_in_ns=30 * SECOND))], sent_ns)

    assert keeping.losses == []
