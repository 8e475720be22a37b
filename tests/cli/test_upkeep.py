from tests.cli.shell import EXECUTABLE, Shell


def test_a_backup_can_be_restored_and_no_token_comes_again(shell: Shell) -> None:
    before = shell.json("acquire", "door", "--ttl", "1h")
    assert "2 ledger entries, epoch" in shell.run("backup", "copy").out
    forgotten = shell.json("acquire", "gate", "--ttl", "1h")
    assert "3 ledger entries, epoch" in shell.run("restore", "copy").out
    assert [lease["lease_id"] for lease in shell.json("ls")["leases"]] == [before["lease_id"]]
    assert shell.json("acquire", "gate")["token"] > forgotten["token"]
    assert shell.json("doctor")["ok"] is True


def test_a_restore_says_what_is_forgotten_and_asks_at_a_terminal(shell: Shell) -> None:
    shell.run("acquire", "door", "--ttl", "1h")
    shell.run("backup", "copy")
    shell.run("acquire", "gate", "--ttl", "1h")
    shell.run("acquire", "wall", "--ttl", "1h")
    command = (EXECUTABLE, "restore", str(shell.folder / "copy"))

    refused = shell.terminal(*command)
    refused.wait_for("forgets 2 ledger entries since the backup, and 2 live leases.")
    refused.press(b"n\n")
    refused.wait_for("nothing was changed")
    assert refused.end()[0] == 1
    assert len(shell.json("ls")["leases"]) == 3

    agreed = shell.terminal(*command)
    agreed.wait_for("Go on?")
    agreed.press(b"y\n")
    agreed.wait_for("restored")
    assert agreed.end()[0] == 0
    assert len(shell.json("ls")["leases"]) == 1

    shell.run("acquire", "gate", "--ttl", "1h")
    told = shell.run("restore", "copy").out
    assert "forgotten: 2 ledger entries since the backup, and 1 live lease\n" in told, (
        "the epoch and the gate"
    )
    assert shell.json("restore", "copy")["forgotten_leases"] == 0
    other = str(shell.folder / "other")
    shell.run("acquire", "door", "--store", other)
    assert (
        "of another ledger than the backup's, and 1 live lease"
        in shell.run("restore", "copy", "--yes", "--store", other).out
    )


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


def test_a_backup_that_cannot_be_written_says_so(shell: Shell) -> None:
    shell.run("acquire", "door")
    refused = shell.run("backup", str(shell.folder / "nowhere" / "copy"), code=1).err
    assert "nowhere/copy cannot be written: No such file or directory; check the path" in refused


def test_what_cannot_be_copied_is_refused(shell: Shell) -> None:
    assert "there is no store" in shell.run("backup", "copy", code=1).err
    assert shell.run("restore", "nosuch", "--json", code=1).error["code"] == "STORE_UNUSABLE"
    assert "name a folder with --store" in shell.run("backup", "copy", "--store", "memory:", code=1).err
    assert not shell.store.exists()
