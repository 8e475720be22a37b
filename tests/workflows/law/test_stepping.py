"""What an orchestrator does: each step at its epoch, under its lease, once."""

import pytest

from leasehold.engine.pruning import prune
from leasehold.kernel.ledger.commands import REQUEST_MEMORY_NS
from leasehold.workflows.law.events import ActionFacts, WorkflowEmitted
from leasehold.workflows.law.records import WORKFLOW
from tests.workflows.law.conftest import SECOND, Office, refused


def test_the_first_action_has_epoch_0_and_then_the_epoch_is_1(office: Office) -> None:
    office.claim()
    emitted = office.emit(0, action=ActionFacts(action_type="compute", payload={"x": [1]}))

    assert (emitted.epoch, emitted.current_epoch, emitted.lease_id) == (0, 1, "L1")
    assert emitted.action.payload == {"x": [1]}
    (event,) = (one for one in office.events(WORKFLOW) if isinstance(one, WorkflowEmitted))
    assert event.filing == ("default", "L1", "workflow:w", "ann", event.token)


def test_an_emission_whose_reply_was_lost_is_the_same_action(office: Office) -> None:
    office.claim()
    first = office.emit(0, "a", request_id="emit")
    again = office.emit(0, "another-id", request_id="emit")

    assert again.repeated
    assert (again.action_id, again.epoch, again.at_ns) == (first.action_id, 0, first.at_ns)
    assert office.types() == ["claimed", "emitted"]


def test_the_same_request_id_with_other_content_is_another_request(office: Office) -> None:
    office.claim()
    office.emit(0, "a", request_id="emit")
    office.emit(1, "b", request_id="emit", action=ActionFacts(action_type="effect"))

    assert office.types() == ["claimed", "emitted", "emitted"]


def test_after_an_hour_a_repeat_is_refused_by_its_action_id(office: Office) -> None:
    office.claim(ttl=2 * 3600)
    office.emit(0, request_id="emit")
    office.clock.advance(REQUEST_MEMORY_NS / SECOND)

    assert refused(office.emit(1, request_id="emit")) == "ACTION_EXISTS"


@pytest.mark.parametrize(("epoch", "code"), [(1, "STALE_EPOCH"), (3, "FUTURE_EPOCH")])
def test_a_step_at_another_epoch_is_refused(office: Office, epoch: int, code: str) -> None:
    office.claim()
    office.emit(0)
    office.transition(1)
    before = office.position()

    for outcome in (
        office.emit(epoch, "b"),
        office.transition(epoch),
        office.answer(epoch),
        office.hand_off(epoch),
        office.finish(epoch),
    ):
        assert refused(outcome) == code
        assert outcome.facts["action_epoch"] == epoch
        assert outcome.facts["current_epoch"] == 2
        assert outcome.facts["recommendation"]
    assert office.position() == before


def test_whoever_comes_back_after_its_lease_expired_writes_nothing(office: Office) -> None:
    office.claim()
    office.clock.advance(10)
    before = office.position()

    for outcome in (office.emit(0), office.transition(0), office.hand_off(0), office.finish(0)):
        assert refused(outcome) == "LEASE_EXPIRED"
        assert outcome.lease_id == "L1"
        assert outcome.facts["ttl_seconds"] == 10.0
    assert office.position() == before


def test_whoever_comes_back_after_a_takeover_writes_nothing(office: Office) -> None:
    office.claim()
    office.clock.advance(10)
    office.claim("L2", "bob")
    before = office.position()

    for epoch in (0, 1):
        for outcome in (office.emit(epoch), office.transition(epoch), office.finish(epoch)):
            assert refused(outcome) == "LEASE_VIOLATION"
            assert outcome.facts["expected_lease"] == "L2"
            assert outcome.facts["received_lease"] == "L1"
    assert office.position() == before


def test_a_lease_under_another_name_than_its_holders_is_refused(office: Office) -> None:
    office.claim()

    assert refused(office.emit(0, holder="bob")) == "LEASE_VIOLATION"
    assert refused(office.emit(0, lease_id="unknown")) == "LEASE_NOT_FOUND"


def test_a_lease_of_another_workflow_is_refused(office: Office) -> None:
    office.claim()
    office.claim("L2", "ann", workflow_id="v")
    office.clock.advance(10)
    office.claim("L3", "bob", workflow_id="v")

    assert refused(office.emit(0, lease_id="L3", holder="bob")) == "LEASE_VIOLATION"


def test_a_lease_that_was_never_the_workflows_is_refused(office: Office) -> None:
    office.claim()
    office.clock.advance(10)
    office.sweep()
    office.claim("L3", "bob", workflow_id="v")

    assert refused(office.emit(0, lease_id="L3", holder="bob")) == "LEASE_VIOLATION"


def test_a_workflow_that_does_not_exist_is_not_found(office: Office) -> None:
    office.claim()

    assert refused(office.emit(0, workflow_id="unknown")) == "WORKFLOW_NOT_FOUND"


def test_a_transition_sets_the_state_once(office: Office) -> None:
    office.claim()
    first = office.transition(0, request_id="step")
    again = office.transition(0, request_id="step")

    assert (first.epoch, first.current_epoch, first.state) == (0, 1, "busy")
    assert again.repeated
    assert office.types() == ["claimed", "transitioned"]


@pytest.mark.parametrize(("success", "state"), [(True, "step_completed"), (False, "step_failed")])
def test_a_result_answers_an_action_once(office: Office, success: bool, state: str) -> None:
    office.claim()
    office.emit(0)

    first = office.answer(1, success=success, request_id="result", payload={"n": 1}, error=None)
    again = office.answer(2, success=success, request_id="result", payload={"n": 1}, error=None)

    assert (first.state, first.current_epoch) == (state, 2)
    assert again.repeated
    assert refused(office.answer(2, success=success)) == "ACTION_ANSWERED"
    action = office.action()
    assert action is not None
    assert action.succeeded is success


def test_a_result_of_an_action_that_nobody_emitted_is_refused(office: Office) -> None:
    office.claim()

    assert refused(office.answer(0, "unknown")) == "ACTION_NOT_FOUND"
    assert office.types() == ["claimed"]


@pytest.mark.parametrize(("outcome", "how"), [("completed", "completed"), ("cancelled", "aborted")])
def test_an_end_is_for_good_and_gives_the_lease_back(office: Office, outcome: str, how: str) -> None:
    office.claim()
    first = office.finish(0, outcome, request_id="end", reason="")
    again = office.finish(0, outcome, request_id="end", reason="")
    with office.store.snapshot() as snapshot:
        lease = snapshot.lease("L1")

    assert (first.state, first.current_epoch) == (outcome, 1)
    assert again.repeated
    assert lease is not None
    assert lease.release_reason == how
    for refusal in (office.emit(1), office.finish(1), office.claim("L2", "bob")):
        assert refused(refusal) == "WORKFLOW_ENDED"
    assert office.types() == ["claimed", "finished"]


def test_a_repeat_still_finds_what_happened_when_the_workflow_was_pruned(office: Office) -> None:
    # A wall clock that is set forward lets a workflow be pruned while its last request is still remembered.
    office.claim(ttl=3 * 3600)
    office.clock.advance(2 * 3600)
    office.finish(0, request_id="end")
    office.clock.jump_wall(24 * 3600)
    prune(office.store, actor="op", keep_ns=REQUEST_MEMORY_NS)
    assert office.workflow() is None

    again = office.finish(0, request_id="end")

    assert again.repeated
    assert (again.epoch, again.current_epoch, again.state) == (0, 1, "")
