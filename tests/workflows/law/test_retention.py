"""What pruning drops of workflows, and what it keeps."""

from typing import Any

from leasehold.engine.pruning import prune
from leasehold.kernel.ledger.commands import REQUEST_MEMORY_NS
from tests.workflows.law.conftest import Office

HOUR = 3600


def pruned(office: Office) -> Any:
    office.clock.advance(2 * HOUR)
    return prune(office.store, actor="op", keep_ns=REQUEST_MEMORY_NS)


def test_an_ended_workflow_goes_with_its_actions_and_the_positions_of_its_guards(office: Office) -> None:
    office.claim()
    office.emit(0)
    office.mark(0)
    office.finish(1)

    pruned(office)

    assert (office.workflow(), office.action(), office.guard()) == (None, None, None)
    office.claim("L2", "bob")
    record = office.workflow()
    assert record is not None
    assert record.epoch == 0  # Another workflow, under an id that was free again.


def test_a_workflow_that_has_not_ended_keeps_its_epoch_for_ever(office: Office) -> None:
    office.claim()
    office.emit(0)
    office.mark(0)

    pruned(office)
    record = office.workflow()

    assert record is not None
    assert record.epoch == 1
    assert office.guard() is not None
    assert office.action() is None
    office.claim("L2", "bob")
    record = office.workflow()
    assert record is not None
    assert record.epoch == 2


def test_a_workflow_that_ended_a_moment_ago_stays(office: Office) -> None:
    office.claim("L0", workflow_id="old")
    office.clock.advance(2 * HOUR)
    office.claim()
    office.emit(0)
    office.finish(1)

    prune(office.store, actor="op", keep_ns=REQUEST_MEMORY_NS)

    assert office.workflow() is not None
    assert office.action() is not None


def test_an_answer_between_what_a_checkpoint_covers_and_the_checkpoint_verifies(office: Office) -> None:
    office.claim(ttl=10 * HOUR)
    office.emit(0)
    office.clock.advance(2 * HOUR)
    office.answer(1)  # Not old enough to be pruned, and the action is.

    prune(office.store, actor="op", keep_ns=REQUEST_MEMORY_NS)

    assert office.action() is None
    assert office.types()[-1] == "answered"
