"""Being inside a store's folder: who may, when, and what has to be as it was.

A store is a folder. SQLite finds its log and its shared memory by the database's path, and the write queue
its locks by the folder's; if two processes find different files there, each grants what the other has
granted. So the identity file says what each file was, and nobody works with others:

1. *Enter.* Open the identity file, without following links. Lock it exclusively if that can be had at once:
   then nobody is inside. Else share the lock with those who are, and keep it until the store is closed.
2. *Compare* the folder and each file with the record: device (within one boot), number, time of birth. No
   file may be a link, have a second name, be mounted by itself, or belong to a stranger.
3. *Alone*, mend what can be mended, and record it before SQLite is let in, which would cover it up:

   - All files are others than recorded, or on another device: the store was copied. New incarnation.
   - Only the folder is another: the files were moved. New incarnation.
   - The log is missing or empty, and the note says that it counts: something was forgotten. New incarnation.
   - Otherwise a missing log, shared memory or lock is made anew, and an empty log or a shared memory that
     another program has made is taken: nothing is lost.

   A new incarnation raises the epoch before the next grant: `kernel.ledger.authority.observe`. Anything
   else that differs is refused, and named. So is every difference while somebody else is inside.
4. *Settle*, once SQLite has opened its files: what it has open, as /proc tells, must be what is there. Record
   all of it if we were alone, and share the lock from now on.
5. *Look again* in every write transaction, once it has the write lock and once more before the caller gets
   its answer. Whoever finds a difference before a commit leaves, and enters anew by these rules. After a
   commit the outcome is unknown: the files that were written to are not the ones that others will find.

To look again takes one `stat` of the folder: its ctime changes with every name that comes, goes or is moved
in it. Only if that is recent, or has changed, or the file system is not known to do that, each file is asked
for.

Not noticed: a file that is changed in place by another program while the store is in use. What that makes
the ledger forget is noticed by the note (`identity`).
"""

import os
import secrets
import stat
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from time import sleep, time_ns

from msgspec.structs import replace

from leasehold.engine.port import Head
from leasehold.errors import StoreDamaged, StoreFailed
from leasehold.kernel.ledger.authority import COPIED, EPOCH_ZERO_NS
from leasehold.kernel.ledger.chain import GENESIS_HASH
from leasehold.kernel.ledger.tick import NANOSECONDS_PER_SECOND
from leasehold.stores.sqlite import files
from leasehold.stores.sqlite.belongings import (
    FOLDER,
    OF_SQLITE,
    Found,
    has_others_open,
    look,
    missing_from,
    others_than,
    refusal,
    refuse_emptied,
    refuse_misplaced,
)
from leasehold.stores.sqlite.failures import system_error
from leasehold.stores.sqlite.file_status import status_of
from leasehold.stores.sqlite.files import DATABASE, IDENTITY, LOG, SHARED_MEMORY, TURNSTILE, WRITER
from leasehold.stores.sqlite.identity import IdentityFile, Record, decode_note

MOVED = "moved"
LOG_LOST = "log lost"
OVERWRITTEN = "overwritten"

_REPLACEABLE = {LOG, SHARED_MEMORY, WRITER, TURNSTILE}
"""What can be made anew if it is missing, and nobody is inside."""

_CTIME_FILE_SYSTEMS = frozenset(
    {"bcachefs", "btrfs", "ext2", "ext3", "ext4", "f2fs", "overlay", "tmpfs", "xfs", "zfs"}
)
_RECENT_NS = 50_000_000
"""Longer than the kernel's clock for files stands still, so that a change after a look has another ctime."""


class Changed(Exception):
    """What was compared a moment ago is not there any more."""


