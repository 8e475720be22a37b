"""A file that is open under a lease, and replaced only if the lease still stands when it is closed."""

from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from leasehold.files.guarded import Replacement

if TYPE_CHECKING:
    from leasehold.client.aio.lease import AsyncHeldLease
    from leasehold.files.aio.lease import AsyncHeldFiles


class AsyncGuardedFile:
    """What `open` of a file lease returns: write to it as to any file, and close it, or leave its block."""

    def __init__(self, replacement: Replacement, lease: "AsyncHeldFiles", held: "AsyncHeldLease") -> None:
        self._replacement = replacement
        self._lease = lease
        self._held = held
        self._is_done = False

    def __getattr__(self, name: str) -> Any:
        return getattr(self._replacement.file, name)

    def __iter__(self) -> Any:
        return iter(self._replacement.file)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        del error, trace
        if kind is None:
            await self.close()
        else:
            self.discard()

    async def close(self) -> None:
        """Let what was written replace the file, if the lease still stands; raise LeaseLost if not."""
        if self._is_done:
            return
        self._is_done = True
        try:
            self._replacement.finish()
            await self._lease.validate(self._held, writes=bool(self._replacement.beside))
            self._replacement.replace()
        except BaseException:
            self._replacement.discard()
            raise

    def discard(self) -> None:
        """Forget what was written, and leave the file as it was."""
        if not self._is_done:
            self._is_done = True
            self._replacement.discard()
