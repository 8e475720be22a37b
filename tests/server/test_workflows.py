"""Workflows and settings over plain REST, spoken to a real server."""

import threading
from typing import Any
from uuid import uuid4

import pytest

from tests.server.running import PATIENCE_SECONDS, Reply, RunningServer


@pytest.fixture
def workflow() -> str:
    return f"order/{uuid4().hex}"


def send(server: RunningServer, verb: str, **body: Any) -> Reply:
    return server.ask("POST", f"/v1/workflows/{verb}", body)


def claimed(server: RunningServer, workflow: str, holder: str = "one", **more: Any) -> dict[str, Any]:
    reply = send(server, "claim", workflow_id=workflow, holder=holder, **more)
    assert reply.status == 200, reply.body
    return {
        "workflow_id": workflow,
        "holder": holder,
        "lease_id": reply.body["lease"]["lease_id"],
        "epoch": reply.body["epoch"],
    }


def test_a_workflow_is_led_by_one_orchestrator_step_by_step(server: RunningServer, workflow: str) -> None:
    step = claimed(server, workflow)

    emitted = send(server, "emit", **step, action_type="charge", payload={"amount": 12})
    assert (emitted.status, emitted.body["epoch"]) == (200, 1)
    action = emitted.body["action"]
    assert (action["epoch"], action["lease_id"], action["payload"]) == (0, step["lease_id"], {"amount": 12})
    stale = send(server, "transition", **step, state="charging")
    assert (stale.status, stale.code, stale.body["current_epoch"]) == (409, "STALE_EPOCH", 1)
    step["epoch"] = 1
    assert send(server, "transition", **step, state="charging").body["state"] == "charging"
    step["epoch"] = 2
    answered = send(server, "result", **step, action_id=action["action_id"], success=True)
    assert (answered.body["state"], answered.body["epoch"]) == ("step_completed", 3)
    step["epoch"] = 3
    unknown = send(server, "result", **step, action_id="nobody", success=True)
    assert (unknown.status, unknown.code) == (404, "ACTION_NOT_FOUND")
    done = send(server, "complete", **step)
    assert (done.status, done.body["state"]) == (200, "completed")
    over = send(server, "claim", workflow_id=workflow, holder="two")
    assert (over.status, over.code) == (409, "WORKFLOW_ENDED")
    told = server.ask("GET", "/v1/workflows/actions", workflow_id=workflow).body["messages"]
    assert [one.get("action_type") or one["event_type"] for one in told] == [
        "lease_claimed",
        "charge",
        "state_changed",
        "state_changed",
        "workflow_completed",
    ]


def test_nobody_else_gets_in_between_and_the_next_one_takes_over(
    server: RunningServer, workflow: str
) -> None:
    step = claimed(server, workflow, ttl=600)

    held = send(server, "claim", workflow_id=workflow, holder="two")
    assert (held.status, held.code, held.body["holder"]) == (409, "HELD", "one")
    renewed = send(server, "renew", lease_id=step["lease_id"], holder="one", ttl=900)
    assert (renewed.status, renewed.body["renewal_count"]) == (200, 1)
    assert send(server, "release", lease_id=step["lease_id"], holder="one").body["state"] == "released"
    next_step = claimed(server, workflow, "two")
    refused = send(server, "emit", **{**step, "epoch": next_step["epoch"]}, action_type="charge")
    assert (refused.status, refused.code) == (409, "LEASE_VIOLATION")
    assert send(server, "cancel", **next_step, reason="withdrawn").body["state"] == "cancelled"


def test_a_claim_that_waits_leads_as_soon_as_the_workflow_is_free(
    server: RunningServer, workflow: str
) -> None:
    step = claimed(server, workflow)
    replies: list[Reply] = []
    waiting = threading.Thread(
        target=lambda: replies.append(
            send(server, "claim", workflow_id=workflow, holder="two", wait=PATIENCE_SECONDS, ttl=400)
        )
    )
    waiting.start()
    while not server.ask("GET", "/v1/queue", resource=f"workflow:{workflow}").body["waiters"]:
        pass

    send(server, "release", lease_id=step["lease_id"], holder="one")
    waiting.join()

    assert (replies[0].status, replies[0].body["lease"]["holder"]) == (200, "two")
    assert replies[0].body["lease"]["expires_in"] > 300
    assert server.ask("GET", "/v1/workflows/state", workflow_id=workflow).body["holder"] == "two"


def test_a_claim_that_is_sent_again_is_answered_as_the_first_time(
    server: RunningServer, workflow: str
) -> None:
    first, again = (
        send(server, "claim", workflow_id=workflow, holder="one", request_id="once").body for _ in range(2)
    )

    assert (first["repeated"], again["repeated"]) == (False, True)
    assert first["lease"]["lease_id"] == again["lease"]["lease_id"]


def test_a_step_that_is_sent_again_is_taken_once(server: RunningServer, workflow: str) -> None:
    step = claimed(server, workflow)

    first, again = (send(server, "emit", **step, action_type="a", request_id="once").body for _ in range(2))

    assert (first["repeated"], again["repeated"]) == (False, True)
    assert first["action"]["action_id"] == again["action"]["action_id"]
    assert again["epoch"] == 1


