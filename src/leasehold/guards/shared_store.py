"""One store for several clones: git's setting leasehold.url, set and put back."""

import os

from leasehold.errors import StoreUnusable
from leasehold.guards.records import PATIENCE_SECONDS
from leasehold.guards.repository import git, setting, work_tree
from leasehold.stores.locate import is_server, sqlite_path

KEY = "leasehold.url"
_BEFORE = "leasehold.urlBefore"
"""Where the value is kept that was there before; empty if there was none."""


def install(url: str) -> str:
    """Let this repository use a store, which is made if need be, or a server; return what was done."""
    from leasehold.client.connect import connect

    top = work_tree()
    address = _absolute(url)
    with connect(address, timeout=PATIENCE_SECONDS) as client:
        client.head()  # A server is asked for something before anybody relies on it.
    if setting(_BEFORE, folder=top, scope="--local") is None:
        git("config", _BEFORE, setting(KEY, folder=top, scope="--local") or "", folder=top)
    git("config", KEY, address, folder=top)
    return f"git's {KEY} is {address}"


def _absolute(url: str) -> str:
    """Return an address that means the same wherever it is read."""
    if is_server(url):
        return url
    path = sqlite_path(url)
    if path is None:
        raise StoreUnusable(f"{url} is not shared by anybody; name a folder, or a server")
    return f"sqlite:///{os.path.abspath(os.path.expanduser(path))}"


def uninstall() -> list[str]:
    """Put back what git's setting was before; return what was done."""
    top = work_tree()
    before = setting(_BEFORE, folder=top, scope="--local")
    if before is None:
        return []
    git("config", "--unset", _BEFORE, folder=top)
    if before:
        git("config", KEY, before, folder=top)
        return [f"git's {KEY} is {before} again"]
    git("config", "--unset", KEY, folder=top)
    return [f"git's {KEY} is not set any more"]
