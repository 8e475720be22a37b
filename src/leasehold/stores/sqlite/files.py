"""The files of a store: how they are called, who may read them, and where they must not be.

A store is a folder. It is made 0700 with files of 0600, or 2770 and 0660 for a group; modes are set when
something is made, and never changed on what is there. A folder that exists already keeps its mode. Files of
our own are opened relative to the folder, and never through a link: in a folder that a group shares, a link
could lead anywhere. A network file system is refused, because its locks cannot be relied on.

Never open the database or the shared memory here, not even to read: closing any descriptor of a file drops
all the locks that this process, and so SQLite in this process, holds on it.
"""

import errno
import os
import re
import stat
from pathlib import Path

from leasehold.errors import StoreDamaged, StoreUnusable
from leasehold.stores.sqlite.failures import system_error

DATABASE = "leases.db"
LOG = f"{DATABASE}-wal"
SHARED_MEMORY = f"{DATABASE}-shm"
IDENTITY = "identity"
WRITER = "writer"
TURNSTILE = "turnstile"
ALL = (DATABASE, LOG, SHARED_MEMORY, WRITER, TURNSTILE, IDENTITY)
"""The files of every store, of which the identity says what they were."""
KEYS = "keys"
BELLS = "bells"
_GIT_IGNORE = ".gitignore"

_NOT_IN_THE_WAY = {_GIT_IGNORE, "lost+found"}
"""What may be in a folder that becomes a store."""

_OURS = os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK

_SPACE_BYTES = 1 << 20
"""As much as a thousand commands at once may take."""

_NO_NAMELESS_FILES = (errno.EOPNOTSUPP, errno.EISDIR)
"""What a file system says that cannot be asked for a file without a name; then only a commit finds out."""

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


def open_folder(path: Path, *, create: bool, group: bool = False) -> int:
    """Open the folder of a store, and make it if need be; raise StoreUnusable if there can be no store."""
    refuse_network(path)
    try:
        if create:
            _make_folder(path, group=group)
        folder = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except FileNotFoundError as error:
        raise (system_error(error, str(path)) if create else no_store(path)) from None
    except (FileExistsError, NotADirectoryError) as error:
        if stat.S_ISDIR(os.stat(path.parent).st_mode) and path.exists():
            raise _not_a_folder(path) from None
        raise system_error(error, str(path)) from error
    except OSError as error:
        raise system_error(error, str(path)) from error
    if not os.access(path, os.W_OK | os.X_OK):
        os.close(folder)
        raise _read_only(path)
    return folder


def _read_only(path: Path) -> StoreUnusable:
    return StoreUnusable(
        f"{path} and its files must be writable for this user; a store cannot be used read-only",
        path=str(path),
    )


def _make_folder(path: Path, *, group: bool) -> None:
    try:
        path.mkdir(parents=True, mode=0o700)
    except FileExistsError:
        return
    path.chmod(0o2770 if group else 0o700)  # whatever the umask says


def _not_a_folder(path: Path) -> StoreUnusable:
    if not path.is_file():
        return StoreUnusable(f"{path} is not a folder, and a store is; name another", path=str(path))
    if path.name == DATABASE and (path.parent / IDENTITY).exists():
        return StoreUnusable(
            f"{path} is the database of a store, and a store is a folder; name {path.parent}", path=str(path)
        )
    return StoreUnusable(
        f"{path} is a file, and a store is a folder; name another. To make a store of a backup: "
        f"leasehold restore '{path}' --store NEW",
        path=str(path),
    )


def no_store(path: Path) -> StoreUnusable:
    """Return the error for a place where nobody has made a store."""
    return StoreUnusable(
        f"there is no store at {path}; `leasehold acquire` makes one, or name another", path=str(path)
    )


def open_identity(
    folder: int, path: Path, *, create: bool, group: bool = False, replacing: bool = False
) -> int:
    """Open the identity file of a store, or make an empty one in a folder with nothing in it.

    Or with a database, if that is about to be replaced.
    """
    while True:
        try:
            return open_own(folder, IDENTITY)
        except FileNotFoundError:
            _refuse_other_content(folder, path, replacing=replacing)
        except OSError as error:
            if error.errno == errno.ELOOP:
                raise StoreDamaged(
                    f"{path / IDENTITY} is a symbolic link; put the file itself in its place", path=str(path)
                ) from None
            if error.errno in (errno.EACCES, errno.EPERM, errno.EROFS):
                raise _read_only(path) from None
            raise
        if not create:
            raise no_store(path)
        try:
            os.close(make_file(folder, IDENTITY, 0o660 if group else 0o600))
        except FileExistsError:
            continue  # Another thread or process was quicker.


def _refuse_other_content(folder: int, path: Path, *, replacing: bool) -> None:
    """Raise StoreUnusable for a folder without an identity that has something else in it."""
    names = set(os.listdir(folder)) - _NOT_IN_THE_WAY
    if not names or IDENTITY in names or (replacing and DATABASE in names):
        return
    if DATABASE in names:
        raise StoreDamaged(
            f"{path} has a database, but not the identity of a store, without which it cannot be told from a "
            f"copy; take it into a new store: leasehold restore '{path / DATABASE}' --store NEW",
            path=str(path),
        )
    raise StoreUnusable(
        f"{path} is a folder with other things in it; name an empty or a new one, such as {path / 'leases'}",
        path=str(path),
    )


def open_own(folder: int, name: str) -> int:
    """Open a file of ours for reading and writing, and follow no link."""
    return os.open(name, _OURS, dir_fd=folder)


def make_file(folder: int, name: str, mode: int) -> int:
    """Make an empty file that was not there; return it open."""
    descriptor = os.open(name, _OURS | os.O_CREAT | os.O_EXCL, mode, dir_fd=folder)
    try:
        os.fchmod(descriptor, mode)  # whatever the umask says
        if (
            os.geteuid() == 0
        ):  # Like SQLite: what root makes in somebody's store, its owner has to be able to use.
            status = os.fstat(folder)
            os.fchown(descriptor, status.st_uid, status.st_gid)
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


def hide_from_git(folder: int) -> None:
    """Keep a store that lives in a work tree out of its commits: a clone of it would be a copy."""
    try:
        descriptor = make_file(folder, _GIT_IGNORE, 0o644)
    except FileExistsError:
        return
    with open(descriptor, "w") as file:
        file.write("*\n")


def refuse_full(path: Path) -> None:
    """Raise StoreFull if there is no space left for a large commit, and StoreUnusable if none can be had.

    The kernel is asked for that space, in a file without a name, so quotas count as well and nothing stays.
    """
    try:
        descriptor = os.open(path, os.O_TMPFILE | os.O_RDWR | os.O_CLOEXEC, 0o600)
        try:
            os.posix_fallocate(descriptor, 0, _SPACE_BYTES)
        finally:
            os.close(descriptor)
    except OSError as error:
        if error.errno not in _NO_NAMELESS_FILES:
            raise system_error(error, str(path)) from error


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
    place = Path(os.path.realpath(path))  # which, unlike Path.resolve, says nothing of loops
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
