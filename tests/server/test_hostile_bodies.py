"""What is wrong with a body is refused, field by field, at every route that the OpenAPI document has."""

import http.client
import json
from collections.abc import Iterator
from typing import Any

import pytest

from tests.server.document import OPERATIONS, Operation, resolved
from tests.server.running import Reply, RunningServer, ask_over

TAKING = [operation for operation in OPERATIONS if operation.body_schema]

NEVER_RIGHT = ["NaN", "Infinity", "1e400", '"\\ud800"', "nul", "'single'", '"\x00"', "[[[[", '{"a":}']
"""Not JSON, or no number or text that exists."""

WRONG_FOR = {
    "string": ["12", "1.5", "true", "{}", '["a"]'],
    "integer": ['"12"', "1.5", "true", "{}", "[1]"],
    "number": ['"1.5"', "true", "{}", "[1]"],
    "boolean": ['"true"', "1", "{}", "[true]"],
    "array": ['"text"', "{}", "1", "[{}]"],
    "object": ['"text"', "[]", "1"],
}

STRANGE = [
    '""',
    '" "',
    '"\\u0000"',
    '"a\\nb"',
    '"\\u202egnirts"',
    '"é" ',
    '"e\\u0301"',
    '"\U0001f600"',
    json.dumps("x" * 100_000),
    "null",
    "-1",
    "0",
    str(2**31),
    str(2**63 - 1),
    str(2**63),
    str(2**64),
    str(10**400),
    "-0.0",
    "1e308",
    "5e-324",
    '["' + '","'.join(["a"] * 2_000) + '"]',
    '{"a":' * 200 + "1" + "}" * 200,
]
"""What may be right or wrong, and must never be a defect."""


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    with RunningServer(
        tmp_path_factory.mktemp("served") / "store", "--wait-maximum", "0.01", "--requests-burst", "100000"
    ) as running:
        yield running


@pytest.fixture
def connection(server: RunningServer) -> Iterator[http.client.HTTPConnection]:
    opened = server.connect()
    yield opened
    opened.close()


def send(
    server: RunningServer, connection: http.client.HTTPConnection, operation: Operation, **spelled: str
) -> Reply:
    """Send the example of an operation, with some fields spelled otherwise."""
    fields = {name: json.dumps(value) for name, value in operation.example.items()} | spelled
    body = "{" + ",".join(f"{json.dumps(name)}:{value}" for name, value in fields.items()) + "}"
    path = operation.path.replace("{", "").replace("}", "")
    return ask_over(connection, operation.method, path, body.encode("utf-8", "surrogatepass"), key=server.key)


def types_of(schema: dict[str, Any]) -> set[str]:
    schema = resolved(schema)
    kinds = [kind for one in schema.get("oneOf", ()) for kind in types_of(one)]
    return {*kinds, *([schema["type"]] if isinstance(schema.get("type"), str) else schema.get("type", ()))}


def entries(server: RunningServer) -> list[Any]:
    found: list[Any] = server.ask("GET", "/v1/history", limit=1000).body["entries"]
    return found


@pytest.mark.parametrize("operation", TAKING, ids=str)
def test_a_field_of_another_type_is_refused_and_nothing_changes(
    operation: Operation, server: RunningServer, connection: http.client.HTTPConnection
) -> None:
    assert operation.body_schema is not None
    before = entries(server)
    for name, schema in operation.body_schema["properties"].items():
        kinds = types_of(schema)
        # A number may be whole, and one of two kinds is enough.
        wrong = [one for kind in kinds - {"null"} for one in WRONG_FOR[kind] if len(kinds - {"null"}) == 1]
        for spelled in [*NEVER_RIGHT, *wrong]:
            reply = send(server, connection, operation, **{name: spelled})
            assert reply.status in (400, 422), (name, spelled, reply.status, reply.body)
            assert reply.body["code"] in ("BAD_REQUEST", "INVALID_INPUT")
    assert entries(server) == before


@pytest.mark.parametrize("operation", TAKING, ids=str)
def test_a_field_that_nobody_knows_is_refused(
    operation: Operation, server: RunningServer, connection: http.client.HTTPConnection
) -> None:
    reply = send(server, connection, operation, hodler='"ann"')

    assert (reply.status, reply.code) == (422, "INVALID_INPUT")
    assert "hodler" in reply.body["detail"]


@pytest.mark.parametrize("operation", TAKING, ids=str)
def test_a_field_that_is_missing_is_named(
    operation: Operation, server: RunningServer, connection: http.client.HTTPConnection
) -> None:
    assert operation.body_schema is not None
    for name in operation.body_schema.get("required", ()):
        lacking = operation._replace(said=without(operation.said, name))
        reply = send(server, connection, lacking)
        assert (reply.status, reply.code) == (422, "INVALID_INPUT")
        assert name in reply.body["detail"]


def without(said: dict[str, Any], name: str) -> dict[str, Any]:
    copied: dict[str, Any] = json.loads(json.dumps(said))
    (example,) = copied["requestBody"]["content"]["application/json"]["schema"]["examples"]
    del example[name]
    return copied


@pytest.mark.parametrize("operation", TAKING, ids=str)
def test_a_strange_value_is_never_a_defect(
    operation: Operation, server: RunningServer, connection: http.client.HTTPConnection
) -> None:
    assert operation.body_schema is not None
    for name in operation.body_schema["properties"]:
        for spelled in STRANGE:
            reply = send(server, connection, operation, **{name: spelled})
            assert reply.status < 500, (name, spelled[:80], reply.body)


@pytest.mark.parametrize("operation", [one for one in OPERATIONS if one.is_question], ids=str)
def test_a_query_parameter_that_nobody_knows_is_refused(operation: Operation, server: RunningServer) -> None:
    path = operation.path.replace("{", "").replace("}", "")

    reply = server.ask("GET", path, hodler="ann")

    assert (reply.status, reply.code) == (422, "INVALID_INPUT")
    assert "hodler" in reply.body["detail"]
