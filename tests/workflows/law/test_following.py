"""Subscriptions to the bus, and the positions of guards."""

import pytest

from leasehold.engine.pruning import prune
from leasehold.kernel.ledger.commands import REQUEST_MEMORY_NS, Sweep
from leasehold.workflows.law import following
from leasehold.workflows.law.events import SubscriptionClosed
from leasehold.workflows.law.records import RECENT_ACTIONS, WORKFLOW, subscription_key
from tests.workflows.law.conftest import Office, refused

DAY = 24 * 3600


def test_a_subscription_begins_where_it_is_told_and_stays_where_it_has_come_to(office: Office) -> None:
    assert office.subscribe(position=7).position == 7
    assert office.acknowledge(9).position == 9
    assert office.subscribe(position=0).position == 9
    assert office.acknowledge(8).position == 9  # Never back.
    assert office.types() == ["subscribed", "acknowledged"]


def test_a_subscription_to_one_workflow_cannot_become_one_to_all(office: Office) -> None:
    office.subscribe(workflow_id="w")
    office.subscribe("everything")

    assert refused(office.subscribe()) == "SUBSCRIPTION_EXISTS"
    assert refused(office.subscribe("everything", workflow_id="w")) == "SUBSCRIPTION_EXISTS"


def test_an_unknown_subscription_is_not_found(office: Office) -> None:
    assert refused(office.acknowledge(1)) == "SUBSCRIPTION_NOT_FOUND"
    assert refused(office.unsubscribe()) == "SUBSCRIPTION_NOT_FOUND"


def test_an_unsubscription_whose_reply_was_lost_happens_once(office: Office) -> None:
    office.subscribe(position=3)

    first = office.unsubscribe(request_id="leave")
    again = office.unsubscribe(request_id="leave")

    assert first.position == again.position == 3
    assert office.types() == ["subscribed", "unsubscribed"]


def test_a_tenant_can_have_only_so_many_subscriptions(
    office: Office, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(following, "SUBSCRIPTIONS", 2)
    office.subscribe("one")
    office.subscribe("two")

    assert refused(office.subscribe("three")) == "LIMIT_EXCEEDED"
    assert office.subscribe("three", tenant="acme").position == 0
    office.unsubscribe("one")
    assert office.subscribe("three").position == 0


def test_a_subscriber_that_is_not_heard_of_for_a_week_loses_its_place(office: Office) -> None:
    office.subscribe(position=3)
    office.clock.advance(7 * DAY - 1)
    assert office.acknowledge(3).position == 3  # It is there.
    office.clock.advance(7 * DAY - 1)
    office.sweep()
    assert office.subscription() is not None
    office.clock.advance(1)

    assert office.sweep() == 1

    event = office.events(WORKFLOW)[-1]
    assert isinstance(event, SubscriptionClosed)
    assert (event.lost, event.position, event.actor) == (True, 3, "registrar")
    assert refused(office.acknowledge(3)) == "SUBSCRIPTION_NOT_FOUND"


def test_that_a_subscriber_is_there_is_noted_once_a_day(office: Office) -> None:
    office.subscribe()
    for _ in range(3):
        office.clock.advance(DAY / 2)
        office.acknowledge(0)

    assert office.types() == ["subscribed", "acknowledged"]


def test_a_new_era_gives_a_subscription_what_it_had_left(office: Office) -> None:
    office.subscribe()
    office.clock.advance(6 * DAY)
    office.claim()  # The registrar has seen that time.
    office.clock.reboot()
    office.clock.advance(DAY - 1)
    office.acknowledge(0)
    assert "subscription_carried" in office.types()

    office.clock.reboot()
    office.claim("L2", workflow_id="v")  # The era begins.
    office.clock.advance(8 * DAY)
    office.one(Sweep(family=WORKFLOW, key=subscription_key("default", "reader"), request_id="sweep"))

    assert office.subscription() is None
    assert office.types()[-2:] == ["subscription_carried", "unsubscribed"]


def test_a_subscription_of_an_era_that_nobody_remembers_keeps_its_place(
    office: Office, monkeypatch: pytest.MonkeyPatch
) -> None:
    office.subscribe()
    office.clock.reboot()
    office.clock.advance(30 * DAY)
    monkeypatch.setattr("leasehold.kernel.ledger.draft.carry_over", lambda *facts: None)

    assert office.sweep() == 0
    assert office.subscription() is not None


def test_pruning_waits_for_the_slowest_subscriber_and_then_no_longer(office: Office) -> None:
    office.claim(ttl=30 * DAY)
    office.emit(0)
    office.subscribe("slow", position=3)
    office.subscribe("quick", position=3)
    for epoch in range(1, 4):
        office.transition(epoch)
    office.clock.advance(2 * 3600)
    office.acknowledge(office.position(), "quick")
    office.clock.advance(2 * 3600)

    assert prune(office.store, actor="op", keep_ns=REQUEST_MEMORY_NS).through <= 3

    office.clock.advance(7 * DAY)
    office.sweep()
    assert office.subscription("slow") is None
    office.clock.advance(2 * 3600)
    assert prune(office.store, actor="op", keep_ns=REQUEST_MEMORY_NS).through > 3


def test_a_guards_position_never_goes_back(office: Office) -> None:
    office.claim()

    assert office.mark(3, "a").epoch == 3
    assert office.mark(3, "a").epoch == 3
    assert office.mark(3, "b").epoch == 3
    assert refused(office.mark(2, "c")) == "STALE_EPOCH"
    assert office.mark(0, "d", token=2, lease_id="L2").epoch == 0  # Under a later lease.
    assert refused(office.mark(9, "e", token=1)) == "STALE_EPOCH"
    guard = office.guard()
    assert guard is not None
    assert (guard.lease_id, guard.token, guard.epoch, guard.recent) == ("L2", 2, 0, ("d",))
    assert office.mark(5, "", token=2, lease_id="L2").epoch == 5  # The bus has told of it, and no action.
    guard = office.guard()
    assert guard is not None
    assert (guard.epoch, guard.recent) == (5, ("d",))


def test_a_guard_remembers_only_so_many_actions(office: Office) -> None:
    office.claim()
    for number in range(RECENT_ACTIONS + 3):
        office.mark(number, f"a{number}")
    guard = office.guard()

    assert guard is not None
    assert guard.recent == tuple(f"a{number}" for number in range(3, RECENT_ACTIONS + 3))


def test_a_guard_of_a_workflow_that_does_not_exist_has_no_position(office: Office) -> None:
    assert refused(office.mark(0)) == "WORKFLOW_NOT_FOUND"
