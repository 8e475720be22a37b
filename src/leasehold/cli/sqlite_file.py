"""What only a SQLite store has, and a copy of one: everything else asks the registrar."""

from argparse import Namespace
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from leasehold.errors import StoreUnusable

if TYPE_CHECKING:
    from leasehold.engine.audit import Audit
    from leasehold.engine.port import Progress


def server_of(arguments: Namespace) -> str | None:
    """Return the address of the server that the arguments mean; None if they mean a store at hand."""
    from leasehold.stores.locate import is_server, locate

    address = locate(arguments.store)
    return address if is_server(address) else None


def store_path(arguments: Namespace) -> Path:
    """Return the folder of the store that the arguments mean, without opening it."""
    from leasehold.stores.locate import is_server, locate, sqlite_path

    address = locate(arguments.store)
    if is_server(address):
        raise StoreUnusable(
            "this needs the store's own folder, and a server was named; run it where the server runs, with "
            "--store and the folder that `leasehold serve` uses"
        )
    path = sqlite_path(address)
    if path is None:
        raise StoreUnusable(
            f"{address} is not in a folder, and this works on nothing else; name a folder with --store"
        )
    return path.absolute()


def refuse_loop(file: Path) -> None:
    """Raise OSError for a loop of links; up to Python 3.12, Path.resolve raises RuntimeError for one."""
    with suppress(FileNotFoundError):
        file.stat()


def free_bytes(url: str) -> int:
    """Return how much of a store's database is free for what comes; 0 for a store that has none here."""
    from leasehold.stores.locate import is_server, sqlite_path

    path = None if is_server(url) else sqlite_path(url)
    if path is None:
        return 0
    from leasehold.stores.sqlite import shrinking

    return shrinking.free_bytes(path)


def shrink(path: Path) -> None:
    """Rewrite a store's database without its free space."""
    from leasehold.stores.sqlite import shrinking

    shrinking.shrink(path)


def audit_backup(file: Path, progress: "Progress", **expected: Any) -> "Audit":
    """Audit a backup, or a copy of a store's database, and leave it as it is."""
    from leasehold.engine.audit import audit
    from leasehold.registry import FAMILIES
    from leasehold.stores.sqlite.inspecting import inspected

    refuse_loop(file)
    with inspected(file, families=FAMILIES) as copy:
        return audit(copy, progress, **expected)
