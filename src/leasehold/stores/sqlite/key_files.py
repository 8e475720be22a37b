"""The private keys of a store: one small file each, in a folder of their own in the store's.

A key file is made exclusively, readable for its owner only, and is on the disk before the key is used. In a
store that a group shares, every user has keys of their own, and nobody but the owner can read or remove
them. A key file that others can read is refused, because then a signature proves nothing.

Not in any backup: whoever has a copy of the store must not be able to sign for it.
"""

import os
import secrets
import stat
from pathlib import Path

from leasehold.engine.signing import SEED_BYTES, SigningKey, new_key
from leasehold.errors import StoreUnusable
from leasehold.stores.sqlite import files
from leasehold.stores.sqlite.failures import system_error
from leasehold.stores.sqlite.files import DATABASE, KEYS

_SUFFIX = ".key"
_HEADING = "leasehold Ed25519 private key 1"


class KeyFolder:
    """The keys that this user has for one store."""

    def __init__(self, store_path: Path) -> None:
        self.path = store_path / KEYS
        self._store_path = store_path

    def at_hand(self) -> list[str]:
        """Return the names of the keys that this user can read."""
        try:
            found = sorted(self.path.glob(f"*{_SUFFIX}"))
        except OSError as error:
            raise system_error(error, str(self.path)) from error
        return [file.name.removesuffix(_SUFFIX) for file in found if _is_at_hand(file)]

    def load(self, key_id: str) -> SigningKey:
        """Return a key; raise StoreUnusable if its file is open to others, or does not hold it."""
        file = self.path / f"{key_id}{_SUFFIX}"
        try:
            text, mode = _read(file)
        except OSError as error:
            raise system_error(error, str(file)) from error
        if mode & 0o077:
            raise StoreUnusable(
                f"the private key {file} is open to others ({mode:04o}); close it with chmod 600",
                path=str(file),
            )
        key = _parse(text)
        if key is None or key.key_id != key_id:
            raise StoreUnusable(
                f"{file} does not hold the private key it is named after; put the right file back, or remove "
                "it if there is none",
                path=str(file),
            )
        return key

    def create(self) -> SigningKey:
        """Make a key. It gets its name when all of it is on the disk: a crash leaves no half of a key."""
        key = new_key()
        try:
            self._make_folder()
            partial = self.path / f".{secrets.token_hex(8)}.partial"
            descriptor = os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
            try:
                try:
                    os.fchmod(descriptor, 0o600)
                    os.write(descriptor, f"{_HEADING}\n{key.seed.hex()}\n".encode())
                    os.fsync(descriptor)
                finally:
                    os.close(descriptor)
                partial.rename(self.path / f"{key.key_id}{_SUFFIX}")
            finally:
                partial.unlink(missing_ok=True)
            files.sync(self.path)
            files.sync(self.path.parent)
        except OSError as error:
            raise system_error(error, str(self.path)) from error
        return key

    def _make_folder(self) -> None:
        """Let those in who may write the store; the sticky bit keeps each user's files from the others."""
        shared = bool((self._store_path / DATABASE).stat().st_mode & stat.S_IWGRP)
        try:
            self.path.mkdir(mode=0o700)
        except FileExistsError:
            return
        self.path.chmod(0o3770 if shared else 0o700)


def _is_at_hand(file: Path) -> bool:
    """Say whether a file is a key that this user may use: their own, or for root anybody's; never a link."""
    status = file.lstat()
    return stat.S_ISREG(status.st_mode) and os.geteuid() in (0, status.st_uid) and os.access(file, os.R_OK)


def _read(file: Path) -> tuple[str, int]:
    """Return what a file says, and its mode."""
    descriptor = os.open(file, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    with open(descriptor, encoding="ascii", errors="replace") as opened:
        return opened.read(), stat.S_IMODE(os.fstat(descriptor).st_mode)


def _parse(text: str) -> SigningKey | None:
    lines = text.split("\n")
    if len(lines) != 3 or lines[0] != _HEADING or lines[2] or len(lines[1]) != 2 * SEED_BYTES:
        return None
    try:
        return SigningKey(bytes.fromhex(lines[1]))
    except ValueError:
        return None
