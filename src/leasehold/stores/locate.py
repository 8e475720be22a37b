"""Which store a program means when it does not say, and whose leases there.

In this order: what the caller gives; `LEASEHOLD_URL`; git's setting `leasehold.url`; the nearest folder
`.leasehold` from here upwards; a new one, at the top of the git work tree or else right here. A work tree
that was added to a repository (`git worktree add`) shares the store of the repository's main one.

Addresses that are not absolute count from the working directory. Only what git says counts from the top of
the main work tree: programs in different folders of it have to agree on one store.

In a git work tree only git knows what is set there: settings can be in files that others include, for one
work tree, for a user, for a machine or in the environment. If git is missing, slow or refuses, nothing is
guessed: `StoreUnusable`, because another store in the place of the one that is named would grant what is held
there. Outside of a repository git is not needed, and not asked.

Whose leases: what the caller gives; `LEASEHOLD_TENANT`; git's setting `leasehold.tenant`, which belongs to
the repository's store and does not count where the caller or the environment names another; else `default`.
"""

import os
from pathlib import Path
from typing import NamedTuple

from leasehold import git
from leasehold.engine.port import Store
from leasehold.errors import InvalidInput, StoreUnusable, error_of
from leasehold.kernel.lease.family import LEASES
from leasehold.kernel.ledger.family import Families
from leasehold.kernel.ledger.limits import check_text

FOLDER = ".leasehold"
_MARKS = ("identity", "leases.db")
"""What makes a folder a store, or one that has lost its identity: to open that tells what is wrong."""
ENVIRONMENT = "LEASEHOLD_URL"
URL_SETTING = "leasehold.url"
"""Git's setting for the store of a repository."""
TENANT_SETTING = "leasehold.tenant"
"""Git's setting for whose leases a repository has in that store."""
TENANT_ENVIRONMENT = "LEASEHOLD_TENANT"
_TENANT = "default"
_IN_EVERY_REPOSITORY = "core.repositoryformatversion"
_SECONDS = 5.0


def is_server(address: str) -> bool:
    """Say whether an address is that of a server, which has a store of its own."""
    return address.lower().startswith(("http://", "https://"))


def locate(url: str | None = None, start: Path | None = None) -> str:
    """Return the address of the store to use."""
    return named(url, start) or nearest(start)


def named(url: str | None = None, start: Path | None = None) -> str | None:
    """Return the address that somebody has named: the caller, the environment or git; None if nobody has."""
    return place_of(url, _TENANT, start).address


def tenant_of(tenant: str | None, url: str | os.PathLike[str] | None = None) -> str:
    """Return whose leases are meant, in the store that the caller gives, or has not given."""
    if tenant is not None:
        return tenant
    if url is not None:
        return os.environ.get(TENANT_ENVIRONMENT) or _TENANT
    return place_of().tenant


class Place(NamedTuple):
    """Where leases are, and whose."""

    address: str | None
    """What somebody has named; None: it is the nearest store."""
    tenant: str


def place_of(url: str | None = None, tenant: str | None = None, start: Path | None = None) -> Place:
    """Return the place that the caller, the environment or git names; git is asked once, if it has to be."""
    if url is not None and not url.strip():
        raise InvalidInput("url must not be empty; leave it out for the nearest store", field="url")
    address = url or os.environ.get(ENVIRONMENT)
    whose = os.environ.get(TENANT_ENVIRONMENT)
    top = None if address else _own_tree((start or _working_directory()).absolute())
    if top is not None and os.path.lexists(top / ".git"):  # Where nobody may look, no store can be opened.
        settings = _settings(top)
        address = _git_address(settings.get(URL_SETTING, "").strip(), top)
        whose = whose or settings.get(TENANT_SETTING, "").strip()
    return Place(address or None, _checked(tenant if tenant is not None else whose or _TENANT))


def _checked(tenant: str) -> str:
    """Return a name that a tenant can have: under others nothing is held, and a guard would let all pass."""
    refusal = check_text("tenant", tenant)
    if refusal is not None:
        raise error_of(refusal)
    return tenant


def is_store(path: Path) -> bool:
    """Say whether a folder is a store, or was one, or may not be looked at."""
    return any(_is_there(path / name) for name in _MARKS)


def nearest(start: Path | None = None) -> str:
    """Return the address of the nearest store, or of the one that is made if there is none."""
    here = _in_main_tree((start or _working_directory()).absolute())
    for folder in (here, *here.parents):
        if is_store(folder / FOLDER):
            return f"sqlite:///{folder / FOLDER}"
    return f"sqlite:///{(_work_tree(here) or here) / FOLDER}"


