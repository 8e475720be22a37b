"""Server-sent events: no gap, no repeat, in order, from any position."""

import itertools
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

import leasehold
from leasehold.engine.registrar import Registrar
from leasehold.registry import FAMILIES
from leasehold.stores.sqlite import SqliteStore
from tests.long_ago import LongAgo
from tests.server.running import Event, RunningServer, Watcher


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    flags = ("--ping-seconds", "0.3", "--send-timeout", "1")
    with RunningServer(tmp_path_factory.mktemp("served") / "store", *flags) as running:
        yield running


def acquire(server: RunningServer, resource: str, holder: str = "ann", tenant: str = "default") -> str:
    body = {"resource": resource, "holder": holder}
    reply = server.ask("POST", "/v1/leases", body, headers={"Leasehold-Tenant": tenant})
    lease_id: str = reply.body["lease"]["lease_id"]
    return lease_id


def first(watcher: Watcher, count: int) -> list[Event]:
    found = list(itertools.islice(watcher.events(), count))
    watcher.close()
    return found


def test_what_happens_is_told_as_it_happens(server: RunningServer) -> None:
    watcher = Watcher(server).alive()
    resource = uuid4().hex
    lease_id = acquire(server, resource)
    server.ask("POST", f"/v1/leases/{lease_id}/release", {"holder": "ann"})

    issued, released = first(watcher, 2)

    assert (issued.type, released.type) == ("lease.issued", "lease.released")
    assert issued.data["resource"] == resource
    assert issued.id == issued.data["position"]
    assert released.id == issued.id + 1


def test_a_stream_goes_on_where_the_last_one_ended(server: RunningServer) -> None:
    watcher = Watcher(server).alive()
    for _ in range(6):
        acquire(server, uuid4().hex)
    seen = first(watcher, 3)

    rest = first(Watcher(server, headers={"Last-Event-ID": str(seen[-1].id)}), 3)
    again = first(Watcher(server, after=seen[0].id), 5)

    assert [event.id for event in rest] == [seen[-1].id + number for number in (1, 2, 3)]
    assert [event.id for event in again] == [event.id for event in (*seen[1:], *rest)]


def test_last_event_id_counts_more_than_where_the_client_began(server: RunningServer) -> None:
    watcher = Watcher(server).alive()
    for _ in range(3):
        acquire(server, uuid4().hex)
    one, two, three = first(watcher, 3)

    (found,) = first(Watcher(server, after=one.id, headers={"Last-Event-ID": str(two.id)}), 1)

    assert found.id == three.id


def test_streams_are_filtered(server: RunningServer) -> None:
    wanted, tenant = uuid4().hex, uuid4().hex
    start = first(Watcher(server, after=0), 1)[0].id
    watchers = {
        "resource": Watcher(server, after=start, resource=wanted),
        "holder": Watcher(server, after=start, holder=wanted),
        "tenant": Watcher(server, after=start, tenant=tenant),
        "type": Watcher(server, after=start, type=["revoked", "lease.queued"]),
    }
    acquire(server, uuid4().hex)
    of_resource = acquire(server, wanted)
    of_holder = acquire(server, uuid4().hex, wanted)
    of_tenant = acquire(server, uuid4().hex, tenant=tenant)
    server.ask("POST", f"/v1/leases/{of_resource}/revoke", {"operator": "olga", "reason": "test"})

    found = {name: first(watcher, 1)[0] for name, watcher in watchers.items()}

    assert found["resource"].data["lease_id"] == of_resource
    assert found["holder"].data["lease_id"] == of_holder
    assert found["tenant"].data["lease_id"] == of_tenant
    assert (found["type"].type, found["type"].data["lease_id"]) == ("lease.revoked", of_resource)


def test_only_a_key_for_all_tenants_can_watch_all(server: RunningServer) -> None:
    tenant = uuid4().hex
    made = server.ask("POST", "/v1/access", {"role": "viewer"}, headers={"Leasehold-Tenant": tenant})
    everything = Watcher(server, tenant="*").alive()
    own = Watcher(server, key=made.body["text"]).alive()
    acquire(server, uuid4().hex)
    of_tenant = acquire(server, uuid4().hex, tenant=tenant)

    seen = first(everything, 2)

    assert [event.data["tenant"] for event in seen] == ["default", tenant]
    assert first(own, 1)[0].data["lease_id"] == of_tenant
    refused = Watcher(server, key=made.body["text"], tenant="default")
    assert refused.response.status == 403
    refused.close()


def test_for_a_key_that_is_bound_to_a_tenant_everything_is_what_it_may_see(server: RunningServer) -> None:
    tenant = uuid4().hex
    made = server.ask("POST", "/v1/access", {"role": "viewer"}, headers={"Leasehold-Tenant": tenant})
    watcher = Watcher(server, key=made.body["text"], tenant="*").alive()
    acquire(server, uuid4().hex)
    of_tenant = acquire(server, uuid4().hex, tenant=tenant)

    assert first(watcher, 1)[0].data["lease_id"] == of_tenant


@pytest.mark.parametrize(
    "query", [{"after": "-1"}, {"after": "x"}, {"after": str(1 << 64)}, {"type": "lease.unheard_of"}]
)
def test_a_stream_that_makes_no_sense_is_refused(server: RunningServer, query: dict[str, Any]) -> None:
    refused = server.ask("GET", "/v1/events", **query)

    assert (refused.status, refused.code) == (422, "INVALID_INPUT")


def test_a_silent_stream_gives_signs_of_life_that_move_the_position_along(server: RunningServer) -> None:
    watcher = Watcher(server, resource="nobody-touches-this").alive()
    acquire(server, uuid4().hex)
    head = first(Watcher(server, after=0), 1)[0].id
    for line in watcher.response:
        if line.startswith(b"id: ") and int(line[4:]) > head:
            break
    watcher.close()


