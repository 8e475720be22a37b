"""What belongs to a store's folder, and what is wrong with what is found there.

The identity file says what each file was: its device (within one boot), its number, its time of birth. Here
that is compared with what is there. Nothing is opened, and nothing is changed.
"""

import os
import stat
from pathlib import Path

from leasehold.errors import StoreDamaged
from leasehold.stores.sqlite import files
from leasehold.stores.sqlite.file_status import Status, status_of
from leasehold.stores.sqlite.files import DATABASE, LOG, SHARED_MEMORY
from leasehold.stores.sqlite.identity import Record

FOLDER = "."
"""What the folder itself is called in a record."""

OF_SQLITE = (DATABASE, LOG, SHARED_MEMORY)

_SMALLEST_DATABASE = 512
"""The smallest page that SQLite knows."""

Found = dict[str, Status]
"""What is there, by name."""


def look(folder: int) -> Found:
    """Return what is in a folder of all that belongs there, and the folder itself."""
    found = {name: status_of(name, folder) for name in (FOLDER, *files.ALL)}
    return {name: status for name, status in found.items() if status is not None}


def others_than(record: Record, found: Found, boot_id: str) -> set[str]:
    """Return the names under which there is something else than was recorded."""
    same_boot = record.boot_id == boot_id
    return {
        name
        for name, (device, *file) in record.files.items()
        if name in found
        and (file != [found[name].inode, found[name].born_ns] or (same_boot and device != found[name].device))
    }


def missing_from(found: Found) -> set[str]:
    """Return the names under which there is nothing."""
    return set(files.ALL) - found.keys()


def refuse_misplaced(path: Path, found: Found) -> None:
    """Raise StoreDamaged for what is not a file of the store's own, whatever was recorded."""
    for name, status in found.items():
        problem = None if name == FOLDER else _problem_with(status, found[FOLDER])
        if problem is not None:
            raise StoreDamaged(f"{path / name} {problem}", path=str(path / name))


def _problem_with(status: Status, folder: Status) -> str | None:
    """Say what keeps a file from being the store's own, and what to do; None if nothing does."""
    if stat.S_ISLNK(status.mode):
        return "is a symbolic link, and must be a file of the store's own; put the file itself in its place"
    if not stat.S_ISREG(status.mode):
        return "is not a regular file; name another folder"
    if status.links > 1:
        # SQLite names its log after the file: under two names there would be two logs, and two truths.
        return f"has {status.links} names (hard links), and must have one; remove the others"
    if status.is_mount:
        return "is mounted by itself, and only the whole folder can be; mount that"
    if status.owner in (folder.owner, os.geteuid(), 0):
        return None
    if folder.mode & stat.S_IWGRP and status.group == folder.group:
        return None
    return f"belongs to user {status.owner}, who is a stranger here; let its owner or root remove it"


def refuse_emptied(path: Path, record: Record, found: Found) -> None:
    """Raise StoreDamaged for a database without content, which SQLite would take for a new one."""
    if DATABASE in record.files and DATABASE in found and found[DATABASE].size < _SMALLEST_DATABASE:
        raise StoreDamaged(
            f"{path / DATABASE} was emptied; put a backup in place: "
            f"leasehold restore BACKUP --store '{path}'",
            path=str(path / DATABASE),
        )


def refusal(path: Path, differing: set[str], found: Found, *, alone: bool) -> StoreDamaged:
    """Return the error that names the first difference, and what to do about it."""
    name = min(differing, key=(FOLDER, *files.ALL).index)
    file = path if name == FOLDER else path / name
    what = "is not what this store was used with" if name in found else "is missing"
    if alone:
        advice = f"put the right one back, or a backup in place: leasehold restore BACKUP --store '{path}'"
    else:
        advice = "another process has the store open: stop all that use it, and open it again"
    return StoreDamaged(f"{file} {what}; {advice}", path=str(file))


def has_others_open(path: Path, found: Found) -> bool:
    """Say whether SQLite, in this process, has other files open than are there, or not all of them.

    A name that was compared may have led it to another file.
    """
    names = {str(path / name): name for name in OF_SQLITE}
    seen = set()
    for descriptor in os.listdir("/proc/self/fd"):
        link = f"/proc/self/fd/{descriptor}"
        try:
            name = names.get(os.readlink(link))
            if name is None:
                continue
            status = os.stat(link)
        except FileNotFoundError:
            continue  # It was closed meanwhile, by another thread or by us.
        there = found.get(name)
        if there is None or (status.st_dev, status.st_ino) != (there.device, there.inode):
            return True
        seen.add(name)
    return len(seen) < len(OF_SQLITE)