def open_store(
    url: str | None = None,
    *,
    durability: str = "full",
    group: bool = False,
    create: bool = True,
    families: Families = LEASES,
) -> Store:
    """Open the store that `url` names, or the one that `locate` finds."""
    path = sqlite_path(locate(url))
    if path is None:
        from leasehold.stores.memory import MemoryStore  # to load either takes time that others need not pay

        return MemoryStore(families=families)
    from leasehold.stores.sqlite import SqliteStore
    from leasehold.stores.sqlite.failures import system_error
    from leasehold.stores.sqlite.files import resolved

    if not path.is_absolute():
        path = _working_directory() / path
    try:
        path = resolved(path)
    except RuntimeError as error:  # How Path.resolve tells of it, up to Python 3.12.
        raise StoreUnusable(f"{path} cannot be used as a store: {error}", path=str(path)) from error
    except OSError as error:
        raise system_error(error, str(path)) from error
    try:
        return SqliteStore(path, durability=durability, group=group, create=create, families=families)
    except OSError as error:
        raise system_error(error, str(path)) from error


def sqlite_path(address: str) -> Path | None:
    """Return the folder that an address names; None for a store in memory."""
    scheme, separator, rest = address.partition(":")
    if scheme == "memory" and separator and not rest.strip("/"):
        return None
    if separator and scheme == "sqlite" and rest.strip("/"):
        return Path(rest.removeprefix("//").removeprefix("/"))
    if (separator and (scheme == "sqlite" or rest.startswith("//"))) or not address.strip("/"):
        raise InvalidInput(
            f"invalid address of a store {address!r}; use sqlite:///path/to/folder, memory:, or "
            "http://host:port for a server",
            field="url",
        )
    if separator and "/" not in scheme and rest.partition("/")[0].isdigit():
        raise InvalidInput(
            f"{address!r} could be a server or a folder; write http://{address}, or ./{address}", field="url"
        )
    return Path(address)


def _working_directory() -> Path:
    try:
        return Path.cwd()
    except FileNotFoundError:
        raise StoreUnusable(
            "the working directory is gone; change to another, or name the store by an absolute path"
        ) from None


def _own_tree(here: Path) -> Path | None:
    """Return the top of the work tree around a folder; None: there is none."""
    return next((folder for folder in (here, *here.parents) if _is_there(folder / ".git")), None)


def _work_tree(here: Path) -> Path | None:
    """Return the top of the main work tree of the repository around a folder; None: there is none."""
    top = _own_tree(here)
    return None if top is None else _main_tree(top)


def _in_main_tree(here: Path) -> Path:
    """Return where to look from: the main work tree, for who is in another one that lies elsewhere."""
    top = _work_tree(here)
    return here if top is None or here.is_relative_to(top) else top


def _main_tree(top: Path) -> Path:
    """Return the main work tree of a repository: `.git` in any other is a file that leads to it."""
    try:
        where = (top / ".git").read_text().removeprefix("gitdir:").strip()
        folder = top / where
        shared = Path(os.path.realpath(folder / (folder / "commondir").read_text().strip()))
    except (OSError, UnicodeDecodeError):  # It is the main one, a submodule's, or may not be looked at.
        return top
    return shared.parent if shared.name == ".git" else shared


def _is_there(path: Path) -> bool:
    """Say whether there is such a file, also where this user may not look: to open it tells what is wrong.

    Who passed by a store that is closed would make another one, and own there what somebody owns here.
    """
    try:
        return path.exists()
    except OSError:
        return True


def _git_address(setting: str, top: Path) -> str | None:
    """Return the address that git's setting is; None if it is not set."""
    if not setting or is_server(setting):
        return setting or None
    path = sqlite_path(setting)
    return setting if path is None else f"sqlite:///{_main_tree(top) / os.path.expanduser(path)}"


def _settings(top: Path) -> dict[str, str]:
    """Return git's settings for a work tree; raise StoreUnusable if git does not tell."""
    try:
        listing = git.ask(str(top), "config", "--null", "--list", seconds=_SECONDS)
        entries = (entry.partition("\n") for entry in (listing or "").split("\0"))
        found = {key: value for key, _, value in entries}
        # Of a repository that it does not trust, git keeps its settings to itself, without a word. So there
        # has to be one that every repository has; in one that was made by hand, git must know where it is.
        is_told = _IN_EVERY_REPOSITORY in found or git.ask(
            str(top), "rev-parse", "--git-dir", seconds=_SECONDS
        )
    except OSError as error:
        raise _untold(top, str(error)) from error
    if listing is None or not is_told:
        raise _untold(top, f"it refuses (`git -C {top} status` tells why)")
    return found


def _untold(top: Path, problem: str) -> StoreUnusable:
    return StoreUnusable(
        f"{top} is a git work tree, and git cannot be asked which store is meant there: {problem}; "
        f"name the store by --store or {ENVIRONMENT}",
        path=str(top),
    )
