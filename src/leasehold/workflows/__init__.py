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
_MODULES = {
    "aio.bus": ("AsyncBus", "AsyncSubscription"),
    "aio.guard": ("AsyncGuard",),
    "aio.local_bus": ("AsyncLocalBus",),
    "aio.manager": ("AsyncLeaseManager",),
    "aio.orchestrator": ("AsyncOrchestrator",),
    "aio.workflows": ("AsyncWorkflows",),
    "blocking.bus": ("Bus", "Subscription"),
    "blocking.guard": ("Guard",),
    "blocking.local_bus": ("LocalBus",),
    "blocking.manager": ("LeaseManager",),
    "blocking.orchestrator": ("Handoff", "Orchestrator"),
    "blocking.workflows": ("Workflows",),
    "law.records": ("Workflow",),
    "models": ("Action", "ActionType", "Delivery", "Event", "EventType", "LeaseMetadata", "Result"),
    "questions": ("WorkflowStatus",),
}
_HOMES = {name: module for module, names in _MODULES.items() for name in names}

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
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
