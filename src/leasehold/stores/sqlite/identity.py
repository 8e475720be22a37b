"""Which file this is, so that a copy in its place can be told from the original.

The number of a file is not enough: who removes a store and puts an old copy in its place often gets the
very same number again, because file systems reuse the numbers of removed files. The time at which the file
was born tells them apart. Moving and renaming a file change neither.

Not noticed: a copy that is written *into* the existing file. `leasehold restore` is the way to do that.
"""

import ctypes
import os
import struct
from pathlib import Path

_AT_FDCWD = -100
_STATX_BTIME = 0x800
_STATX_BYTES = 256
_MASK, _BORN = struct.Struct("=I"), struct.Struct("=qI")
_MASK_OFFSET, _BORN_OFFSET = 0, 80
"""Where the kernel's answer says what it knows, and when the file was born."""


def identity_of(path: Path) -> str:
    """Return the device, the number and the birth of a file; raise OSError if there is none."""
    status = os.stat(path)
    # The device comes first and alone: its number may change with every boot.
    return f"{status.st_dev}:{status.st_ino}.{_born_ns(path)}"


def _born_ns(path: Path) -> int:
    """Return when a file was made; 0 where the system or the file system does not know."""
    statx = getattr(ctypes.CDLL(None), "statx", None)
    if statx is None:
        return 0
    answer = ctypes.create_string_buffer(_STATX_BYTES)
    failed = statx(_AT_FDCWD, os.fsencode(path), 0, _STATX_BTIME, answer)
    if failed or not _MASK.unpack_from(answer, _MASK_OFFSET)[0] & _STATX_BTIME:
        return 0
    seconds, nanoseconds = _BORN.unpack_from(answer, _BORN_OFFSET)
    return int(seconds * 1_000_000_000 + nanoseconds)
