"""What is answered about work when the answer is yes, under the names of the contract."""

from enum import StrEnum

import msgspec


class AcquireOutcome(StrEnum):
    """What became of an attempt to acquire an offset."""

    ACQUIRED = "ACQUIRED"
    """It is in flight, under the token of this answer."""
    ENQUEUED = "ENQUEUED"
    """Another offset is in flight; this one is in the backlog."""
    ALREADY_ACQUIRED = "ALREADY_ACQUIRED"
    """It is in flight already, under the token of this answer. Whoever acquired it works on it: do not."""
    ALREADY_PROCESSED = "ALREADY_PROCESSED"
    ALREADY_FAILED = "ALREADY_FAILED"


class SucceedOutcome(StrEnum):
    """What comes after an offset that was processed."""

    NO_BACKLOG = "NO_BACKLOG"
    NEXT_HINT = "NEXT_HINT"
    """`next_offset` is at the head of the backlog."""
    IGNORED = "IGNORED"
    """The token was not, or no longer, that of the offset in flight; nothing was changed."""


class FailOutcome(StrEnum):
    """What comes after an attempt that has failed."""

    RETRY_SCHEDULED = "RETRY_SCHEDULED"
    """The offset stays in flight, under the same token: try it again when you see fit."""
    GIVE_UP_NO_BACKLOG = "GIVE_UP_NO_BACKLOG"
    GIVE_UP_NEXT_HINT = "GIVE_UP_NEXT_HINT"
    IGNORED = "IGNORED"


class Acquired(msgspec.Struct, frozen=True, kw_only=True, gc=False, omit_defaults=True, tag=True):
    """What became of `try_acquire`, or of a hand-off."""

    outcome: AcquireOutcome
    offset: int
    token: str | None = None
    """Shows that its bearer works on the offset; its digits are the fencing token."""
    fence: int | None = None
    """The same as a number: pass it along with every write."""
    acquired_at_millis: int | None = None
    """Wall time of the first acquisition of this offset; it never changes."""
    retry_count: int = 0
    """How often the offset has failed so far."""
    expires_in_ns: int | None = None
    """How long the offset in flight stays so if nobody keeps it alive; None: until it is ended.

    It counts from some moment between the question and the answer, so rely on it from before you asked."""
    ended: bool = False
    """This answers a retry, and the offset that was acquired then is not in flight under this token now."""

    @property
    def expires_in(self) -> float | None:
        """Return the same in seconds."""
        return None if self.expires_in_ns is None else self.expires_in_ns / 1e9


class Succeeded(msgspec.Struct, frozen=True, kw_only=True, gc=False, omit_defaults=True, tag=True):
    """What became of `succeed`."""

    outcome: SucceedOutcome
    next_offset: int | None = None
    acquired: Acquired | None = None
    """The next offset, in flight under this token, where a hand-off was asked for.

    None in the answer to a retry if that has ended since: somebody else may work on it."""


class Failed(msgspec.Struct, frozen=True, kw_only=True, gc=False, omit_defaults=True, tag=True):
    """What became of `fail`."""

    outcome: FailOutcome
    retry_count: int = 0
    next_offset: int | None = None
    acquired: Acquired | None = None


class GivenBack(msgspec.Struct, frozen=True, kw_only=True, gc=False, tag=True):
    """What became of `give_back`."""

    offset: int
    """It is at the head of the backlog."""


class Queueing(msgspec.Struct, frozen=True, kw_only=True, gc=False, tag=True):
    """What became of `enqueue`."""

    added: int
    """How many were not known before."""


class Kept(msgspec.Struct, frozen=True, kw_only=True, gc=False, omit_defaults=True, tag=True):
    """What became of `keep_alive`."""

    expires_in_ns: int | None = None
    """How long the offset stays in flight if nobody keeps it alive again; None: until it is ended.

    Rely on it from before you asked."""

    @property
    def expires_in(self) -> float | None:
        """Return the same in seconds; None: until it is ended."""
        return None if self.expires_in_ns is None else self.expires_in_ns / 1e9


class Started(msgspec.Struct, frozen=True, kw_only=True, gc=False, tag=True):
    """Where the domain starts now."""

    start: int
