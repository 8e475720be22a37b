"""Runs in a mount namespace of its own, on a file system of one megabyte, and fills that to the brim.

Started by test_full_disk.py; says how far it came, and ends with 0 if everything held.
"""

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from leasehold import Client, StoreFull
from leasehold.engine.audit import audit
from leasehold.stores.sqlite import connection
from tests.stores.sqlite.support import client_of, open_store, problems_of

TTL = 3600


def a_full_disk_refuses_and_loses_nothing(folder: Path) -> None:
    path = folder / "leases"
    with client_of(path, holder="first") as client:
        granted = acquire_until_full(client, "resource")
        assert len(granted) > 10
        fill(folder, "what still fitted")
        renew_until_full(client, next(iter(granted)))
        for _ in range(3):
            expect_full(lambda: client.acquire("one more", ttl=TTL, request_id="one more"))
            expect_full(lambda: client.renew(next(iter(granted))))
            expect_full(lambda: client.release(next(iter(granted))))
        standing = {status.lease.lease_id: status.lease.token for status in client.list(limit=5000).statuses}
        assert standing == granted, "what was granted can be read, and nothing else"
        store = open_store(path)
        assert audit(store).problems == []
        store.close()

        (folder / "filler").unlink()
        late = client.acquire("one more", ttl=TTL, request_id="one more")
        assert late.token > max(granted.values())
        assert client.release(next(iter(granted)))
    assert problems_of(path) == []
    with client_of(path, holder="second") as client:
        assert client.acquire("from a new connection").token > late.token


def acquire_until_full(client: Client, name: str) -> dict[str, int]:
    granted: dict[str, int] = {}
    while True:
        try:
            lease = client.acquire(f"{name}-{len(granted)}", ttl=TTL).detach()
        except StoreFull:
            return granted
        granted[lease.lease_id] = lease.token


def renew_until_full(client: Client, lease_id: str) -> None:
    """Use up the space that the refused grant has left in the log: a renewal needs less."""
    try:
        while True:
            client.renew(lease_id)
    except StoreFull:
        return


def a_store_cannot_be_made_on_a_full_disk(folder: Path) -> None:
    path = folder / "leases"
    expect_full(lambda: open_store(path))
    (folder / "filler").unlink()
    with client_of(path) as client:
        assert client.acquire("resource").token
    assert problems_of(path) == []


def a_checkpoint_without_space_fails_no_commit(folder: Path) -> None:
    connection._CHECKPOINT_PAGES = 1
    path = folder / "leases"
    with client_of(path) as client:
        reader = open_store(path)
        with reader.snapshot():  # The log can only grow as long as somebody reads.
            for number in range(20):
                client.acquire(f"before-{number}", ttl=TTL).detach()
        reader.close()
        client.acquire("the last of the long log", ttl=TTL).detach()
        fill(folder, "the rest")
        blocks = (path / "leases.db").stat().st_blocks
        # The log has space, from its start again; the main file has none to grow.
        granted = acquire_until_full(client, "after")
        assert granted
        assert (path / "leases.db").stat().st_blocks == blocks
        (folder / "the rest").unlink()
        client.acquire("resource")
        assert (path / "leases.db").stat().st_blocks > blocks
        standing = {status.lease.lease_id for status in client.list(limit=5000).statuses}
        assert granted.keys() <= standing
    assert problems_of(path) == []


def expect_full(action: Callable[[], object]) -> None:
    with pytest.raises(StoreFull, match="no space left"):
        action()


def fill(folder: Path, name: str = "filler", *, leave_bytes: int = 0) -> None:
    """Write a file until nothing fits any more, and give back a little."""
    size = 0
    with (folder / name).open("wb", buffering=0) as filler:
        try:
            while True:
                size += filler.write(bytes(4096))
        except OSError:
            filler.truncate(size - leave_bytes)


def main() -> None:
    base = Path(sys.argv[1])
    for number, (scenario, leave_bytes) in enumerate(
        [
            (a_full_disk_refuses_and_loses_nothing, 400_000),
            (a_store_cannot_be_made_on_a_full_disk, 0),
            (a_checkpoint_without_space_fails_no_commit, 600_000),
        ]
    ):
        folder = base / str(number)
        folder.mkdir()
        subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m", "leasehold", str(folder)], check=True)
        fill(folder, leave_bytes=leave_bytes)
        scenario(folder)
        print(f"{scenario.__name__}: held", flush=True)


if __name__ == "__main__":
    main()
