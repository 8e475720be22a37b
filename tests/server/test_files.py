"""File leases over plain REST, spoken to a real server."""

import threading
from typing import Any
from uuid import uuid4

import pytest

from tests.server.running import PATIENCE_SECONDS, Reply, RunningServer


@pytest.fixture
def project() -> str:
    return f"shop-{uuid4().hex[:12]}"


def acquired(server: RunningServer, project: str | None, paths: list[str], agent: str, **more: Any) -> Reply:
    body = {"paths": paths, "agent": agent, **more} | ({} if project is None else {"project": project})
    return server.ask("POST", "/v1/files/acquire", body)


def test_an_agent_owns_what_it_names_and_others_are_told_by_whom(server: RunningServer, project: str) -> None:
    granted = acquired(server, project, ["src/app.py", "docs/"], "agent-7", reason="new parser")

    assert granted.status == 200
    file, folder = granted.body["leases"]
    assert (file["path"], file["resource"], file["reason"]) == (
        "src/app.py",
        f"/@{project}/src/app.py",
        "new parser",
    )
    assert (file["ttl"], file["survives_reboot"]) == (3600.0, True), (
        "as the settings say, bound to nothing here"
    )
    assert folder["path"] == "docs"
    refused = acquired(server, project, ["src/**/*.py"], "agent-9")
    assert (refused.status, refused.code) == (409, "HELD")
    assert (refused.body["holder"], refused.body["reason"]) == ("agent-7", "new parser")
    assert int(refused.headers["retry-after"]) > 3000
    assert acquired(server, project, ["docs/a/b.md"], "agent-9").status == 409, "it is below the folder"
    assert acquired(server, project, ["src/other.py"], "agent-9").status == 200


def test_nothing_is_granted_if_something_is_held(server: RunningServer, project: str) -> None:
    acquired(server, project, ["b.py"], "agent-7")

    assert acquired(server, project, ["a.py", "b.py"], "agent-9").status == 409
    assert acquired(server, project, ["a.py"], "agent-8").status == 200


def test_what_was_new_is_given_back_if_what_the_agent_had_cannot_be_upgraded(
    server: RunningServer, project: str
) -> None:
    for agent in ("agent-7", "agent-9"):
        acquired(server, project, ["b.py"], agent, mode="shared")

    refused = acquired(server, project, ["a.py", "b.py"], "agent-7")

    assert (refused.status, refused.body["holder"]) == (409, "agent-9")
    while server.ask("GET", "/v1/files/in-the-way", project=project, path="a.py").body["leases"]:
        pass  # It is given back without waiting for it.


def test_what_an_agent_has_already_is_renewed_and_upgraded(server: RunningServer, project: str) -> None:
    (first,) = acquired(server, project, ["src/"], "agent-7", mode="shared", ttl=100).body["leases"]

    (again,) = acquired(server, project, ["src/app.py"], "agent-7", mode="shared", ttl=200).body["leases"]
    both = acquired(server, project, ["src/", "lib/"], "agent-7", ttl=300).body["leases"]

    assert (again["lease_id"], again["renewal_count"]) == (first["lease_id"], 1)
    assert again["expires_in"] > 150
    assert {one["path"]: one["mode"] for one in both} == {"src": "exclusive", "lib": "exclusive"}
    assert first["lease_id"] in [one["lease_id"] for one in both]


def test_an_upgrade_waits_for_those_who_share(server: RunningServer, project: str) -> None:
    (mine,) = acquired(server, project, ["a.py"], "agent-7", mode="shared").body["leases"]
    (theirs,) = acquired(server, project, ["a.py"], "agent-9", mode="shared").body["leases"]
    upgrade = {"lease_id": mine["lease_id"], "agent": "agent-7"}

    refused = server.ask("POST", "/v1/files/upgrade", upgrade)
    assert (refused.status, refused.code, refused.body["holder"]) == (409, "HELD", "agent-9")
    replies: list[Reply] = []
    waiting = threading.Thread(
        target=lambda: replies.append(
            server.ask("POST", "/v1/files/upgrade", {**upgrade, "wait": PATIENCE_SECONDS})
        )
    )
    waiting.start()
    server.ask("POST", "/v1/files/release", {"lease_id": theirs["lease_id"], "agent": "agent-9"})
    waiting.join()

    assert (replies[0].status, replies[0].body["mode"]) == (200, "exclusive")
    assert replies[0].body["token"] > theirs["token"]


def test_a_claim_waits_until_what_is_in_the_way_is_released(server: RunningServer, project: str) -> None:
    (held,) = acquired(server, project, ["a.py"], "agent-7").body["leases"]
    replies: list[Reply] = []
    waiting = threading.Thread(
        target=lambda: replies.append(acquired(server, project, ["*.py"], "agent-9", wait=PATIENCE_SECONDS))
    )
    waiting.start()
    while not server.ask("GET", "/v1/queue", resource=held["resource"]).body["waiters"]:
        pass

    server.ask("POST", "/v1/files/release", {"lease_id": held["lease_id"], "agent": "agent-7"})
    waiting.join()

    assert (replies[0].status, replies[0].body["leases"][0]["holder"]) == (200, "agent-9")
    assert replies[0].body["leases"][0]["expires_in"] > 3000, "it is confirmed, and lasts for its whole TTL"


