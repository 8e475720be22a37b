"""Plain REST for leases, spoken to a real server."""

import threading
from pathlib import Path
from uuid import uuid4

import pytest

import leasehold
from leasehold.certificates.verifying import verify_certificate
from tests.server.running import PATIENCE_SECONDS, Reply, RunningServer


def name() -> str:
    return f"report/{uuid4().hex}"


def acquired(server: RunningServer, resource: str, holder: str = "ann", **more: object) -> Reply:
    return server.ask("POST", "/v1/leases", {"resource": resource, "holder": holder, **more})


def test_a_resource_has_one_holder_who_can_renew_and_release_it(server: RunningServer) -> None:
    resource = name()

    granted = acquired(server, resource, ttl=20, metadata={"why": "tests"})

    assert granted.status == 201
    lease = granted.body["lease"]
    assert (lease["resource"], lease["holder"], lease["state"]) == (resource, "ann", "active")
    assert lease["survives_reboot"], "a lease of a remote holder is bound to nothing on the server's machine"
    assert 19 < lease["expires_in"] <= 20
    refused = acquired(server, resource, "bob")
    assert (refused.status, refused.code, refused.body["holder"]) == (409, "HELD", "ann")
    assert int(refused.headers["retry-after"]) >= 1
    renewed = server.ask("POST", f"/v1/leases/{lease['lease_id']}/renew", {"holder": "ann", "ttl": 60})
    assert (renewed.status, renewed.body["renewal_count"]) == (200, 1)
    assert renewed.body["expires_in"] > 50
    released = server.ask("POST", f"/v1/leases/{lease['lease_id']}/release", {"holder": "ann"})
    assert (released.status, released.body["state"]) == (200, "released")
    again = server.ask("POST", f"/v1/leases/{lease['lease_id']}/renew", {"holder": "ann"})
    assert (again.status, again.code) == (410, "LEASE_TERMINAL")
    assert acquired(server, resource, "bob").body["lease"]["token"] > lease["token"]


def test_only_the_holder_can_give_a_lease_back(server: RunningServer) -> None:
    lease = acquired(server, name()).body["lease"]

    refused = server.ask("POST", f"/v1/leases/{lease['lease_id']}/release", {"holder": "bob"})

    assert (refused.status, refused.code) == (403, "NOT_HOLDER")
    assert server.ask("GET", f"/v1/leases/{lease['lease_id']}").body["state"] == "active"


def test_a_claim_that_is_sent_again_is_answered_as_the_first_time(server: RunningServer) -> None:
    resource, request_id = name(), uuid4().hex

    first = acquired(server, resource, request_id=request_id)
    second = acquired(server, resource, request_id=request_id)

    assert (first.body["repeated"], second.body["repeated"]) == (False, True)
    assert first.body["lease"]["lease_id"] == second.body["lease"]["lease_id"]


def test_several_resources_are_granted_together(server: RunningServer) -> None:
    one, other = name(), name()

    granted = acquired(server, one, also=[{"resource": other, "mode": "shared"}])

    assert [lease["resource"] for lease in granted.body["also"]] == [other]
    assert granted.body["also"][0]["mode"] == "shared"


def test_many_leases_are_renewed_in_one_request_and_each_has_its_outcome(server: RunningServer) -> None:
    mine = acquired(server, name()).body["lease"]["lease_id"]
    of_bob = acquired(server, name(), "bob").body["lease"]["lease_id"]

    reply = server.ask(
        "POST", "/v1/renewals", {"holder": "ann", "lease_ids": [mine, of_bob, "nobody-knows"], "ttl": 40}
    )

    renewed, not_mine, unknown = reply.body["outcomes"]
    assert renewed["lease"]["renewal_count"] == 1
    assert not_mine["problem"]["code"] == "NOT_HOLDER"
    assert unknown["problem"]["code"] == "LEASE_NOT_FOUND"


def test_an_operator_revokes_and_history_says_who_and_why(server: RunningServer) -> None:
    lease = acquired(server, name()).body["lease"]

    revoked = server.ask(
        "POST", f"/v1/leases/{lease['lease_id']}/revoke", {"operator": "olga", "reason": "stuck"}
    )

    assert (revoked.body["state"], revoked.body["ended_by"], revoked.body["end_reason"]) == (
        "revoked",
        "olga",
        "stuck",
    )
    history = server.ask("GET", "/v1/history", lease_id=lease["lease_id"]).body["entries"]
    assert [(entry["type"], entry["actor"]) for entry in history] == [
        ("lease.issued", "ann"),
        ("lease.revoked", "olga"),
    ]


def test_a_lease_can_be_handed_to_another_holder(server: RunningServer) -> None:
    lease = acquired(server, name()).body["lease"]

    handed = server.ask("POST", f"/v1/leases/{lease['lease_id']}/transfer", {"holder": "ann", "to": "bob"})

    assert (handed.status, handed.body["holder"]) == (200, "bob")
    assert handed.body["token"] > lease["token"]
    assert handed.body["lease_id"] != lease["lease_id"]


