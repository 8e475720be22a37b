"""The life of a server: start, serve, stop."""

import json
import resource
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

import leasehold
from tests.server.running import (
    PATIENCE_SECONDS,
    Reply,
    RunningServer,
    Watcher,
    ask_over,
    clean_environment,
)


def acquire(server: RunningServer, resource: str, holder: str = "ann", **more: object) -> Reply:
    return server.ask("POST", "/v1/leases", {"resource": resource, "holder": holder, **more})


def run(*arguments: str, **environment: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [sys.executable, "-m", "leasehold", *arguments],
        capture_output=True,
        text=True,
        timeout=PATIENCE_SECONDS,
        env={**clean_environment(), **environment},
        check=False,
    )


def in_background(action: Callable[[], Reply]) -> tuple[threading.Thread, list[Reply]]:
    replies: list[Reply] = []
    thread = threading.Thread(target=lambda: replies.append(action()))
    thread.start()
    return thread, replies


def until_under_way(server: RunningServer, count: int) -> None:
    """Return once so many requests are being answered, the one that finds it out among them."""
    while f"leasehold_http_requests_under_way {count}.0" not in server.ask("GET", "/metrics").body.decode():
        pass


def test_a_key_is_printed_at_the_first_start_only(tmp_path: Path) -> None:
    with RunningServer(tmp_path / "store") as server:
        key = server.key
        assert key.startswith("lh_")
        assert server.stop() == 0
        assert server.process.stdout is not None
        assert server.process.stdout.read() == "", "the key is on a line of its own, and nothing else"
    with RunningServer(tmp_path / "store") as server:
        assert server.key == ""
        assert server.ask("GET", "/v1/leases", key=key).status == 200


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_server_stops_in_order_while_a_stream_and_a_claim_wait(tmp_path: Path, number: int) -> None:
    with RunningServer(tmp_path / "store") as server:
        acquire(server, "door", ttl=300)
        watcher = Watcher(server).alive()
        waiting, replies = in_background(lambda: acquire(server, "door", "bob", wait=PATIENCE_SECONDS))
        while not server.ask("GET", "/v1/queue", resource="door").body["waiters"]:
            pass

        code = server.stop(number)
        waiting.join()

        *_, last = watcher.events()
        watcher.close()
        assert code == 0
        assert (last.type, last.data["code"]) == ("end", "SERVER_STOPPING")
        assert (replies[0].status, replies[0].code) == (503, "SERVER_STOPPING")
        assert "retry-after" in replies[0].headers
        assert server.logged("stopped")
    with leasehold.connect(tmp_path / "store") as local:
        assert local.queue("door") == [], "the claim has left the queue"
        assert [status.lease.holder for status in local.inspect("door")] == ["ann"]


def test_clients_that_do_nothing_or_do_not_read_keep_no_server_from_ending(tmp_path: Path) -> None:
    with RunningServer(tmp_path / "store") as server:
        idle, half, deaf = server.socket(), server.socket(), server.socket()
        half.sendall(b"POST /v1/leases HTTP/1.1\r\nHost: x\r\nContent-Le")
        request = f"GET /v1/events HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {server.key}\r\n\r\n"
        deaf.sendall(request.encode())
        assert deaf.recv(12) == b"HTTP/1.1 200"

        assert server.stop() == 0

        for client in (idle, half, deaf):
            client.close()


def test_a_second_signal_hurries(tmp_path: Path) -> None:
    with RunningServer(tmp_path / "store", "--stop-timeout", "3000") as server:
        unfinished = server.socket()
        unfinished.sendall(
            f"POST /v1/leases HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {server.key}\r\n"
            "Content-Type: application/json\r\nContent-Length: 100\r\n\r\n{".encode()
        )
        until_under_way(server, 2)
        server.process.send_signal(signal.SIGTERM)
        server.logged("stopping")

        assert server.stop() == 0

        server.logged("hurrying")
        unfinished.close()


def test_who_comes_while_the_server_stops_is_told_to_come_back(tmp_path: Path) -> None:
    with RunningServer(tmp_path / "store", "--stop-timeout", "3000") as server:
        unfinished, late = server.socket(), server.connect()
        unfinished.sendall(
            f"POST /v1/leases HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {server.key}\r\n"
            "Content-Type: application/json\r\nContent-Length: 31\r\n\r\n{".encode()
        )
        until_under_way(server, 2)
        late.connect()
        server.process.send_signal(signal.SIGTERM)
        server.logged("stopping")

        late.request("GET", "/v1/leases", headers={"Authorization": f"Bearer {server.key}"})
        refused = late.getresponse()
        assert (refused.status, json.loads(refused.read())["code"]) == (503, "SERVER_STOPPING")
        assert refused.headers["retry-after"]
        late.close()
        # What was under way is still finished.
        unfinished.sendall(b'"resource":"d","holder":"ann"}')
        assert unfinished.recv(12) == b"HTTP/1.1 201"
        unfinished.close()
        assert server.process.wait(PATIENCE_SECONDS) == 0