class Place:
    """One process's place inside a store's folder."""

    def __init__(
        self,
        path: Path,
        *,
        boot_id: str,
        wall_ns: Callable[[], int],
        create: bool,
        group: bool,
        replacing: bool = False,
    ) -> None:
        self.path = path
        self._name = str(path)
        self._boot_id = boot_id
        self._wall_ns = wall_ns
        self._seen: tuple[int, int, int] | None = None
        """When the folder was last changed, and which it is, if no look at its files is needed as long as
        that is so."""
        self._trusts_ctime = files.file_system_of(path) in _CTIME_FILE_SYSTEMS
        self._folder = files.open_folder(path, group=group, create=create)
        try:
            descriptor = files.open_identity(
                self._folder, path, create=create, group=group, replacing=replacing
            )
            self.identity = IdentityFile(descriptor, path / IDENTITY)
            try:
                self._enter(group=group, create=create, replacing=replacing)
            except BaseException:
                self.identity.close()
                raise
        except OSError as error:
            os.close(self._folder)
            raise system_error(error, str(path)) from error
        except BaseException:
            os.close(self._folder)
            raise

    @property
    def database(self) -> Path:
        """Return where SQLite's database is."""
        return self.path / DATABASE

    def _enter(self, *, group: bool, create: bool, replacing: bool) -> None:
        self._alone = self.identity.lock_alone()
        if not self._alone and not replacing:
            self.identity.lock_shared()
        self._found = look(self._folder)
        self._refuse_replaced_identity()
        if replacing:
            self._begin_anew(group=group)
        elif self.identity.is_empty:
            self._make(group=group, create=create)
        else:
            self._compare()

    def _refuse_replaced_identity(self) -> None:
        """Make sure that what is locked is what others find."""
        there, status = self._found.get(IDENTITY), os.fstat(self.identity.descriptor)
        if there is None or (there.inode, there.device) != (status.st_ino, status.st_dev):
            raise Changed

    def _compare(self) -> None:
        """Go on if everything is as it was; mend what can be mended, if we are alone."""
        found, self.record = self._found, self.identity.read()
        others, missing = others_than(self.record, found, self._boot_id), missing_from(found)
        unknown = found.keys() - self.record.files.keys()
        if not self._alone and (others or missing or unknown) and self.identity.lock_alone():
            raise Changed  # Whoever was inside has just left.
        refuse_misplaced(self.path, found)
        refuse_emptied(self.path, self.record, found)
        if self._alone:
            self._mend(others, missing)
        elif others or missing or unknown:
            raise refusal(self.path, others | missing | unknown, found, alone=False)

    def _make(self, *, group: bool, create: bool) -> None:
        """Begin a store in a folder that has nothing but an empty identity file, or what a maker left."""
        if not self._alone:
            raise Changed  # Who was making it was killed, and somebody waits like us.
        database = self._found.get(DATABASE)
        if database is not None and database.size > 0:
            raise self.identity.damaged()
        if not create:
            raise files.no_store(self.path)
        refuse_misplaced(self.path, self._found)
        if database is None:
            os.close(files.make_file(self._folder, DATABASE, 0o660 if group else 0o600))
        self._make_locks()
        files.hide_from_git(self._folder)
        self._write_first_record(None)

    def _begin_anew(self, *, group: bool) -> None:
        """Begin anew in the folder of a store that cannot be used; what is known of its epochs stays."""
        if not self._alone:
            raise StoreDamaged(
                f"another process has {self.path} open; stop all that use it, and try again",
                path=str(self.path),
            )
        database = self._found.get(DATABASE)
        shared = group if database is None else bool(database.mode & stat.S_IWGRP)
        for name in (*OF_SQLITE, WRITER, TURNSTILE):
            with suppress(FileNotFoundError):
                os.unlink(name, dir_fd=self._folder)
        self._found = {}
        os.close(files.make_file(self._folder, DATABASE, 0o660 if shared else 0o600))
        self._make_locks()
        self._write_first_record(self.identity.newest())

    def _write_first_record(self, before: Record | None) -> None:
        self.identity.write_note(0, GENESIS_HASH, log_counts=False)
        self.record = self.identity.write(
            Record(
                number=0,
                store_id=secrets.token_hex(16) if before is None else before.store_id,
                incarnation=secrets.token_hex(4),
                epoch=0 if before is None else before.epoch,
                boot_id=self._boot_id,
            )
        )
        files.sync(self.path)

    def _make_locks(self) -> None:
        """Make the lock files that are missing, open to those who may write the database."""
        database = status_of(DATABASE, self._folder)
        assert database is not None, "whoever makes locks has made or seen the database"
        for name in (WRITER, TURNSTILE):
            if name not in self._found:
                os.close(files.make_file(self._folder, name, stat.S_IMODE(database.mode) & 0o660))

    def _mend(self, others: set[str], missing: set[str]) -> None:
        """Make anew what may be missing; begin a new incarnation if something may have been forgotten."""
        found, known = self._found, self.record.files.keys() & self._found.keys() - {FOLDER}
        if not missing <= _REPLACEABLE:
            raise refusal(self.path, missing - _REPLACEABLE, found, alone=True)
        causes = []
        has_log = LOG in found and found[LOG].size > 0
        # What another program that read or wrote the database has left: as good as missing.
        harmless = {SHARED_MEMORY} if has_log else {SHARED_MEMORY, LOG}
        if known and known <= others:
            causes.append(COPIED)
        elif others - harmless - {FOLDER}:
            raise refusal(self.path, others - harmless - {FOLDER}, found, alone=True)
        elif FOLDER in others:
            causes.append(MOVED)
        if not has_log and self.identity.read_note().log_counts:
            causes.append(LOG_LOST)
        if not causes and self.identity.was_overwritten():
            causes.append(OVERWRITTEN)
        self._make_locks()
        if causes:
            # A copy is more than a loss: it gets another key.
            cause = COPIED if COPIED in causes else ", ".join(causes)
            self.record = self.identity.write(
                replace(self.record, incarnation=secrets.token_hex(4), cause=cause, files={})
            )

    def settle(self) -> None:
        """See to it that SQLite has the right files open, and be inside together with others from now on.

        Raises Changed if something is not there any more that was there when we came.
        """
        try:
            if self._alone:
                self._touch_locks()
            found = look(self._folder)
            came = {name: status.identity for name, status in self._found.items()}
            if any(name not in found or found[name].identity != file for name, file in came.items()):
                raise Changed
            if has_others_open(self.path, found):
                raise Changed
            if self._alone:
                self._record(found)
            elif others_than(self.record, found, self._boot_id) or missing_from(found):
                raise Changed
            self._inodes = {name: (status.device, status.inode) for name, status in found.items()}
        except OSError as error:
            raise system_error(error, str(self.path)) from error

    def _touch_locks(self) -> None:
        """Open the locks once for writing: in a container, that makes them other files than its image has."""
        for name in (WRITER, TURNSTILE):
            os.close(files.open_own(self._folder, name))

    def _record(self, found: Found) -> None:
        """Record what is there, and let others in."""
        recorded = {name: status.identity for name, status in found.items()}
        if recorded != self.record.files or self.record.boot_id != self._boot_id:
            self.record = self.identity.write(replace(self.record, files=recorded, boot_id=self._boot_id))
        # Not in one step: somebody may come and go in between, who found everything in order.
        self.identity.lock_shared()
        self._alone = False
        if self.identity.read() != self.record or missing_from(look(self._folder)):
            raise Changed

    def is_current(self) -> bool:
        """Say whether the path still leads to the same folder, and that to the same files."""
        try:
            status = os.stat(self._name)
            seen = (status.st_ctime_ns, status.st_ino, status.st_dev)
            return seen == self._seen or self._look_again(seen)
        except OSError:
            return False

    def _look_again(self, seen: tuple[int, int, int]) -> bool:
        folder = os.fstat(self._folder)
        if seen[1:] != (folder.st_ino, folder.st_dev):
            return False
        for name in files.ALL:
            status = os.lstat(self.path / name)
            if (status.st_dev, status.st_ino) != self._inodes[name]:
                return False
        if self._trusts_ctime and time_ns() - seen[0] > _RECENT_NS:
            self._seen = seen
        return True

    def holds(self, name: str, descriptor: int) -> bool:
        """Say whether an open file is the one that was recorded under a name."""
        status = os.fstat(descriptor)
        return (status.st_dev, status.st_ino) == self._inodes[name]

    def was_overwritten(self) -> bool:
        """Say whether older content was put into all files at once. By who has the turn to write.

        Whoever came in while others were inside has not asked, and remembers nothing of what was there.
        """
        return self._trusts_ctime and self.identity.was_overwritten()

    def keep_epoch(self, epoch: int) -> None:
        """Have an epoch on the disk before the database has it. By who has the turn to write.

        An epoch that is ahead of the clock by less than a second waits for it: else the next one, in a
        copy that knows nothing of this one, could be the same.
        """
        if epoch <= self.record.epoch:
            return
        ahead_ns = EPOCH_ZERO_NS + epoch * NANOSECONDS_PER_SECOND - self._wall_ns()
        if 0 < ahead_ns <= NANOSECONDS_PER_SECOND:
            sleep(ahead_ns / NANOSECONDS_PER_SECOND)
        record = self.identity.read()
        if epoch > record.epoch:
            record = self.identity.write(replace(record, epoch=epoch))
        self.record = record

    def keep(self, head: Head) -> bytes:
        """Note what was just committed; raise StoreFailed if others will not find it."""
        note = self.identity.write_note(head.position, head.hash, log_counts=True)
        if not self.is_current():
            raise StoreFailed(
                f"files of {self.path} were moved, removed or replaced during a commit; whether the change "
                "was made is unknown: try again with the same request id",
                path=str(self.path),
            )
        return note

    def leave(self) -> None:
        """Leave, after SQLite's files are closed. Who leaves last notes that the log counts no more."""
        try:
            if self.identity.lock_alone():
                self._note_clean_end()
        finally:
            self.identity.close()
            os.close(self._folder)

    def _note_clean_end(self) -> None:
        note = decode_note(self.identity.note())
        log = status_of(LOG, self._folder)
        is_emptied = note is not None and note.log_counts and log is not None and log.size == 0
        # A new date would hide that the note was put back by somebody else.
        if note is not None and is_emptied and not self.identity.was_overwritten():
            self.identity.write_note(note.position, note.hash, log_counts=False)
