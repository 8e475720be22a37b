"""Something on its way that can be awaited, or entered as a context manager."""

import inspect
from collections.abc import Coroutine, Generator
from types import TracebackType
from typing import Any, Protocol, TypeVar


class _Enterable(Protocol):
    async def __aenter__(self) -> Any: ...

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool | None: ...


_Target = TypeVar("_Target", bound=_Enterable)


class AsyncAcquisition(Coroutine[Any, Any, _Target]):
    """`lease = await leases.acquire(…)`, or `async with leases.acquire(…) as lease:`.

    It is a coroutine, so that a task can be made of it: `asyncio.create_task(leases.acquire(…))`.
    """

    def __init__(self, coroutine: Coroutine[Any, Any, _Target]) -> None:
        self._coroutine = coroutine
        self._target: _Target | None = None

    def __repr__(self) -> str:
        if inspect.getcoroutinestate(self._coroutine) == inspect.CORO_CREATED:
            return "<acquisition that has not begun: await it, or enter it with `async with`>"
        return f"<acquisition of {self._target!r}>" if self._target is not None else "<acquisition under way>"

    def __await__(self) -> Generator[Any, Any, _Target]:
        return self._coroutine.__await__()

    def send(self, value: Any) -> Any:
        """Go on; for the event loop."""
        return self._coroutine.send(value)

    def throw(self, *error: Any) -> Any:
        """Go on with an exception; for the event loop."""
        return self._coroutine.throw(*error)

    def close(self) -> None:
        """Give up before it has begun, or where it is."""
        self._coroutine.close()

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
