"""The identity file: which store this is, what its files are, and how far it had come.

A store's folder has one such file. It is never replaced, only written in place, because processes hold a
lock on it for as long as they have the store open. It has three parts:

- Two *slots*, each a record with a checksum. The one with the higher number counts. A new record goes into
  the other slot, and is synced: whoever is killed while writing leaves the old one.
- A *note*: the position and hash of the ledger's last entry, written after each commit without a sync, and
  whether the log holds anything that the database lacks. It outlives every process; a power cut may take
  it back, but a reboot raises the epoch anyway.

The highest epoch is in the record before it is in the database. So if the database has a lower one, it has
forgotten something.

Not promised: whoever puts an older identity file *and* an older database in place by hand, or writes into
this one, can make a store forget. The seconds in every epoch keep tokens from repeating even then.
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
_NOTE = struct.Struct(">Q32s?")
_CHECKSUM = struct.Struct(">I")
NOTE_BYTES = _NOTE.size + _CHECKSUM.size

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


def encode_note(position: int, entry_hash: bytes, *, log_counts: bool) -> bytes:
    """Spell a note, with a checksum."""
    body = _NOTE.pack(position, entry_hash, log_counts)
    return body + _CHECKSUM.pack(zlib.crc32(body))


def decode_note(written: bytes) -> Note | None:
    """Read a note; None if it is damaged."""
    body, checksum = written[: _NOTE.size], written[_NOTE.size :]
    if checksum != _CHECKSUM.pack(zlib.crc32(body)):
        return None
    position, entry_hash, log_counts = _NOTE.unpack(body)
    return Note(position=position, hash=entry_hash, log_counts=log_counts)


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

    def write_note(self, note: bytes) -> None:
        """Put a note in the place of the one before."""
        os.pwrite(self.descriptor, note, _NOTE_AT)

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
