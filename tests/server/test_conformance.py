"""Every answer is one that the OpenAPI document describes, and none is a defect, whatever is asked."""

from collections.abc import Iterator
from typing import Any

import pytest
import requests
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from schemathesis import Case, GenerationMode
from schemathesis.checks import (
    content_type_conformance,
    negative_data_rejection,
    not_a_server_error,
    response_schema_conformance,
    status_code_conformance,
)
from schemathesis.core.failures import FailureGroup

from tests.lanes import by_length
from tests.server.document import DOCUMENT, OPERATIONS, STREAM, Operation
from tests.server.running import PATIENCE_SECONDS, RunningServer

SCHEMA = schemathesis.openapi.from_dict(DOCUMENT)
CHECKS = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_schema_conformance,
]
ENDING = [operation for operation in OPERATIONS if operation.path != STREAM]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    # What is held is waited for; not for as long as somebody may ask who draws numbers.
    with RunningServer(
        tmp_path_factory.mktemp("served") / "store", "--wait-maximum", "0.1", "--requests-burst", "100000"
    ) as running:
        yield running


@pytest.fixture(scope="module")
def session(server: RunningServer) -> Iterator[requests.Session]:
    with requests.Session() as opened:
        yield opened


def call(case: Case[Any], server: RunningServer, session: requests.Session) -> None:
    """Send a request as it was drawn, with the server's own key unless it has another."""
    response = case.call(
        base_url=server.url,
        session=session,
        headers={"Authorization": f"Bearer {server.key}"},
        timeout=PATIENCE_SECONDS,
    )
    # In a query everything is text, so what was drawn to be wrong there may have become right.
    also = [] if case.method == "GET" else [negative_data_rejection]
    case.validate_response(response, checks=CHECKS + also)


@pytest.mark.deep
@pytest.mark.parametrize("mode", [GenerationMode.POSITIVE, GenerationMode.NEGATIVE], ids=["right", "wrong"])
@pytest.mark.parametrize("operation", ENDING, ids=str)
def test_every_answer_conforms(
    operation: Operation, mode: GenerationMode, server: RunningServer, session: requests.Session
) -> None:
    if mode is GenerationMode.NEGATIVE and not (operation.parameters or operation.body_schema):
        return  # There is nothing that could be wrong with it.
    strategy = SCHEMA[operation.path][operation.method].as_strategy(generation_mode=mode)

    @settings(
        max_examples=by_length(25, 4),
        deadline=None,
        derandomize=True,
        database=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(strategy)
    def conforms(case: Case[Any]) -> None:
        call(case, server, session)

    conforms()


def test_an_answer_that_is_not_described_would_be_found(
    server: RunningServer, session: requests.Session
) -> None:
    narrowed = {**DOCUMENT, "paths": {"/v1/leases/{lease_id}": {"get": lookup_without_refusals()}}}
    operation = schemathesis.openapi.from_dict(narrowed)["/v1/leases/{lease_id}"]["GET"]

    with pytest.raises(FailureGroup, match="Undocumented status code"):
        call(operation.Case(path_parameters={"lease_id": "nobody"}), server, session)


def lookup_without_refusals() -> dict[str, object]:
    said = dict(DOCUMENT["paths"]["/v1/leases/{lease_id}"]["get"])
    said["responses"] = {"200": said["responses"]["200"]}
    return said


@pytest.mark.parametrize("operation", [one for one in OPERATIONS if one.body_schema], ids=str)
def test_every_body_has_an_example_that_says_what_is_required(operation: Operation) -> None:
    schema = operation.body_schema
    assert schema is not None

    assert operation.example.keys() >= set(schema.get("required", ()))
    assert operation.example.keys() <= schema["properties"].keys()


@pytest.mark.parametrize("operation", OPERATIONS, ids=str)
def test_every_operation_shows_an_answer_and_says_what_it_is_for(operation: Operation) -> None:
    good = [said for status, said in operation.said["responses"].items() if status.startswith("2")]

    assert operation.said["summary"]
    assert operation.said["description"]
    for said in good:
        for media_type, content in said.get("content", {}).items():
            assert media_type != "application/json" or content.get("examples"), "show an answer"