def test_a_workflow_is_handed_off_and_accepted_once(server: RunningServer, workflow: str) -> None:
    step = claimed(server, workflow)

    handed = send(server, "handoff", **step, to="two")
    assert (handed.status, handed.body["holder"], handed.body["epoch"]) == (200, "two", 1)
    accepted = send(server, "accept", lease_id=handed.body["lease_id"], holder="two")
    assert (accepted.status, accepted.body["epoch"]) == (200, handed.body["epoch"])
    again = send(server, "accept", lease_id=handed.body["lease_id"], holder="two")
    assert (again.status, again.code) == (409, "LEASE_VIOLATION")
    refused = send(server, "transition", **{**step, "epoch": 1}, state="late")
    assert (refused.status, refused.code) == (409, "LEASE_VIOLATION")


def test_an_operator_ends_the_lease_of_who_leads(server: RunningServer, workflow: str) -> None:
    step = claimed(server, workflow)
    body = {"workflow_id": workflow, "operator": "olga", "reason": "stuck"}

    revoked = send(server, "revoke", **body)

    assert (revoked.status, revoked.body["state"], revoked.body["ended_by"]) == (200, "revoked", "olga")
    assert send(server, "emit", **step, action_type="charge").code == "LEASE_VIOLATION"
    nobody = send(server, "revoke", **body)
    assert (nobody.status, nobody.code) == (404, "LEASE_NOT_FOUND")
    missing = server.ask("GET", "/v1/workflows/state", workflow_id=f"{workflow}-2")
    assert (missing.status, missing.code) == (404, "WORKFLOW_NOT_FOUND")


def test_a_subscription_reads_what_it_has_not_acknowledged(server: RunningServer, workflow: str) -> None:
    step = claimed(server, workflow)
    name = f"reader-{uuid4().hex}"
    opened = server.ask(
        "POST",
        "/v1/workflows/subscriptions",
        {"name": name, "holder": "reader", "workflow_id": workflow, "after": 0},
    )
    assert opened.body == {"name": name, "position": 0}
    send(server, "emit", **step, action_type="charge")

    def read(**query: Any) -> Any:
        return server.ask("GET", "/v1/workflows/subscriptions/messages", name=name, **query).body

    first = read(limit=1)
    assert [one["event_type"] for one in first["messages"]] == ["lease_claimed"]
    assert first["next"] == first["messages"][0]["position"]
    (action,) = read(after=first["next"])["messages"]
    assert (action["kind"], action["action_type"]) == ("action", "charge")
    assert len(read()["messages"]) == 2, "nothing was acknowledged yet"
    moved = send(server, "subscriptions/acknowledge", name=name, holder="reader", position=action["position"])
    assert moved.body["position"] == action["position"]
    assert read()["messages"] == []
    beyond = send(server, "subscriptions/acknowledge", name=name, holder="reader", position=2**60)
    assert (beyond.status, beyond.body["field"]) == (422, "position")
    listed = server.ask("GET", "/v1/workflows/subscriptions").body["subscriptions"]
    assert {"name": name, "position": action["position"], "workflow_id": workflow} in listed
    assert send(server, "subscriptions/close", name=name, holder="reader").status == 200
    gone = server.ask("GET", "/v1/workflows/subscriptions/messages", name=name)
    assert (gone.status, gone.code) == (404, "SUBSCRIPTION_NOT_FOUND")


def test_workflows_are_listed_page_by_page(server: RunningServer, workflow: str) -> None:
    names = [f"{workflow}-{number}" for number in range(3)]
    for name in names:
        claimed(server, name)

    page = server.ask("GET", "/v1/workflows", after=workflow, limit=2).body
    rest = server.ask("GET", "/v1/workflows", after=page["next"], limit=1).body

    assert [one["workflow_id"] for one in (*page["workflows"], *rest["workflows"])] == names


def test_a_setting_is_changed_for_a_resource_and_reset(server: RunningServer) -> None:
    resource = f"/@shop/{uuid4().hex}.py"
    path = "/v1/settings/default_ttl_seconds"
    general = server.ask("GET", path).body["value"]

    changed = server.ask("PUT", path, {"value": 77, "holder": "olga", "resource": resource})

    assert changed.body == {
        "key": "default_ttl_seconds",
        "before": general,
        "value": 77,
        "resource": resource,
    }
    (lease,) = server.ask("POST", "/v1/files/acquire", {"paths": [resource], "agent": "agent-7"}).body[
        "leases"
    ]
    assert lease["ttl"] == 77.0
    listed = server.ask("GET", "/v1/settings").body["settings"]
    assert [(one["value"], one["changed_by"]) for one in listed if one["resource"] == resource] == [
        (77, "olga")
    ]
    assert server.ask("PUT", path, {"value": None, "holder": "olga", "resource": resource}).status == 200
    assert server.ask("GET", path, resource=resource).body["value"] == general


def test_a_resource_of_a_setting_is_no_path_on_the_machine_of_the_server(server: RunningServer) -> None:
    body = {"value": 78, "holder": "olga", "resource": "src/app.py"}

    assert server.ask("PUT", "/v1/settings/default_ttl_seconds", body).body["resource"] == "src/app.py"


@pytest.mark.parametrize("value", [True, -5, 2**63])
def test_a_value_that_a_setting_cannot_have_is_refused(server: RunningServer, value: object) -> None:
    refused = server.ask("PUT", "/v1/settings/default_ttl_seconds", {"value": value, "holder": "olga"})

    assert (refused.status, refused.code) == (422, "INVALID_INPUT")
    assert server.ask("PUT", "/v1/settings/nonsense", {"value": 1, "holder": "olga"}).status == 422
