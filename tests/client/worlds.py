"""The same scenario on every store, with the blocking and with the asynchronous client.

Scenarios are written once, as coroutines. `Blocking` gives the blocking client the shape of the asynchronous
one: whatever is awaited there can be awaited here, and simply happens. What is not a coroutine there is not
awaited here either, so a scenario also proves that both have the same methods.
"""

import asyncio
import inspect
from collections.abc import Callable, Generator, Iterator
from contextlib import AbstractContextManager
from importlib import import_module
from pathlib import Path
from types import TracebackType
from typing import Any

from leasehold.client.aio.client import AsyncClient
from leasehold.client.blocking.client import Client
from leasehold.client.http.desk import RemoteDesk
from leasehold.engine.bells import Bells
from leasehold.engine.clock import Clock
from leasehold.engine.job_runner import JobRunner
from leasehold.engine.keeper import Keeper
from leasehold.engine.port import Snapshot, SoftState, Store, Transaction
from leasehold.engine.registrar import Registrar
from leasehold.engine.sealing import Sealer
from leasehold.engine.trust import Trust
from leasehold.errors import ClientClosed
from leasehold.kernel.lease.quotas import Quotas
from leasehold.kernel.ledger.family import Families
from leasehold.registry import CARRIERS, REPLIES, all_families
from leasehold.stores.memory import MemoryStore
from leasehold.stores.sqlite import SqliteStore
from leasehold.testing.clock import FakeClock
from tests.client.server import desk_server
from tests.client.wire import WireDesk

SIGNAL_SECONDS = 30.0
"""How long to wait for something that is sure to come. A test that waits so long has failed."""

_EXACT = Trust(drift_ppm=0, margin_ns=0)


def _twin_of(kind: type) -> type | None:
    """Return the asynchronous class that a blocking one was generated from, or written beside."""
    folder, found, module = kind.__module__.partition(".blocking.")
    return getattr(import_module(f"{folder}.aio.{module}"), f"Async{kind.__name__}", None) if found else None


class Blocking:
    """A blocking object that looks like its asynchronous twin."""

    def __init__(self, target: Any) -> None:
        self.target = target

    def __getattr__(self, name: str) -> Any:
        found = getattr(self.target, name)
        twin = getattr(_twin_of(type(self.target)), name, None)
        if inspect.isasyncgenfunction(twin):
            return lambda *given, **named: _Following(found(*_plain(given), **_plain(named)))
        later = "AsyncAcquisition" in str(getattr(twin, "__annotations__", {}).get("return", ""))
        if inspect.iscoroutinefunction(twin) or later:
            return lambda *given, **named: _Pending(lambda: found(*_plain(given), **_plain(named)))
        if inspect.ismethod(found):
            return lambda *given, **named: _wrapped(found(*_plain(given), **_plain(named)))
        return _wrapped(found)

    def __bool__(self) -> bool:
        return bool(self.target)

    def __len__(self) -> int:
        return len(self.target)

    def __iter__(self) -> Iterator[Any]:
        return (_wrapped(one) for one in self.target)

    def __getitem__(self, key: str) -> Any:
        return _wrapped(self.target[key])

    def __repr__(self) -> str:
        return repr(self.target)

    async def __aenter__(self) -> Any:
        return _wrapped(self.target.__enter__())

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> Any:
        return self.target.__exit__(kind, error, trace)


class _Pending:
    """A blocking call that is made when it is awaited, or entered."""

    def __init__(self, call: Callable[[], Any]) -> None:
        self._call = call
        self._entered: Any = None

    def __await__(self) -> Generator[Any, Any, Any]:
        yield from ()
        return _wrapped(self._call())

    async def __aenter__(self) -> Any:
        self._entered = self._call()
        return _wrapped(self._entered.__enter__())

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> Any:
        return self._entered.__exit__(kind, error, trace)


class _Following:
    """A blocking iterator that is followed from a thread, so that the scenario goes on meanwhile."""

    def __init__(self, iterator: Any) -> None:
        self._iterator = iterator

    def __aiter__(self) -> "_Following":
        return self

    async def __anext__(self) -> Any:
        return await asyncio.to_thread(next, self._iterator)

    async def aclose(self) -> None:
        self._iterator.close()


