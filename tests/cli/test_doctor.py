import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import apsw
import pytest

from tests.cli.shell import EXECUTABLE, Result, Shell

CHECKS = ["library", "file system", "permissions", "schema", "clock", "writer", "storage", "ledger"]


@pytest.fixture
def used(shell: Shell) -> Shell:
    """A shell whose store has been used."""
    with shell.client() as client:
        lease = client.acquire("door")
        lease.renew()
        lease.detach()
    return shell


def problems(shell: Shell) -> dict[str, Any]:
    """Run doctor where something is wrong; return the failed checks by name."""
    report = shell.json("doctor", code=1)
    assert report["ok"] is False
    return {check["check"]: check for check in report["checks"] if not check["ok"]}


def test_a_sound_store_passes_every_check(used: Shell) -> None:
    text = used.run("doctor").out
    *checks, verdict = text.splitlines()
    assert [line.split()[0] for line in checks] == ["OK"] * len(CHECKS)
    assert verdict == "all is well"
    report = used.json("doctor")
    assert report["ok"] is True
    assert report["store"] == str(used.store)
    assert [check["check"] for check in report["checks"]] == CHECKS
    assert "3 entries, 1 lease:" in report["checks"][-1]["detail"]


@pytest.mark.parametrize("lock", ["writer", "turnstile"])
def test_a_stopped_writer_is_named_with_what_to_do(used: Shell, lock: str) -> None:
    with used.stalled_writer(lock) as process_id:
        (writer,) = problems(used).values()
        text = used.run("doctor", code=1).out
    assert writer["check"] == "writer"
    assert f"process {process_id} (" in writer["detail"]
    assert f"/{lock}" in writer["detail"]
    assert "T (stopped)" in writer["detail"]
    assert writer["advice"] == f"let it go on: kill -CONT {process_id}; or end it: kill -KILL {process_id}"
    assert f"         → {writer['advice']}" in text.splitlines()
    assert text.splitlines()[-1] == "something needs your attention"
    assert used.json("doctor")["ok"] is True


