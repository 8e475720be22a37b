"""What `doctor` looks at, one function each. Each looks, and none mends.

A check returns what it saw, or raises: `Trouble`, or an error of ours, whose message ends in the next step.
"""

import os
import stat
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import apsw

from leasehold.cli.output import counted, local_time
from leasehold.cli.processes import describe_process, holder_of_byte, processes_with
from leasehold.client.connect import connect
from leasehold.engine.audit import audit
from leasehold.engine.clock import SystemClock
from leasehold.engine.port import WouldBlock
from leasehold.errors import LeaseholdError, StoreBusy
from leasehold.guards.proof import prove
from leasehold.kernel.ledger.authority import observe
from leasehold.kernel.ledger.events import EpochRaised
from leasehold.registry import FAMILIES
from leasehold.stores.sqlite import SqliteStore, files
from leasehold.stores.sqlite.backup import opened_in
from leasehold.stores.sqlite.connection import refuse_affected_library
from leasehold.stores.sqlite.migrations import schema_version

_SQLITE_WRITE_LOCK = 120
"""The byte of the -shm file whose lock makes a connection the writer; part of SQLite's file format."""

_WRITER_PATIENCE_SECONDS = 2.0
_LOOK_EVERY_SECONDS = 0.05


class Finding(NamedTuple):
    """What one check has found."""

    check: str
    ok: bool
    detail: str
    advice: str | None = None
    """What to do about a problem."""


class Trouble(Exception):
    """A problem, and what to do about it."""

    def __init__(self, detail: str, advice: str) -> None:
        super().__init__(detail)
        self.advice = advice


def examine(path: Path, progress: Callable[[int, int], None]) -> Iterator[Finding]:
    """Check a store from the outside in; stop where the rest cannot be looked at."""
    yield _finding("library", _library)
    yield _finding("file system", lambda: _file_system(path))
    yield (place := _finding("permissions", lambda: _permissions(path)))
    if not os.path.exists(path):  # Path.exists() raises where a folder may not be entered.
        return
    try:
        store = SqliteStore(path, create=False, families=FAMILIES)
    except LeaseholdError as error:
        if place.ok:
            yield _problem("store", error)
        return
    try:
        yield _finding("schema", lambda: _schema(path))
        yield _finding("clock", lambda: _clock(store))
        yield _finding("writer", lambda: _writer(store))
        yield _finding("storage", lambda: _storage(store, progress))
        yield _finding("ledger", lambda: _ledger(store, progress))
    finally:
        store.close()


def examine_server(address: str) -> Iterator[Finding]:
    """Check that a server can be asked; its store is looked at where it runs."""
    yield _finding("server", lambda: _server(address))


def _server(address: str) -> str:
    with connect(address) as client:
        return f"{address} answers; its last entry is number {client.head().position:,}"


def examine_hooks(server: str | None = None, tenant: str | None = None) -> Iterator[Finding]:
    """Have every hook that guards the repository around us prove that it does."""
    try:
        for proof in prove(Path.cwd(), server, tenant):
            advice = None if proof.holds else "install it again: leasehold guard install git, or claude-code"
            yield Finding("hooks", proof.holds, f"{proof.hook}: {proof.detail}", advice)
    except LeaseholdError as error:
        yield _problem("hooks", error)


def _finding(check: str, look: Callable[[], str]) -> Finding:
    try:
        return Finding(check, True, look())
    except Trouble as trouble:
        return Finding(check, False, str(trouble), trouble.advice)
    except LeaseholdError as error:
        return _problem(check, error)


def _problem(check: str, error: LeaseholdError) -> Finding:
    """Take an error apart: what happened, and what to do next."""
    detail, _, advice = str(error).rpartition("; ")
    return Finding(check, False, detail or advice, advice if detail else None)


def _library() -> str:
    refuse_affected_library()
    return f"SQLite {apsw.sqlite_lib_version()} (apsw {apsw.apsw_version()})"


def _file_system(path: Path) -> str:
    files.refuse_network(path)
    return f"{files.file_system_of(path)}, local"


def _permissions(path: Path) -> str:
    _refuse_closed_folder(path)
    os.close(files.open_folder(path, create=False))
    for name in files.ALL:
        file = path / name
        if not file.exists():
            continue
        mode = stat.S_IMODE(file.stat().st_mode)
        if mode & 0o007:
            raise Trouble(f"{file} is open to everybody ({mode:04o})", f"close it: chmod o= '{path}'/*")
        if not os.access(file, os.R_OK | os.W_OK):
            raise Trouble(
                f"{file} is not writable for this user ({mode:04o})", "let its owner or root change that"
            )
    folder = stat.S_IMODE(path.stat().st_mode)
    if folder & stat.S_IWOTH:
        raise Trouble(
            f"everybody can replace files in {path} ({folder:04o})", f"close it: chmod o-w '{path}'"
        )
    if not os.access(path, os.R_OK | os.W_OK):
        raise Trouble(
            f"{path} is not writable for this user ({folder:04o})", "let its owner or root change that"
        )
    if not (path / files.DATABASE).exists():  # Opening it says what that means.
        return f"{path} is {folder:04o}"
    return f"{path} is {folder:04o}, its files {files.describe_mode(path / files.DATABASE)}"


