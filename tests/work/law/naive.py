"""The contract, and what is opt-in beyond it, told a second time with plain sets and a deque."""

from collections import deque
from typing import Any


class NaiveDomain:
    """What the contract says about a domain, as simply as it can be said."""

    def __init__(self) -> None:
        self.lease: dict[str, Any] | None = None
        self.processed: set[int] = set()
        self.failed: set[int] = set()
        self.backlog: deque[int] = deque()
        self.earlier: dict[int, tuple[int, int]] = {}
        """Of offsets that came back: when they were first acquired, and how often they have failed."""
        self.start = 0

    def look(self, now: int) -> None:
        """Let the lease run out if its time is over."""
        lease = self.lease
        if lease is None or lease["due"] is None or now < lease["due"]:
            return
        self.lease = None
        if lease["retry_count"] >= lease["max_retries"]:
            self.failed.add(lease["offset"])
        else:
            self.backlog.appendleft(lease["offset"])
            self.earlier[lease["offset"]] = (lease["acquired_at"], lease["retry_count"] + 1)

    def is_terminal(self, offset: int) -> bool:
        return offset in self.processed | self.failed or offset < self.start

    def try_acquire(self, offset: int, now: int, ttl: int, max_retries: int) -> Any:
        self.look(now)
        if offset in self.processed or (offset < self.start and offset not in self.failed):
            return "ALREADY_PROCESSED"
        if offset in self.failed:
            return "ALREADY_FAILED"
        if self.lease is not None:
            if offset == self.lease["offset"]:
                return "ALREADY_ACQUIRED"
            self.add_to_backlog(offset)
            return "ENQUEUED"
        if self.backlog:
            if self.backlog[0] != offset:
                return ("BACKLOG_ORDERING", self.backlog[0])
            self.backlog.popleft()
        acquired_at, retry_count = self.earlier.pop(offset, (now, 0))
        self.lease = {
            "offset": offset,
            "token": None,
            "acquired_at": acquired_at,
            "retry_count": retry_count,
            "due": now + ttl if ttl else None,
            "ttl": ttl,
            "max_retries": max_retries,
        }
        return "ACQUIRED"

    def add_to_backlog(self, offset: int) -> bool:
        if self.is_terminal(offset) or offset in self.backlog:
            return False
        if self.lease is not None and self.lease["offset"] == offset:
            return False
        self.backlog.append(offset)
        return True

    def bears(self, token: str, now: int) -> str | None:
        self.look(now)
        if self.lease is None:
            return "NO_LEASE"
        return None if token == self.lease["token"] else "TOKEN_MISMATCH"

    def succeed(self) -> tuple[str, int | None]:
        assert self.lease is not None
        self.processed.add(self.lease["offset"])
        self.lease = None
        return ("NEXT_HINT", self.backlog[0]) if self.backlog else ("NO_BACKLOG", None)

    def fail(self) -> tuple[str, int | None]:
        assert self.lease is not None
        if self.lease["retry_count"] >= self.lease["max_retries"]:
            self.failed.add(self.lease["offset"])
            self.lease = None
            return ("GIVE_UP_NEXT_HINT", self.backlog[0]) if self.backlog else ("GIVE_UP_NO_BACKLOG", None)
        self.lease["retry_count"] += 1
        return ("RETRY_SCHEDULED", None)

    def give_back(self) -> None:
        assert self.lease is not None
        offset = self.lease["offset"]
        self.backlog.appendleft(offset)
        self.earlier[offset] = (self.lease["acquired_at"], self.lease["retry_count"])
        self.lease = None

    @property
    def watermark(self) -> int:
        mark = self.start
        while self.is_terminal(mark):
            mark += 1
        return mark