def test_a_reader_that_does_not_read_is_cut_off_and_resumes_without_a_gap(tmp_path: Path) -> None:
    flags = ("--send-timeout", "0.5", "--ping-seconds", "0.3")
    with RunningServer(tmp_path / "store", *flags) as server:
        with leasehold.connect(tmp_path / "store") as local:
            for number in range(450):  # More than the buffers on the way can take.
                with local.acquire(f"r{number}", metadata={"filler": "x" * 15_000}):
                    pass
        lazy = server.socket()
        lazy.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 64 << 10)
        shown = f"Authorization: Bearer {server.key}"
        lazy.sendall(f"GET /v1/events?after=1 HTTP/1.1\r\nHost: x\r\n{shown}\r\n\r\n".encode())
        while "was cut off" not in server.logged("request").get("note", ""):
            pass
        received = b""
        while part := lazy.recv(1 << 16):  # What was under way still comes, and then the end.
            received += part
        lazy.close()
        complete = [
            line for line in received.split(b"\r\n\r\n", 1)[1].split(b"\n") if line.startswith(b"id: ")
        ]
        last = max(int(line[4:]) for line in complete[:-1])

        positions = [event.id for event in first(Watcher(server, after=last), 5)]

        assert positions == list(range(last + 1, last + 6))


def test_readers_that_do_not_read_cost_little_memory(tmp_path: Path) -> None:
    with RunningServer(tmp_path / "store", "--send-timeout", "1") as server:
        with leasehold.connect(tmp_path / "store") as local:
            for number in range(1_000):
                local.acquire(f"r{number}", metadata={"filler": "x" * 15_000}, ttl=600)
        before = most_memory(server)
        lazy = [server.socket() for _ in range(20)]
        shown = f"Authorization: Bearer {server.key}"
        for one in lazy:
            one.sendall(f"GET /v1/events?after=1 HTTP/1.1\r\nHost: x\r\n{shown}\r\n\r\n".encode())
        for _ in lazy:
            while "was cut off" not in server.logged("request").get("note", ""):
                pass
        for one in lazy:
            one.close()

        assert (most_memory(server) - before) / len(lazy) < 12 << 20


def most_memory(server: RunningServer) -> int:
    """Return how many bytes a server has had in memory at most."""
    status = Path(f"/proc/{server.process.pid}/status").read_text()
    (line,) = [line for line in status.splitlines() if line.startswith("VmHWM")]
    return int(line.split()[1]) << 10


def test_what_local_programs_do_is_told_as_well(server: RunningServer, tmp_path: Path) -> None:
    with RunningServer(tmp_path / "store") as own, leasehold.connect(tmp_path / "store") as local:
        watcher = Watcher(own).alive()
        with local.acquire("door"):
            pass
        assert [event.type for event in first(watcher, 2)] == ["lease.issued", "lease.released"]


def test_many_watchers_all_see_everything(server: RunningServer) -> None:
    watchers = [Watcher(server, type="issued").alive() for _ in range(30)]
    resources = [uuid4().hex for _ in range(10)]
    for resource in resources:
        acquire(server, resource)

    for watcher in watchers:
        assert [event.data["resource"] for event in first(watcher, 10)] == resources


def live_long_ago(path: Path, *, grants: int, metadata: str = "") -> int:
    """Leave leases that were granted and released long ago; return how many entries there are."""
    store = SqliteStore(path, clock=LongAgo(), durability="fast", families=FAMILIES)
    with leasehold.Client(Registrar(store), holder="ann") as client:
        for number in range(grants):
            client.acquire(f"door-{number}", metadata={"note": metadata}).release()
        return client.position()


def test_whoever_goes_on_from_what_was_pruned_is_told_so(tmp_path: Path) -> None:
    gone = live_long_ago(tmp_path / "store", grants=3)
    with RunningServer(tmp_path / "store") as server:
        resource = uuid4().hex
        acquire(server, resource)
        with leasehold.connect(server.url, api_key=server.key) as admin:
            assert admin.prune().through == gone

        refused = server.ask("GET", "/v1/events", after=gone - 1)
        resumed = server.ask("GET", "/v1/events", headers={"Last-Event-ID": "1"})
        (next_one,) = first(Watcher(server, after=refused.body["position"]), 1)
        (oldest,) = first(Watcher(server, after=0), 1)

        assert (refused.status, refused.code, refused.body["position"]) == (410, "HISTORY_PRUNED", gone)
        assert f"continue after {gone}" in refused.body["detail"]
        assert (resumed.status, resumed.code) == (410, "HISTORY_PRUNED")
        assert next_one.data["resource"] == resource, "there is no gap after what was pruned"
        assert oldest == next_one, "who begins at 0 wants whatever there is"


def test_a_slow_reader_that_is_overtaken_by_pruning_is_told_and_sees_no_silent_gap(tmp_path: Path) -> None:
    gone = live_long_ago(tmp_path / "store", grants=800, metadata="x" * 15_000)
    with RunningServer(tmp_path / "store", "--send-timeout", "3000") as server:
        acquire(server, "door")
        slow = Watcher(server, after=1)  # Nobody reads what it is sent, and no buffer takes 12 MB.
        with leasehold.connect(server.url, api_key=server.key) as admin:
            assert admin.prune().through == gone

        *seen, last = slow.events()
        slow.close()

        assert [event.id for event in seen] == list(range(2, 2 + len(seen)))
        assert len(seen) < gone - 1
        assert (last.type, last.data["code"], last.data["position"]) == ("end", "HISTORY_PRUNED", gone)
