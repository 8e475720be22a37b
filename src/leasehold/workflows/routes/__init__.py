"""Plain REST for workflows: `/v1/workflows…`.

A workflow's id can be any text, so it travels in the query or the body. Whoever acts for a workflow shows
its lease and its epoch with every step, and learns the next epoch from the answer. Nobody renews the lease
but its orchestrator.

- ``leading``    claim, accept, renew, release, revoke
- ``stepping``   emit, transition, result, hand off, complete, cancel
- ``looking``    how workflows stand, and what happened in them
- ``following``  subscriptions: open, read, acknowledge, close
- ``bodies``     what is taken and given
"""

from litestar import Router

from leasehold.workflows.routes import following, leading, looking, stepping

router = Router(
    path="/v1/workflows",
    route_handlers=[*leading.HANDLERS, *stepping.HANDLERS, *looking.HANDLERS, *following.HANDLERS],
    tags=["workflows"],
)
