from pathlib import Path

import apsw
import pytest

from leasehold import Client
from leasehold.engine.registrar import Registrar
from leasehold.registry import FAMILIES
from leasehold.stores.sqlite import SqliteStore
from tests.cli.shell import Shell
from tests.long_ago import LongAgo


def live_long_ago(path: Path, leases: int = 2) -> None:
    """Leave leases that ended forty days ago: two of them, in five entries."""
    store = SqliteStore(path, clock=LongAgo(), durability="fast", families=FAMILIES)
    with Client(Registrar(store), holder="ann") as client:
        for resource in ("door", "gate", *(f"room-{number}" for number in range(2, leases))):
            client.acquire(resource).release()


@pytest.fixture
def old(shell: Shell) -> Shell:
    live_long_ago(shell.store)
    return shell


def test_old_history_goes_and_the_rest_verifies(old: Shell) -> None:
    head = old.run("head").out.strip()
    old.run("acquire", "window")
    assert "would remove 5 entries up to 5 and 2 ended records" in old.run("prune", "--dry-run").out
    assert old.json("verify")["pruned"] == 0
    assert "removed 5 entries up to 5 and 2 ended records; entry 7 stands for them" in old.run("prune").out
    assert "nothing to prune" in old.run("prune").out
    result = old.run("verify")
    assert "entries up to 5 were pruned; a checkpoint stands for them" in result.out
    assert "OK: 2 entries" in result.out
    assert old.json("verify")["pruned"] == 5
    old.run("verify", "--head", head)
    assert [entry["position"] for entry in old.run("history", "--json").json_lines] == [6]
    assert old.run("doctor").code == 0
    assert "rebuilt 1 record from the ledger: lease 1, " in old.run("rebuild").out
    old.run("verify")


def test_a_head_from_before_the_checkpoint_can_no_longer_be_compared(old: Shell) -> None:
    old.run("prune")
    assert "can no longer be compared" in old.run("verify", "--head", f"2:{'00' * 32}", code=1).out


def test_what_was_pruned_is_told_as_json(old: Shell) -> None:
    facts = {"entries": 5, "records": 2, "through": 5}
    planned, done = old.json("prune", "--dry-run"), old.json("prune")
    assert planned == {**facts, "checkpoint": None, "dry_run": True, "free_bytes": 0}
    assert done.pop("free_bytes") > 0
    assert done == {**facts, "checkpoint": 6, "dry_run": False}
    assert old.run("watch", "--after", "3", "--json", code=1).error["code"] == "HISTORY_PRUNED"


def test_more_is_kept_if_asked_and_less_than_an_hour_never(old: Shell) -> None:
    assert "nothing to prune" in old.run("prune", "--keep", "50d").out
    assert "an hour at least" in old.run("prune", "--keep", "59m", code=2).err
    assert "invalid duration" in old.run("prune", "--keep", "soon", code=2).err


def test_a_pruned_store_is_backed_up_and_restored(old: Shell, tmp_path: Path) -> None:
    token = old.json("acquire", "window")["token"]
    old.run("prune")
    old.run("backup", str(tmp_path / "copy"))
    old.run("restore", str(tmp_path / "copy"))
    old.run("verify")
    assert old.json("acquire", "roof")["token"] > token


def test_a_dry_run_leaves_every_row_as_it_is(old: Shell) -> None:
    old.run("acquire", "window")
    before = content(old.store)
    old.run("prune", "--dry-run")
    assert content(old.store) == before
    old.run("prune")
    assert content(old.store) != before


def test_the_room_of_what_was_pruned_is_given_back_if_asked(shell: Shell) -> None:
    live_long_ago(shell.store, leases=400)
    size = (shell.store / "leases.db").stat().st_size
    assert "of the database are free for later entries; --vacuum gives them back" in shell.run("prune").out
    assert (shell.store / "leases.db").stat().st_size == size
    assert "rewritten" in shell.run("prune", "--vacuum").out
    assert (shell.store / "leases.db").stat().st_size < size / 2
    assert shell.json("prune")["free_bytes"] == 0
    shell.run("verify")
    assert "not allowed with" in shell.run("prune", "--vacuum", "--dry-run", code=2).err


def test_the_history_of_a_pruned_lease_is_told_to_be_pruned(old: Shell) -> None:
    lease_id = old.run("history", "door", "--json").json_lines[0]["lease_id"]
    old.run("prune")
    old.run("acquire", "window")
    found = old.run("history", "--lease", lease_id)
    assert "nothing that is still known happened" in found.out
    assert f"what happened to {lease_id} before entry 6 was pruned at" in found.err
    assert "the checkpoint in entry 6 stands for it" in found.err
    everything = old.run("history", "--json")
    assert [entry["position"] for entry in everything.json_lines] == [7]
    assert "what happened before entry 6 was pruned" in everything.err
    assert "pruned" not in old.run("history", "--after", "5").err


def content(path: Path) -> dict[str, list[tuple[object, ...]]]:
    """Every row of every table."""
    connection = apsw.Connection(str(path / "leases.db"), flags=apsw.SQLITE_OPEN_READONLY)
    tables = [name for (name,) in connection.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")]
    found = {name: list(connection.execute(f"SELECT * FROM {name}")) for name in tables}
    connection.close()
    return found
