"""The OpenAPI document: every route has an example, and every answer is what it says."""

import json
from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, given, settings
from schemathesis.checks import not_a_server_error
from schemathesis.core.result import Ok
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from tests.server.running import RunningServer

CHECKS = [
    not_a_server_error,
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
]
ENDLESS = {"/v1/events"}


@pytest.fixture(scope="module")
def document(server: RunningServer) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(server.ask("GET", "/openapi.json", key="").body)
    return found


def operations(document: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return {
        f"{method.upper()} {path}": operation
        for path, methods in document["paths"].items()
        for method, operation in methods.items()
    }


def test_the_document_lists_what_there_is(document: dict[str, Any]) -> None:
    assert set(operations(document)) >= {
        "POST /v1/leases",
        "GET /v1/leases",
        "GET /v1/leases/{lease_id}",
        "POST /v1/leases/{lease_id}/renew",
        "POST /v1/leases/{lease_id}/release",
        "POST /v1/leases/{lease_id}/revoke",
        "POST /v1/leases/{lease_id}/transfer",
        "GET /v1/leases/{lease_id}/certificate",
        "POST /v1/renewals",
        "GET /v1/queue",
        "GET /v1/history",
        "GET /v1/keys",
        "GET /v1/events",
        "POST /v1/access",
        "GET /v1/access",
        "GET /healthz",
        "GET /readyz",
        "GET /metrics",
    }


def test_every_operation_says_what_it_does_and_has_an_example(document: dict[str, Any]) -> None:
    for name, operation in operations(document).items():
        assert operation["summary"], name
        assert operation["description"], name
        good = next(answer for status, answer in operation["responses"].items() if status.startswith("2"))
        assert "example" in json.dumps(good), f"{name}: no example of an answer"
        if "requestBody" in operation:
            assert "example" in json.dumps(operation["requestBody"]), f"{name}: no example of a request"


def test_the_page_for_people_is_there(server: RunningServer) -> None:
    page = server.ask("GET", "/docs", key="")

    assert (page.status, page.headers["content-type"].partition(";")[0]) == (200, "text/html")


def test_whatever_is_sent_is_answered_as_the_document_says(server: RunningServer) -> None:
    schema = schemathesis.openapi.from_url(f"{server.url}/openapi.json")
    for found in schema.get_all_operations():
        assert isinstance(found, Ok)
        operation = found.ok()
        if operation.path in ENDLESS:
            continue

        @settings(max_examples=12, suppress_health_check=list(HealthCheck), database=None)
        @given(case=operation.as_strategy())
        def answered(case: Any) -> None:
            if isinstance(case.body, dict) and isinstance(case.body.get("wait"), int | float):
                case.body["wait"] = min(case.body["wait"], 0.05)
            reply = case.call(headers={"Authorization": f"Bearer {server.key}"})
            case.validate_response(reply, checks=CHECKS)

        answered()
