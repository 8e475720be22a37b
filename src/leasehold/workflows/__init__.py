"""Workflow leases: one orchestrator per workflow, and proof of it in every action.

`leases.workflows.claim(…)` makes an orchestrator; a `Guard` lets only its actions through. ``models`` are
the values that travel, ``errors`` what goes wrong, ``messages`` how the ledger reads on the bus,
``guarding`` what a guard decides, ``questions`` what can be asked, ``commands`` the command line; ``law``
decides, ``aio`` and ``blocking`` are what programs call.
"""

from typing import TYPE_CHECKING, Any

from leasehold.workflows.errors import (
    ActionAnswered,
    ActionExists,
    ActionNotFound,
    ActionTimeout,
    FutureEpoch,
    LeaseViolation,
    StaleEpoch,
    SubscriptionExists,
    SubscriptionNotFound,
    WorkflowEnded,
    WorkflowError,
    WorkflowLeaseExpired,
    WorkflowLeaseNotFound,
    WorkflowNotFound,
)

if TYPE_CHECKING:
    from leasehold.workflows.aio.bus import AsyncBus, AsyncSubscription
    from leasehold.workflows.aio.guard import AsyncGuard
    from leasehold.workflows.aio.local_bus import AsyncLocalBus
    from leasehold.workflows.aio.manager import AsyncLeaseManager
    from leasehold.workflows.aio.orchestrator import AsyncOrchestrator
    from leasehold.workflows.aio.workflows import AsyncWorkflows
    from leasehold.workflows.blocking.bus import Bus, Subscription
    from leasehold.workflows.blocking.guard import Guard
    from leasehold.workflows.blocking.local_bus import LocalBus
    from leasehold.workflows.blocking.manager import LeaseManager
    from leasehold.workflows.blocking.orchestrator import Handoff, Orchestrator
    from leasehold.workflows.blocking.workflows import Workflows
    from leasehold.workflows.law.records import Workflow
    from leasehold.workflows.models import (
        Action,
        ActionType,
        Delivery,
        Event,
        EventType,
        LeaseMetadata,
        Result,
    )
    from leasehold.workflows.questions import WorkflowStatus

# Loaded when they are first asked for: the law is needed wherever a store is opened, and these are not.
_LATER = {
    "Action": "models",
    "ActionType": "models",
    "AsyncBus": "aio.bus",
    "AsyncGuard": "aio.guard",
    "AsyncLeaseManager": "aio.manager",
    "AsyncLocalBus": "aio.local_bus",
    "AsyncOrchestrator": "aio.orchestrator",
    "AsyncSubscription": "aio.bus",
    "AsyncWorkflows": "aio.workflows",
    "Bus": "blocking.bus",
    "Delivery": "models",
    "Event": "models",
    "EventType": "models",
    "Guard": "blocking.guard",
    "Handoff": "blocking.orchestrator",
    "LeaseManager": "blocking.manager",
    "LeaseMetadata": "models",
    "LocalBus": "blocking.local_bus",
    "Orchestrator": "blocking.orchestrator",
    "Result": "models",
    "Subscription": "blocking.bus",
    "Workflow": "law.records",
    "WorkflowStatus": "questions",
    "Workflows": "blocking.workflows",
}

__all__ = [
    "Action",
    "ActionAnswered",
    "ActionExists",
    "ActionNotFound",
    "ActionTimeout",
    "ActionType",
    "AsyncBus",
    "AsyncGuard",
    "AsyncLeaseManager",
    "AsyncLocalBus",
    "AsyncOrchestrator",
    "AsyncSubscription",
    "AsyncWorkflows",
    "Bus",
    "Delivery",
    "Event",
    "EventType",
    "FutureEpoch",
    "Guard",
    "Handoff",
    "LeaseManager",
    "LeaseMetadata",
    "LeaseViolation",
    "LocalBus",
    "Orchestrator",
    "Result",
    "StaleEpoch",
    "Subscription",
    "SubscriptionExists",
    "SubscriptionNotFound",
    "Workflow",
    "WorkflowEnded",
    "WorkflowError",
    "WorkflowLeaseExpired",
    "WorkflowLeaseNotFound",
    "WorkflowNotFound",
    "WorkflowStatus",
    "Workflows",
]


def __getattr__(name: str) -> Any:
    if name not in _LATER:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(f"{__name__}.{_LATER[name]}"), name)
