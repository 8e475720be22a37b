"""What a file is, in more words than `os.stat` has: when it was born, and whether something is mounted there.

The number of a file alone does not tell it from another: file systems give the numbers of removed files to
new ones. The time of birth does. Moving and renaming change neither.

Where the kernel or the file system does not know one of these, it is 0, or False.
"""

import ctypes
import os
import struct
from functools import cache
from typing import Any

import msgspec

_AT_SYMLINK_NOFOLLOW = 0x100
_WANTED = 0xFFF
"""All that `stat` tells, and the time of birth."""
_STATX_BTIME = 0x800
_IS_MOUNT = 0x2000
_FIELDS = struct.Struct("=I4xQIIIH2xQQ8x8x16xqI4xqI4x16xIIII")
"""The first 144 bytes of the kernel's answer."""
_ANSWER_BYTES = 256


class Status(msgspec.Struct, frozen=True, gc=False):
    """What is known of one file."""

    device: int
    inode: int
    born_ns: int
    mode: int
    links: int
    owner: int
    group: int
    size: int
    changed_ns: int
    is_mount: bool
    """Whether this very file is mounted from somewhere else."""

    @property
    def identity(self) -> "Identity":
        """Return what tells this file from all others."""
        return (self.device, self.inode, self.born_ns)


Identity = tuple[int, int, int]
"""The device, the number and the time of birth of a file."""


def status_of(name: str, folder: int) -> Status | None:
    """Return what is under a name in a folder, without following a link; None if nothing is."""
    answer = ctypes.create_string_buffer(_ANSWER_BYTES)
    if _statx()(folder, os.fsencode(name), _AT_SYMLINK_NOFOLLOW, _WANTED, answer):
        number = ctypes.get_errno()
        error = OSError(number, os.strerror(number), name)
        if isinstance(error, FileNotFoundError):
            return None
        raise error
    (
        mask, attributes, links, owner, group, mode, inode, size, born_s, born_ns, changed_s, changed_ns,
        _, _, major, minor,
    ) = _FIELDS.unpack_from(answer)  # fmt: skip
    return Status(
        device=os.makedev(major, minor),
        inode=inode,
        born_ns=born_s * 1_000_000_000 + born_ns if mask & _STATX_BTIME else 0,
        mode=mode,
        links=links,
        owner=owner,
        group=group,
        size=size,
        changed_ns=changed_s * 1_000_000_000 + changed_ns,
        is_mount=bool(attributes & _IS_MOUNT),
    )


@cache
def _statx() -> Any:
    return ctypes.CDLL(None, use_errno=True).statx
