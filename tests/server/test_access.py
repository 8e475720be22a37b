"""Access keys over HTTP: what each may do, and that a revoked one loses at once."""

import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from tests.server.running import PATIENCE_SECONDS, Reply, RunningServer, Watcher


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    with RunningServer(tmp_path_factory.mktemp("served") / "store", "--ping-seconds", "0.5") as running:
        yield running


def made(server: RunningServer, role: str, *, tenant: str = "default", **more: object) -> dict[str, str]:
    reply = server.ask("POST", "/v1/access", {"role": role, **more}, headers={"Leasehold-Tenant": tenant})
    assert reply.status == 201, reply.body
    return {"text": reply.body["text"], "key_id": reply.body["key"]["key_id"]}


def test_the_first_key_is_printed_once_and_can_do_everything(server: RunningServer) -> None:
    bearer = server.ask("GET", "/v1/access/bearer").body["key"]

    assert (bearer["role"], bearer["tenant"], bearer["is_live"]) == ("admin", None, True)
    assert bearer["key_id"] in server.key


@pytest.mark.parametrize(
    "path", ["/v1/leases", "/v1/history", "/v1/keys", "/v1/access", "/v1/events", "/metrics"]
)
def test_nothing_is_told_without_a_good_key(server: RunningServer, path: str) -> None:
    for key in ("", "lh_unknown_secret", server.key[:-1], "nonsense"):
        refused = server.ask("GET", path, key=key)
        assert (refused.status, refused.code) == (401, "NOT_AUTHENTICATED")
        assert refused.headers["www-authenticate"].startswith("Bearer")


def test_a_viewer_looks_and_changes_nothing(server: RunningServer) -> None:
    viewer = made(server, "viewer")["text"]

    assert server.ask("GET", "/v1/leases", key=viewer).status == 200
    refused = server.ask("POST", "/v1/leases", {"resource": "a", "holder": "ann"}, key=viewer)
    assert (refused.status, refused.code) == (403, "NOT_PERMITTED")
    assert server.ask("GET", "/v1/access", key=viewer).status == 403


def test_a_holder_key_is_bound_to_its_holders_and_its_tenant(server: RunningServer) -> None:
    key = made(server, "holder", tenant="acme", holders=["ci-*"])["text"]
    resource = uuid4().hex

    def claim(holder: str, **headers: str) -> Reply:
        body = {"resource": resource, "holder": holder}
        return server.ask("POST", "/v1/leases", body, key=key, headers=headers)

    assert claim("ann").status == 403
    granted = claim("ci-7")
    assert (granted.status, granted.body["lease"]["tenant"]) == (201, "acme")
    assert claim("ci-8", **{"Leasehold-Tenant": "other"}).status == 403
    lease_id = granted.body["lease"]["lease_id"]
    assert server.ask("GET", f"/v1/leases/{lease_id}").status == 404, "it is not of the tenant `default`"
    assert (
        server.ask("POST", f"/v1/leases/{lease_id}/revoke", {"operator": "o", "reason": "r"}, key=key).status
        == 403
    )


def test_a_key_that_is_bound_to_holders_has_their_leases_certified_and_no_others(
    server: RunningServer,
) -> None:
    key = made(server, "holder", holders=["ci-*"])["text"]
    leases = {}
    for holder in ("ci-1", "ann"):
        claim = {"resource": uuid4().hex, "holder": holder}
        leases[holder] = server.ask("POST", "/v1/leases", claim).body["lease"]["lease_id"]

    def status(lease: str, **query: Any) -> int:
        return server.ask("GET", f"/v1/leases/{leases[lease]}/certificate", key=key, **query).status

    assert status("ci-1", holder="ci-1") == 200
    assert status("ci-1") == status("ann") == status("ann", holder="ann") == 403
    assert status("ann", holder="ci-1") == 403


def test_metrics_are_for_keys_that_are_bound_to_no_tenant(server: RunningServer) -> None:
    assert server.ask("GET", "/metrics", key=made(server, "viewer")["text"]).status == 403
    assert server.ask("GET", "/metrics", key=made(server, "viewer", all_tenants=True)["text"]).status == 200


def test_a_revoked_key_loses_at_once_also_its_open_stream(server: RunningServer) -> None:
    key = made(server, "viewer")
    watcher = Watcher(server, key=key["text"]).alive()

    revoked = server.ask("POST", f"/v1/access/{key['key_id']}/revoke", {"reason": "left"})
    server.ask("POST", "/v1/leases", {"resource": uuid4().hex, "holder": "ann"})

    assert (revoked.status, revoked.body["is_live"]) == (200, False)
    assert server.ask("GET", "/v1/leases", key=key["text"]).status == 401
    (*before, last) = watcher.events()
    assert (last.type, last.data["code"]) == ("end", "NOT_AUTHENTICATED")
    assert "lease.issued" not in [event.type for event in before], "nothing that came after the revocation"
    watcher.close()


