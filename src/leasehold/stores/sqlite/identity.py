"""The identity file: which store this is, what its files are, and how far it had come.

A store's folder has one such file. It is never replaced, only written in place, because processes hold a
lock on it for as long as they have the store open. It has three parts:

- Two *slots*, each a record with a checksum. The one with the higher number counts. A new record goes into
  the other slot, and is synced: whoever is killed while writing leaves the old one.
- A *note*: the position and hash of the ledger's last entry, written after each commit without a sync,
  whether the log holds anything that the database lacks, and when it was written. It outlives every process;
  a power cut may take it back, but a reboot raises the epoch anyway. Nothing is written into the file after
  it, so a file that was changed later than the note says was changed by somebody else.

The highest epoch is in the record before it is in the database. So if the database has a lower one, it has
forgotten something.

Not promised: whoever writes into this file with care, or rolls back the whole disk, can make a store forget.
"""

import fcntl
import os
import struct
import time
import zlib
from pathlib import Path

import msgspec
from msgspec.structs import replace

from leasehold.errors import StoreBusy, StoreDamaged
from leasehold.kernel.ledger.authority import COPIED
from leasehold.stores.sqlite.file_status import Identity

_SLOT_BYTES = 1536
_SLOTS = (0, _SLOT_BYTES)
_NOTE_AT = 2 * _SLOT_BYTES
_NOTE = struct.Struct(">Q32s?q")
_CHECKSUM = struct.Struct(">I")
NOTE_BYTES = _NOTE.size + _CHECKSUM.size

_AT_ONCE_NS = 20_000_000
"""How much later than the note says the kernel may date it."""

_ATTEMPTS = 10
"""How often a note is written that is dated too late. One that still is costs an epoch, and nothing else."""

_PATIENCE_SECONDS = 30.0
_ASK_EVERY_SECONDS = 0.005


class Record(msgspec.Struct, frozen=True, kw_only=True):
    """What a store is known by."""

    number: int
    """Counts the records; the highest is the one that counts."""
    store_id: str
    incarnation: str
    """Changes when the store was copied, or has lost files: then its epoch has to rise."""
    cause: str = COPIED
    """Why the incarnation is another than the one before."""
    epoch: int = 0
    """The highest there ever was."""
    boot_id: str = ""
    """In which boot the devices were seen: their numbers may change with the next."""
    files: dict[str, Identity] = {}
    """What the folder and its files were, by name."""

    @property
    def name(self) -> str:
        """Return what the database calls the store."""
        return f"{self.store_id}.{self.incarnation}"


_decoder = msgspec.json.Decoder(Record)


