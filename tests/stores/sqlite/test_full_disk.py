"""A file system that is really full, not one that says so."""

import os
import resource
import subprocess
import sys
from pathlib import Path

import pytest

from leasehold import Client, StoreFull
from tests.stores.sqlite.support import Other, Pipe, client_of, others, problems_of, tokens_of

ROOT = Path(__file__).resolve().parents[3]


def test_a_full_file_system_costs_no_lease_and_no_commit(tmp_path: Path) -> None:
    # In a mount namespace of its own, which takes its mounts along when it ends, however that comes. Who is
    # not root here is root in a user namespace.
    namespace = ["unshare", "--mount"] if os.geteuid() == 0 else ["unshare", "--mount", "--map-root-user"]
    run = subprocess.run(
        [*namespace, sys.executable, "-m", "tests.stores.sqlite.full_disk", str(tmp_path)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert run.returncode == 0, run.stderr
    assert run.stdout.splitlines() == [
        "a_full_disk_refuses_and_loses_nothing: held",
        "a_store_cannot_be_made_on_a_full_disk: held",
        "a_checkpoint_without_space_fails_no_commit: held",
    ]


def test_a_quota_is_reported_as_no_space(tmp_path: Path) -> None:
    path = tmp_path / "leases"
    with others(Other(meet_a_limit, path)) as (other,):
        tokens: list[int] = other.hear()
        assert other.join() == 0
    assert tokens_of(path) == set(tokens)
    assert problems_of(path) == []


def meet_a_limit(pipe: Pipe, path: Path) -> None:
    """Acquire until the log may not grow any more, and once again when it may."""
    tokens: list[int] = []
    with client_of(path) as client:
        resource.setrlimit(resource.RLIMIT_FSIZE, (120_000, resource.RLIM_INFINITY))
        with pytest.raises(StoreFull, match=r"no space left for .* quota"):
            acquire_for_ever(client, tokens)
        resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
        tokens.append(client.acquire("resource").detach().token)
    pipe.send(tokens)


def acquire_for_ever(client: Client, tokens: list[int]) -> None:
    while True:
        tokens.append(client.acquire(f"resource-{len(tokens)}", ttl=3600).detach().token)
