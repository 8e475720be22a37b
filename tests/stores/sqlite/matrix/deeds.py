"""What operators and containers do to files: move, copy, remove and replace them, mount and link them."""

import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

from leasehold.stores.sqlite import files
from tests.stores.sqlite.theatre.stage import Stage

FOLDER = "folder"
KEY = "key"
NAMES = {
    "database": files.DATABASE,
    "log": files.LOG,
    "shared memory": files.SHARED_MEMORY,
    "lock": files.WRITER,
    "identity": files.IDENTITY,
}
SUBJECTS = ("database", "log", "shared memory", "lock", KEY, "identity", FOLDER)


class Scene:
    """The folders around one store, and what a deed is done to."""

    def __init__(self, base: Path, subject: str, stage: Stage) -> None:
        self.stage = stage
        self.subject = subject
        self.store = base / "leases"
        self.other = base / "other"
        """Another store."""
        self.older = base / "older"
        """A copy of the store from before the situation came about."""
        self.elsewhere = base / "elsewhere"
        """Where a deed leaves something that could be taken for a store."""
        self.aside = base / "aside"
        """Where things are put that nobody looks for."""
        self.aside.mkdir()

    @property
    def whole(self) -> bool:
        """Whether the deed is done to the whole folder."""
        return self.subject == FOLDER

    @property
    def target(self) -> Path:
        return self._in(self.store)

    @property
    def likeness(self) -> Path:
        """The same file of the other store."""
        return self._in(self.other)

    @property
    def past(self) -> Path:
        """The same file as it was before."""
        return self._in(self.older)

    @property
    def second(self) -> Path:
        """The same file in a folder of its own elsewhere, which is made if need be."""
        if self.whole:
            return self.elsewhere
        name = self.target.relative_to(self.store)
        (self.elsewhere / name).parent.mkdir(mode=0o700, parents=True)
        self.elsewhere.chmod(0o700)
        return self.elsewhere / name

    def _in(self, folder: Path) -> Path:
        if self.whole:
            return folder
        if self.subject == KEY:
            (key,) = (folder / files.KEYS).glob("*.key")
            return key
        return folder / NAMES[self.subject]


def _move(scene: Scene) -> None:
    scene.target.rename(scene.second)


def _copy(scene: Scene) -> None:
    subprocess.run(["cp", "-a", scene.target, scene.second], check=True)


def _remove(scene: Scene) -> None:
    if scene.whole:
        shutil.rmtree(scene.target)
    else:
        scene.target.unlink()


def _replace(scene: Scene) -> None:
    if scene.whole:
        scene.target.rename(scene.aside / "leases")
    scene.likeness.rename(scene.target)


def _overwrite(scene: Scene) -> None:
    # cp writes into what is there.
    past = f"{scene.past}/." if scene.whole else scene.past
    subprocess.run(["cp", "-a", past, scene.target], check=True)


def _truncate(scene: Scene) -> None:
    os.truncate(scene.target, 0)


def _bind(scene: Scene) -> None:
    second = scene.second
    if scene.whole:
        second.mkdir()
    else:
        second.touch(mode=0o600)
    scene.stage.bind(scene.target, second)


def _cover(scene: Scene) -> None:
    scene.stage.bind(scene.likeness, scene.target)


def _hard_link(scene: Scene) -> None:
    scene.second.hardlink_to(scene.target)


def _symbolic_link(scene: Scene) -> None:
    real = scene.aside / scene.target.name
    target = scene.target
    target.rename(real)
    target.symlink_to(real)


Deed = Callable[[Scene], None]

DEEDS: dict[str, Deed] = {
    "moved elsewhere": _move,
    "copied elsewhere": _copy,
    "removed": _remove,
    "replaced by another store's": _replace,
    "overwritten with an older copy of it": _overwrite,
    "truncated": _truncate,
    "bind-mounted elsewhere": _bind,
    "covered by a bind mount of another store's": _cover,
    "hard-linked elsewhere": _hard_link,
    "replaced by a symbolic link to it": _symbolic_link,
}
MOUNTS = (_bind, _cover)
"""What only root can do."""
IN_PLACE = (_overwrite, _truncate)
"""What changes a file without making it another."""
WITH_ANOTHER = (_replace, _cover)
"""What takes another store."""

IMPOSSIBLE = {
    (FOLDER, "truncated"): "impossible: a folder has no length",
    (FOLDER, "hard-linked elsewhere"): "impossible: no file system links folders",
}