def test_a_waiting_claim_of_a_revoked_key_is_refused_at_once(server: RunningServer) -> None:
    key, resource = made(server, "holder"), uuid4().hex
    server.ask("POST", "/v1/leases", {"resource": resource, "holder": "ann", "ttl": 300})
    replies: list[Reply] = []

    def wait() -> None:
        body = {"resource": resource, "holder": "bob", "wait": PATIENCE_SECONDS}
        replies.append(server.ask("POST", "/v1/leases", body, key=key["text"]))

    waiting = threading.Thread(target=wait)
    waiting.start()
    while not server.ask("GET", "/v1/queue", resource=resource).body["waiters"]:
        pass

    server.ask("POST", f"/v1/access/{key['key_id']}/revoke", {})
    waiting.join()

    assert (replies[0].status, replies[0].code) == (401, "NOT_AUTHENTICATED")


def test_a_waiting_claim_is_refused_at_once_also_where_nobody_watches(tmp_path: Path) -> None:
    with RunningServer(tmp_path / "store") as server:
        key = made(server, "holder")
        server.ask("POST", "/v1/leases", {"resource": "door", "holder": "ann", "ttl": 300})
        refused_at: list[float] = []

        def wait() -> None:
            body = {"resource": "door", "holder": "bob", "wait": PATIENCE_SECONDS}
            assert server.ask("POST", "/v1/leases", body, key=key["text"]).status == 401
            refused_at.append(time.monotonic())

        waiting = threading.Thread(target=wait)
        waiting.start()
        while not server.ask("GET", "/v1/queue", resource="door").body["waiters"]:
            pass
        revoked_at = time.monotonic()
        server.ask("POST", f"/v1/access/{key['key_id']}/revoke", {})
        waiting.join()

    assert refused_at[0] - revoked_at < 5  # Who is not woken asks by itself after ten seconds.


def test_a_stream_ends_with_its_key_also_while_much_happens(tmp_path: Path) -> None:
    with RunningServer(tmp_path / "store", "--ping-seconds", "0.5") as server:
        key = made(server, "viewer", expires=1.0)
        watcher = Watcher(server, key=key["text"]).alive()
        is_over = threading.Event()

        def be_busy() -> None:
            while not is_over.is_set():
                server.ask("POST", "/v1/leases", {"resource": uuid4().hex, "holder": "ann"})

        busy = threading.Thread(target=be_busy)
        busy.start()
        try:
            ends = [event.data["code"] for event in watcher.events() if event.type == "end"]
        finally:
            is_over.set()
            busy.join()
            watcher.close()

    assert ends == ["NOT_AUTHENTICATED"]


def test_streams_of_one_key_leave_room_for_those_of_others(tmp_path: Path) -> None:
    with RunningServer(tmp_path / "store", "--connections-maximum", "1000") as server:
        greedy = made(server, "viewer")["text"]
        for path in ("/v1/access", "/v1/leases"):  # Requests that were answered do not count.
            server.ask("GET", path, key=greedy)
        share = [Watcher(server, key=greedy).alive() for _ in range(100)]
        refused = server.ask("GET", "/v1/events", key=greedy)
        other = Watcher(server)

        assert (refused.status, refused.code) == (429, "RATE_LIMITED")
        assert other.response.status == 200
        for watcher in (*share, other):
            watcher.close()
        while server.ask("GET", "/v1/leases", key=greedy).status == 429:
            pass


def test_the_old_secret_of_a_rotated_key_is_good_for_the_overlap_only(server: RunningServer) -> None:
    key = made(server, "viewer")
    assert server.ask("GET", "/v1/leases", key=key["text"]).status == 200

    overlapping = server.ask("POST", f"/v1/access/{key['key_id']}/rotate", {"overlap": 3600}).body["text"]
    assert [server.ask("GET", "/v1/leases", key=one).status for one in (key["text"], overlapping)] == [
        200,
        200,
    ]
    last = server.ask("POST", f"/v1/access/{key['key_id']}/rotate", {}).body["text"]

    statuses = [server.ask("GET", "/v1/leases", key=one).status for one in (key["text"], overlapping, last)]
    assert statuses == [401, 401, 200]


def test_no_secret_is_ever_logged(server: RunningServer) -> None:
    made_key = made(server, "viewer")["text"]
    server.ask("GET", f"/v1/leases/{made_key}", key=made_key)
    server.ask("GET", "/v1/leases", key=made_key, api_key=made_key)
    server.ask("POST", "/v1/leases", {"resource": made_key, made_key: 1}, key=made_key)
    server.ask("GET", f"/{made_key}")
    while not server.logged("request")["path"].startswith("/lh_"):
        pass  # Everything before it is in the log as well by then.

    logged = "".join(server.raw_log)
    for text in (made_key, server.key):
        secret = text.rpartition("_")[2]
        assert secret not in logged
        assert text.split("_")[1] in logged, "the id of a key tells who it was"
