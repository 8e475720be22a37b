"""Everything that can go wrong, as one tree.

Each exception has a stable `code` that programs may rely on, an HTTP status and an exit code, and the
facts a caller needs for the next step as attributes. The message says what happened and what to do next.

- `Refused`: the registrar said no. Nothing was changed.
- `LeaseLost`: the caller does not hold the lease (any more). It must stop using the resource.
- `StoreError`: the store could not do it. Its `outcome_unknown` says whether it may have happened all the
  same; then ask again with the same `request_id`, and you get the answer of the first time.
"""

from typing import ClassVar, Self

from leasehold.kernel.refusals import Refusal, RefusalCode
from leasehold.kernel.tick import NANOSECONDS_PER_SECOND
from leasehold.messages import message_of

EXIT_ERROR = 1
EXIT_USAGE = 2
EXIT_NOT_ACQUIRED = 75
EXIT_LOST = 76


class LeaseholdError(Exception):
    """The root of everything leasehold raises."""

    code: ClassVar[str] = "ERROR"
    http_status: ClassVar[int] = 500
    exit_code: ClassVar[int] = EXIT_ERROR

    lease_id: str | None = None
    resource: str | None = None
    holder: str | None = None
    """Who holds the resource, or the lease, that was asked for."""
    mode: str | None = None
    state: str | None = None
    token: int | None = None
    since: float | None = None
    """Wall time, in seconds since 1970, since when the holder holds it."""
    expires_in: float | None = None
    """Seconds until the obstacle goes away by itself, if nobody renews it."""
    retry_after: float | None = None
    """Seconds after which it makes sense to try again."""
    waited: float | None = None
    position: int | None = None
    field: str | None = None
    limit: int | None = None
    detail: str | None = None
    cycle: tuple[str, ...] | None = None
    request_id: str | None = None
    path: str | None = None
    process_id: int | None = None

    def __init__(self, message: str, **facts: object) -> None:
        super().__init__(message)
        self.facts = {name: fact for name, fact in facts.items() if fact is not None}
        """What is known about the problem, by name; ready to be shown as JSON."""
        for name, fact in self.facts.items():
            setattr(self, name, fact)

    def with_facts(self, **facts: object) -> Self:
        """Return a copy that knows more; one error can be the outcome of several calls."""
        copy = type(self)(str(self), **(self.facts | facts))
        copy.__cause__ = self.__cause__
        return copy


class Refused(LeaseholdError):
    """The registrar said no, and changed nothing."""

    code = "REFUSED"
    http_status = 409


class NotAcquired(Refused):
    """The claim was not granted."""

    code = "NOT_ACQUIRED"
    exit_code = EXIT_NOT_ACQUIRED


class Held(NotAcquired):
    """Somebody else holds the resource."""

    code = "HELD"


class WaitTimeout(Held):
    """Somebody else still holds the resource, after all the time that the caller wanted to wait."""

    code = "WAIT_TIMEOUT"


class AlreadyHeld(NotAcquired):
    """The caller holds the resource already, and did not ask to adopt it."""

    code = "ALREADY_HELD"


class AlreadyWaiting(NotAcquired):
    """The caller waits for the resource already, under the same holder's name."""

    code = "ALREADY_WAITING"


class Deadlock(NotAcquired):
    """Waiting would have led back to the caller, and so would never have ended."""

    code = "DEADLOCK"


class LeasePending(Refused):
    """The lease waits to be granted, or to be confirmed."""

    code = "LEASE_PENDING"


class LeaseExists(NotAcquired):
    """A lease with the proposed id exists already."""

    code = "LEASE_EXISTS"


class LimitExceeded(Refused):
    """A value or a count is past its limit."""

    code = "LIMIT_EXCEEDED"
    http_status = 429


class InvalidInput(Refused, ValueError):
    """A value can never be right."""

    code = "INVALID_INPUT"
    http_status = 422
    exit_code = EXIT_USAGE


class RenewalsExhausted(Refused):
    """The lease has been renewed as often as it may be. It stands until it expires."""

    code = "RENEWALS_EXHAUSTED"


class RenewalDoesNotExtend(Refused):
    """The renewal would have shortened the lease, which stands as it was."""

    code = "RENEWAL_DOES_NOT_EXTEND"


class UnknownTime(Refused):
    """Nobody can tell whether the lease has expired, so it may be neither used nor taken over."""

    code = "UNKNOWN_TIME"


class NothingGranted(Refused):
    """The lease was acquired with neither scope nor budget, so there is nothing to spend or hand on."""

    code = "NOTHING_GRANTED"


class ScopeDenied(Refused):
    """The lease does not allow this."""

    code = "SCOPE_DENIED"
    http_status = 403


class ScopeExceeded(Refused):
    """The child would be allowed more than its parent is."""

    code = "SCOPE_EXCEEDED"


class BudgetExceeded(Refused):
    """The lease's budget has less left than was asked for."""

    code = "BUDGET_EXCEEDED"


class BudgetExhausted(BudgetExceeded):
    """Some part of the lease's budget is used up."""

    code = "BUDGET_EXHAUSTED"


