"""Copies of a store, and how one is put in the store's place without a token ever coming again.

`backup` copies one moment of a store that may be in use. The copy is whole, on the disk and checked before
it gets its name. It is marked as a backup, so that nobody puts it in place by hand: a plain copy over the
store's file would bring back old tokens, and nothing could tell.

`restore` replaces the content of a store, not its files, in one transaction: whoever has the store open
goes on with it and finds the restored content in its next transaction, and whoever kills the restore
leaves the store as it was. The restored store begins a higher epoch than both the backup and the store it
replaces ever had, in that same transaction; and a higher one than any that was restored from this backup
before, because no epoch is below the seconds of the wall clock.

Not promised: what was granted after the backup is forgotten, and whoever holds such a lease learns of it
at its next renewal. Until then its resource can be granted anew, under a higher token.
"""

import os
import secrets
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path

import apsw
import msgspec
from msgspec.structs import replace

from leasehold.engine.clock import Clock, SystemClock
from leasehold.engine.port import Head
from leasehold.engine.recording import record
from leasehold.engine.sealing import Sealer
from leasehold.errors import InvalidInput, StoreDamaged, StoreUnusable
from leasehold.kernel.lease.family import LEASES
from leasehold.kernel.ledger.authority import EPOCH_LIMIT, Authority, ClockReading, observe, raise_epoch
from leasehold.kernel.ledger.family import Families
from leasehold.stores.sqlite import files
from leasehold.stores.sqlite.connection import (
    APPLICATION_ID,
    BACKUP_APPLICATION_ID,
    refuse_affected_library,
)
from leasehold.stores.sqlite.copying import (
    Progress,
    Reporter,
    check_content,
    copy_pages,
    known,
    look_into,
    open_private,
)
from leasehold.stores.sqlite.failures import system_error, translated
from leasehold.stores.sqlite.key_files import KeyFolder
from leasehold.stores.sqlite.migrations import migrate
from leasehold.stores.sqlite.opened import OpenFile, open_file
from leasehold.stores.sqlite.shelves import Shelves
from leasehold.stores.sqlite.write_queue import PATIENCE_SECONDS, turn
from leasehold.stores.sqlite.writing import SqliteTransaction

RESTORED = "restored"
"""The reason that history gives for the epoch of a restored store."""


class Copied(msgspec.Struct, frozen=True, kw_only=True):
    """What a backup holds, or what a store was restored to."""

    path: Path
    epoch: int
    entries: int
    """How many entries its ledger has."""
    size_bytes: int


def backup(
    store_path: Path | str,
    target: Path | str,
    progress: Progress | None = None,
    *,
    overwrite: bool = False,
    vfs: str | None = None,
) -> Copied:
    """Copy a store as it is at this moment to a new file, readable for this user only.

    Others may go on using the store. Raises InvalidInput if the target exists, unless `overwrite` is set.
    """
    source, target = files.resolved(store_path), files.absolute(target)
    _refuse_target(source, target, overwrite=overwrite)
    with opened_in(source, clock=SystemClock(), vfs=vfs) as opened, _new_file_beside(target) as partial:
        authority, head = _copy_out(opened.reader, partial, progress, str(target))
        _check_backup(partial, head)
        size_bytes = _keep(partial, target, overwrite=overwrite)
    return Copied(path=target, epoch=authority.epoch, entries=head.position, size_bytes=size_bytes)


