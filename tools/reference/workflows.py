"""The page about workflow leases: every public name of `leasehold.workflows`."""

from leasehold import workflows
from leasehold.workflows.errors import WorkflowError
from tools.reference.api import class_entry
from tools.reference.errors import HEADINGS, error_row
from tools.reference.writing import name, page, table

_SECTIONS = {
    "Leading a workflow": ("Workflows", "Orchestrator", "Handoff"),
    "Guards": ("Guard",),
    "The bus": ("Bus", "Subscription", "LocalBus", "Delivery"),
    "For operators": ("LeaseManager",),
    "What travels": ("Action", "ActionType", "Event", "EventType", "Result", "LeaseMetadata"),
    "What is answered": ("WorkflowStatus", "Workflow"),
}
_PLUMBING = frozenset(
    {
        "believe",
        "confirm",
        "facts",
        "follow",
        "forget",
        "growth",
        "keep_again",
        "known",
        "look",
        "lose",
        "mark_guard",
        "new_lease_id",
        "new_request_id",
        "note",
        "positions",
        "published",
        "restore",
        "send",
    }
)
"""Public between the modules of the face, and no part of its interface."""

_INTRODUCTION = """\
Everything below can be imported from `leasehold.workflows`; `leases.workflows` of a client is a
[Workflows](#workflows). Each class that waits has a twin for asyncio, with `Async` before its name and the
same methods, arguments, results and exceptions: `AsyncGuard`, `AsyncOrchestrator` and so on. How they are
used: [lead a workflow](../how-to/lead-a-workflow.md)."""


def workflows_page() -> str:
    """Return the page; raise if a public name has no place on it."""
    errors = {one for one in workflows.__all__ if _is_error(one)}
    twins = {one for one in workflows.__all__ if one.startswith("Async")}
    placed = {one for section in _SECTIONS.values() for one in section}
    if placed | errors | twins != set(workflows.__all__):
        difference = (placed | errors | twins) ^ set(workflows.__all__)
        raise SystemExit(f"give these a section in tools/reference/workflows.py: {sorted(difference)}")
    parts = [_INTRODUCTION]
    for title, names in _SECTIONS.items():
        parts.append(f"## {title}")
        parts += [class_entry(one, getattr(workflows, one), _PLUMBING) for one in names]
    kinds = [getattr(workflows, one) for one in workflows.__all__ if one in errors]
    told = ", ".join(name(one) for one in ("error_code", "message", "context", "correlation_id"))
    parts += ["## Exceptions", f"Each has {told}.", table(HEADINGS, [error_row(kind) for kind in kinds])]
    return page("Workflow leases", *parts)


def _is_error(one: str) -> bool:
    thing = getattr(workflows, one)
    return isinstance(thing, type) and issubclass(thing, WorkflowError)
