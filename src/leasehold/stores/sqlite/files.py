"""The store's files: where they are, who may read them, and where they must not be.

The file is made 0600 in a 0700 folder, or 0660 in a 2770 folder for a group. A folder that exists already
keeps its mode. A network file system is refused, because its locks cannot be relied on.

Never open an existing store here, not even to read: closing any descriptor of a file drops all the locks
that this process, and so SQLite in this process, holds on it.
"""

import os
import re
import stat
from pathlib import Path

from leasehold.errors import StoreUnusable
from leasehold.stores.sqlite.failures import system_error

NETWORK_FILE_SYSTEMS = frozenset(
    {
        "9p", "afs", "beegfs", "ceph", "cifs", "davfs", "fuse.ceph", "fuse.glusterfs", "fuse.s3fs",
        "fuse.rclone", "fuse.sshfs", "gfs2", "glusterfs", "lustre", "ncpfs", "nfs", "nfs4", "ocfs2",
        "smb2", "smb3", "smbfs",
    }
)  # fmt: skip

_OCTAL = re.compile(r"\\([0-7]{3})")
"""How the mount table spells a space, a tab, a line break and a backslash in a name."""


def absolute(path: Path | str) -> Path:
    """Return a path from the root on; refuse one that SQLite could not be told, which takes UTF-8 only."""
    found = Path(path).absolute()
    try:
        named = bytes(found).decode()
    except UnicodeDecodeError:
        named = "\0"
    if "\0" not in named:
        return found
    shown = bytes(found).decode(errors="backslashreplace").replace("\0", "\\x00")
    raise StoreUnusable(f"{shown} is no path in UTF-8, as SQLite wants it; choose another name", path=shown)


def resolved(path: Path | str) -> Path:
    """Return where a path leads to; refuse what SQLite could not be told."""
    return absolute(absolute(path).resolve())


def prepare(path: Path, *, group: bool, create: bool) -> None:
    """Make sure that there is a file which could be a store; raise StoreUnusable if there cannot be."""
    refuse_network(path)
    try:
        status = _status_of(path)
        if status is None and create:
            _create(path, group=group)
            return
    except FileExistsError:
        return  # Another thread or process was quicker.
    except OSError as error:
        raise system_error(error, str(path)) from error
    if status is None or (status.st_size == 0 and not create):
        raise StoreUnusable(
            f"there is no store at {path}; `leasehold acquire` makes one, or name another", path=str(path)
        )
    if stat.S_ISDIR(status.st_mode):
        raise StoreUnusable(
            f"{path} is a folder; name a file in it, such as {path / 'leases.db'}", path=str(path)
        )
    if not stat.S_ISREG(status.st_mode):
        raise StoreUnusable(f"{path} is not a regular file; name another one", path=str(path))
    if status.st_size == 1:  # which SQLite would take for an empty file, and overwrite
        raise StoreUnusable(f"{path} is not a leasehold store; name another file", path=str(path))
    if status.st_nlink > 1:
        # SQLite names its log after the file: under two names there would be two logs, and two truths.
        raise StoreUnusable(
            f"{path} has {status.st_nlink} names (hard links), and a store must have one; remove the others",
            path=str(path),
        )
    if not os.access(path, os.R_OK | os.W_OK) or not os.access(path.parent, os.W_OK):
        raise StoreUnusable(
            f"{path} and its folder must be writable for this user; a store cannot be used read-only",
            path=str(path),
        )


def _status_of(path: Path) -> os.stat_result | None:
    try:
        return path.stat()
    except FileNotFoundError:
        return None


def _create(path: Path, *, group: bool) -> None:
    if not path.parent.exists():
        path.parent.mkdir(parents=True, mode=0o700, exist_ok=True)
        path.parent.chmod(0o2770 if group else 0o700)
    mode = 0o660 if group else 0o600
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, mode)
    try:
        os.fchmod(descriptor, mode)  # whatever the umask says
    finally:
        os.close(descriptor)


def refuse_network(path: Path) -> None:
    """Raise StoreUnusable if the path is on a file system whose locks cannot be relied on."""
    kind = file_system_of(path)
    if kind in NETWORK_FILE_SYSTEMS:
        raise StoreUnusable(
            f"{path} is on a network file system ({kind}), whose locks cannot be relied on; "
            "keep the store on a local disk",
            path=str(path),
        )


def file_system_of(path: Path, mount_table: str | None = None) -> str:
    """Return the type of the file system that `path` is, or would be, on."""
    if mount_table is None:
        mount_table = os.fsdecode(Path("/proc/self/mountinfo").read_bytes())
    place = path.absolute().parent.resolve()
    best, kind = "", "unknown"
    for line in mount_table.splitlines():
        before, _, after = line.partition(" - ")
        mount = _OCTAL.sub(lambda match: chr(int(match[1], 8)), before.split(" ")[4])
        inside = place == Path(mount) or Path(mount) in place.parents
        if inside and len(mount) >= len(best):
            best, kind = mount, after.split(" ")[0]
    return kind


def describe_mode(path: Path) -> str:
    """Return a file's permissions as people write them, such as 0600."""
    return f"{stat.S_IMODE(path.stat().st_mode):04o}"


def sync(path: Path) -> None:
    """Return once the content of a file, or the names in a folder, are on the disk."""
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
