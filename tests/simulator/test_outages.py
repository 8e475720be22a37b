"""What is broken on purpose about times without a registrar is found by the simulator."""

from random import Random
from types import SimpleNamespace
from typing import Any

import pytest
from msgspec.structs import replace

from leasehold.engine import recording
from leasehold.engine.port import Transaction
from leasehold.engine.recording import resume
from leasehold.engine.sealing import Sealer
from leasehold.kernel.lease import family, lock_delay, queue
from leasehold.kernel.lease.rules import acquire
from leasehold.kernel.ledger.events import RegistrarResumed
from leasehold.kernel.ledger.tick import Tick
from simulator import outages, simulate
from simulator.plan import SECOND, draw_plan
from simulator.settling import Outage, Settling
from tests import lanes
from tests.mutations import search

SEEDS = 200


def test_what_lapsed_is_not_kept_for_who_held_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lock_delay, "_settling_ns", lambda *_: 0)
    assert found("kept others away")


def test_what_lapsed_is_kept_closed_to_who_held_it_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(queue, "is_delayed_for", lambda lease, holder: False)
    assert found("was refused without reason", "nothing is in its way")


def test_what_lapsed_is_open_to_everybody_who_comes_back(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(queue, "is_delayed_for", lambda lease, holder: lease.holder == "registrar")
    assert found("kept others away")


def test_something_is_kept_closed_although_the_registrar_was_there(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (family, queue, acquire):
        monkeypatch.setattr(module, "may_leave_delay", lambda *_: True)
    monkeypatch.setattr(lock_delay, "_settling_ns", lambda *_: 5 * SECOND)
    assert found("closed without reason")


def test_what_lapsed_is_kept_closed_for_longer_than_was_said(monkeypatch: pytest.MonkeyPatch) -> None:
    settling_ns = lock_delay._settling_ns
    monkeypatch.setattr(lock_delay, "_settling_ns", lambda *facts: 2 * settling_ns(*facts))
    assert found("closed after")


def test_an_outage_that_is_forgotten_when_the_next_one_comes(monkeypatch: pytest.MonkeyPatch) -> None:
    # Who comes up, falls and comes up again knows only of the second time.
    record = recording.record

    def forgetful(transaction: Transaction, events: Any, sealer: Sealer) -> None:
        last_tick = transaction.authority.tick if transaction.authority is not None else 0
        record(transaction, [_since(event, last_tick) for event in events], sealer)

    monkeypatch.setattr(recording, "record", forgetful)
    assert found("the registrar was down since")


def test_an_outage_that_settles_for_longer_than_any_lease_lasts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recording, "_longest_ttl_ns", lambda transaction: 3600 * SECOND)
    assert found("longer than any lease lasts")


@pytest.mark.deep
def test_worlds_without_an_outage_know_nothing_of_it(monkeypatch: pytest.MonkeyPatch) -> None:
    resumed: list[int] = []

    def noting(*arguments: Any, **named: Any) -> Any:
        resumed.append(seed)
        return resume(*arguments, **named)

    monkeypatch.setattr(outages, "resume", noting)
    peaceful = [seed for seed in range(20) if not outages_of(seed)]
    assert len(peaceful) > 10
    troubled = next(filter(outages_of, range(SEEDS)))
    for seed in (*lanes.some_of(peaceful, 4), troubled):
        simulate(seed)
    assert set(resumed) == {troubled}


def _since(event: Any, tick: int) -> Any:
    return replace(event, down_since=tick) if isinstance(event, RegistrarResumed) else event


def outages_of(seed: int) -> int:
    """How often the registrar is down in the world of a seed."""
    return len(draw_plan(seed, Random(seed)).outages)


def found(*says: str) -> str:
    """Return the first promise that is seen to be broken where the registrar is down for a while."""
    return search.found(*says, seeds=filter(outages_of, range(SEEDS)))


def test_what_was_opened_again_is_kept_for_nobody() -> None:
    door = ("default", "door")
    kept: Any = SimpleNamespace(delayed_for="ann", key=door, end_tick=100, ended_position=2)
    truth: Any = SimpleNamespace(leases={"kept": kept}, ticks=[Tick(value=20), Tick(value=50)])
    settling = Settling(truth)
    settling._outage = Outage(since=10, until=20, settles_until=100)

    assert settling.is_kept_for("ann", door, 50), "by the very claim that it was opened for"
    assert not settling.is_kept_for("ann", door, 51)
    kept.ended_position = None
    assert settling.is_kept_for("ann", door, 99)