def restore(
    backup_file: Path | str,
    store_path: Path | str,
    progress: Progress | None = None,
    *,
    patience_seconds: float = PATIENCE_SECONDS,
    clock: Clock | None = None,
    vfs: str | None = None,
    families: Families = LEASES,
) -> Copied:
    """Put a backup, or a copy of a store's database, in the place of a store; or where there is none yet.

    A store that cannot be used, because files are missing, damaged or not its own, is made anew for it, if
    nobody has it open. Raises StoreBusy if another process is writing for longer than `patience_seconds`.
    """
    source, target = files.resolved(backup_file), files.resolved(store_path)
    if target in (source, *source.parents):
        raise InvalidInput(f"{target} cannot be restored from itself; name a backup", field="backup_file")
    refuse_other_than_file(source)
    reporter = Reporter(progress, rounds=2)
    clock = clock or SystemClock()
    with staged(source, reporter) as copy, _opened_for(target, clock=clock, vfs=vfs) as opened:
        with turn(target, patience_seconds), translated(str(target)):
            connection, place = opened.writer, opened.place
            reading = replace(
                opened.read_clock(), epoch_floor=max(place.identity.read().epoch, _epoch_of(connection))
            )
            copy.execute("BEGIN IMMEDIATE")
            transaction = SqliteTransaction(copy, lambda: reading, shelves=Shelves(families))
            place.keep_epoch(_begin_epoch(transaction, reading, target))
            with _fitted(copy, connection, target) as fitted:
                copy_pages(fitted, connection, reporter)
            authority, head = known(look_into(connection), target)
            place.keep(head)
            # It is restored. That its log is still long is no reason to say otherwise.
            with suppress(apsw.Error):
                connection.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_PASSIVE)
        size_bytes = place.database.stat().st_size
    return Copied(path=target, epoch=authority.epoch, entries=head.position, size_bytes=size_bytes)


@contextmanager
def opened_in(path: Path, *, clock: Clock, vfs: str | None = None) -> Iterator[OpenFile]:
    """Have a store open that exists, for as long as the block takes."""
    opened = open_file(path, durability="full", clock=clock, vfs=vfs)
    try:
        yield opened
    finally:
        opened.retire()


@contextmanager
def _opened_for(target: Path, *, clock: Clock, vfs: str | None) -> Iterator[OpenFile]:
    """Have a store open whose content is about to be replaced: as it is, or made anew."""
    try:
        opened = open_file(target, durability="full", clock=clock, vfs=vfs, create=True)
    except StoreDamaged:
        opened = open_file(target, durability="full", clock=clock, vfs=vfs, create=True, replacing=True)
    try:
        yield opened
    finally:
        opened.retire()


def refuse_other_than_file(source: Path) -> None:
    """Raise StoreUnusable unless there is a file that could be a backup."""
    if source.is_dir():
        raise StoreUnusable(
            f"{source} is a folder; name a backup, or a database, such as {source / files.DATABASE}",
            path=str(source),
        )
    if not source.is_file():
        raise StoreUnusable(f"there is no backup at {source}; check the path", path=str(source))


def _refuse_target(source: Path, target: Path, *, overwrite: bool) -> None:
    if source in (target, *Path(os.path.realpath(target)).parents):
        raise InvalidInput(f"{target} is in the store itself; name a file elsewhere", field="target")
    if target.exists() and not overwrite:
        raise _exists_already(target)


def _exists_already(target: Path) -> InvalidInput:
    problem = f"{target} exists already; name another file, or replace it with --overwrite"
    return InvalidInput(problem, field="target")


