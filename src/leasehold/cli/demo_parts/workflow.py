"""The chapter about workflows: one orchestrator at a time, and what becomes of the one before."""

from leasehold.cli.demo_parts.narration import Story
from leasehold.client.blocking.client import Client
from leasehold.client.connect import connect
from leasehold.workflows.blocking.guard import Guard
from leasehold.workflows.blocking.orchestrator import Orchestrator
from leasehold.workflows.errors import WorkflowError
from leasehold.workflows.models import Action

_ORDER = "order-7"


def lead_a_workflow(story: Story, url: str, number: int) -> None:
    """Let a workflow be led, handed off and led on, and let who led it first come back."""
    story.heading(f"{number}. A workflow has one orchestrator, and guards know which")
    with connect(url, holder="ada") as ada, connect(url, holder="ben") as ben:
        _lead(story, ada, ben)


def _lead(story: Story, ada: Client, ben: Client) -> None:
    subscription = ada.workflows.bus.subscribe("warehouse")
    guard, packed = Guard(_ORDER, policy="strict"), list[int]()
    first = ada.workflows.claim(_ORDER)
    first.emit("pack", {"item": "tea"})
    handed = first.handoff("ben")
    second = ben.workflows.claim_lease(handed.new_lease_id)
    second.emit("send", {"item": "tea"})
    for delivery in subscription.poll():
        guard.process(delivery, lambda action: packed.append(action.epoch))
        subscription.ack(delivery)
    story.say("ada leads an order, hands it off, and ben goes on. The warehouse hears of it all on the bus.")
    story.claim(f"each action came once and in order: epochs {packed}", packed == [0, 2])
    refused = [_refusal_of_emission(first), _refusal_of_guard(guard, first)]
    story.claim(
        f"ada comes back, and nobody takes her action: {refused[0]}", refused == ["LEASE_VIOLATION"] * 2
    )
    second.complete()
    status = ben.workflows.find(_ORDER)
    done = status is not None and (status.workflow.state, status.workflow.epoch) == ("completed", 4)
    story.claim("the order is completed, at epoch 4", done)


def _refusal_of_emission(orchestrator: Orchestrator) -> str:
    try:
        orchestrator.emit("pack", {"item": "tea, again"})
    except WorkflowError as error:
        return error.error_code
    return "nobody refused"


def _refusal_of_guard(guard: Guard, orchestrator: Orchestrator) -> str:
    try:
        guard.check(Action(action_type="pack", lease_id=orchestrator.lease_id, epoch=3))
    except WorkflowError as error:
        return error.error_code
    return "nobody refused"
