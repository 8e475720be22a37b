"""One store for several clones: git's settings leasehold.url and leasehold.tenant, set and put back."""

import os

from leasehold.errors import StoreUnusable
from leasehold.guards.records import PATIENCE_SECONDS
from leasehold.guards.repository import git, setting, work_tree
from leasehold.stores.locate import TENANT_SETTING, URL_SETTING, is_server, named, sqlite_path

_SETTINGS = (URL_SETTING, TENANT_SETTING)
_BEFORE = "Before"
"""What is appended to a setting for the value that was there before; that is empty if there was none."""


def checked(url: str | None, tenant: str | None) -> dict[str, str]:
    """Return the settings for a store, which is made if need be, or a server, and a tenant's leases there."""
    from leasehold.client.connect import connect

    work_tree()  # Where there is none, no store is made either.
    address = None if url is None else _absolute(url)
    used = address or named()
    if used is not None:
        with connect(used, tenant=tenant, timeout=PATIENCE_SECONDS) as client:
            client.list(limit=1)  # Before anybody relies on it: may this key ask for the tenant's leases?
    chosen = {URL_SETTING: address, TENANT_SETTING: tenant}
    return {key: value for key, value in chosen.items() if value is not None}


def install(settings: dict[str, str]) -> list[str]:
    """Let this repository have settings that were checked; return what was done."""
    top = work_tree()
    return [_set(key, value, top) for key, value in settings.items()]


def uninstall() -> list[str]:
    """Put back what git's settings were before; return what was done."""
    top = work_tree()
    done = [_put_back(key, top) for key in _SETTINGS]
    return [one for one in done if one is not None]


def _absolute(url: str) -> str:
    """Return an address that means the same wherever it is read."""
    if is_server(url):
        return url
    path = sqlite_path(url)
    if path is None:
        raise StoreUnusable(f"{url} is not shared by anybody; name a folder, or a server")
    return f"sqlite:///{os.path.abspath(os.path.expanduser(path))}"


def _set(key: str, value: str, top: str) -> str:
    if setting(key + _BEFORE, folder=top, scope="--local") is None:
        git("config", key + _BEFORE, setting(key, folder=top, scope="--local") or "", folder=top)
    git("config", key, value, folder=top)
    return f"git's {key} is {value}"


def _put_back(key: str, top: str) -> str | None:
    before = setting(key + _BEFORE, folder=top, scope="--local")
    if before is None:
        return None
    git("config", "--unset", key + _BEFORE, folder=top)
    if before:
        git("config", key, before, folder=top)
        return f"git's {key} is {before} again"
    git("config", "--unset", key, folder=top)
    return f"git's {key} is not set any more"
