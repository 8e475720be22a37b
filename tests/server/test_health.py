"""Is the server alive, can it work, and what does it tell a monitoring system?"""

import os
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from uuid import uuid4

import pytest

import leasehold
from leasehold.server.health import look
from leasehold.stores.sqlite import SqliteStore
from tests.server.running import RunningServer


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    flags = ("--store-timeout", "0.5")
    with RunningServer(tmp_path_factory.mktemp("served") / "store", *flags) as running:
        yield running


def metrics(server: RunningServer) -> dict[str, float]:
    lines = server.ask("GET", "/metrics").body.decode().splitlines()
    pairs = (line.rpartition(" ") for line in lines if not line.startswith("#"))
    return {name: float(value) for name, _, value in pairs}


def test_anybody_may_ask_whether_the_server_is_alive_and_ready(server: RunningServer) -> None:
    assert server.ask("GET", "/healthz", key="").body == {"status": "ok"}
    ready = server.ask("GET", "/readyz", key="")
    assert (ready.status, ready.body["ready"]) == (200, True)
    assert set(ready.body["checks"]) == {"store", "ledger", "clock", "server"}


def test_what_happens_is_counted_by_kind_and_outcome(server: RunningServer) -> None:
    resource = uuid4().hex
    before = metrics(server)
    lease = server.ask("POST", "/v1/leases", {"resource": resource, "holder": "ann"}).body["lease"]
    server.ask("POST", "/v1/leases", {"resource": resource, "holder": "bob", "wait": 0.05})
    server.ask("POST", f"/v1/leases/{lease['lease_id']}/revoke", {"operator": "olga", "reason": "test"})
    server.ask("POST", f"/v1/leases/{lease['lease_id']}/renew", {"holder": "ann"})
    after = metrics(server)

    def rise(name: str) -> float:
        return after.get(name, 0) - before.get(name, 0)

    assert rise('leasehold_operations_total{kind="acquire",outcome="ok"}') == 1
    assert rise('leasehold_operations_total{kind="acquire",outcome="waiting"}') >= 1
    assert rise('leasehold_operation_seconds_count{kind="acquire"}') >= 2
    assert rise("leasehold_grants_total") == 1
    assert rise('leasehold_endings_total{how="revoked"}') == 1
    assert rise('leasehold_losses_total{reason="operator"}') == 1
    assert rise("leasehold_waits_in_vain_total") == 1
    assert rise("leasehold_batch_commands_count") >= 4
    assert rise("leasehold_live_leases") == 0
    assert rise('leasehold_http_requests_total{method="POST",status="409"}') == 1
    assert not [name for name in after if resource in name], "no name that a client has chosen is a label"


def test_live_leases_and_queues_are_counted_as_they_stand(tmp_path: Path) -> None:
    with (
        RunningServer(tmp_path / "store") as server,
        leasehold.connect(tmp_path / "store") as local,
        local.acquire("a"),
        local.acquire("b"),
    ):
        assert metrics(server)["leasehold_live_leases"] == 2


def test_while_another_process_keeps_the_write_lock_changes_get_503_and_nothing_is_granted(
    server: RunningServer,
) -> None:
    resource = uuid4().hex
    store = next(line["store"] for line in server.log if "store" in line)
    file = Path(store.removeprefix("sqlite:///")) / "leases.db"
    blocker = sqlite3.connect(file, isolation_level=None)
    blocker.execute("BEGIN IMMEDIATE")
    try:
        refused = server.ask("POST", "/v1/leases", {"resource": resource, "holder": "ann"})
        assert (refused.status, refused.code) == (503, "STORE_BUSY")
        assert int(refused.headers["retry-after"]) >= 1
        assert server.ask("GET", "/v1/leases", resource=resource).body["leases"] == [], "reading goes on"
    finally:
        blocker.execute("ROLLBACK")
        blocker.close()
    assert server.ask("POST", "/v1/leases", {"resource": resource, "holder": "ann"}).status == 201
    assert metrics(server)['leasehold_store_errors_total{code="STORE_BUSY"}'] >= 1


def test_a_server_whose_store_is_gone_says_that_it_is_not_ready_and_grants_nothing(tmp_path: Path) -> None:
    with RunningServer(tmp_path / "store") as server:
        server.ask("POST", "/v1/leases", {"resource": "door", "holder": "ann"})
        shutil.rmtree(tmp_path / "store")

        refused = server.ask("POST", "/v1/leases", {"resource": "gate", "holder": "ann"})
        with (
            leasehold.connect(server.url, api_key=server.key, timeout=1) as remote,
            pytest.raises(leasehold.StoreError) as failed,
        ):
            remote.verify()
        ready = server.ask("GET", "/readyz")
        while ready.body["ready"]:  # A look is good for a second.
            ready = server.ask("GET", "/readyz")

        assert refused.status == 503
        assert "retry-after" in refused.headers
        assert str(tmp_path) not in f"{refused.body} {failed.value} {failed.value.facts}"
        assert ready.status == 503
        assert ready.body["checks"]["store"] != "ok"
        assert server.ask("GET", "/healthz").status == 200
        assert server.stop() == 0


def test_a_server_on_a_full_disk_says_that_it_is_not_ready_and_tells_nobody_where_its_store_is(
    tmp_path: Path,
) -> None:
    namespace = ["unshare", "--mount"] if os.geteuid() == 0 else ["unshare", "--mount", "--map-root-user"]
    run = subprocess.run(
        [*namespace, sys.executable, "-m", "tests.server.full_disk", str(tmp_path)],
        cwd=Path(__file__).resolve().parents[2],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert run.returncode == 0, run.stderr


def test_a_ledger_whose_end_is_not_sealed_is_noticed(tmp_path: Path) -> None:
    with leasehold.connect(tmp_path / "store") as local, local.acquire("door"):
        pass
    store = SqliteStore(tmp_path / "store")
    try:
        assert set(look(store).values()) == {"ok"}
        with sqlite3.connect(tmp_path / "store" / "leases.db") as connection:
            (table,) = connection.execute(
                "SELECT name FROM sqlite_master WHERE type = 'table' AND sql LIKE '%seal %'"
            ).fetchone()
            connection.execute(f"UPDATE {table} SET seal = NULL")
        connection.close()
        assert look(store)["ledger"] == "the last entry is not sealed"
    finally:
        store.close()


def test_a_server_is_ready_right_after_the_key_that_seals_was_rotated(tmp_path: Path) -> None:
    with leasehold.connect(tmp_path / "store") as local:
        local.rotate_key()
    store = SqliteStore(tmp_path / "store")
    try:
        assert look(store)["ledger"] == "ok"
    finally:
        store.close()


def test_a_key_that_asks_too_often_is_told_to_slow_down(tmp_path: Path) -> None:
    flags = ("--requests-per-second", "1", "--requests-burst", "3")
    with RunningServer(tmp_path / "store", *flags) as server:
        replies = [server.ask("GET", "/v1/leases") for _ in range(8)]

        refused = [reply for reply in replies if reply.status == 429]
        assert refused
        assert {reply.code for reply in refused} == {"RATE_LIMITED"}
        assert all(int(reply.headers["retry-after"]) >= 1 for reply in refused)
        assert server.ask("GET", "/healthz").status == 200
