"""One of everything that can be asked: every command, question and job, put together from a pool of names.

What is put into a field is found by the field's name, so a new kind of request is asked here as soon as it is
registered, and a new field that nobody has thought of stops the tests.
"""

from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Any

import msgspec

from leasehold.access.law.model import Role, mark_of
from leasehold.engine.jobs import CARRIERS as ENGINE_CARRIERS
from leasehold.engine.jobs import Job
from leasehold.engine.port import EntryQuery, LeaseQuery
from leasehold.engine.questions import FollowLedger, ListLeases, Question, ReadLedger
from leasehold.engine.replies import _REPLIES as ENGINE_REPLIES
from leasehold.guards.law import Passed
from leasehold.kernel.lease.budget import Amounts, Budget
from leasehold.kernel.lease.model import Mode
from leasehold.kernel.ledger.commands import Command, Sweep, SweepDue
from leasehold.registry import CARRIERS, FAMILIES, REPLIES
from leasehold.workflows.law.events import ActionFacts

COMMANDS: tuple[type[Command], ...] = (*FAMILIES.of_command, Sweep, SweepDue)
QUESTIONS: tuple[type[Question[Any]], ...] = (*ENGINE_REPLIES, *REPLIES)
JOBS: tuple[type[Job], ...] = (*ENGINE_CARRIERS, *CARRIERS)

FOREIGN = ("lease_id", "parent_id", "resource", "holder", "domain", "workflow_id", "name", "token", "key_id")
"""Fields that name something which somebody has."""


def pool(owner: str) -> dict[str, Any]:
    """What goes into the fields of a request about what an owner has."""
    return {
        "tenant": owner,
        "request_id": f"{owner}-request",
        "lease_id": f"{owner}-lease",
        "parent_id": f"{owner}-lease",
        "lease_ids": (f"{owner}-lease", f"{owner}-waiting"),
        "resource": f"{owner}-door",
        "holder": f"{owner}-ann",
        "operator": f"{owner}-ann",
        "actor": f"{owner}-ann",
        "child_holder": f"{owner}-cy",
        "to": f"{owner}-bob",
        "domain": f"{owner}-orders",
        "workflow_id": f"{owner}-flow",
        "name": f"{owner}-reader",
        "guard": f"{owner}-reader",
        "action_id": f"{owner}-action",
        "token": f"{owner}-token",
        "key_id": key_id_of(owner),
    }


def key_id_of(owner: str) -> str:
    """The id of the access key that an owner has in every world."""
    return mark_of(owner) + "00"


PLAIN: Mapping[str, Any] = MappingProxyType(
    {
        "ttl_ns": 60 * 10**9,
        "keep_ns": 86_400 * 10**9,
        "mode": Mode.EXCLUSIVE,
        "reason": "because",
        "amounts": Amounts(tokens=1),
        "budget": Budget(tokens=1),
        "key": "max_renewals",
        "value": 3,
        "family": "lease",
        "limit": 10,
        "offset": 7,
        "offsets": (8, 9),
        "epoch": 1,
        "action": ActionFacts(action_type="ship"),
        "state": "RUNNING",
        "success": True,
        "outcome": "completed",
        "position": 0,
        "file": "/nowhere/at/all",
        "digest": "0" * 64,
        "role": Role.VIEWER,
        "also": (),
        "passed": (Passed(resource="path:/src/app.py", held_by="somebody"),),
    }
)
_NEW = {"new_lease_id": "a-new-lease"}
"""Proposed for what there is not yet."""

_PROPOSES = {"acquire": "lease_id", "derive": "lease_id", "claim_workflow": "lease_id"}
"""Requests in which the lease id is one that they propose."""
_NUMBERS = {"mark_workflow_guard": {"token": 1}}
_ASKED: dict[str, set[str]] = {"derive": {"budget"}, "change_setting": {"value", "resource"}}
"""Fields that have a default, and say something here."""


def built(kind: type[Any], names: Mapping[str, Any]) -> Any:
    """A request of a kind, about what these names name."""
    tag = str(kind.__struct_config__.tag)
    values: dict[str, Any] = {**PLAIN, **_NEW, **names, **_NUMBERS.get(tag, {})}
    if tag in _PROPOSES:
        values[_PROPOSES[tag]] = f"new-{tag}"
    if tag == "sweep":
        values["key"] = values["lease_id"]
    if tag == "create_access_key":
        values["key_id"] = mark_of(values["tenant"]) + "11"
    if kind is ListLeases:
        values["query"] = LeaseQuery(resource=values["resource"])
    if kind in (ReadLedger, FollowLedger):
        values["query"] = EntryQuery(resource=values["resource"])
    fields = msgspec.structs.fields(kind)
    lacking = [field.name for field in fields if field.required and field.name not in values]
    assert not lacking, f"{kind.__name__} has fields that nobody knows a value for: {lacking}"
    wanted = {field.name for field in fields if field.required} | set(names) | _ASKED.get(tag, set())
    return kind(**{field.name: values[field.name] for field in fields if field.name in wanted})


def mixtures(own: Mapping[str, Any], theirs: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Names of one's own with one name of somebody else among them, each in turn; and all of them theirs."""
    for field in FOREIGN:
        yield {**own, field: theirs[field]}
    yield {**own, "lease_ids": (*own["lease_ids"], *theirs["lease_ids"])}
    yield {**theirs, "tenant": own["tenant"]}
