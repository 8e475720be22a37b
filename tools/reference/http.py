"""The page about plain REST, from the OpenAPI document that the server gives, and about its settings."""

import json
from typing import Any

from msgspec.structs import fields

from leasehold.server.app import document
from leasehold.server.configuration import PREFIX, Configuration, described
from tools.reference.writing import code, name, page, table

_INTRODUCTION = """\
What `leasehold serve` answers to programs in any language. `/openapi.json` says the same to tools, with types
and examples; `/docs` shows it in a browser. See [serve leases to other machines](../how-to/serve.md).

Every route under `/v1`, and `/metrics`, needs `Authorization: Bearer lh_…`. A key for all tenants names the
one it means with the header `Leasehold-Tenant`; without it, `default`. Bodies are JSON objects; a field that
is not known is refused. An error has a JSON body with a stable `code`, a `detail` that says what to do next,
and the facts by name: see [errors](errors.md)."""

_SETTINGS = f"""\
In the table `[serve]` of a TOML file, as environment variables (`{PREFIX}PORT`), or as options (`--port`);
what comes later counts more. Durations are seconds, sizes bytes."""


def http_page() -> str:
    """Return the page: all routes, then all settings."""
    found = document()
    operations = [
        (method.upper(), path, operation)
        for path, methods in found["paths"].items()
        for method, operation in methods.items()
    ]
    parts = [_INTRODUCTION, "## Routes", _overview(operations)]
    parts += [_operation(found, *operation) for operation in operations]
    parts += ["## Settings", _SETTINGS, _settings()]
    return page("Plain REST", *parts)


def _overview(operations: list[tuple[str, str, dict[str, Any]]]) -> str:
    rows = [(name(f"{method} {path}"), operation["summary"]) for method, path, operation in operations]
    return table(("route", "what it does"), rows)


def _operation(found: dict[str, Any], method: str, path: str, operation: dict[str, Any]) -> str:
    parts = [f"### {method} {path}", operation["description"]]
    parameters = [one for one in operation.get("parameters", []) if one["in"] in ("query", "header")]
    if parameters:
        rows = [
            (name(one["name"]), one["in"], "yes" if one["required"] else "", one.get("description", ""))
            for one in parameters
        ]
        parts.append(table(("parameter", "in", "required", "what it means"), rows))
    body = operation.get("requestBody")
    if body is not None:
        schema = body["content"]["application/json"]["schema"]
        parts += [_body(found, schema), *(code(json.dumps(one), "json") for one in schema["examples"])]
    statuses = ", ".join(name(status) for status in sorted(operation["responses"]))
    return "\n\n".join([*parts, f"Statuses: {statuses}."])


def _body(found: dict[str, Any], schema: dict[str, Any]) -> str:
    (named,) = schema["allOf"]
    schema = found["components"]["schemas"][named["$ref"].rpartition("/")[2]]
    required = set(schema.get("required", ()))
    rows = [
        (name(field), "yes" if field in required else "", shape.get("description", ""))
        for field, shape in schema["properties"].items()
    ]
    return table(("field of the body", "required", "what it means"), rows)


def _settings() -> str:
    rows = [
        (name(field.name), name(_spelled(field.default)), described(field.name))
        for field in fields(Configuration)
    ]
    return table(("setting", "default", "what it means"), rows)


def _spelled(default: Any) -> str:
    if isinstance(default, float):
        return f"{default:g}"
    return str(default).lower() if isinstance(default, bool) else str(default)
