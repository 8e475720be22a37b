"""How workflows stand, and what happened in them, over plain REST."""

from typing import Annotated

from litestar.params import FromQuery, QueryParameter

from leasehold.client.aio.session import AsyncSession
from leasehold.client.inputs import name, sought
from leasehold.engine.port import EntryQuery
from leasehold.engine.questions import ReadLedger
from leasehold.kernel.ledger.limits import NUMBER_MAXIMUM
from leasehold.server.routing import Asking, Limit, get
from leasehold.workflows.errors import WorkflowNotFound
from leasehold.workflows.law.records import resource_of
from leasehold.workflows.messages import PUBLISHED_TYPES, delivery_of
from leasehold.workflows.questions import FindWorkflow, ListWorkflows, WorkflowStatus
from leasehold.workflows.routes.bodies import (
    MESSAGE_EXAMPLE,
    WORKFLOW_EXAMPLE,
    MessagesBody,
    WorkflowBody,
    WorkflowsBody,
    messages_body,
    workflow_body,
)


async def existing(session: AsyncSession, workflow_id: str) -> WorkflowStatus:
    """Return how a workflow stands; raise WorkflowNotFound if there is none."""
    question = FindWorkflow(tenant=session.tenant, workflow_id=name("workflow_id", workflow_id))
    known = await session.ask(question)
    if known.status is None:
        raise WorkflowNotFound(f"workflow {workflow_id} does not exist", workflow_id=workflow_id)
    return known.status


@get("/", "List workflows", answer={"workflows": [WORKFLOW_EXAMPLE], "next": None})
async def list_workflows(
    session: Asking,
    after: Annotated[str, QueryParameter(description="`next` of the page before.")] = "",
    limit: Limit = 100,
) -> WorkflowsBody:
    """Return a page of workflows, in the order of their ids."""
    question = ListWorkflows(tenant=session.tenant, after=sought("after", after), limit=limit)
    found = await session.ask(question)
    return WorkflowsBody(
        workflows=[workflow_body(one) for one in found],
        next=found[-1].workflow.workflow_id if len(found) == limit else None,
    )


@get("/state", "Look at a workflow", 404, answer=WORKFLOW_EXAMPLE)
async def get_state(session: Asking, workflow_id: FromQuery[str]) -> WorkflowBody:
    """Return a workflow: its epoch, its state, and who leads it."""
    return workflow_body(await existing(session, workflow_id))


@get(
    "/actions", "Read what happened in a workflow", 404, answer={"messages": [MESSAGE_EXAMPLE], "next": None}
)
async def list_actions(
    session: Asking,
    workflow_id: FromQuery[str],
    after: Annotated[int, QueryParameter(ge=0, le=NUMBER_MAXIMUM, description="Continue after this.")] = 0,
    limit: Limit = 100,
) -> MessagesBody:
    """Return a page of what happened in a workflow, oldest first, as the bus tells it."""
    await existing(session, workflow_id)
    query = EntryQuery(
        tenant=session.tenant,
        resource=resource_of(workflow_id),
        types=PUBLISHED_TYPES,
        after=after,
        limit=limit,
    )
    entries = await session.ask(ReadLedger(tenant=session.tenant, query=query))
    return messages_body([delivery_of(entry) for entry in entries], limit)


HANDLERS = (list_workflows, get_state, list_actions)
