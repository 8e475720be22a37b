"""Clients with access keys at a whole server."""

import threading
from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import pytest

import leasehold
from leasehold.errors import NotAuthenticated
from tests.client.worlds import SIGNAL_SECONDS
from tests.server.running import RunningServer


def _aside(work: Callable[[], object]) -> tuple[threading.Thread, list[Exception]]:
    """Do something in a thread of its own; return it, and where what it raises will be."""
    raised: list[Exception] = []

    def note() -> None:
        try:
            work()
        except Exception as error:
            raised.append(error)

    thread = threading.Thread(target=note)
    thread.start()
    return thread, raised


def test_a_key_that_is_revoked_loses_at_once_also_where_it_waits(server: RunningServer) -> None:
    with leasehold.connect(server.url, api_key=server.key, holder="admin") as admin:
        made = admin.access.create("holder")
        with (
            admin.acquire("door"),
            leasehold.connect(server.url, api_key=made.text, holder="bob", timeout=5) as other,
        ):
            waiting = _aside(lambda: other.acquire("door", wait=SIGNAL_SECONDS))
            watching = _aside(lambda: list(other.watch()))
            for entry in admin.watch(after=0):
                if entry.event.type == "lease.queued":
                    break
            admin.access.revoke(made.key.key_id)
            for thread, raised in (waiting, watching):
                thread.join(5)  # Before the claim would have asked by itself.
                assert [type(error) for error in raised] == [NotAuthenticated]


def test_a_client_of_one_tenant_learns_nothing_of_another(server: RunningServer) -> None:
    with leasehold.connect(server.url, api_key=server.key, tenant="acme", holder="ann") as admin:
        made = admin.access.create("operator")
        admin.acquire("secret-plan").detach()
    with leasehold.connect(server.url, api_key=server.key, tenant="other", holder="eve") as admin:
        foreign = admin.access.create("operator")
    with leasehold.connect(server.url, api_key=made.text, tenant="acme") as own:
        assert [one.lease.resource for one in own.list().statuses] == ["secret-plan"]
    with leasehold.connect(server.url, api_key=foreign.text, tenant="other") as other:
        assert other.list().statuses == []
        assert "secret-plan" not in repr(other.history())


def _work_until_lost(leases: leasehold.Client, resource: str, end: Callable[[str], object]) -> None:
    with leases.acquire(resource, ttl=1.5) as lease:
        end(lease.lease_id)
        lease.lost.wait(SIGNAL_SECONDS)


def test_a_holder_whose_key_is_revoked_loses_its_lease_in_time_and_says_why(server: RunningServer) -> None:
    with leasehold.connect(server.url, api_key=server.key, holder="admin") as admin:
        made = admin.access.create("holder")
        with (
            leasehold.connect(server.url, api_key=made.text, holder="bob", timeout=5) as other,
            pytest.raises(leasehold.LeaseExpired, match="this access key is not known") as lost,
        ):
            _work_until_lost(other, "report", lambda lease_id: admin.access.revoke(made.key.key_id))
    assert lost.value.cause == "NOT_AUTHENTICATED"


def test_a_holder_learns_over_the_network_who_revoked_its_lease_and_why(server: RunningServer) -> None:
    with (
        leasehold.connect(server.url, api_key=server.key, holder="ops") as operator,
        leasehold.connect(server.url, api_key=server.key, holder="bob") as other,
        pytest.raises(leasehold.LeaseTerminal, match="revoked by ops: hang") as lost,
    ):
        _work_until_lost(other, "gate", lambda lease_id: operator.revoke(lease_id, reason="hang"))
    assert (lost.value.ended_by, lost.value.end_reason) == ("ops", "hang")


def _requests(server: RunningServer, path: str) -> Iterator[dict[str, Any]]:
    while True:
        line = server.logged("request")
        if line["path"] == path:
            yield line


def test_the_log_tells_what_a_clients_requests_were_about(tmp_path: Path) -> None:
    with RunningServer(tmp_path / "store") as server:
        with leasehold.connect(server.url, api_key=server.key, tenant="acme", holder="ann") as leases:
            lease = leases.acquire("door", ttl=60)
            leases.get(lease.lease_id)
            lease.release()
        server.ask("GET", f"/v1/leases/{lease.lease_id}", headers={"Leasehold-Tenant": "acme"})

        desk = list(islice(_requests(server, "/v1/desk"), 3))
        looked = next(_requests(server, f"/v1/leases/{lease.lease_id}"))
    assert [line["operations"] for line in desk] == [{"acquire": 1}, {"find_lease": 1}, {"release": 1}]
    assert [line["tenant"] for line in (*desk, looked)] == ["acme"] * 4
    assert [line["lease"] for line in (*desk, looked)] == [lease.lease_id] * 4


def test_the_log_of_a_request_stays_short_however_much_it_carries(server: RunningServer) -> None:
    items = [{"command": "nonsense"}] * 500
    sent = server.ask("POST", "/v1/desk", {"id": "r", "items": items}, headers={"X-Request-Id": "many"})
    line = next(one for one in _requests(server, "/v1/desk") if one["request_id"] == "many")
    assert sent.status == 200
    assert line["operations"] == {"unreadable": 500}
    assert "lease" not in line