def test_a_lock_that_a_dead_process_left_to_its_child_is_traced_to_the_child(used: Shell) -> None:
    # flock(1) with -o would close it; without, the child has the lock as well, and keeps it.
    script = 'exec 9>>"$0"; flock 9; cat <&8 & echo $!'
    with subprocess.Popen(
        ["sh", "-c", f"exec 8<&0; {script}", str(used.store / "writer")],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        child = int(process.stdout.readline())
        assert process.wait() == 0
        assert f"process {child} (cat)" in problems(used)["writer"]["detail"]


def test_a_program_that_locks_the_store_with_sql_is_named(used: Shell) -> None:
    script = (
        "import apsw, sys\n"
        "connection = apsw.Connection(sys.argv[1])\n"
        "connection.execute('BEGIN IMMEDIATE')\n"
        "print('locked', flush=True)\n"
        "sys.stdin.read()\n"
    )
    with subprocess.Popen(
        [sys.executable, "-c", script, str(used.store / "leases.db")],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "locked\n"
        writer = problems(used)["writer"]
        process.communicate()
    assert f"all writers wait for process {process.pid} (" in writer["detail"]
    assert writer["advice"] == f"wait for it, or end it: kill {process.pid}"


def test_a_store_with_two_names_is_a_problem(used: Shell) -> None:
    (used.folder / "second name").hardlink_to(used.store / "leases.db")
    assert "has 2 names" in problems(used)["store"]["detail"]


def test_a_store_that_does_not_exist_is_a_problem(shell: Shell) -> None:
    assert "there is no store at" in problems(shell)["permissions"]["detail"]
    assert not shell.store.exists()


@pytest.mark.parametrize("mode", [0o000, 0o600])
@pytest.mark.parametrize("is_above", [False, True])
def test_a_folder_that_may_not_be_entered_is_a_problem(used: Shell, mode: int, is_above: bool) -> None:
    store = used.folder / "up" / ".leasehold" / "leases"
    used.run("acquire", "door", "--store", str(store))
    closed = store.parent.parent if is_above else store.parent
    closed.chmod(mode)
    result = as_mere_owner(used, "doctor", "--store", str(store))
    report = as_mere_owner(used, "doctor", "--store", str(store), "--json")
    closed.chmod(0o700)
    assert (result.code, result.err, report.code) == (1, "", 1)
    *_, problem, advice, verdict = result.out.splitlines()
    assert problem == f"PROBLEM  permissions  {closed} may not be entered by this user ({mode:04o})"
    assert advice == f"         → let yourself in: chmod u+rwx '{closed}'"
    assert verdict == "something needs your attention"
    assert [check["check"] for check in report.json["checks"]] == CHECKS[:3]
    assert report.json["checks"][-1]["advice"] in advice


def test_the_nearest_store_is_a_problem_also_where_its_folder_may_not_be_entered(shell: Shell) -> None:
    del shell.environment["LEASEHOLD_URL"]
    shell.run("acquire", "door")
    (shell.folder / ".leasehold").chmod(0o000)
    below = shell.folder / "below"
    below.mkdir()
    result = as_mere_owner(shell, "doctor", folder=below)
    (shell.folder / ".leasehold").chmod(0o700)
    assert f"{shell.folder / '.leasehold'} may not be entered by this user (0000)" in result.out
    assert result.code == 1


def as_mere_owner(shell: Shell, *arguments: str, folder: Path | None = None) -> Result:
    """Run a command as a user for whom modes are an obstacle, as they are not for root."""
    limits = ["setpriv", "--bounding-set=-dac_override,-dac_read_search"] if os.geteuid() == 0 else []
    finished = subprocess.run(
        [*limits, EXECUTABLE, *arguments],
        env=shell.environment,
        cwd=folder or shell.folder,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    return Result(finished.returncode, finished.stdout, finished.stderr)


def test_files_that_are_open_to_everybody_are_a_problem(used: Shell) -> None:
    (used.store / "leases.db").chmod(0o644)
    found = problems(used)["permissions"]
    assert "is open to everybody (0644)" in found["detail"]
    assert found["advice"] == f"close it: chmod o= '{used.store}'/*"
    subprocess.run(found["advice"].removeprefix("close it: "), shell=True, check=True)
    assert used.json("doctor")["ok"] is True
    used.store.chmod(0o777)
    assert "everybody can replace files" in problems(used)["permissions"]["detail"]


def test_a_database_that_another_program_has_overwritten_is_a_problem(used: Shell) -> None:
    letters = used.folder / "letters.db"
    with apsw.Connection(str(letters)) as connection:
        connection.execute("CREATE TABLE letters (text)")
    connection.close()
    (used.store / "leases.db").write_bytes(letters.read_bytes())
    assert "another program" in problems(used)["store"]["detail"]


def test_a_store_from_a_newer_release_is_a_problem(used: Shell) -> None:
    change(used, "PRAGMA user_version = 999")
    found = problems(used)["store"]
    assert "has schema 999" in found["detail"]
    assert found["advice"] == "upgrade leasehold"


def test_a_changed_history_is_a_problem_and_its_place_is_named(used: Shell) -> None:
    change(used, "UPDATE events SET body = replace(body, 'door', 'gate') WHERE position = 2")
    found = problems(used)["ledger"]
    assert "ledger entry 2: its hash does not match its content" in found["detail"]
    assert "leasehold restore" in found["advice"]


def test_a_table_that_differs_from_the_history_is_a_problem(used: Shell) -> None:
    change(used, "UPDATE leases SET holder = 'mallory'")
    assert "the ledger says" in problems(used)["ledger"]["detail"]


def test_a_trigger_that_somebody_added_is_a_problem(used: Shell) -> None:
    change(used, "CREATE TRIGGER spy AFTER DELETE ON leases BEGIN DELETE FROM leases; END")
    found = problems(used)
    assert found.keys() == {"storage"}
    assert found["storage"]["detail"] == "the schema has a trigger spy that leasehold did not make"
    assert "leasehold restore" in found["storage"]["advice"]


def test_a_copied_store_is_told_to_begin_a_new_epoch(used: Shell) -> None:
    copy = used.folder / "copy"
    shutil.copytree(used.store, copy)
    report = used.json("doctor", "--store", str(copy))
    clock = report["checks"][CHECKS.index("clock")]
    assert "because: copied" in clock["detail"]


def change(shell: Shell, sql: str) -> None:
    """Change the store behind leasehold's back."""
    connection = apsw.Connection(str(shell.store / "leases.db"))
    connection.execute(sql)
    connection.close()


def test_a_folder_that_is_no_store_is_a_problem_and_no_error(shell: Shell) -> None:
    shell.store.mkdir(mode=0o700)
    assert "there is no store at" in problems(shell)["store"]["detail"]
    (shell.store / "letter").touch()
    assert "folder with other things in it" in problems(shell)["store"]["detail"]


def test_a_store_whose_database_is_gone_is_a_problem_and_no_error(used: Shell) -> None:
    (used.store / "leases.db").unlink()
    assert "leasehold restore" in str(problems(used)["store"])