def test_what_lapsed_while_no_server_was_up_is_kept_for_its_holder(tmp_path: Path) -> None:
    with RunningServer(tmp_path / "store") as server:
        key = server.key
        acquire(server, "gate", ttl=600)
        lease = acquire(server, "door", ttl=2).body["lease"]
        over = time.clock_gettime(time.CLOCK_BOOTTIME) + 2
        server.process.kill()
        server.process.wait()
    time.sleep(max(0.0, over - time.clock_gettime(time.CLOCK_BOOTTIME)))
    with RunningServer(tmp_path / "store", "--settling", "120") as server:
        server.key = key
        settled = [line for line in server.log if "kept for its holders" in line["message"]]
        assert settled[0]["settling_seconds"] == 120

        newcomer = acquire(server, "door", "bob")
        shown = run("show", "door", "--store", str(tmp_path / "store")).stdout
        holder = acquire(server, "door", "ann")

        assert (newcomer.status, newcomer.body["holder"]) == (409, "registrar")
        assert "is kept closed for at most" in newcomer.body["detail"]
        assert "the lease of ann ran out while the server was down; ann may come back before that" in shown
        assert holder.status == 201
        assert holder.body["lease"]["token"] > lease["token"]


def test_every_acknowledged_grant_survives_a_kill(tmp_path: Path) -> None:
    with RunningServer(tmp_path / "store") as server:
        key = server.key
        leases = [acquire(server, f"r{number}", ttl=600).body["lease"] for number in range(20)]
        server.process.kill()
        server.process.wait()
    with RunningServer(tmp_path / "store") as server:
        server.key = key
        found = {lease["lease_id"]: lease for lease in server.ask("GET", "/v1/leases").body["leases"]}

        assert {lease["lease_id"]: lease["token"] for lease in leases} == {
            lease_id: lease["token"] for lease_id, lease in found.items()
        }
        assert acquire(server, "new").body["lease"]["token"] > max(lease["token"] for lease in leases)


def test_a_port_that_somebody_listens_on_is_refused(tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]

        refused = run("serve", "--store", str(tmp_path / "store"), "--port", str(port))

    assert refused.returncode == 1
    assert f"port {port}" in refused.stderr


def test_two_servers_do_not_share_a_port(tmp_path: Path) -> None:
    with RunningServer(tmp_path / "store") as server:
        port = str(server.address[1])

        refused = run("serve", "--store", str(tmp_path / "other"), "--port", port)

        assert refused.returncode == 1
        assert "choose others with --host and --port" in refused.stderr


def test_a_start_that_fails_closes_nothing_and_makes_no_key(tmp_path: Path) -> None:
    with RunningServer(tmp_path / "store") as server, leasehold.connect(tmp_path / "store") as local:
        port = str(server.address[1])
        before = local.head()

        refused = run("serve", "--store", str(tmp_path / "store"), "--port", port)
        new = run("serve", "--store", str(tmp_path / "other"), "--port", port)

        assert (refused.returncode, new.returncode) == (1, 1)
        assert local.head() == before, "the leases of the server that runs do not settle"
        assert (new.stdout, (tmp_path / "other").exists()) == ("", False)


def test_a_store_has_one_server_at_a_time(tmp_path: Path) -> None:
    with RunningServer(tmp_path / "store") as server, leasehold.connect(tmp_path / "store") as local:
        acquire(server, "door", ttl=600)
        before = local.head()

        refused = run("serve", "--store", str(tmp_path / "store"), "--port", "0")

        assert refused.returncode == 1
        assert f"process {server.process.pid} serves" in refused.stderr
        assert "stop it first" in refused.stderr
        assert local.head() == before, "nobody was down, so nothing settles"
        assert acquire(server, "gate").status == 201, "the first one goes on"


