"""PostgreSQL for tests is a real one, harms nothing, and leaves nothing running."""

import os
import secrets
import select
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import psycopg
import pytest
from psycopg import sql

from tests.services.postgres import VARIABLE

pytestmark = pytest.mark.service("postgres")

ROOT = Path(__file__).resolve().parents[2]
END_SECONDS = 10.0
OPEN_AND_WAIT = """
import sys
from tests.services.postgres import postgres
with postgres() as url:
    print(url, flush=True)
    sys.stdin.read()
"""

private_only = pytest.mark.skipif(
    bool(os.environ.get(VARIABLE)), reason=f"{VARIABLE} names a server that is not ours"
)


def test_databases_can_be_created_used_and_dropped(postgres_url: str) -> None:
    name = sql.Identifier(f"leasehold_{secrets.token_hex(4)}")
    with psycopg.connect(postgres_url, autocommit=True) as server:
        row = server.execute("select version()").fetchone()
        assert row is not None
        assert row[0].startswith("PostgreSQL ")
        server.execute(sql.SQL("create database {}").format(name))
        try:
            with psycopg.connect(postgres_url, dbname=name.as_string().strip('"')) as database:
                database.execute("create table lease (name text primary key, token bigint not null)")
                database.execute("insert into lease values (%s, %s)", ("naïve ✓", 2**62))
                database.commit()
                database.execute("delete from lease")
                database.rollback()
                assert database.execute("select name, token from lease").fetchall() == [("naïve ✓", 2**62)]
        finally:
            server.execute(sql.SQL("drop database {}").format(name))


def test_a_wrong_password_is_refused(postgres_url: str) -> None:
    with pytest.raises(psycopg.OperationalError, match="password"):
        psycopg.connect(postgres_url, password="wrong")


@private_only
def test_it_runs_as_a_user_without_rights(postgres_url: str) -> None:
    status = status_of(postmaster(postgres_url))
    assert "0" not in status["Uid"].split()
    assert "0" not in status["Gid"].split()
    assert "0" not in status["Groups"].split()
    assert int(status["CapEff"], 16) == 0


@private_only
def test_only_its_user_can_read_its_data(postgres_url: str) -> None:
    data = data_folder(postgres_url)
    assert (data.stat().st_mode & 0o777, data.parent.stat().st_mode & 0o777) == (0o700, 0o700)


@private_only
@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGINT])
def test_it_ends_with_the_process_that_started_it(postgres_url: str, how: signal.Signals) -> None:
    assert postgres_url, "there is one"
    command = [sys.executable, "-c", OPEN_AND_WAIT]
    with subprocess.Popen(
        command, cwd=ROOT, text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    ) as starter:
        assert starter.stdout is not None
        url = starter.stdout.readline().strip()
        assert url, "it did not start"
        folder = data_folder(url).parent
        server = os.pidfd_open(postmaster(url))
        try:
            starter.send_signal(how)
            ended, _, _ = select.select([server], [], [], END_SECONDS)
            assert ended, "the server goes on without the process that started it"
        finally:
            os.close(server)
    assert folder.name.startswith("leasehold-")
    if how == signal.SIGKILL:
        shutil.rmtree(folder)
    assert not folder.exists()


def postmaster(url: str) -> int:
    """Return the process that is the server: the parent of those that serve a connection."""
    with psycopg.connect(url) as server:
        return int(status_of(server.info.backend_pid)["PPid"])


def data_folder(url: str) -> Path:
    with psycopg.connect(url) as server:
        row = server.execute("show data_directory").fetchone()
    assert row is not None
    return Path(row[0])


def status_of(process: int) -> dict[str, str]:
    """Return what the kernel says of a process."""
    lines = Path(f"/proc/{process}/status").read_text().splitlines()
    return {name: value.strip() for name, _, value in (line.partition(":") for line in lines)}
