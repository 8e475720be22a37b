"""The page of the tools for coding agents: what each takes and answers, as a client is told."""

import json
from typing import Any

from leasehold.mcp.definitions import DEFINITIONS, INSTRUCTIONS, Definition, schema_of
from tools.reference.writing import name, page, table

_INTRODUCTION = """\
`leasehold mcp` serves these. How it is set up and used: [give a coding agent file leases](../how-to/mcp.md).
A claim that is not granted is answered like any other, with `granted` false; `next` is then the call to make,
as `tool` and `arguments`. A call that can never be right, and one that the store could not serve, is an error
(`isError`) whose text says what to do. Fields that do not apply are left out."""


_LIMITS = {
    "exclusiveMinimum": "more than {}",
    "minimum": "at least {}",
    "maximum": "at most {}",
    "maxLength": "at most {} characters",
    "maxItems": "at most {} of them",
}


def mcp_page() -> str:
    """Return the page."""
    return page(
        "Tools for coding agents",
        _INTRODUCTION,
        "An agent is told, when it connects:",
        f"> {INSTRUCTIONS}",
        *(_tool(one) for one in DEFINITIONS.values()),
    )


def _tool(definition: Definition) -> str:
    takes, answers = schema_of(definition.takes), schema_of(definition.answers)
    return "\n\n".join(
        [
            f"## {definition.name}",
            f"{definition.description} {_hints(definition)}",
            table(["argument", "type", "default", "meaning"], _rows(takes)),
            "It answers:",
            table(["field", "type"], [(row[0], row[1]) for row in _rows(answers)]),
        ]
    )


def _hints(definition: Definition) -> str:
    if definition.is_read_only:
        return "*It changes nothing.*"
    if definition.is_idempotent:
        return "*It can safely be repeated.*"
    return "*It cannot be taken back by whoever called it.*"


def _rows(schema: dict[str, Any]) -> list[tuple[str, str, str, str]]:
    return [
        (
            name(field),
            _type(one),
            "required" if field in schema.get("required", ()) else name(_default(one)),
            one.get("description", ""),
        )
        for field, one in schema["properties"].items()
    ]


def _default(schema: dict[str, Any]) -> str:
    return json.dumps(schema["default"]) if "default" in schema else ""


def _type(schema: dict[str, Any]) -> str:
    """Spell a type with its limits; a list by what is in it."""
    limits = [text.format(schema[key]) for key, text in _LIMITS.items() if key in schema]
    kind = schema["type"]
    if kind == "array":
        kind = f"list of {_type(schema['items'])}"
    elif "properties" in schema:
        kind = f"object: {', '.join(schema['properties'])}"
    return ", ".join([kind, *limits])