def test_a_server_that_was_killed_leaves_the_store_to_the_next(tmp_path: Path) -> None:
    with RunningServer(tmp_path / "store") as server:
        key = server.key
        server.process.kill()
        server.process.wait()
    with RunningServer(tmp_path / "store") as server:
        server.key = key
        assert acquire(server, "door").status == 201


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        (("--durability", "fast"), "power cut"),
        (("--store", "memory:"), "in memory"),
        (("--store", "http://127.0.0.1:7017"), "is the address of a server"),
        (("--prot", "1"), "did you mean '--port'"),
        (("--port", "many"), "port cannot be 'many'"),
        (("--host", "0.0.0.0"), "in clear"),
        (("--host", "0.0.0.0", "--plain-http", "--anonymous"), "loopback only"),
        (("--tls-key", "key.pem"), "belong together"),
        (("--config", "there-is-none.toml"), "there-is-none.toml"),
    ],
)
def test_a_server_does_not_start_with_what_makes_no_sense(
    tmp_path: Path, flags: tuple[str, ...], said: str
) -> None:
    refused = run("serve", "--store", str(tmp_path / "store"), *flags)

    assert refused.returncode in (1, 2)
    assert said in refused.stderr
    assert "Traceback" not in refused.stderr
    assert not (tmp_path / "store").exists()


def test_connections_that_do_nothing_leave_the_store_its_file_descriptors(tmp_path: Path) -> None:
    few = ("prlimit", "--nofile=120:120")
    with RunningServer(tmp_path / "store", "--header-timeout", "3000", under=few) as server:
        descriptors = Path(f"/proc/{server.process.pid}/fd")
        kept = server.connect()
        assert ask_over(kept, "GET", "/v1/leases", key=server.key).status == 200
        idle = [server.socket() for _ in range(120)]
        while len(list(descriptors.iterdir())) < 120 - 64:
            pass

        body = {"resource": "door", "holder": "ann"}
        granted = ask_over(kept, "POST", "/v1/leases", body, key=server.key)

        assert granted.status == 201
        assert ask_over(kept, "GET", "/readyz").status == 200
        assert len(list(descriptors.iterdir())) < 120
        for one in idle:
            one.close()
        assert server.ask("GET", "/v1/leases").status == 200, "there is room again"
        kept.close()
    (told,) = [line for line in server.log if "connections" in line]
    assert (told["connections"], told["open_files"]) == (120 - 64, 120)


def test_the_soft_limit_of_open_files_is_raised_to_the_hard_one(tmp_path: Path) -> None:
    flags = ("--connections-maximum", "100")
    with RunningServer(tmp_path / "store", *flags, under=("prlimit", "--nofile=64:2000")) as server:
        assert resource.prlimit(server.process.pid, resource.RLIMIT_NOFILE) == (2000, 2000)
    assert not any("connections_maximum" in line for line in server.raw_log)


def test_show_config_tells_where_each_value_came_from(tmp_path: Path) -> None:
    file = tmp_path / "leasehold.toml"
    file.write_text("[serve]\nbody_timeout = 7\n")

    shown = run(
        *("serve", "--show-config", "--json", "--config", str(file), "--port", "8080"),
        LEASEHOLD_SERVE_WAIT_MAXIMUM="60",
    )
    table = run("serve", "--show-config", "--port", "8080")
    quiet = run("serve", "--show-config", "--json", "--no-log-requests")

    found = json.loads(shown.stdout)
    assert found["port"] == {"value": 8080, "from": "--port"}
    assert found["wait_maximum"] == {"value": 60.0, "from": "$LEASEHOLD_SERVE_WAIT_MAXIMUM"}
    assert found["body_timeout"] == {"value": 7.0, "from": str(file)}
    assert found["host"] == {"value": "127.0.0.1", "from": "default"}
    assert "--port" in table.stdout
    assert json.loads(quiet.stdout)["log_requests"]["value"] is False


def test_anybody_on_this_machine_is_let_in_only_where_that_was_said(tmp_path: Path) -> None:
    with RunningServer(tmp_path / "store", "--anonymous") as server:
        said = [line for line in server.log if "without an access key, with all rights" in line["message"]]
        assert said[0]["level"] == "warning"
        assert server.ask("GET", "/v1/leases", key="").status == 200
        assert acquire(server, "door").status == 201
        for headers in ({"Host": "evil.example"}, {"Origin": "https://evil.example"}):
            assert server.ask("GET", "/v1/leases", key="", headers=headers).status == 401


def test_quotas_hold_for_whoever_asks_the_server(tmp_path: Path) -> None:
    with RunningServer(tmp_path / "store", "--leases-per-holder", "1", "--leases-per-tenant", "2") as server:
        assert acquire(server, "door").status == 201
        refused = acquire(server, "gate")
        assert (refused.status, refused.code, refused.body["field"]) == (
            429,
            "LIMIT_EXCEEDED",
            "leases_per_holder",
        )
        assert acquire(server, "gate", "bob").status == 201
        assert acquire(server, "roof", "eve").body["field"] == "leases_per_tenant"