class Note(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """How far the ledger had come at the last commit."""

    position: int
    hash: bytes
    log_counts: bool
    """Whether the log may hold what the database lacks."""
    written_ns: int
    """When it was written, by the clock that the kernel dates files with."""


def _encode_note(position: int, entry_hash: bytes, log_counts: bool, written_ns: int) -> bytes:
    body = _NOTE.pack(position, entry_hash, log_counts, written_ns)
    return body + _CHECKSUM.pack(zlib.crc32(body))


def decode_note(written: bytes) -> Note | None:
    """Read a note; None if it is damaged."""
    body, checksum = written[: _NOTE.size], written[_NOTE.size :]
    if checksum != _CHECKSUM.pack(zlib.crc32(body)):
        return None
    position, entry_hash, log_counts, written_ns = _NOTE.unpack(body)
    return Note(position=position, hash=entry_hash, log_counts=log_counts, written_ns=written_ns)


class IdentityFile:
    """An open identity file."""

    def __init__(self, descriptor: int, path: Path) -> None:
        self.descriptor = descriptor
        self._path = path

    def lock_alone(self) -> bool:
        """Try to keep everybody else out; say whether that worked, which means that nobody was inside.

        Any lock that was held before is gone if not.
        """
        try:
            fcntl.flock(self.descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True

    def lock_shared(self) -> None:
        """Be inside, together with others; raise StoreBusy if somebody keeps us out for too long."""
        patience_ends = time.monotonic() + _PATIENCE_SECONDS
        while True:
            try:
                fcntl.flock(self.descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
                return
            except BlockingIOError:
                if time.monotonic() >= patience_ends:
                    raise StoreBusy(
                        f"another process has kept {self._path} to itself for more than "
                        f"{_PATIENCE_SECONDS:g} s; nothing was changed. See who it is with: fuser -v",
                        path=str(self._path),
                    ) from None
            # The kernel cannot be asked to wait for a while.
            time.sleep(_ASK_EVERY_SECONDS)

    @property
    def is_empty(self) -> bool:
        """Say whether nothing was ever written: who was making the store was killed, or is at it."""
        return os.fstat(self.descriptor).st_size == 0

    def read(self) -> Record:
        """Return the record that counts; raise StoreDamaged if there is none."""
        record = self.newest()
        if record is None:
            raise self.damaged()
        return record

    def newest(self) -> Record | None:
        """Return the record that counts, if there is one."""
        records = [record for offset in _SLOTS if (record := self._read_slot(offset)) is not None]
        return max(records, key=lambda record: record.number, default=None)

    def _read_slot(self, offset: int) -> Record | None:
        body, _, checksum = os.pread(self.descriptor, _SLOT_BYTES, offset).rstrip(b" \n").rpartition(b"\n")
        if checksum != _checksum(body):
            return None
        try:
            return _decoder.decode(body)
        except msgspec.MsgspecError:
            return None

    def write(self, record: Record) -> Record:
        """Put a record into the older slot; return it with its number, once it is on the disk."""
        newest = self.newest()
        record = replace(record, number=1 if newest is None else newest.number + 1)
        body = msgspec.json.encode(record)
        written = (body + b"\n" + _checksum(body)).ljust(_SLOT_BYTES - 1) + b"\n"
        assert len(written) == _SLOT_BYTES, "a record fits into a slot"
        os.pwrite(self.descriptor, written, _SLOTS[record.number % 2])
        os.fsync(self.descriptor)
        note = decode_note(self.note())
        if note is not None:
            # It has to be what was written last.
            self.write_note(note.position, note.hash, log_counts=note.log_counts)
        return record

    def note(self) -> bytes:
        """Return the note as it is written."""
        return os.pread(self.descriptor, NOTE_BYTES, _NOTE_AT)

    def read_note(self) -> Note:
        """Return the note; raise StoreDamaged if it is damaged."""
        note = decode_note(self.note())
        if note is None:
            raise self.damaged()
        return note

    def write_note(self, position: int, entry_hash: bytes, *, log_counts: bool) -> bytes:
        """Put a note in the place of the one before; return it as it is written."""
        for _ in range(_ATTEMPTS):
            written_ns = time.time_ns()
            written = _encode_note(position, entry_hash, log_counts, written_ns)
            os.pwrite(self.descriptor, written, _NOTE_AT)
            if self._changed_ns() - written_ns <= _AT_ONCE_NS:
                break  # Else we were kept waiting on the way.
        return written

    def was_overwritten(self) -> bool:
        """Say whether somebody else has written into this file since the last note was.

        Whoever copies an older folder over a store writes older content into all its files, and into this
        one, so that all of them agree; but only the kernel says when a file was last changed.
        """
        return self._changed_ns() - self.read_note().written_ns > _AT_ONCE_NS

    def _changed_ns(self) -> int:
        return os.fstat(self.descriptor).st_ctime_ns

    def damaged(self) -> StoreDamaged:
        """Return the error for a file that does not say what it should."""
        return StoreDamaged(
            f"{self._path} is damaged, and without it the store cannot be told from a copy; take what is "
            f"left into a new one: leasehold restore '{self._path.with_name('leases.db')}' --store NEW",
            path=str(self._path),
        )

    def close(self) -> None:
        """Close the file, which frees the lock."""
        os.close(self.descriptor)


def _checksum(body: bytes) -> bytes:
    return f"{zlib.crc32(body):08x}".encode()
