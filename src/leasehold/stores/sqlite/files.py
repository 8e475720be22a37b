"""The store's files: where they are, who may read them, and where they must not be.

The file is made 0600 in a 0700 folder, or 0660 in a 2770 folder for a group. A folder that exists already
keeps its mode. A network file system is refused, because its locks cannot be relied on.

Never open an existing store here, not even to read: closing any descriptor of a file drops all the locks
that this process, and so SQLite in this process, holds on it.
"""

import os
import stat
from pathlib import Path

from leasehold.errors import StoreUnusable

NETWORK_FILE_SYSTEMS = frozenset(
    {
        "9p", "afs", "beegfs", "ceph", "cifs", "davfs", "fuse.ceph", "fuse.glusterfs", "fuse.s3fs",
        "fuse.rclone", "fuse.sshfs", "gfs2", "glusterfs", "lustre", "ncpfs", "nfs", "nfs4", "ocfs2",
        "smb2", "smb3", "smbfs",
    }
)  # fmt: skip


def file_mode(*, group: bool) -> int:
    """Return the mode of the store's files."""
    return 0o660 if group else 0o600


def prepare(path: Path, *, group: bool, create: bool) -> None:
    """Make sure that there is a file which could be a store; raise StoreUnusable if there cannot be."""
    refuse_network(path)
    if path.is_dir():
        raise StoreUnusable(f"{path} is a folder; name a file in it, such as {path / 'leases.db'}")
    if not path.exists():
        if not create:
            raise StoreUnusable(f"there is no store at {path}; check the address", path=str(path))
        _create(path, group=group)
        return
    if not os.access(path, os.W_OK) or not os.access(path.parent, os.W_OK):
        raise StoreUnusable(
            f"{path} and its folder must be writable for this user; a store cannot be used read-only",
            path=str(path),
        )


def _create(path: Path, *, group: bool) -> None:
    try:
        if not path.parent.exists():
            path.parent.mkdir(parents=True, mode=0o700, exist_ok=True)
            path.parent.chmod(0o2770 if group else 0o700)
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, file_mode(group=group))
        os.fchmod(descriptor, file_mode(group=group))
        os.close(descriptor)
    except FileExistsError:
        return  # Another thread or process was quicker.
    except OSError as error:
        raise StoreUnusable(
            f"cannot create a store at {path}: {error.strerror}; name a writable place", path=str(path)
        ) from error


def identity(path: Path) -> str:
    """Name the file itself, so that a copy under the same path can be told from the original."""
    status = path.stat()
    return f"{status.st_dev}:{status.st_ino}"


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
        mount_table = Path("/proc/self/mountinfo").read_text()
    place = path.absolute().parent.resolve()
    best, kind = "", "unknown"
    for line in mount_table.splitlines():
        before, _, after = line.partition(" - ")
        mount = before.split()[4].encode().decode("unicode_escape")
        inside = place == Path(mount) or Path(mount) in place.parents
        if inside and len(mount) >= len(best):
            best, kind = mount, after.split()[0]
    return kind


def describe_mode(path: Path) -> str:
    """Return a file's permissions as people write them, such as 0600."""
    return f"{stat.S_IMODE(path.stat().st_mode):04o}"
