"""The newest entries of the ledger, read once for all who watch it.

A watcher that has seen all but the newest is served from here, without a look at the store. So any number of
them costs one read for each change, not one each. Who is further behind reads the ledger itself, at its own
desk, until it has caught up.

What a caller may see is decided at its desk. It is decided again whenever anything happened to access keys:
nothing that came after such a change is given to anybody before its desk was asked.
"""

import asyncio
import logging
from collections import deque
from collections.abc import Callable
from contextlib import suppress

import msgspec

from leasehold.engine.desk import Desk
from leasehold.engine.port import EntryQuery
from leasehold.engine.questions import FindHead, Followed, FollowLedger
from leasehold.errors import HistoryPruned
from leasehold.kernel.ledger.chain import Entry
from leasehold.server.bodies import entry_body
from leasehold.server.follower import Follower

_KEPT = 10_000
_KEPT_BYTES = 8 << 20
"""How much is kept at most: so many entries, and so many bytes of them."""
_PAGE = 1_000
_LOOK_SECONDS = 30.0
_TROUBLE_SECONDS = 0.25
_ACCESS = "access."
"""What the types of events begin with that change who may see what."""

_logger = logging.getLogger(__name__)


class Notice:
    """An entry of the ledger, spelled for streams when somebody first wants it."""

    __slots__ = ("_spelled", "entry")

    def __init__(self, entry: Entry) -> None:
        self.entry = entry
        self._spelled = b""

    @property
    def spelled(self) -> bytes:
        """Return the entry as a server-sent event."""
        if not self._spelled:
            body = msgspec.json.encode(entry_body(self.entry), enc_hook=str)
            head = f"id: {self.entry.position}\nevent: {self.entry.event.type}\ndata: ".encode()
            self._spelled = b"%b%b\n\n" % (head, body)
        return self._spelled


class Recent:
    """Follows the ledger for all who watch it."""

    def __init__(self, desk: Desk, follower: Follower, on_access_change: Callable[[], None]) -> None:
        """`desk` is the server's own. `on_access_change` is called, in the loop, when access keys changed."""
        self._desk = desk
        self._follower = follower
        self._on_access_change = on_access_change
        self._kept: deque[Notice] = deque()
        self._kept_bytes = 0
        self._after = 0
        """The entries behind this position are kept, up to `end`."""
        self.end = 0
        self.access_changed = 0
        """The position of the last change of access keys that is kept."""
        self._changed = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Begin to follow the ledger, where it ends now."""
        head = await asyncio.to_thread(self._desk.ask, FindHead())
        self._after = self.end = head.position
        self._task = asyncio.create_task(self._follow())

    def behind(self, position: int) -> list[Notice] | None:
        """Return what is known behind a position; None if not all of it is kept here."""
        if position < self._after or position > self.end:
            return None
        missing = self.end - position
        if missing == 0:
            return []
        kept = self._kept
        return [kept[at] for at in range(len(kept) - missing, len(kept))]

    async def beyond(self, position: int, timeout: float) -> bool:
        """Return True once more is known than up to a position, or False after so many seconds."""
        with suppress(TimeoutError):
            async with asyncio.timeout(timeout):
                while self.end <= position:
                    await self._changed.wait()
        return self.end > position

    async def _follow(self) -> None:
        while True:
            try:
                if await self._follower.beyond(self.end, _LOOK_SECONDS):
                    await self._read()
                elif self._follower.is_stopped:
                    return
            except HistoryPruned as pruned:
                self._kept.clear()
                self._kept_bytes = 0
                self._after = self.end = pruned.position or self.end
            except Exception as error:
                _logger.warning("the ledger cannot be followed for a moment: %s", error)
                await asyncio.sleep(_TROUBLE_SECONDS)

    async def _read(self) -> None:
        """Take in what is new."""
        question = FollowLedger(query=EntryQuery(after=self.end, limit=_PAGE))
        followed: Followed = await asyncio.to_thread(self._desk.ask, question)
        before = self.access_changed
        for entry in followed.entries:
            self._keep(Notice(entry))
            self.end = entry.position
            if entry.event.type.startswith(_ACCESS):
                self.access_changed = entry.position
        self._after = self.end - len(self._kept)
        changed, self._changed = self._changed, asyncio.Event()
        changed.set()
        if self.access_changed > before:
            self._on_access_change()

    def _keep(self, notice: Notice) -> None:
        """Keep an entry, and forget the oldest ones for it."""
        self._kept.append(notice)
        self._kept_bytes += len(notice.entry.body)
        while len(self._kept) > _KEPT or self._kept_bytes > _KEPT_BYTES:
            self._kept_bytes -= len(self._kept.popleft().entry.body)

    async def close(self) -> None:
        """Stop following."""
        if self._task is not None:
            self._task.cancel()
            with suppress(asyncio.CancelledError):
                await self._task
