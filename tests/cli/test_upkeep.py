from tests.cli.shell import Shell


def test_a_backup_can_be_restored_and_no_token_comes_again(shell: Shell) -> None:
    before = shell.json("acquire", "door", "--ttl", "1h")
    assert "2 ledger entries, epoch" in shell.run("backup", "copy").out
    forgotten = shell.json("acquire", "gate", "--ttl", "1h")
    assert "3 ledger entries, epoch" in shell.run("restore", "copy").out
    assert [lease["lease_id"] for lease in shell.json("ls")["leases"]] == [before["lease_id"]]
    assert shell.json("acquire", "gate")["token"] > forgotten["token"]
    assert shell.json("doctor")["ok"] is True


def test_backup_and_restore_tell_programs_what_they_copied(shell: Shell) -> None:
    shell.run("acquire", "door")
    copied = shell.json("backup", "copy")
    assert copied.pop("size_bytes") == (shell.folder / "copy").stat().st_size
    epoch = copied.pop("epoch")
    assert copied == {"store": str(shell.store), "file": str(shell.folder / "copy"), "entries": 2}
    other = shell.folder / "other"
    restored = shell.json("restore", "copy", "--store", str(other))
    assert restored["store"] == str(other)
    assert restored["epoch"] > epoch
    assert len(shell.json("ls", "--store", str(other))["leases"]) == 1


def test_a_backup_replaces_a_file_only_on_request(shell: Shell) -> None:
    shell.run("acquire", "door")
    (shell.folder / "copy").write_text("precious")
    assert "exists already" in shell.run("backup", "copy", code=2).err
    assert (shell.folder / "copy").read_text() == "precious"
    shell.run("backup", "copy", "--overwrite")


def test_what_cannot_be_copied_is_refused(shell: Shell) -> None:
    assert "there is no store" in shell.run("backup", "copy", code=1).err
    assert shell.run("restore", "nosuch", "--json", code=1).error["code"] == "STORE_UNUSABLE"
    assert "name a folder with --store" in shell.run("backup", "copy", "--store", "memory:", code=1).err
    assert not shell.store.exists()
