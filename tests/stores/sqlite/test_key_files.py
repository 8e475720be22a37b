"""Private keys beside the store: made once, for their owner only, and never by halves."""

import os
import stat
from pathlib import Path

import pytest

from leasehold.engine.registrar import Registrar
from leasehold.errors import StoreUnusable
from leasehold.stores.sqlite import SqliteStore
from leasehold.stores.sqlite.key_files import KeyFolder


def folder_for(tmp_path: Path, mode: int = 0o600) -> KeyFolder:
    store = tmp_path / "leases"
    store.mkdir()
    (store / "leases.db").touch()
    (store / "leases.db").chmod(mode)
    return KeyFolder(store)


def test_a_key_is_kept_for_its_owner_only(tmp_path: Path) -> None:
    folder = folder_for(tmp_path)
    before = os.umask(0)
    try:
        key = folder.create()
    finally:
        os.umask(before)
    (file,) = folder.path.iterdir()
    assert file.name == f"{key.key_id}.key"
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert stat.S_IMODE(folder.path.stat().st_mode) == 0o700


def test_a_key_is_found_again(tmp_path: Path) -> None:
    folder = folder_for(tmp_path)
    key = folder.create()
    again = KeyFolder(tmp_path / "leases")
    assert again.at_hand() == [key.key_id]
    assert again.load(key.key_id).sign(b"hello") == key.sign(b"hello")


def test_there_are_no_keys_before_the_first_is_made(tmp_path: Path) -> None:
    assert folder_for(tmp_path).at_hand() == []
    assert not (tmp_path / "leases" / "keys").exists()


def test_a_shared_store_lets_its_group_keep_keys_that_only_their_owners_can_remove(tmp_path: Path) -> None:
    folder = folder_for(tmp_path, 0o660)
    folder.create()
    assert stat.S_IMODE(folder.path.stat().st_mode) == 0o3770


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o660, 0o601])
def test_a_key_that_others_can_touch_is_refused(tmp_path: Path, mode: int) -> None:
    folder = folder_for(tmp_path)
    key = folder.create()
    (folder.path / f"{key.key_id}.key").chmod(mode)
    with pytest.raises(StoreUnusable, match="chmod 600"):
        folder.load(key.key_id)


@pytest.mark.parametrize("damage", [b"", b"\xff\xfe", b"leasehold Ed25519 private key 1\n00\n"])
def test_a_damaged_key_is_refused(tmp_path: Path, damage: bytes) -> None:
    folder = folder_for(tmp_path)
    key = folder.create()
    (folder.path / f"{key.key_id}.key").write_bytes(damage)
    with pytest.raises(StoreUnusable, match="does not hold"):
        folder.load(key.key_id)


def test_a_key_under_another_name_is_refused(tmp_path: Path) -> None:
    folder = folder_for(tmp_path)
    key, other = folder.create(), folder.create()
    (folder.path / f"{key.key_id}.key").replace(folder.path / f"{other.key_id}.key")
    with pytest.raises(StoreUnusable, match="does not hold"):
        folder.load(other.key_id)


def test_a_key_that_is_gone_is_refused(tmp_path: Path) -> None:
    with pytest.raises(StoreUnusable, match="No such file"):
        folder_for(tmp_path).load("0123456789abcdef")


def test_a_key_that_could_not_be_written_whole_is_not_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = folder_for(tmp_path)

    def fail(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(Exception, match="no space left"):
        folder.create()
    assert list(folder.path.iterdir()) == []


def test_a_store_keeps_its_keys_in_its_folder(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "leases")
    Registrar(store).close()
    (key,) = (tmp_path / "leases" / "keys").iterdir()
    assert key.suffix == ".key"
