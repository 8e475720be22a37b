"""What a guard looks at: the leases of a store at hand, or those of a server.

Looking waits for no writer, makes no store, and loads only what it takes to look: hooks are run all the time.

Where nobody has named a store and there is none, nobody has leased anything. A store, or a server, that
somebody has named must be there: without it nobody can tell.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, NamedTuple, Protocol

from leasehold.engine.port import Store
from leasehold.engine.questions import FindWaiters, LeaseStatus
from leasehold.errors import StoreUnusable
from leasehold.files.questions import FindAround, around
from leasehold.kernel.ledger.authority import observe
from leasehold.stores.locate import is_server, is_store, nearest, open_store, sqlite_path

if TYPE_CHECKING:
    from leasehold.engine.desk import Desk

PATIENCE_SECONDS = 4.0
"""How long a guard waits for another process to finish writing, or for a server."""


class Records(Protocol):
    """Tells which leases there are."""

    def around(self, tenant: str, resource: str) -> list[LeaseStatus]:
        """Return all leases that stand around a path."""
        ...

    def waiting(self, tenant: str, resource: str) -> int:
        """Return how many wait for a path."""
        ...


class _AtHand(NamedTuple):
    store: Store

    def around(self, tenant: str, resource: str) -> list[LeaseStatus]:
        with self.store.snapshot() as snapshot:
            return around(snapshot, FindAround(tenant=tenant, resource=resource))

    def waiting(self, tenant: str, resource: str) -> int:
        from leasehold.engine.waiters import waiters

        with self.store.snapshot() as snapshot:
            return len(waiters(snapshot, tenant, resource))


class _OfAServer(NamedTuple):
    desk: "Desk"

    def around(self, tenant: str, resource: str) -> list[LeaseStatus]:
        found = self.desk.ask(FindAround(tenant=tenant, resource=resource))
        return found

    def waiting(self, tenant: str, resource: str) -> int:
        return len(self.desk.ask(FindWaiters(tenant=tenant, resource=resource)))


@contextmanager
def opened(address: str | None) -> Iterator[Records | None]:
    """Open a store to look into it, or ask a server; None if nobody has named any, and none is near."""
    if address is not None and is_server(address):
        desk = desk_of(address)
        try:
            yield _OfAServer(desk)
        finally:
            desk.close()
        return
    if address is None:
        address = nearest()
        path = sqlite_path(address)
        if path is None or not is_store(path):
            yield None
            return
    store = open_store(address, create=False)
    try:
        if sqlite_path(store.url) is None:
            raise StoreUnusable(f"{store.url} is gone when this command ends; name a folder with --store")
        if not _is_current(store):
            # The machine has rebooted, or the store was moved: who tells the time has to record that first.
            store.close()
            store = _open_epoch(address)
        yield _AtHand(store)
    finally:
        store.close()


def desk_of(url: str | None) -> "Desk":
    """Open the desk of a store that is there, or of a server."""
    from leasehold.client.connect import Opening, open_desk

    return open_desk(url, Opening(create=False, timeout=PATIENCE_SECONDS))


def _is_current(store: Store) -> bool:
    with store.snapshot() as snapshot:
        return observe(snapshot.authority, snapshot.reading()) is None


def _open_epoch(address: str) -> Store:
    from leasehold.engine.recording import open_epoch
    from leasehold.registry import FAMILIES

    store = open_store(address, create=False, families=FAMILIES)
    try:
        open_epoch(store)
    except BaseException:
        store.close()
        raise
    return store
