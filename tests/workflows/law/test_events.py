"""What the history tells people of workflows."""

from leasehold.kernel.lease.commands import Revoke
from leasehold.workflows.law.records import WORKFLOW
from tests.workflows.law.conftest import Office


def test_every_event_tells_its_story_in_a_few_words(office: Office) -> None:
    office.claim()
    office.emit(0)
    office.answer(1)
    office.emit(2, "b")
    office.answer(3, "b", success=False)
    office.transition(4)
    office.mark(5)
    office.hand_off(5)
    office.accept()
    office.one(Revoke(lease_id="L2", operator="op", reason="hangs", request_id="end"))
    office.claim("L3", "cy")
    office.clock.advance(10)
    office.claim("L4", "cy")
    office.finish(8, lease_id="L4", holder="cy")
    office.subscribe()

    assert [event.story for event in office.events(WORKFLOW)] == [
        "epoch 0",
        "epoch 0: compute",
        "epoch 1: a succeeded",
        "epoch 2: compute",
        "epoch 3: b failed",
        "epoch 4: busy",
        "node at epoch 5",
        "epoch 5: to bob",
        "epoch 6",
        "epoch 6: revoked (hangs)",
        "epoch 6",
        "epoch 7: expired",
        "epoch 7",
        "epoch 8: completed",
        "reader",
    ]
