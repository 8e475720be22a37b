import shutil
import signal
from datetime import datetime, timedelta
from pathlib import Path

import apsw
import pytest

from tests.cli.shell import EXECUTABLE, Shell
from tests.cli.test_pruning import content, live_long_ago


def test_a_history_that_nobody_touched_is_right(shell: Shell) -> None:
    shell.run("acquire", "door")
    result = shell.run("verify")
    assert "OK: 2 entries, sealed with 1 key, and 1 lease as the tables say" in result.out
    found = shell.json("verify")
    assert (found["ok"], found["entries"], found["sealed"], found["problems"]) == (True, 2, 2, [])
    assert found["head"] == shell.run("head").out.strip() == shell.json("head")["head"]


def test_an_index_that_somebody_added_is_a_problem_unless_the_storage_is_skipped(shell: Shell) -> None:
    shell.run("acquire", "door")
    tamper(shell, "CREATE INDEX quick ON leases (token)")
    assert (
        "PROBLEM  the schema has an index quick that leasehold did not make"
        in shell.run("verify", code=1).out
    )
    assert shell.json("verify", code=1)["storage_checked"] is True
    assert "SQLite's pages, indexes and schema were not checked" in shell.run("verify", "--skip-storage").out
    assert shell.json("verify", "--skip-storage")["storage_checked"] is False


def test_an_entry_that_was_changed_is_named(shell: Shell) -> None:
    shell.run("acquire", "door")
    shell.run("acquire", "gate")
    tamper(shell, "UPDATE events SET body = replace(body, 'door', 'DOOR') WHERE position = 2")
    assert "ledger entry 2:" in shell.run("verify", code=1).out
    found = shell.run("verify", "--json", code=1).json
    assert (found["ok"], found["first_bad"], found["entries"]) == (False, 2, 1)
    assert shell.run("rebuild", "--json", code=1).error["code"] == "LEDGER_BROKEN"


def test_a_ledger_that_was_cut_off_is_found_by_a_head_that_was_kept(shell: Shell) -> None:
    shell.run("acquire", "door")
    head = shell.run("head").out.strip()
    shell.run("verify", "--head", head)
    tamper(shell, "DELETE FROM events WHERE position = 2", "DELETE FROM leases")
    shell.run("verify")
    assert "the head that was kept" in shell.run("verify", "--head", head, code=1).out


def test_what_is_no_head_is_wrong_usage(shell: Shell) -> None:
    for text in ("7", "x:00", "1:00", "1:zz"):
        assert "invalid head" in shell.run("verify", "--head", text, code=2).err


def test_tables_are_rebuilt_from_the_ledger(shell: Shell) -> None:
    shell.run("acquire", "door", "--holder", "ann")
    tamper(shell, "UPDATE leases SET holder = 'eve'")
    shell.run("verify", code=1)
    assert "rebuilt 1 record from the ledger: lease 1, " in shell.run("rebuild").out
    shell.run("verify")
    assert shell.json("ls")["leases"][0]["holder"] == "ann"


def test_keys_are_listed_rotated_and_retired(shell: Shell) -> None:
    shell.run("acquire", "door")
    (first,) = shell.json("keys")["keys"]
    assert (first["number"], first["admitted"], first["vouched_for"]) == (1, True, True)
    (second,) = shell.json("keys", "rotate", "--reason", "yearly")["keys"]
    assert second["vouched_by"] == first["key_id"]
    assert [key["admitted"] for key in shell.json("keys")["keys"]] == [False, True]
    assert first["key_id"] in shell.run("keys").out
    shell.run("verify", "--first-key", first["key_id"])
    assert "only one" in shell.run("keys", "retire", second["key_id"], code=2).err
    assert "needs a KEY" in shell.run("keys", "vouch", code=2).err
    assert "takes no KEY" in shell.run("keys", "list", "x", code=2).err


def test_a_store_whose_keys_are_lost_goes_on_and_says_so(shell: Shell) -> None:
    shell.run("acquire", "door")
    for file in (shell.store / "keys").iterdir():
        file.unlink()
    shell.run("acquire", "gate")
    lost, own = shell.json("keys")["keys"]
    assert (lost["vouched_for"], own["vouched_for"]) == (True, False)
    assert "no admitted key vouches for" in shell.run("verify", code=1).out
    shell.run("verify", "--trust", own["key_id"])


def test_history_tells_who_held_what_at_a_moment(shell: Shell) -> None:
    lease = shell.json("acquire", "door", "--holder", "ann", "--ttl", "1h")
    moment = datetime.fromisoformat(lease["issued_at"]) + timedelta(minutes=1)
    assert "door" in shell.run("history", "--at", moment.isoformat()).out
    (held,) = shell.run("history", "--at", moment.isoformat(), "--json").json_lines
    assert (held["holder"], held["token"]) == ("ann", lease["token"])
    before = (moment - timedelta(hours=1)).isoformat()
    assert "nobody held anything then" in shell.run("history", "--at", before).out
    assert "invalid time" in shell.run("history", "--at", "yesterday", code=2).err
    assert "--at goes with" in shell.run("history", "--at", before, "--type", "issued", code=2).err


