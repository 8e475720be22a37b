"""Connecting to a store, or to a server that has one.

Several clients, in any number of processes, can be connected to one store at the same time. Opening is
cheap, but not free: keep a client for as long as you need leases.
"""

import os
import threading
from collections.abc import Callable

import msgspec

from leasehold.client.blocking.client import Client
from leasehold.client.inputs import Duration, duration_ns, file_name, name, whole_number
from leasehold.engine.batch import Done
from leasehold.engine.desk import Desk
from leasehold.engine.job_runner import JobRunner
from leasehold.engine.registrar import Registrar
from leasehold.errors import InvalidInput, StoreUnusable
from leasehold.kernel.lease.quotas import Quotas
from leasehold.kernel.ledger.tick import NANOSECONDS_PER_SECOND
from leasehold.registry import CARRIERS, CHORES, REPLIES, all_families
from leasehold.stores.locate import is_server, locate, open_store, tenant_of


def connect(
    url: str | os.PathLike[str] | None = None,
    *,
    tenant: str | None = None,
    holder: str | None = None,
    durability: str = "full",
    group: bool = False,
    create: bool = True,
    as_is: bool = False,
    timeout: Duration = 30.0,
    leases_per_holder: int | None = None,
    leases_per_tenant: int | None = None,
    api_key: str | None = None,
) -> Client:
    """Connect to a store: `sqlite:///path`, a plain path, `memory:`, or by default the nearest one.

    Or to a server: `http://host:port` or `https://host`, to which `api_key` is shown, or else
    `LEASEHOLD_API_KEY`. Then nothing is sent before something is asked.

    `tenant` says whose leases; by default `LEASEHOLD_TENANT`, else git's setting `leasehold.tenant` where the
    store is not named, else `default`. A key that is bound to a tenant takes that tenant's name.
    `holder` is one name for all threads of this client; by default each thread is a holder of its own.
    `durability="fast"` may lose the last moments of history in a power cut, but never repeats a token.
    `group=True` lets the folder's group use a store that is created here. `as_is=True` records nothing for
    merely looking: to `verify` a store as it is, even a damaged one. `timeout` is how long a call waits for
    another process to finish writing; with a server, how long it may take in all, except that a server which
    was never reached is given up after two seconds. The quotas hold for claims
    made through this client. What is about opening a store, and quotas, is up to whoever runs a server.
    """
    whose = tenant_for(url, tenant, holder)
    opening = Opening(
        durability=durability,
        group=group,
        create=create,
        as_is=as_is,
        timeout=timeout,
        quotas=quotas_of(leases_per_holder, leases_per_tenant),
    )
    return Client(open_desk(url, opening, api_key), tenant=whose, holder=holder)


class Opening(msgspec.Struct, frozen=True, kw_only=True):
    """How a store is opened: see `connect`."""

    durability: str = "full"
    group: bool = False
    create: bool = True
    as_is: bool = False
    timeout: Duration = 30.0
    quotas: Quotas = Quotas()


def tenant_for(url: str | os.PathLike[str] | None, tenant: str | None, holder: str | None) -> str:
    """Return whose leases are meant; refuse names that can never be right before anything is opened."""
    if holder is not None:
        name("holder", holder)
    return name("tenant", tenant_of(tenant, url))


def quotas_of(leases_per_holder: int | None, leases_per_tenant: int | None) -> Quotas:
    """Return the quotas that a caller gave; refuse what is no number of leases."""
    limits = {"leases_per_holder": leases_per_holder, "leases_per_tenant": leases_per_tenant}
    for field, limit in limits.items():
        if limit is not None:
            whole_number(field, limit, minimum=0)
    return Quotas(**limits)


def open_desk(url: str | os.PathLike[str] | None, opening: Opening, api_key: str | None = None) -> Desk:
    """Open the store that `url` names, and the registrar on it; or the desk of the server that it names."""
    address = locate(None if url is None else file_name("url", url))
    if is_server(address):
        return _remote_desk(address, api_key, _patience_seconds(opening.timeout), opening.quotas)
    if api_key is not None:
        raise InvalidInput("api_key is for a server, and this is a store: leave it out", field="api_key")
    return open_registrar(address, opening)


def open_registrar(
    url: str | os.PathLike[str] | None, opening: Opening, observe: Callable[[Done], None] | None = None
) -> Registrar:
    """Open the store that `url` names, and the registrar on it."""
    patience = _patience_seconds(opening.timeout)
    store = open_store(
        None if url is None else file_name("url", url),
        durability=opening.durability,
        group=opening.group,
        create=opening.create,
        families=all_families(opening.quotas),
    )
    try:
        return Registrar(
            store,
            timeout=patience,
            also=REPLIES,
            jobs=JobRunner(store, CARRIERS),
            as_is=opening.as_is,
            chores=CHORES,
            observe=observe,
        )
    except BaseException:
        store.close()
        raise


def _patience_seconds(timeout: Duration) -> float:
    longest_ns = int(threading.TIMEOUT_MAX) * NANOSECONDS_PER_SECOND
    return min(duration_ns("timeout", timeout), longest_ns) / NANOSECONDS_PER_SECOND


def _remote_desk(address: str, api_key: str | None, patience: float, quotas: Quotas) -> Desk:
    if quotas != Quotas():
        raise InvalidInput(
            "quotas are kept where leases are granted: leave them out, and start the server with "
            "`leasehold serve --leases-per-holder N` or `--leases-per-tenant N`",
            field="leases_per_holder" if quotas.leases_per_tenant is None else "leases_per_tenant",
        )
    try:
        from leasehold.client.http.desk import RemoteDesk  # loading it takes time that few need to pay
    except ModuleNotFoundError as error:
        raise StoreUnusable(
            f"a server is reached with {error.name}, which is not installed; "
            "install leasehold with its extra `http`"
        ) from error
    from leasehold.client.http.address import key_of

    return RemoteDesk(address, api_key=key_of(api_key), timeout=patience)
