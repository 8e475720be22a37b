"""The page of a face: its methods, what it answers and raises, its events and its limits."""

from collections.abc import Mapping, Sequence

from leasehold.errors import LeaseholdError
from leasehold.kernel.ledger.events import OwnEvent
from leasehold.work.blocking.face import Work
from leasehold.work.consuming import Backoff, Message, Progress
from leasehold.work.errors import (
    BacklogOrderingException,
    LeaseNotFoundException,
    TokenMismatchException,
    WorkBelowStart,
)
from leasehold.work.law import commands
from leasehold.work.law.answers import (
    Acquired,
    AcquireOutcome,
    Failed,
    FailOutcome,
    Kept,
    Succeeded,
    SucceedOutcome,
)
from leasehold.work.law.events import WORK_EVENTS
from leasehold.work.law.model import OFFSET_MAXIMUM
from leasehold.work.questions import DomainState, FailedOffset, WorkState
from tools.reference.api import class_entry
from tools.reference.errors import HEADINGS, error_row
from tools.reference.events import _common as common_fields
from tools.reference.events import _section as event_section
from tools.reference.writing import name, page, table

_WORK_INTRODUCTION = """\
`leases.work` is a `Work`; that of an asynchronous client has the same methods, which are awaited. How it is
used: [process messages in order](../how-to/process-messages-in-order.md). What is answered and raised can be
imported from `leasehold.work`, and what a consumer needs from `leasehold.work.consuming`."""

_WORK_LIMITS = {
    "DOMAIN_BYTES": "bytes in the name of a domain",
    "ENQUEUE_OFFSETS": "offsets in one `enqueue`",
    "BACKLOG_MAXIMUM": "offsets in the backlog of one domain",
    "RETRIES_MAXIMUM": "`max_retries`",
}


def work_page() -> str:
    """Return the page of work leases."""
    limits = {text: getattr(commands, constant) for constant, text in _WORK_LIMITS.items()}
    return _face_page(
        "Work leases",
        _WORK_INTRODUCTION,
        faces=(Work,),
        answers=(
            *(Acquired, AcquireOutcome, Succeeded, SucceedOutcome, Failed, FailOutcome, Kept),
            *(DomainState, WorkState, FailedOffset, Message, Backoff, Progress),
        ),
        errors=(BacklogOrderingException, TokenMismatchException, LeaseNotFoundException, WorkBelowStart),
        events=WORK_EVENTS,
        limits={**limits, "an offset": OFFSET_MAXIMUM},
    )


def _face_page(
    title: str,
    introduction: str,
    *,
    faces: Sequence[type],
    answers: Sequence[type],
    errors: Sequence[type[LeaseholdError]],
    events: Sequence[type],
    limits: Mapping[str, int],
) -> str:
    common = common_fields((*events, *OwnEvent.__args__))
    return page(
        title,
        introduction,
        "## Methods",
        *(class_entry(kind.__name__, kind) for kind in faces),
        "## What is answered",
        *(class_entry(kind.__name__, kind) for kind in answers),
        "## Errors",
        table(HEADINGS, [error_row(kind) for kind in errors]),
        "## Limits",
        table(["at most", "of what"], [(name(f"{limit:,}"), text) for text, limit in limits.items()]),
        "## Events",
        "Beside the fields that [every event](events.md) has:",
        *(event_section(kind, common) for kind in events),
    )