def tamper(shell: Shell, *statements: str) -> None:
    connection = apsw.Connection(str(shell.store / "leases.db"))
    for statement in statements:
        connection.execute(statement)
    connection.close()


def test_a_backup_is_verified_and_stays_as_it_is(shell: Shell, tmp_path: Path) -> None:
    copy = tmp_path / "safe" / "leases.backup"
    copy.parent.mkdir()
    shell.run("acquire", "door")
    shell.run("backup", str(copy))
    shell.run("acquire", "gate")
    before = copy.read_bytes()
    copy.parent.chmod(0o500)
    assert "OK: 2 entries" in shell.run("verify", "--backup", str(copy)).out
    copy.parent.chmod(0o700)
    assert copy.read_bytes() == before
    assert [path.name for path in copy.parent.iterdir()] == [copy.name]
    assert "OK: 3 entries" in shell.run("verify").out
    head = shell.run("head").out.strip()
    assert "is missing" in shell.run("verify", "--backup", str(copy), "--head", head, code=1).out


def test_a_backup_that_was_tampered_with_is_found_out(shell: Shell, tmp_path: Path) -> None:
    copy = tmp_path / "leases.backup"
    shell.run("acquire", "door")
    shell.run("backup", str(copy))
    connection = apsw.Connection(str(copy))
    connection.execute("UPDATE events SET body = replace(body, 'door', 'gate') WHERE position = 2")
    connection.close()
    assert "entry 2: its hash does not match" in shell.run("verify", "--backup", str(copy), code=1).out
    assert "no backup at" in shell.run("verify", "--backup", str(tmp_path / "none"), code=1).err
    (tmp_path / "other").write_bytes(b"something else")
    assert shell.run("verify", "--backup", str(tmp_path / "other"), code=1).err


def test_looking_at_a_store_records_nothing_even_where_the_next_command_begins_an_epoch(shell: Shell) -> None:
    shell.run("acquire", "door")
    copy = shell.folder / "copy"
    shutil.copytree(shell.store, copy)
    before = content(copy)
    at = ("--store", str(copy))
    shell.run("verify", *at)
    shell.run("head", *at)
    shell.run("keys", *at)
    shell.run("prune", "--dry-run", *at)
    shell.run("backup", "copy.backup", *at)
    shell.run("rebuild", *at)
    assert content(copy) == before
    shell.run("ls", *at)
    assert content(copy) != before, "it is another store now, and who asks what is left learns that"


def test_a_store_is_verified_as_it_is_also_without_its_registrars_record(shell: Shell) -> None:
    shell.run("acquire", "door")
    tamper(shell, "DELETE FROM authority")
    before = content(shell.store)
    assert "problems were found" in shell.run("verify", code=1).out
    assert content(shell.store) == before
    shell.run("rebuild")
    shell.run("verify")


def test_what_takes_long_tells_a_terminal_how_far_it_is(shell: Shell) -> None:
    live_long_ago(shell.store, leases=600)
    shown = shell.terminal(EXECUTABLE, "verify").end()[1]
    assert "verifying: 9 %" in shown, "the store itself comes first"
    assert "verifying: 84 %" in shown
    assert "verifying: 83 %" in shell.terminal(EXECUTABLE, "verify", "--skip-storage").end()[1]
    assert "rebuilding: 83 %" in shell.terminal(EXECUTABLE, "rebuild").end()[1]
    assert "checking: 83 %" in shell.terminal(EXECUTABLE, "prune", "--dry-run").end()[1]
    assert "copying: 100 %" in shell.terminal(EXECUTABLE, "backup", str(shell.folder / "copy")).end()[1]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_who_is_interrupted_in_a_job_that_waits_need_not_wait_for_it(shell: Shell, number: int) -> None:
    shell.run("acquire", "door")
    with shell.stalled_writer():
        rebuilding = shell.start("rebuild")
        shell.wait_until_queued(rebuilding.process.pid)
        rebuilding.send(number)
        assert rebuilding.end() == (128 + number, "", "")
    shell.run("verify")


@pytest.mark.parametrize(
    "command", [("doctor",), ("backup", "copy"), ("restore", "copy"), ("prune", "--vacuum")]
)
def test_what_is_for_sqlite_files_only_says_so(shell: Shell, command: tuple[str, ...]) -> None:
    result = shell.run(*command, "--store", "memory:", code=1)
    assert "memory: is not in a folder, and this works on nothing else" in result.err


@pytest.mark.parametrize("command", ["verify", "head", "rebuild", "keys", "prune"])
def test_a_store_in_memory_is_gone_for_all_other_commands(shell: Shell, command: str) -> None:
    assert "memory: is gone when this command ends" in shell.run(command, "--store", "memory:", code=1).err
    assert "there is no store" in shell.run(command, code=1).err
