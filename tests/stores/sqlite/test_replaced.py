"""A store that is removed or replaced under the hands of those who use it."""

import shutil
from pathlib import Path

import pytest

from leasehold import ClientClosed, StoreReplaced, StoreUnusable
from tests.stores.sqlite.support import client_of, open_store, problems_of, tokens_of


def test_nobody_goes_on_granting_in_a_store_that_was_removed(tmp_path: Path) -> None:
    path = tmp_path / "store"
    with client_of(path) as client:
        lease = client.acquire("resource", ttl=3600)
        shutil.rmtree(path)
        with pytest.raises(StoreUnusable, match=r"was moved or removed while it was in use; connect again"):
            client.acquire("another")
        with pytest.raises(StoreUnusable, match=r"moved or removed"):
            client.list()
        lease.ensure()  # For as long as it was granted, it is still the only one.
        assert not path.exists()
        client._holdings.forget(lease)


def test_those_who_used_a_removed_store_do_not_use_the_one_that_takes_its_place(tmp_path: Path) -> None:
    path = tmp_path / "store"
    with client_of(path, holder="old") as old:
        lease = old.acquire("resource", ttl=3600)
        shutil.rmtree(path)
        with client_of(path, holder="new") as new:
            granted = new.acquire("resource", ttl=3600)
            for use in (lambda: old.try_acquire("resource"), old.list, lease.renew):
                with pytest.raises(StoreReplaced):
                    use()
            assert tokens_of(path) == {granted.token}
            assert granted.token > lease.token
            old._holdings.forget(lease)
    assert problems_of(path) == []


def test_those_who_used_a_store_do_not_use_the_one_whose_folder_was_moved_to_its_place(
    tmp_path: Path,
) -> None:
    path, other = tmp_path / "store", tmp_path / "other"
    with client_of(other, holder="somebody") as client:
        client.acquire("resource", ttl=3600).detach()
    with client_of(path) as client:
        lease = client.acquire("another", ttl=3600)
        path.rename(tmp_path / "away")
        other.rename(path)
        with pytest.raises(StoreReplaced):
            client.try_acquire("resource")
        client._holdings.forget(lease)
    assert problems_of(path) == []


def test_a_reader_in_the_middle_of_a_snapshot_sees_it_to_its_end(tmp_path: Path) -> None:
    path = tmp_path / "store"
    store = open_store(path)
    with client_of(path) as client:
        client.acquire("resource").detach()
    with store.snapshot() as snapshot:
        head = snapshot.head
        shutil.rmtree(path)
        assert snapshot.head == head
    with pytest.raises(StoreUnusable), store.snapshot():
        pass
    store.close()


def test_a_closed_store_stays_closed(tmp_path: Path) -> None:
    store = open_store(tmp_path / "leases")
    store.close()
    store.close()
    with pytest.raises(ClientClosed), store.write():
        pass
    with pytest.raises(ClientClosed), store.snapshot():
        pass