def test_a_lease_is_renewed_handed_on_and_given_back(server: RunningServer, project: str) -> None:
    (lease,) = acquired(server, project, ["a.py"], "agent-7", ttl=50).body["leases"]
    named = {"lease_id": lease["lease_id"], "agent": "agent-7"}

    assert server.ask("POST", "/v1/files/renew", {**named, "ttl": 500}).body["expires_in"] > 400
    refused = server.ask("POST", "/v1/files/renew", {**named, "agent": "agent-9"})
    assert (refused.status, refused.code) == (403, "NOT_HOLDER")
    handed = server.ask("POST", "/v1/files/transfer", {**named, "to": "agent-9"})
    assert (handed.status, handed.body["holder"], handed.body["path"]) == (200, "agent-9", "a.py")
    assert handed.body["token"] > lease["token"]
    ended = server.ask("GET", "/v1/files/lease", lease_id=lease["lease_id"])
    assert (ended.status, ended.body["release_reason"]) == (200, "transferred")
    released = server.ask(
        "POST", "/v1/files/release", {"lease_id": handed.body["lease_id"], "agent": "agent-9"}
    )
    assert (released.status, released.body["state"]) == (200, "released")


def test_who_is_in_the_way_can_be_asked_without_claiming(server: RunningServer, project: str) -> None:
    acquired(server, project, ["src/"], "agent-7", mode="shared")

    def found(where: str, **query: Any) -> list[str]:
        reply = server.ask("GET", f"/v1/files/{where}", project=project, **query)
        assert reply.status == 200, reply.body
        return [one["holder"] for one in reply.body["leases"]]

    assert found("in-the-way", path="src/app.py") == ["agent-7"]
    assert found("in-the-way", path="src/app.py", mode="shared") == []
    assert found("around", path="src/app.py") == ["agent-7"]
    assert found("in-the-way", path="README.md") == []


def test_leases_are_listed_by_project_and_agent_page_by_page(server: RunningServer, project: str) -> None:
    for number in range(5):
        acquired(server, project, [f"{number}.py"], f"agent-{number % 2}")
    acquired(server, f"{project}-2", ["a.py"], "agent-0")

    listed: list[str] = []
    page: dict[str, Any] = {"next": ""}
    while page["next"] is not None:
        page = server.ask("GET", "/v1/files", project=project, limit=2, after=page["next"]).body
        listed += [one["path"] for one in page["leases"]]

    assert sorted(listed) == [f"{number}.py" for number in range(5)], "and nothing of the other project"
    own = server.ask("GET", "/v1/files", project=project, agent="agent-1").body["leases"]
    assert sorted(one["path"] for one in own) == ["1.py", "3.py"]


def test_everything_is_taken_from_an_agent_that_does_not_answer(server: RunningServer, project: str) -> None:
    agent = f"agent-{project}"
    acquired(server, project, ["a.py", "b.py"], agent)
    server.ask("POST", "/v1/leases", {"resource": f"plain-{project}", "holder": agent})
    body = {"agent": agent, "operator": "olga", "reason": "does not answer"}

    assert server.ask("POST", "/v1/files/force-release", body).body == {"released": 2}
    assert server.ask("POST", "/v1/files/force-release", body).body == {"released": 0}
    assert acquired(server, project, ["a.py"], "agent-9").status == 200
    (plain,) = server.ask("GET", "/v1/leases", holder=agent).body["leases"]
    assert plain["resource"] == f"plain-{project}", "only what is a file was taken"


def test_a_path_can_be_the_name_that_the_store_has_for_it(server: RunningServer, project: str) -> None:
    acquired(server, project, ["src/app.py"], "agent-7")

    assert acquired(server, None, [f"/@{project}/src/app.py"], "agent-9").status == 409
    assert acquired(server, None, [f"service://{project}"], "agent-9").status == 200


@pytest.mark.parametrize(
    ("path", "with_project"),
    [
        ("src/app.py", False),
        ("../app.py", True),
        ("src//app.py", True),
        ("./app.py", True),
        ("/etc/passwd", True),
        ("/srv/../etc", False),
        ("src/[a", True),
        ("", True),
        ("a\x00b", True),
        ("x" * 600, True),
    ],
)
def test_a_path_that_means_nothing_elsewhere_is_refused(
    server: RunningServer, project: str, path: str, with_project: bool
) -> None:
    refused = acquired(server, project if with_project else None, [path], "agent-7")

    assert (refused.status, refused.code, refused.body["field"]) == (422, "INVALID_INPUT", "path")
