"""Something of everything that a tenant can have, made over HTTP, and requests that name it."""

import re
from typing import Any, NamedTuple
from uuid import UUID, uuid4

from tests.server.document import Operation
from tests.server.running import Reply, RunningServer

Fields = dict[str, Any]


class Things(NamedTuple):
    """What a tenant has: by tag of the document, what each field of a request says to name it."""

    tenant: str
    by_tag: dict[str, Fields]
    hidden: str
    """A text that is part of all of it, and that no request about it says."""


def things_of(server: RunningServer, tenant: str) -> Things:
    """Make something of everything."""
    mark, hidden = uuid4().hex, f"hidden-{uuid4().hex}"

    def made(path: str, **body: Any) -> Any:
        reply = server.ask("POST", path, body, headers={"Leasehold-Tenant": tenant})
        assert reply.status in (200, 201), (path, reply.body)
        return reply.body

    who, secret = f"who-{mark}", {"secret": hidden}
    resource, domain, workflow, project = (f"{kind}-{mark}" for kind in ("resource", "domain", "flow", "p"))
    lease = made("/v1/leases", resource=resource, holder=who, metadata=secret, ttl=600)["lease"]
    (file,) = made(
        "/v1/files/acquire", project=project, paths=["a.py"], agent=who, reason=hidden, ttl=600, mode="shared"
    )["leases"]
    flight = made("/v1/work/acquire", domain=domain, offset=5, holder=who)
    made("/v1/work/enqueue", domain=domain, offsets=[6], holder=who)
    made("/v1/work/fail", domain=domain, token=flight["token"], holder=who, reason=hidden)
    led = made("/v1/workflows/claim", workflow_id=workflow, holder=who, metadata=secret)
    step = {"workflow_id": workflow, "holder": who, "lease_id": led["lease"]["lease_id"]}
    emitted = made("/v1/workflows/emit", **step, epoch=0, action_type="charge", payload=secret)
    made("/v1/workflows/subscriptions", name=f"reader-{mark}", holder=who, after=0)
    key = made("/v1/access", role="viewer", description=hidden)["key"]
    named = {"holder": who, "agent": who, "resource": resource}
    return Things(
        tenant,
        {
            "leases": {
                **named,
                "lease_id": lease["lease_id"],
                "lease_ids": [lease["lease_id"]],
                "request_id": lease["lease_id"],
            },
            "ledger": {**named, "lease_id": lease["lease_id"]},
            "files": {
                **named,
                "lease_id": file["lease_id"],
                "project": project,
                "paths": ["a.py"],
                "path": "a.py",
            },
            "work": {**named, "domain": domain, "token": flight["token"], "offset": 5},
            "workflows": {
                **named,
                **step,
                "request_id": lease["lease_id"],
                "epoch": emitted["epoch"],
                "action_id": emitted["action"]["action_id"],
                "name": f"reader-{mark}",
                "position": 1,
                "after": 0,
            },
            "settings": {**named, "key": "default_ttl_seconds"},
            "access": {"key_id": key["key_id"]},
        },
        hidden,
    )


def like(things: Things) -> Things:
    """The same of what nobody has."""

    def other(value: Any) -> Any:
        match value:
            case list():
                return [other(one) for one in value]
            case str() if _is_uuid(value):
                return str(uuid4())
            case str():
                return re.sub(r"[0-9a-f]{32}|\d{12,}", lambda found: _other_digits(found[0]), value)
            case _:
                return value

    by_tag = {
        tag: {field: other(value) for field, value in fields.items()} for tag, fields in things.by_tag.items()
    }
    return things._replace(by_tag=by_tag)


def _is_uuid(text: str) -> bool:
    try:
        return str(UUID(text)) == text
    except ValueError:
        return False


def _other_digits(digits: str) -> str:
    drawn = uuid4()
    return drawn.hex if len(digits) == 32 else str(drawn.int)[: len(digits)]


def ask_about(
    server: RunningServer, operation: Operation, things: Things, *, key: str, tenant: str | None = None
) -> tuple[Reply, Fields]:
    """Send a request about things; return the answer, and what the request said.

    What is not one of the things is as the document shows it.
    """
    fields = things.by_tag.get(operation.said["tags"][0], {})
    path, query, said = operation.path, {}, dict[str, Any]()
    for parameter in operation.parameters:
        name = parameter["name"]
        if parameter["in"] == "path":
            said[name] = fields[name]
            path = path.replace(f"{{{name}}}", fields[name])
        elif parameter["in"] == "query" and name in fields:
            said[name] = query[name] = fields[name]
    body = None
    if operation.body_schema is not None:
        names = operation.body_schema["properties"].keys()
        body = operation.example | {name: fields[name] for name in names if name in fields}
        said |= body
    headers = {} if tenant is None else {"Leasehold-Tenant": tenant}
    return server.ask(operation.method, path, body, key=key, headers=headers, **query), said


def told(reply: Reply, said: Fields) -> object:
    """What an answer tells, whatever the request was about and whenever it came."""

    def spelled(value: Any, name: str = "") -> Any:
        match value:
            case dict():
                return {key: spelled(one, key) for key, one in sorted(value.items())}
            case list():
                return [spelled(one) for one in value]
            case str():
                for field, one in said.items():
                    for text in one if isinstance(one, list) else [one]:
                        if isinstance(text, str) and len(text) >= 12:
                            value = value.replace(text, f"<{field}>")
                value = re.sub(r"[0-9a-f]{8}-[0-9a-f-]{27}(\.\d+)?", "<id>", value)
                value = re.sub(r"\d{4}-\d\d-\d\dT[\d:.]+Z", "<moment>", value)
                return re.sub(r"lh_\w+|\b[0-9a-z]{20,}\b|\d{12,}|\d+\.\d+", "<drawn>", value)
            case int() | float() if not isinstance(value, bool) and (
                name in ("position", "next", "token", "fence") or value > 1_000 or isinstance(value, float)
            ):
                return "<number>"
            case _:
                return value

    return reply.status, spelled(reply.body)
