"""Who becomes the orchestrator of a workflow, and who stops being it."""

import pytest

from leasehold.kernel.lease.commands import Acquire, Release, Revoke
from leasehold.kernel.ledger.commands import Sweep
from leasehold.workflows.law.claiming import queueing
from leasehold.workflows.law.commands import Claim, HandedOff
from leasehold.workflows.law.events import WorkflowVacated
from leasehold.workflows.law.records import WORKFLOW
from tests.workflows.law.conftest import SECOND, Office, refused


def test_the_first_claim_begins_a_workflow_at_epoch_0(office: Office) -> None:
    granted = office.claim()
    record = office.workflow()

    assert record is not None
    assert (record.epoch, record.state, record.lease_id, record.holder) == (0, "initialized", "L1", "ann")
    assert record.token == granted.lease.token
    assert granted.lease.resource == "workflow:w"
    assert granted.expires_in_ns == 10 * SECOND


def test_a_claim_that_is_sent_again_is_the_same_claim(office: Office) -> None:
    first, again = office.claim(), office.claim()

    assert not first.repeated
    assert again.repeated
    assert again.lease == first.lease
    assert office.types() == ["claimed"]


def test_a_claim_that_is_sent_again_after_its_lease_has_ended_says_so(office: Office) -> None:
    office.claim()
    office.clock.advance(10)

    late = office.claim()

    assert late.repeated
    assert late.ended


def test_nobody_else_can_claim_while_the_lease_stands(office: Office) -> None:
    office.claim()

    assert refused(office.claim("L2", "bob")) == "HELD"
    assert refused(office.claim("L3", "ann")) == "ALREADY_HELD"
    assert office.types() == ["claimed"]


def test_a_takeover_after_expiry_raises_the_epoch_by_one(office: Office) -> None:
    first = office.claim()
    office.emit(0)
    office.clock.advance(10)

    second = office.claim("L2", "bob")
    record = office.workflow()

    assert record is not None
    assert (record.epoch, record.holder, record.state) == (2, "bob", "initialized")
    assert second.lease.token > first.lease.token
    assert office.types() == ["claimed", "emitted", "vacated", "taken_over"]


def test_the_same_workflow_id_of_another_tenant_is_another_workflow(office: Office) -> None:
    office.claim()
    office.emit(0)

    office.claim("L2", "bob", tenant="acme")
    other = office.workflow(tenant="acme")

    assert other is not None
    assert (other.epoch, other.holder) == (0, "bob")
    assert refused(office.emit(0, tenant="acme")) == "LEASE_NOT_FOUND"


def test_a_lease_that_was_waited_for_is_bound_by_the_claim(office: Office) -> None:
    lease = Acquire(lease_id="L1", request_id="L1", resource="workflow:w", holder="ann", ttl_ns=10 * SECOND)
    office.one(lease)

    assert not office.claim().repeated
    assert office.types() == ["claimed"]


@pytest.mark.parametrize(
    "other",
    [{"resource": "workflow:v"}, {"holder": "bob"}, {"tenant": "acme"}, {"mode": "shared"}],
)
def test_a_lease_that_is_not_the_claimants_cannot_be_bound(office: Office, other: dict[str, str]) -> None:
    fields = {"resource": "workflow:w", "holder": "ann"} | other
    office.one(Acquire(lease_id="L1", request_id="L1", ttl_ns=10 * SECOND, **fields))  # type: ignore[arg-type]

    assert refused(office.claim()) == "LEASE_EXISTS"
    assert office.types() == []


def test_who_waits_for_a_workflow_claims_it_once_its_lease_was_granted(office: Office) -> None:
    office.claim()
    claim = Claim(lease_id="L2", request_id="L2", workflow_id="w", holder="bob", ttl_ns=10 * SECOND)
    office.one(queueing(claim, priority=5))
    office.one(Release(lease_ids=("L1",), holder="ann", request_id="end"))

    office.one(queueing(claim, priority=5))

    assert office.one(claim).lease.holder == "bob"
    assert office.types() == ["claimed", "vacated", "taken_over"]


def test_a_lease_that_still_waits_cannot_be_bound(office: Office) -> None:
    office.claim()
    waiting = Acquire(
        lease_id="L2", request_id="L2", resource="workflow:w", holder="bob", ttl_ns=SECOND, wait=True
    )
    office.one(waiting)

    assert refused(office.claim("L2", "bob")) == "LEASE_PENDING"


@pytest.mark.parametrize(
    ("end", "cause", "reason"),
    [
        (Release(lease_ids=("L1",), holder="ann", request_id="end"), "released", ""),
        (Revoke(lease_id="L1", operator="op", reason="hangs", request_id="end"), "revoked", "hangs"),
    ],
)
def test_whoever_ends_the_lease_leaves_the_workflow_to_the_next_claim(
    office: Office, end: Release | Revoke, cause: str, reason: str
) -> None:
    office.claim()
    office.one(end)
    event = office.events(WORKFLOW)[-1]

    assert isinstance(event, WorkflowVacated)
    assert (event.cause, event.reason, event.epoch) == (cause, reason, 0)
    assert refused(office.emit(0)) == "LEASE_VIOLATION"
    office.claim("L2", "bob")
    record = office.workflow()
    assert record is not None
    assert record.epoch == 1


