"""Work over plain REST, spoken to a real server."""

from typing import Any
from uuid import uuid4

import pytest

from tests.server.running import Reply, RunningServer


@pytest.fixture
def domain() -> str:
    return f"orders/{uuid4().hex}"


def send(server: RunningServer, verb: str, domain: str, **more: Any) -> Reply:
    return server.ask("POST", f"/v1/work/{verb}", {"domain": domain, "holder": "worker-1", **more})


def test_one_offset_at_a_time_in_order(server: RunningServer, domain: str) -> None:
    first = send(server, "acquire", domain, offset=41, ttl=60)

    assert (first.status, first.body["outcome"]) == (200, "ACQUIRED")
    assert first.body["token"] == str(first.body["fence"])
    assert 59 < first.body["expires_in"] <= 60
    assert send(server, "acquire", domain, offset=42).body["outcome"] == "ENQUEUED"
    assert send(server, "acquire", domain, offset=41).body["outcome"] == "ALREADY_ACQUIRED"
    succeeded = send(server, "succeed", domain, token=first.body["token"], hand_off=True)
    assert (succeeded.body["outcome"], succeeded.body["next_offset"]) == ("NEXT_HINT", 42)
    assert succeeded.body["acquired"]["offset"] == 42
    again = send(server, "succeed", domain, token=first.body["token"])
    assert (again.status, again.code) == (410, "TOKEN_MISMATCH")
    state = server.ask("GET", "/v1/work/state", domain=domain).body
    assert (state["state"], state["current_offset"], state["holder"]) == ("IN_FLIGHT", 42, "worker-1")
    assert state["processed"] == [[41, 41]]


def test_the_head_of_the_backlog_comes_first(server: RunningServer, domain: str) -> None:
    assert send(server, "enqueue", domain, offsets=[7, 8, 7]).body == {"added": 2}

    refused = send(server, "acquire", domain, offset=8)

    assert (refused.status, refused.code) == (409, "BACKLOG_ORDERING")
    assert (refused.body["expected"], refused.body["got"]) == (7, 8)


def test_a_failed_attempt_is_tried_again_and_given_up_in_the_end(server: RunningServer, domain: str) -> None:
    token = send(server, "acquire", domain, offset=5, max_retries=1).body["token"]

    first = send(server, "fail", domain, token=token, reason="timeout").body
    last = send(server, "fail", domain, token=token, reason="timeout again").body

    assert (first["outcome"], last["outcome"]) == ("RETRY_SCHEDULED", "GIVE_UP_NO_BACKLOG")
    failed = server.ask("GET", "/v1/work/failed", domain=domain).body
    assert [(one["offset"], one["reason"]) for one in failed["offsets"]] == [(5, "timeout again")]
    assert failed["next"] is None
    gone = send(server, "fail", domain, token=token)
    assert (gone.status, gone.code) == (404, "NO_LEASE")
    history = server.ask("GET", "/v1/work/history", domain=domain, offset=5).body["entries"]
    assert [one["type"] for one in history] == ["work.acquired", "work.retried", "work.failed"]
    assert {one["actor"] for one in history} == {"worker-1"}


def test_an_offset_is_kept_alive_and_given_back(server: RunningServer, domain: str) -> None:
    token = send(server, "acquire", domain, offset=5, ttl=10).body["token"]

    assert send(server, "keep-alive", domain, token=token, ttl=500).body["expires_in"] > 400
    assert send(server, "give-back", domain, token=token).body == {"offset": 5}
    state = server.ask("GET", "/v1/work/state", domain=domain).body
    assert (state["state"], state["head"], state["backlog"]) == ("IDLE", 5, 1)


def test_a_domain_starts_where_it_is_told_to(server: RunningServer, domain: str) -> None:
    assert send(server, "start-at", domain, offset=1000).body == {"start": 1000}
    assert send(server, "start-at", domain, offset=10).body == {"start": 1000}, "it never goes back"
    assert server.ask("GET", "/v1/work/watermark", domain=domain).body == {"watermark": 1000}
    send(server, "acquire", domain, offset=1000)
    refused = send(server, "start-at", domain, offset=2000)
    assert (refused.status, refused.code) == (409, "WORK_BELOW_START")


def test_a_request_that_is_sent_again_is_answered_as_the_first_time(
    server: RunningServer, domain: str
) -> None:
    first = send(server, "acquire", domain, offset=1, request_id="once")
    again = send(server, "acquire", domain, offset=1, request_id="once")

    assert (again.body["outcome"], again.body["token"]) == ("ACQUIRED", first.body["token"])


def test_domains_are_listed_page_by_page(server: RunningServer, domain: str) -> None:
    names = [f"{domain}-{number}" for number in range(3)]
    for name in names:
        send(server, "enqueue", name, offsets=[1])

    page = server.ask("GET", "/v1/work/domains", after=domain, limit=2).body
    rest = server.ask("GET", "/v1/work/domains", after=page["next"], limit=1).body

    assert [one["domain"] for one in (*page["domains"], *rest["domains"])] == names


def test_a_domain_that_nobody_has_used_is_idle(server: RunningServer, domain: str) -> None:
    state = server.ask("GET", "/v1/work/state", domain=domain).body

    assert (state["state"], state["backlog"], state["watermark"]) == ("IDLE", 0, 0)


@pytest.mark.parametrize("offset", [-1, 2**63, 2**64])
def test_an_offset_that_cannot_be_is_refused(server: RunningServer, domain: str, offset: int) -> None:
    assert send(server, "acquire", domain, offset=offset).status == 422
    assert server.ask("GET", "/v1/work/history", domain=domain, offset=offset).status == 422
