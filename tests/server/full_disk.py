"""Runs in a mount namespace of its own: a server whose file system is really full.

Started by test_health.py; ends with 0 if everything held.
"""

import subprocess
import sys
from pathlib import Path

import pytest

import leasehold
from tests.server.running import Reply, RunningServer
from tests.stores.sqlite.full_disk import fill


def acquire(server: RunningServer, resource: str) -> Reply:
    return server.ask("POST", "/v1/leases", {"resource": resource, "holder": "ann", "ttl": 3600})


def until_ready_is(ready: bool, server: RunningServer) -> Reply:
    """Return what is answered once it is that: a look is good for a second."""
    while (reply := server.ask("GET", "/readyz")).body["ready"] is not ready:
        pass
    return reply


def main() -> None:
    folder = Path(sys.argv[1])
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=8m", "leasehold", str(folder)], check=True)
    with RunningServer(folder / "store") as server, leasehold.connect(folder / "store") as local:
        assert acquire(server, "door").status == 201
        assert server.ask("GET", "/readyz").status == 200
        fill(folder)
        # The log has space left for a few.
        while (refused := acquire(server, "gate")).status != 507:
            server.ask("POST", f"/v1/leases/{refused.body['lease']['lease_id']}/release", {"holder": "ann"})
        before = local.head()

        unready = until_ready_is(False, server)
        with (
            pytest.raises(leasehold.StoreFull) as told,
            leasehold.connect(server.url, api_key=server.key) as remote,
        ):
            remote.acquire("window")

        assert (unready.status, unready.body["checks"]["store"]) == (503, "STORE_FULL")
        assert local.head() == before, "to ask writes nothing"
        for said in (str(refused.body), str(told.value), str(told.value.facts)):
            assert str(folder) not in said
        assert "log says why" in refused.body["detail"]
        assert any(str(folder) in line for line in server.raw_log if "STORE_FULL" in line)

        (folder / "filler").unlink()
        assert until_ready_is(True, server).status == 200
        assert acquire(server, "window").status == 201


if __name__ == "__main__":
    main()
