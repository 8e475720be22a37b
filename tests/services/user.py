"""Whom a service runs as, and what belongs to it.

PostgreSQL refuses to run as root, and nothing that tests start should be able to harm the machine: as root we
start services as `nobody`, otherwise as ourselves.
"""

import os
import pwd
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from tests.services.programs import Unavailable

_EVERYBODYS = Path("/tmp")
_ENTER = 0o001


class Account(NamedTuple):
    """Another user than ourselves."""

    user: int
    group: int


def account() -> Account | None:
    """Return the user that services run as; None means ourselves."""
    if os.geteuid() != 0:
        return None
    try:
        nobody = pwd.getpwnam("nobody")
    except KeyError:
        raise Unavailable("as root, services run as the user nobody, who does not exist here") from None
    return Account(nobody.pw_uid, nobody.pw_gid)


@contextmanager
def private_folder() -> Iterator[Path]:
    """Yield a folder that only the user of services can look into; it is gone afterwards."""
    owner = account()
    place = Path(tempfile.gettempdir()).resolve()
    if owner is not None and not _everybody_can_enter(place):
        place = _EVERYBODYS
    folder = Path(tempfile.mkdtemp(prefix="leasehold-", dir=place))
    try:
        _give(folder, owner)
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def write(path: Path, text: str) -> None:
    """Write a file that only the user of services can read."""
    path.touch(mode=0o600, exist_ok=False)
    path.write_text(text)
    _give(path, account())


def _give(path: Path, owner: Account | None) -> None:
    if owner is None:
        return
    try:
        os.chown(path, owner.user, owner.group)
    except PermissionError as error:  # A container can take this right from its root.
        raise Unavailable(f"as root, services run as the user nobody: {error}") from error


def _everybody_can_enter(folder: Path) -> bool:
    return all(place.stat().st_mode & _ENTER for place in (folder, *folder.parents))