def test_an_expired_lease_is_noticed_by_a_sweep(office: Office) -> None:
    office.claim()
    office.clock.advance(10)
    office.one(Sweep(family="lease", key="L1", request_id="sweep"))

    assert office.types() == ["claimed", "vacated"]
    assert refused(office.emit(0)) == "LEASE_EXPIRED"


def test_the_end_of_any_other_lease_means_nothing_to_workflows(office: Office) -> None:
    office.claim()
    for resource in ("door", "workflow:", "workflow:v"):
        lease = Acquire(
            lease_id=resource, request_id=resource, resource=resource, holder="ann", ttl_ns=SECOND
        )
        office.one(lease)
        office.one(Release(lease_ids=(resource,), holder="ann", request_id=f"end {resource}"))

    assert office.types() == ["claimed"]


def test_a_reboot_ends_the_lease_and_not_the_workflow(office: Office) -> None:
    office.claim()
    office.emit(0)
    office.clock.reboot()

    office.claim("L2", "bob")
    record = office.workflow()

    assert record is not None
    assert record.epoch == 2
    assert [event.reason for event in office.events(WORKFLOW) if isinstance(event, WorkflowVacated)] == [
        "reboot"
    ]


def test_a_handoff_is_one_commit_and_the_successor_starts_one_above(office: Office) -> None:
    first = office.claim()
    office.emit(0)
    before = office.position()

    handed = office.hand_off(1)
    record = office.workflow()

    assert isinstance(handed, HandedOff)
    assert (handed.epoch, handed.lease.lease_id, handed.lease.holder) == (1, "L2", "bob")
    assert handed.lease.token > first.lease.token
    assert record is not None
    assert (record.epoch, record.lease_id, record.token) == (2, "L2", handed.lease.token)
    assert office.position() == before + 3  # The old lease's end, the new lease, the transfer action.
    assert refused(office.emit(2)) == "LEASE_VIOLATION"
    assert office.types() == ["claimed", "emitted", "handed_off"]


def test_a_handoff_whose_reply_was_lost_happens_once(office: Office) -> None:
    office.claim()
    first = office.hand_off(0, request_id="hand")
    again = office.hand_off(1, request_id="hand", new_lease_id="L3")

    assert again.repeated
    assert again.lease == first.lease
    assert office.types() == ["claimed", "handed_off"]


def test_a_handoff_that_the_lease_family_refuses_changes_nothing(office: Office) -> None:
    office.claim()
    before = office.position()

    assert refused(office.hand_off(0, new_lease_id="L1")) == "LEASE_EXISTS"
    assert refused(office.hand_off(0, to="registrar")) == "INVALID_INPUT"
    assert refused(office.hand_off(1)) == "FUTURE_EPOCH"
    assert office.position() == before


def test_a_handed_off_lease_is_taken_once(office: Office) -> None:
    office.claim()
    office.hand_off(0)

    taken, again = office.accept(), office.accept()

    assert taken.lease.lease_id == "L2"
    assert again.repeated
    assert refused(office.accept(request_id="another")) == "LEASE_VIOLATION"
    assert office.emit(1, lease_id="L2", holder="bob").epoch == 1
    assert office.types() == ["claimed", "handed_off", "accepted", "emitted"]


def test_only_a_handed_off_lease_can_be_taken_and_only_by_its_holder(office: Office) -> None:
    office.claim()
    assert refused(office.accept("L1", "ann")) == "LEASE_VIOLATION"
    office.hand_off(0)

    assert refused(office.accept(holder="cy")) == "LEASE_VIOLATION"
    assert refused(office.accept("unknown")) == "LEASE_NOT_FOUND"
    assert refused(office.accept(tenant="acme")) == "LEASE_NOT_FOUND"


def test_a_lease_of_no_workflow_cannot_be_taken(office: Office) -> None:
    for resource in ("door", "workflow:never-claimed"):
        office.one(
            Acquire(lease_id=resource, request_id=resource, resource=resource, holder="bob", ttl_ns=SECOND)
        )
        assert refused(office.accept(resource)) == "LEASE_NOT_FOUND"


def test_a_handed_off_lease_that_nobody_took_expires(office: Office) -> None:
    office.claim()
    office.hand_off(0)
    office.clock.advance(10)

    assert refused(office.accept()) == "LEASE_EXPIRED"
    office.claim("L3", "cy")
    record = office.workflow()
    assert record is not None
    assert (record.epoch, record.handed_off) == (2, False)


def test_a_workflow_can_be_handed_on_and_on(office: Office) -> None:
    office.claim()
    office.hand_off(0)
    office.accept()
    office.hand_off(1, "cy", "L3", lease_id="L2", holder="bob", action_id="second")

    assert office.accept("L3", "cy", request_id="accept-2").lease.holder == "cy"
