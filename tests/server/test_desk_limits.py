"""What a request to the desk cannot have the server do, however small it is."""

import json
from collections.abc import Iterator
from typing import Any

import pytest

from tests.server.running import RunningServer


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    with RunningServer(tmp_path_factory.mktemp("served") / "store", "--send-timeout", "2") as running:
        yield running


def outcomes(server: RunningServer, *items: dict[str, Any]) -> list[dict[str, Any]]:
    reply = server.ask("POST", "/v1/desk", {"id": "1", "items": items})
    assert reply.status == 200, reply.body
    found: list[dict[str, Any]] = reply.body["outcomes"]
    return found


def question(tag: str, **fields: Any) -> dict[str, Any]:
    return {"question": {"question": tag, **fields}}


@pytest.fixture(scope="module")
def page(server: RunningServer) -> dict[str, Any]:
    """A question whose answer has fifteen megabytes."""
    command = {"command": "acquire", "holder": "ann", "ttl_ns": 10**12, "metadata": {"filler": "x" * 15_000}}
    for batch in range(4):
        names = [f"{batch}.{number}" for number in range(250)]
        claims = ({**command, "lease_id": name, "request_id": name, "resource": name} for name in names)
        outcomes(server, *({"command": one} for one in claims))
    return question("list_leases", query={"limit": 10_000})


def test_a_thousand_large_pages_do_not_fill_the_servers_memory(
    server: RunningServer, page: dict[str, Any]
) -> None:
    said = outcomes(server, *[page] * 20, question("find_head"))

    assert len(said) == 21
    assert len(said[0]["answer"]) == 1_000
    assert {one["failure"]["code"] for one in said[5:]} == {"LIMIT_EXCEEDED"}


def test_an_answer_that_nobody_takes_is_not_kept(server: RunningServer, page: dict[str, Any]) -> None:
    body = json.dumps({"id": "1", "items": [page]}).encode()
    with server.socket() as lazy:
        head = f"POST /v1/desk HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {server.key}\r\n"
        head += f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
        lazy.sendall(head.encode() + body)
        while "was cut off" not in server.logged("request").get("note", ""):
            pass
        received = sum(map(len, iter(lambda: lazy.recv(1 << 20), b"")))

    assert received < 10_000_000


@pytest.mark.parametrize("tag", ["read_ledger", "follow_ledger", "list_leases"])
@pytest.mark.parametrize("limit", [-1, 0, 10_001, 2**62])
def test_nobody_gets_more_than_a_page_at_once(server: RunningServer, tag: str, limit: int) -> None:
    (said,) = outcomes(server, question(tag, query={"limit": limit}))

    assert said["failure"]["code"] == "INVALID_INPUT"


@pytest.mark.parametrize(
    "asked",
    [
        question("read_ledger", query={"after": 2**63}),
        question("follow_ledger", query={"after": -(2**63) - 1}),
        question("follow_ledger", query={"limit": 2**100}),
        question("list_leases", query={"held_at_ns": 2**63}),
        question("work_find_domain", tenant="default", domain="orders", ranges_from=2**63),
        question("work_list_failed", tenant="default", domain="orders", after=-(2**64)),
        question("find_won", lease_ids=[]),
        question("find_won", lease_ids=["x"] * 65),
    ],
    ids=lambda asked: str(asked["question"])[:60],
)
def test_what_no_store_could_compare_with_is_refused(server: RunningServer, asked: dict[str, Any]) -> None:
    (said,) = outcomes(server, asked)

    assert said["failure"]["code"] == "INVALID_INPUT"
