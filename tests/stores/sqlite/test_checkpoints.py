"""What is in SQLite's log gets into the file in the background, and at nobody's expense."""

import threading
from pathlib import Path

import pytest

from leasehold import Client
from leasehold.engine.registrar import Registrar
from leasehold.errors import StoreUnusable
from leasehold.stores.sqlite import opened
from tests.stores.sqlite.support import client_of, open_store, problems_of, tokens_of

OFTEN = 3


@pytest.fixture(autouse=True)
def often(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(opened, "_TRANSACTIONS_PER_CHECKPOINT", OFTEN)


def wait_for_checkpoints() -> None:
    for thread in threading.enumerate():
        if thread.name == "leasehold-checkpoint":
            thread.join()


def test_every_so_many_transactions_the_log_is_moved_into_the_file(tmp_path: Path) -> None:
    path = tmp_path / "leases.db"
    with client_of(path) as client:
        before = path.stat().st_size
        for number in range(OFTEN):
            client.acquire(f"resource-{number}")
        wait_for_checkpoints()
        assert path.stat().st_size > before
    assert problems_of(path) == []


def test_a_log_that_cannot_be_moved_fails_no_commit(tmp_path: Path) -> None:
    path = tmp_path / "leases.db"

    def refuse() -> None:
        tried.append(True)
        raise StoreUnusable("there is no such file")

    tried: list[bool] = []
    store = open_store(path)
    store._open_file()._connect = refuse  # type: ignore[assignment]
    with Client(Registrar(store, timeout=30)) as client:
        granted = {client.acquire(f"resource-{number}").token for number in range(2 * OFTEN)}
        wait_for_checkpoints()
    assert tried
    assert granted <= tokens_of(path)


def test_a_file_is_not_given_up_while_the_log_is_moved_into_it(tmp_path: Path) -> None:
    store = open_store(tmp_path / "leases.db")
    file = store._open_file()

    with file._tidying:
        assert not file.retire(0.001)
    assert file.retire()
    file._tidy()
    assert file._tidier is None, "nothing is opened any more"
    store.close()