class OutlivesParent(Refused):
    """The child would last longer than its parent."""

    code = "OUTLIVES_PARENT"


class LeaseLost(LeaseholdError):
    """The lease is not the caller's any more. Whatever it protects must not be touched."""

    code = "LEASE_LOST"
    http_status = 410
    exit_code = EXIT_LOST


class LeaseExpired(LeaseLost):
    """The lease's time is over."""

    code = "LEASE_EXPIRED"


class LeaseTerminal(LeaseLost):
    """The lease was released or revoked, or has expired."""

    code = "LEASE_TERMINAL"


class NotHolder(LeaseLost):
    """Somebody else holds this lease."""

    code = "NOT_HOLDER"
    http_status = 403


class LeaseNotFound(LeaseLost):
    """There is no such lease."""

    code = "LEASE_NOT_FOUND"
    http_status = 404


class WrongProcess(LeaseLost):
    """The lease belongs to the process this one was forked from."""

    code = "WRONG_PROCESS"


class ClientClosed(LeaseholdError):
    """The client was closed before the call."""

    code = "CLIENT_CLOSED"


class StoreError(LeaseholdError):
    """The store could not do what was asked."""

    code = "STORE_ERROR"
    http_status = 503
    outcome_unknown: ClassVar[bool] = False
    """Whether the change may have happened all the same. Ask again with the same request id to find out."""


class StoreBusy(StoreError):
    """Another process kept the store's write lock for too long. Nothing was changed."""

    code = "STORE_BUSY"


class StoreFull(StoreError):
    """There is no space left for the store. Nothing was changed."""

    code = "STORE_FULL"
    http_status = 507


class StoreFailed(StoreError):
    """Reading or writing the store failed."""

    code = "STORE_FAILED"
    outcome_unknown = True


class StoreRejected(StoreError):
    """The store's own constraints forbid the change. Nothing was changed."""

    code = "STORE_REJECTED"


class StoreUnusable(StoreError):
    """This store cannot be used by this program; the message says why and what to do."""

    code = "STORE_UNUSABLE"


class LedgerBroken(StoreError):
    """The ledger is not what it was when it was written, so nothing can be built on it."""

    code = "LEDGER_BROKEN"
    position: int | None = None
    """The first entry that is not right."""


class HistoryPruned(LeaseholdError):
    """Entries that were asked for are gone, so they cannot be followed without a gap."""

    code = "HISTORY_PRUNED"
    http_status = 410
    position: int | None = None
    """The last entry that is gone: go on behind it, if the gap does not matter."""


_BY_CODE: dict[RefusalCode, type[LeaseholdError]] = {
    RefusalCode.HELD: Held,
    RefusalCode.ALREADY_HELD: AlreadyHeld,
    RefusalCode.ALREADY_WAITING: AlreadyWaiting,
    RefusalCode.DEADLOCK: Deadlock,
    RefusalCode.LEASE_PENDING: LeasePending,
    RefusalCode.LEASE_EXISTS: LeaseExists,
    RefusalCode.LEASE_NOT_FOUND: LeaseNotFound,
    RefusalCode.LEASE_TERMINAL: LeaseTerminal,
    RefusalCode.LEASE_EXPIRED: LeaseExpired,
    RefusalCode.NOT_HOLDER: NotHolder,
    RefusalCode.RENEWALS_EXHAUSTED: RenewalsExhausted,
    RefusalCode.RENEWAL_DOES_NOT_EXTEND: RenewalDoesNotExtend,
    RefusalCode.UNKNOWN_TIME: UnknownTime,
    RefusalCode.INVALID_INPUT: InvalidInput,
    RefusalCode.LIMIT_EXCEEDED: LimitExceeded,
    RefusalCode.NOTHING_GRANTED: NothingGranted,
    RefusalCode.SCOPE_DENIED: ScopeDenied,
    RefusalCode.SCOPE_EXCEEDED: ScopeExceeded,
    RefusalCode.BUDGET_EXCEEDED: BudgetExceeded,
    RefusalCode.BUDGET_EXHAUSTED: BudgetExhausted,
    RefusalCode.OUTLIVES_PARENT: OutlivesParent,
}


def error_of(refusal: Refusal) -> LeaseholdError:
    """Return the exception that a refusal becomes for callers in this language."""
    expires_in = None if refusal.expires_in_ns is None else refusal.expires_in_ns / NANOSECONDS_PER_SECOND
    return _BY_CODE[refusal.code](
        message_of(refusal, expires_in),
        lease_id=refusal.lease_id,
        resource=refusal.resource,
        holder=refusal.holder,
        mode=refusal.mode,
        state=refusal.state,
        token=refusal.token,
        since=None if refusal.since_ns is None else refusal.since_ns / NANOSECONDS_PER_SECOND,
        expires_in=expires_in,
        retry_after=expires_in if refusal.code is RefusalCode.HELD else None,
        field=refusal.field,
        limit=refusal.limit,
        detail=refusal.detail,
        cycle=refusal.cycle,
    )
