"""What clients are told about the tools."""

import json

import pytest

from leasehold.mcp.definitions import DEFINITIONS
from leasehold.mcp.server import tool_of

BYTES_MAXIMUM = 8_000
TOOLS = [
    tool_of(one).model_dump(by_alias=True, mode="json", exclude_none=True) for one in DEFINITIONS.values()
]


def test_all_definitions_together_are_short() -> None:
    assert len(TOOLS) <= 8
    on_the_wire = json.dumps(TOOLS, separators=(",", ":"))
    assert len(on_the_wire.encode()) < BYTES_MAXIMUM


@pytest.mark.parametrize("tool", TOOLS, ids=list(DEFINITIONS))
def test_a_definition_is_complete(tool: dict[str, object]) -> None:
    assert tool["description"]
    hints = {"title", "readOnlyHint", "destructiveHint", "idempotentHint", "openWorldHint"}
    annotations = tool["annotations"]
    assert isinstance(annotations, dict)
    assert set(annotations) == hints
    for name in ("inputSchema", "outputSchema"):
        schema = tool[name]
        assert isinstance(schema, dict)
        assert schema["type"] == "object"
        assert "$ref" not in json.dumps(schema)


def test_what_only_looks_says_so() -> None:
    looking = {name for name, one in DEFINITIONS.items() if one.is_read_only}
    assert looking == {"check", "list", "history"}
