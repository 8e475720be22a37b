"""What can be asked about work, and the limits on it."""

from typing import ClassVar

from leasehold.kernel.ledger.commands import Command, Right
from leasehold.work.law.answers import Acquired, Failed, GivenBack, Kept, Queueing, Started, Succeeded

DOMAIN_BYTES = 256
ENQUEUE_OFFSETS = 1_000
BACKLOG_MAXIMUM = 1_000_000
"""How many offsets one domain can have in its backlog."""
RETRIES_MAXIMUM = 1_000_000
DEFAULT_MAX_RETRIES = 3


class _WorkCommand(Command, frozen=True, kw_only=True, omit_defaults=True):
    domain: str
    holder: str
    """Who asks; history says so. Only the token decides."""


class TryAcquire(_WorkCommand, frozen=True, kw_only=True, omit_defaults=True, tag="work_try_acquire"):
    """Ask to work on an offset."""

    answer = Acquired
    right = Right.HOLD
    not_content = {"request_id": "", "wake": ""}
    gives_back: ClassVar[bool] = False

    offset: int
    ttl_ns: int = 0
    """0: until somebody ends it."""
    max_retries: int = DEFAULT_MAX_RETRIES
    """How often the offset may fail and still be tried again."""
    wake: str = ""
    """Where to ring when it makes sense to ask again, if it has to wait."""


class Enqueue(_WorkCommand, frozen=True, kw_only=True, omit_defaults=True, tag="work_enqueue"):
    """Put offsets at the end of the backlog: those that are neither there, nor in flight, nor terminal."""

    answer = Queueing
    right = Right.HOLD
    not_content = {"request_id": "", "wake": ""}

    offsets: tuple[int, ...]
    wake: str = ""


class Succeed(_WorkCommand, frozen=True, kw_only=True, omit_defaults=True, tag="work_succeed"):
    """Say that the offset in flight is done."""

    answer = Succeeded
    right = Right.HOLD

    token: str
    hand_off: bool = False
    """Acquire the head of the backlog in the same step."""


class Fail(_WorkCommand, frozen=True, kw_only=True, omit_defaults=True, tag="work_fail"):
    """Say that an attempt at the offset in flight has failed."""

    answer = Failed
    right = Right.HOLD

    token: str
    reason: str = ""
    max_retries: int | None = None
    """None: as the offset was acquired with."""
    hand_off: bool = False


class GiveBack(_WorkCommand, frozen=True, kw_only=True, omit_defaults=True, tag="work_give_back"):
    """Let the offset in flight go back to the head of the backlog, without counting the attempt as failed."""

    answer = GivenBack
    right = Right.HOLD

    token: str = ""
    acquired_by: str = ""
    """Instead of a token, the key of the request that has acquired it, and whose answer nobody has heard."""


class KeepAlive(_WorkCommand, frozen=True, kw_only=True, omit_defaults=True, tag="work_keep_alive"):
    """Ask for more time for the offset in flight: for `ttl_ns` from now, or as long as it had been given."""

    answer = Kept
    right = Right.HOLD

    token: str
    ttl_ns: int = 0


class StartAt(_WorkCommand, frozen=True, kw_only=True, omit_defaults=True, tag="work_start_at"):
    """Say that every offset below this one counts as processed."""

    answer = Started
    right = Right.HOLD

    offset: int


WorkCommand = TryAcquire | Enqueue | Succeed | Fail | GiveBack | KeepAlive | StartAt