def _refuse_closed_folder(path: Path) -> None:
    """Name the first folder on the way to a store that this user may not enter."""
    for folder in (*reversed(path.parents), path):
        if os.path.isdir(folder) and not os.access(folder, os.X_OK):
            status = folder.stat()
            if status.st_uid == os.getuid():
                advice = f"let yourself in: chmod u+rwx '{folder}'"
            else:
                advice = "let its owner or root change that, or name another store with --store"
            mode = stat.S_IMODE(status.st_mode)
            raise Trouble(f"{folder} may not be entered by this user ({mode:04o})", advice)


def _schema(path: Path) -> str:
    with opened_in(path, clock=SystemClock()) as opened:
        version = schema_version(opened.reader)
        failed = opened.reader.execute("SELECT version FROM migrations WHERE status <> 'success'").fetchall()
    if failed:
        raise Trouble(f"migrations failed: {failed}", "restore a backup with `leasehold restore`")
    return f"version {version}"


def _clock(store: SqliteStore) -> str:
    with store.snapshot() as snapshot:
        authority, reading = snapshot.authority, snapshot.reading()
    event = observe(authority, reading)
    if authority is None:
        return "never used yet"
    if isinstance(event, EpochRaised):
        return f"the next command begins epoch {event.epoch}, because: {event.reason}"
    hours = reading.tick_value / 3_600e9
    return f"boot {reading.boot_id}, {hours:.1f} h ago; era {authority.era}, epoch {authority.epoch}"


def _writer(store: SqliteStore) -> str:
    """Try to become the writer for a while, without queueing for it."""
    position = _head(store)
    patience_ends = time.monotonic() + _WRITER_PATIENCE_SECONDS
    while True:
        try:
            with store.write(blocking=False):
                return "nobody is kept waiting"
        except WouldBlock:
            process_id = store.blocker()
        except StoreBusy:
            # Somebody who does not queue as we do, such as a SQL shell in the middle of a transaction.
            raise _stalled(
                store, holder_of_byte(store.path / files.SHARED_MEMORY, _SQLITE_WRITE_LOCK)
            ) from None
        if _head(store) != position:
            return "busy, and getting on"
        if time.monotonic() >= patience_ends:
            break
        time.sleep(_LOOK_EVERY_SECONDS)
    raise _stalled(store, process_id)


def _stalled(store: SqliteStore, process_id: int | None) -> Trouble:
    lock = store.path / files.WRITER
    process = None if process_id is None else describe_process(process_id)
    if process is None or not process.state:
        # The lock outlives the process that took it in those it has left the open file to.
        process = next(iter(processes_with(lock)), None)
    if process is None:
        return Trouble(
            f"an unknown process has {lock} locked, and all writers wait", "look for it as root: fuser -v"
        )
    return Trouble(f"all writers wait for {process}; nothing was written {_since(store)}", process.advice)


def _since(store: SqliteStore) -> str:
    with store.snapshot() as snapshot:
        authority = snapshot.authority
    return "yet" if authority is None else f"since {local_time(authority.wall_ns)}"


def _head(store: SqliteStore) -> int:
    with store.snapshot() as snapshot:
        return snapshot.head.position


def _storage(store: SqliteStore, progress: Callable[[int, int], None]) -> str:
    with store.snapshot() as snapshot:
        found = snapshot.defects(progress)
    if found:
        raise Trouble("; ".join(found), _advice_to_restore(store))
    return "pages and indexes are whole, the schema is leasehold's own"


def _ledger(store: SqliteStore, progress: Callable[[int, int], None]) -> str:
    # Whoever asks has these keys in files that only they can read: no need to tell them of their own.
    found = audit(store, progress, trusted=store.sealer.ring.at_hand(), skip_storage=True)
    if found.problems:
        raise Trouble("; ".join(found.problems), _advice_to_restore(store))
    entries, leases = f"{found.entries - found.pruned:,} entries", counted(found.leases, "lease")
    return f"{entries}, {leases}: the chain is whole, the tables agree"


def _advice_to_restore(store: SqliteStore) -> str:
    return f"keep a copy of {store.path} to examine, and put a backup in place with `leasehold restore`"