def _wrapped(value: Any) -> Any:
    return value if _twin_of(type(value)) is None else Blocking(value)


def _plain(value: Any) -> Any:
    """Take our own wrapping off again, wherever in an argument it is."""
    match value:
        case Blocking():
            return value.target
        case list() | tuple():
            return type(value)(_plain(one) for one in value)
        case dict():
            return {name: _plain(one) for name, one in value.items()}
        case _:
            return value


class _Connection:
    """One of several connections to a store in memory: closing it leaves the others alone, as with a file."""

    def __init__(self, shared: MemoryStore, families: Families) -> None:
        self._shared = shared
        self._closed = False
        self.families = families

    @property
    def soft(self) -> SoftState:
        return self._shared.soft

    @property
    def url(self) -> str:
        return self._shared.url

    @property
    def sealer(self) -> Sealer:
        return self._shared.sealer

    @property
    def bells(self) -> Bells:
        return self._shared.bells

    def write(self, *, blocking: bool = True, durable: bool = False) -> AbstractContextManager[Transaction]:
        return self._open().write(blocking=blocking, durable=durable)

    def snapshot(self) -> AbstractContextManager[Snapshot]:
        return self._open().snapshot()

    def wait(self, position: int, timeout: float) -> bool:
        return self._open().wait(position, timeout)

    def blocker(self) -> int | None:
        return self._open().blocker()

    def close(self) -> None:
        self._closed = True

    def _open(self) -> MemoryStore:
        if self._closed:
            raise ClientClosed("this connection was closed")
        return self._shared


class ServedDesk(RemoteDesk):
    """A desk at the other end of a real socket, whose registrar a test can look at."""

    def __init__(self, url: str, inner: Registrar) -> None:
        super().__init__(url, timeout=inner.timeout)
        self.inner = inner


class World:
    """One kind of store, one kind of client, one clock."""

    def __init__(self, store: str, client: str, clock: Clock, folder: Path) -> None:
        self.clock = clock
        self.blocking = client == "blocking"
        self._memory = None if store == "sqlite" else MemoryStore(clock, families=all_families())
        self._line = store if store in ("wire", "http") else ""
        """What is between the clients and their registrars."""
        self.is_remote = store == "http"
        self._served: dict[str, Registrar] = {}
        self._path = folder / "leases"
        self._clients: list[Any] = []
        self._keepers: list[Keeper] = []

    def store(self, quotas: Quotas | None = None) -> Store:
        """Open the store once more."""
        families = all_families(quotas)
        if self._memory is not None:
            return _Connection(self._memory, families)
        return SqliteStore(self._path, clock=self.clock, durability="fast", families=families)

    def connect(
        self,
        *,
        quotas: Quotas | None = None,
        timeout: float = SIGNAL_SECONDS,
        is_steady: bool = False,
        as_is: bool = False,
        **options: Any,
    ) -> Any:
        """Open another client on the same store, over a steady line if it must not ask anything twice."""
        store = self.store(quotas)
        registrar: Any = Registrar(
            store, timeout=timeout, also=REPLIES, jobs=JobRunner(store, CARRIERS), as_is=as_is
        )
        if self._line == "wire":
            seed = f"{self._path.parent.name} {len(self._clients)}"
            registrar = WireDesk(registrar, seed, is_steady=is_steady)
        elif self._line == "http":
            url = desk_server().mount(registrar)
            self._served[url] = registrar
            registrar = ServedDesk(url, registrar)
        chosen: dict[str, Any] = {"clock": self.clock, "trust": _EXACT} | options
        client = Client(registrar, **chosen) if self.blocking else AsyncClient(registrar, **chosen)
        if isinstance(self.clock, FakeClock):
            # A thread would ask this clock at moments of its own choosing.
            client._holdings.keeper = Keeper(registrar, self.clock, _EXACT, threaded=False)
            self._keepers.append(client._holdings.keeper)
        shaped = Blocking(client) if isinstance(client, Client) else client
        self._clients.append(shaped)
        return shaped

    def keep(self) -> None:
        """Let every keeper look once. What it finds out may come a moment later: wait for that."""
        for keeper in self._keepers:
            keeper.step()

    async def close(self) -> None:
        for client in self._clients:
            await client.close()
        for url, registrar in self._served.items():
            desk_server().unmount(url)
            registrar.close()