@contextmanager
def _new_file_beside(target: Path) -> Iterator[Path]:
    """Make an empty file that only this user can read, and remove it in the end, however that comes."""
    partial = target.with_name(f".{target.name}.{secrets.token_hex(4)}.partial")
    try:
        os.close(os.open(partial, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
    except OSError as error:
        raise system_error(error, str(target), "written") from error
    try:
        yield partial
    finally:
        partial.unlink(missing_ok=True)


def _copy_out(
    source: apsw.Connection, partial: Path, progress: Progress | None, name: str
) -> tuple[Authority, Head]:
    """Copy one moment of a store into a file, and mark that as a backup."""
    with translated(name), closing(open_private(str(partial))) as copy:
        # One read transaction around it all: else each commit of another process would start it over.
        source.execute("BEGIN")
        try:
            found = known(look_into(source), Path(name))
            copy_pages(source, copy, Reporter(progress, rounds=1))
        finally:
            source.execute("ROLLBACK")
        # A backup is one file, which can be read from where nothing can be written.
        copy.pragma("journal_mode", "delete")
        copy.pragma("application_id", BACKUP_APPLICATION_ID)
    return found


def _check_backup(partial: Path, expected: Head) -> None:
    """Raise StoreUnusable unless the file reads as the backup it is meant to be."""
    with (
        translated(str(partial)),
        closing(apsw.Connection(str(partial), flags=apsw.SQLITE_OPEN_READONLY)) as copy,
    ):
        check_content(copy, partial)
        _, head = known(look_into(copy), partial)
        if copy.pragma("application_id") != BACKUP_APPLICATION_ID or head != expected:
            raise StoreUnusable(f"{partial} is not what was written; check the disk", path=str(partial))


def _keep(partial: Path, target: Path, *, overwrite: bool) -> int:
    """Give a finished backup its name, once its bytes are on the disk; return how many they are."""
    try:
        files.sync(partial)
        size_bytes = partial.stat().st_size
        if overwrite:
            partial.replace(target)
        else:
            _name_if_free(partial, target)
        files.sync(target.parent)
    except FileExistsError:
        raise _exists_already(target) from None
    except OSError as error:
        raise system_error(error, str(target), "written") from error
    return size_bytes


def _name_if_free(partial: Path, target: Path) -> None:
    try:
        target.hardlink_to(partial)
    except FileExistsError:
        raise
    except OSError:  # a file system without hard links, which cannot name a file and spare another at once
        if target.exists():
            raise FileExistsError(str(target)) from None
        partial.rename(target)


@contextmanager
def staged(source: Path, reporter: Reporter) -> Iterator[apsw.Connection]:
    """Copy a backup into a nameless file of this process, checked and with today's schema."""
    refuse_affected_library()
    with (
        closing(open_private("")) as copy,
        translated(str(source)),
        closing(apsw.Connection(str(source), flags=apsw.SQLITE_OPEN_READONLY)) as original,
    ):
        original.execute("BEGIN")
        check_content(original, source)
        copy_pages(original, copy, reporter)
        original.execute("ROLLBACK")
        copy.pragma("application_id", APPLICATION_ID)
        migrate(copy, source)
        known(look_into(copy), source)
        yield copy


def _begin_epoch(transaction: SqliteTransaction, reading: ClockReading, target: Path) -> int:
    """Raise the epoch of what is about to be restored above all that the store ever had; return it."""
    authority, _ = known(transaction, target)
    observed = observe(authority, reading)
    new_era = observed is not None and observed.tick.era != authority.era
    restored = raise_epoch(authority, reading, reason=RESTORED, new_era=new_era)
    if restored.epoch >= EPOCH_LIMIT:
        raise StoreUnusable(f"{target} has used up its epochs; begin a new store", path=str(target))
    record(transaction, [restored], Sealer(KeyFolder(target)))
    return restored.epoch


def _epoch_of(connection: apsw.Connection) -> int:
    """Return the epoch of the store that is about to be replaced; 0 if there is none, or it is unreadable."""
    try:
        return connection.execute("SELECT epoch FROM authority").get or 0
    except apsw.Error:
        return 0


@contextmanager
def _fitted(staged: apsw.Connection, connection: apsw.Connection, target: Path) -> Iterator[apsw.Connection]:
    """Give the copy the page size of the file it goes to, which cannot change while others use it."""
    page_size = connection.pragma("page_size")
    if staged.pragma("page_size") == page_size:
        yield staged
        return
    # Only a file with a name can change its page size.
    with _new_file_beside(target) as named, closing(open_private(str(named))) as fitted:
        copy_pages(staged, fitted, Reporter(None, rounds=1))
        fitted.pragma("journal_mode", "delete")
        fitted.pragma("page_size", page_size)
        fitted.execute("VACUUM")
        yield fitted
