"""The OpenAPI document, and the page for people. What it says of each route: `test_conformance`."""

import json
from typing import Any

import pytest

from tests.server.running import RunningServer


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


def test_the_page_for_people_is_there(server: RunningServer) -> None:
    page = server.ask("GET", "/docs", key="")

    assert (page.status, page.headers["content-type"].partition(";")[0]) == (200, "text/html")
