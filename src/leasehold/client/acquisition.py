"""Something on its way that can be awaited, or entered as a context manager."""

from collections.abc import Coroutine, Generator
from types import TracebackType
from typing import Any, Generic, Protocol, TypeVar


class _Enterable(Protocol):
    async def __aenter__(self) -> Any: ...

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool | None: ...


_Target = TypeVar("_Target", bound=_Enterable)


class AsyncAcquisition(Generic[_Target]):
    """`lease = await leases.acquire(…)`, or `async with leases.acquire(…) as lease:`."""

    def __init__(self, coroutine: Coroutine[Any, Any, _Target]) -> None:
        self._coroutine = coroutine
        self._target: _Target | None = None

    def __await__(self) -> Generator[Any, Any, _Target]:
        return self._coroutine.__await__()

    async def __aenter__(self) -> _Target:
        self._target = await self._coroutine
        await self._target.__aenter__()
        return self._target

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool | None:
        if self._target is None:
            return None
        return await self._target.__aexit__(kind, error, trace)


def awaitable(coroutine: Coroutine[Any, Any, _Target]) -> AsyncAcquisition[_Target]:
    """Offer a coroutine's result both ways."""
    return AsyncAcquisition(coroutine)
