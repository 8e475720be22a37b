"""The events page: everything that a ledger can say."""

from typing import get_args

from leasehold.access.law.events import EVENTS as ACCESS_EVENTS
from leasehold.kernel.lease.events import (
    LeaseEvent,
)
from leasehold.kernel.ledger.events import OwnEvent
from leasehold.workflows.law.events import EVENTS as WORKFLOW_EVENTS
from tools.reference.source import Field, class_node, docstring, fields, public_classes
from tools.reference.writing import field_table, page

_INTRODUCTION = """\
Every change is an event, written once and never changed. Its `body` in the table `events` is the JSON below;
fields with their default are left out of it. The hash of an entry covers the bytes of its body, its position
and the hash before it: see [the ledger](../concepts/ledger.md). Fields may be added by later releases, with a
default; none is ever removed or read in another way.

A [`Tick`](../concepts/time.md) is a reading of the authority's clock: `value` in units of 1/`rate` second
(default: nanoseconds), and the `era` of the clock it belongs to (default: 1)."""


def events_page() -> str:
    """Return the page."""
    lease_events, store_events = get_args(LeaseEvent), get_args(OwnEvent)
    common = _common((*lease_events, *WORKFLOW_EVENTS, *ACCESS_EVENTS, *store_events))
    parts = [
        "## Every event has",
        field_table(common),
        "## About leases",
        *(_section(kind, common) for kind in lease_events),
        "## About workflows",
        *(_section(kind, common) for kind in WORKFLOW_EVENTS),
        "## About access keys",
        *(_section(kind, common) for kind in ACCESS_EVENTS),
        "## About the store",
        *(_section(kind, common) for kind in store_events),
    ]
    return page("Events", _INTRODUCTION, *parts)


def _all_fields(kind: type) -> list[Field]:
    return [field for one in reversed(list(public_classes(kind))) for field in fields(one)]


def _common(kinds: tuple[type, ...]) -> list[Field]:
    """Return the fields that every event has, in the order in which they stand."""
    shared = set.intersection(*({field.name for field in _all_fields(kind)} for kind in kinds))
    return [field for field in _all_fields(kinds[0]) if field.name in shared]


def _section(kind: type, common: list[Field]) -> str:
    known = {field.name for field in common}
    own = [
        field
        for field in _all_fields(kind)
        if field.name not in known and not field.annotation.startswith("ClassVar")
    ]
    return f"### {kind.__struct_config__.tag}\n\n{docstring(class_node(kind))}\n\n{field_table(own)}"  # type: ignore[attr-defined]