def test_leases_are_listed_in_pages_and_searched(server: RunningServer) -> None:
    prefix = name()
    ids = [acquired(server, f"{prefix}/{number}").body["lease"]["lease_id"] for number in range(5)]

    found: list[str] = []
    page = server.ask("GET", "/v1/leases", prefix=prefix, limit=2)
    while True:
        found += [lease["lease_id"] for lease in page.body["leases"]]
        if page.body["next"] is None:
            break
        page = server.ask("GET", "/v1/leases", prefix=prefix, limit=2, after=page.body["next"])

    assert sorted(found) == sorted(ids)
    only = server.ask("GET", "/v1/leases", resource=f"{prefix}/3").body["leases"]
    assert [lease["lease_id"] for lease in only] == [ids[3]]
    server.ask("POST", f"/v1/leases/{ids[0]}/release", {"holder": "ann"})
    assert len(server.ask("GET", "/v1/leases", prefix=prefix).body["leases"]) == 4
    assert len(server.ask("GET", "/v1/leases", prefix=prefix, state="any").body["leases"]) == 5
    assert len(server.ask("GET", "/v1/leases", prefix=prefix, state="released").body["leases"]) == 1


def test_what_does_not_exist_is_not_found(server: RunningServer) -> None:
    assert server.ask("GET", "/v1/leases/nobody-knows").code == "LEASE_NOT_FOUND"
    nowhere = server.ask("GET", "/v1/nothing")
    assert (nowhere.status, nowhere.code) == (404, "PATH_NOT_FOUND")
    wrong = server.ask("DELETE", "/v1/leases")
    assert (wrong.status, wrong.code) == (405, "METHOD_NOT_ALLOWED")


def test_who_waits_gets_the_lease_as_soon_as_it_is_free_and_the_queue_shows_it(server: RunningServer) -> None:
    resource = name()
    lease = acquired(server, resource, ttl=120).body["lease"]
    replies: list[Reply] = []
    waiting = threading.Thread(
        target=lambda: replies.append(acquired(server, resource, "bob", wait=PATIENCE_SECONDS))
    )
    waiting.start()
    waiters: list[dict[str, object]] = []
    while not waiters:
        waiters = server.ask("GET", "/v1/queue", resource=resource).body["waiters"]

    server.ask("POST", f"/v1/leases/{lease['lease_id']}/release", {"holder": "ann"})
    waiting.join()

    assert [(waiter["holder"], waiter["position"]) for waiter in waiters] == [("bob", 1)]
    assert (replies[0].status, replies[0].body["lease"]["holder"]) == (201, "bob")
    assert replies[0].body["lease"]["expires_in"] > 20, "it is confirmed, and not only won"


def test_who_waited_in_vain_is_told_so_and_has_left_the_queue(server: RunningServer) -> None:
    resource = name()
    acquired(server, resource, ttl=120)

    refused = acquired(server, resource, "bob", wait=0.2)

    assert (refused.status, refused.code, refused.body["position"]) == (409, "WAIT_TIMEOUT", 1)
    assert server.ask("GET", "/v1/queue", resource=resource).body["waiters"] == []


def test_a_waiter_whose_client_has_left_leaves_the_queue(server: RunningServer) -> None:
    resource = name()
    acquired(server, resource, ttl=120)
    connection = server.connect()
    connection.request(
        "POST",
        "/v1/leases",
        b'{"resource": "%b", "holder": "bob", "wait": 300}' % resource.encode(),
        {"Authorization": f"Bearer {server.key}", "Content-Type": "application/json"},
    )
    while not server.ask("GET", "/v1/queue", resource=resource).body["waiters"]:
        pass

    connection.close()

    while server.ask("GET", "/v1/queue", resource=resource).body["waiters"]:
        pass  # Long before its 300 s are over, or the test is.


def test_a_certificate_of_a_lease_is_checked_by_the_keys_of_the_registrar(server: RunningServer) -> None:
    resource = name()
    lease = acquired(server, resource).body["lease"]

    certificate = server.ask("GET", f"/v1/leases/{lease['lease_id']}/certificate").body["certificate"]
    keys = server.ask("GET", "/v1/keys").body

    stated = verify_certificate(certificate, keys=keys, resource=resource)
    assert (stated.holder, stated.token) == ("ann", lease["token"])


def test_a_server_and_a_local_program_share_one_store(tmp_path: Path) -> None:
    with RunningServer(tmp_path / "store") as server, leasehold.connect(tmp_path / "store") as local:
        with local.acquire("door", holder="local") as held:
            refused = acquired(server, "door", "remote")
            assert (refused.code, refused.body["holder"]) == ("HELD", "local")
            token = held.token
        granted = acquired(server, "door", "remote").body["lease"]
        assert granted["token"] > token
        with pytest.raises(leasehold.Held, match="remote"):
            local.acquire("door", holder="local").__enter__()


@pytest.mark.parametrize(
    ("body", "field", "says"),
    [
        ({"resource": "door"}, "holder", "the body lacks the field 'holder', which is required"),
        ({"resource": "door", "holdr": "ann"}, "holdr", "takes no field 'holdr'; did you mean 'holder'?"),
    ],
)
def test_a_field_that_is_missing_or_unknown_is_named(
    server: RunningServer, body: dict[str, str], field: str, says: str
) -> None:
    refused = server.ask("POST", "/v1/leases", body)
    assert (refused.status, refused.body["field"]) == (422, field)
    assert says in refused.body["detail"]


def test_who_is_refused_is_told_what_the_holder_needs_it_for(server: RunningServer) -> None:
    resource = name()
    assert acquired(server, resource, reason="nightly build").status == 201

    for wait in (0, 0.2):
        assert acquired(server, resource, "bob", wait=wait).body["reason"] == "nightly build"
