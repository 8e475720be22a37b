"""`LEASEHOLD_URL=http://…`: every command speaks to a server, or says why it cannot."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from leasehold.engine.job_runner import JobRunner
from leasehold.engine.registrar import Registrar
from leasehold.registry import CARRIERS, REPLIES, all_families
from leasehold.stores.memory import MemoryStore
from tests.cli.shell import UNTIL_END_OF_INPUT, Shell
from tests.client.server import desk_server


@pytest.fixture
def remote(shell: Shell) -> Iterator[Shell]:
    """A shell whose store is a server's."""
    store = MemoryStore(families=all_families())
    registrar = Registrar(store, also=REPLIES, jobs=JobRunner(store, CARRIERS))
    url = desk_server().mount(registrar)
    shell.environment["LEASEHOLD_URL"] = url
    yield shell
    desk_server().unmount(url)
    registrar.close()


def test_leases_are_taken_looked_at_and_given_back_at_a_server(remote: Shell) -> None:
    lease = remote.run("acquire", "door", "--json", "--holder", "ann").json
    assert remote.run("ls", "--json").json["leases"][0]["lease_id"] == lease["lease_id"]
    assert "held by ann" in remote.run("acquire", "door", "--holder", "bob", code=75).err
    assert "ann" in remote.run("show", "door").out
    remote.run("renew", "door", "--holder", "ann")
    remote.run("release", "door", "--holder", "ann")
    kinds = [line["type"] for line in remote.run("history", "--json").json_lines]
    assert [kind.removeprefix("lease.") for kind in kinds] == ["issued", "renewed", "released"]
    assert "OK" in remote.run("verify").out
    assert not remote.store.exists(), "nothing was made here"


def test_files_work_and_watching_are_a_servers_as_well(remote: Shell) -> None:
    (remote.folder / "app.py").write_text("first\n")
    remote.run("acquire", "./app.py", "--holder", "ann")
    assert remote.run("acquire", "./app.py", "--holder", "bob", code=75).err
    watching = remote.start("watch", "--json", "--after", "0")
    assert "issued" in watching.line()
    assert remote.run("work", "ls", "--json").code == 0
    assert remote.run("workflow", "ls", "--json").code == 0
    assert remote.run("metrics").out.startswith("# ")
    assert remote.run("top", "--once").code == 0


def test_a_command_runs_under_a_lease_of_a_server(remote: Shell) -> None:
    running = remote.start("run", "door", "--holder", "ann", "--", *UNTIL_END_OF_INPUT)
    assert running.line() == "started"
    assert "held by ann" in remote.run("acquire", "door", "--holder", "bob", code=75).err
    running.end_input()
    assert running.process.wait() == 0
    remote.run("acquire", "door", "--holder", "bob")


@pytest.mark.parametrize("command", [("backup", "copy"), ("restore", "copy"), ("prune", "--vacuum")])
def test_what_needs_the_stores_own_files_says_so(remote: Shell, command: tuple[str, ...]) -> None:
    assert "run it where the server runs" in remote.run(*command, code=1).err


def test_a_server_that_is_not_there_is_an_error_that_says_what_to_do(shell: Shell, tmp_path: Path) -> None:
    secret = {"LEASEHOLD_URL": "http://ann:secret@127.0.0.1:9", "LEASEHOLD_API_KEY": "lh_one_secret"}
    refused = shell.run("ls", code=2, **secret)
    assert "invalid address of a server" in refused.err
    assert "secret" not in refused.err
    unreachable = shell.run("ls", code=1, LEASEHOLD_URL="http://127.0.0.1:9")
    assert "http://127.0.0.1:9 cannot be reached" in unreachable.err
    assert "Check that the server runs, and the address" in unreachable.err
    assert "127.0.0.1:9" in shell.run("watch", code=1, LEASEHOLD_URL="http://127.0.0.1:9").err
    assert list(tmp_path.glob("**/leases*")) == []
