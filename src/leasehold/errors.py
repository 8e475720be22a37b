"""Everything that can go wrong, as one tree.

Each exception has a stable `code` that programs may rely on, an HTTP status and an exit code, and the
facts a caller needs for the next step as attributes. The message says what happened and what to do next.

- `Refused`: the registrar said no. Nothing was changed.
- `LeaseLost`: the caller does not hold the lease (any more). It must stop using the resource.
- `StoreError`: the store could not do it. Its `outcome_unknown` says whether it may have happened all the
  same; then ask again with the same `request_id`, and you get the answer of the first time.
"""

from collections.abc import Iterator
from functools import cache
from typing import ClassVar, Self

from leasehold.kernel.ledger.refusals import Refusal, RefusalCode
from leasehold.kernel.ledger.tick import NANOSECONDS_PER_SECOND
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
    reason: str | None = None
    """What the holder says that it is for."""
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
    ended_by: str | None = None
    """Who ended the lease: its holder, an operator, or `registrar`."""
    end_reason: str | None = None
    """Why it was revoked, as whoever did it has said."""
    cause: str | None = None
    """The code of what kept the lease from being renewed, if it was lost by that; `__cause__` tells more."""
    request_id: str | None = None
    path: str | None = None
    process_id: int | None = None

    def __init_subclass__(
        cls, *, code: str | None = None, http_status: int | None = None, exit_code: int | None = None
    ) -> None:
        """Define an error: by the code that is its own for ever, and what differs from the one above it."""
        super().__init_subclass__()
        cls.code = cls.code if code is None else code
        cls.http_status = cls.http_status if http_status is None else http_status
        cls.exit_code = cls.exit_code if exit_code is None else exit_code

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


class Refused(LeaseholdError, code="REFUSED", http_status=409):
    """The registrar said no, and changed nothing."""


class NotAcquired(Refused, code="NOT_ACQUIRED", exit_code=EXIT_NOT_ACQUIRED):
    """The claim was not granted."""


class Held(NotAcquired, code="HELD"):
    """Somebody else holds the resource."""


class WaitTimeout(Held, code="WAIT_TIMEOUT"):
    """Somebody else still holds the resource, after all the time that the caller wanted to wait."""


class AlreadyHeld(NotAcquired, code="ALREADY_HELD"):
    """The caller holds the resource already, and did not ask to adopt it."""


class AlreadyWaiting(NotAcquired, code="ALREADY_WAITING"):
    """The caller waits for the resource already, under the same holder's name."""


class Deadlock(NotAcquired, code="DEADLOCK"):
    """Waiting would have led back to the caller, and so would never have ended."""


class LeasePending(Refused, code="LEASE_PENDING"):
    """The lease waits to be granted, or to be confirmed."""


class LeaseExists(NotAcquired, code="LEASE_EXISTS"):
    """A lease with the proposed id exists already."""


class LimitExceeded(Refused, code="LIMIT_EXCEEDED", http_status=429):
    """A value or a count is past its limit."""


class InvalidInput(Refused, ValueError, code="INVALID_INPUT", http_status=422, exit_code=EXIT_USAGE):
    """A value can never be right."""


class RenewalsExhausted(Refused, code="RENEWALS_EXHAUSTED"):
    """The lease has been renewed as often as it may be. It stands until it expires."""


class RenewalDoesNotExtend(Refused, code="RENEWAL_DOES_NOT_EXTEND"):
    """The renewal would have shortened the lease, which stands as it was."""


class UnknownTime(Refused, code="UNKNOWN_TIME"):
    """Nobody can tell whether the lease has expired, so it may be neither used nor taken over."""


class NothingGranted(Refused, code="NOTHING_GRANTED"):
    """The lease was acquired with neither scope nor budget, so there is nothing to spend or hand on."""


class ScopeDenied(Refused, code="SCOPE_DENIED", http_status=403):
    """The lease does not allow this."""


class ScopeExceeded(Refused, code="SCOPE_EXCEEDED"):
    """The child would be allowed more than its parent is."""


class BudgetExceeded(Refused, code="BUDGET_EXCEEDED"):
    """The lease's budget has less left than was asked for."""


class BudgetExhausted(BudgetExceeded, code="BUDGET_EXHAUSTED"):
    """Some part of the lease's budget is used up."""


class OutlivesParent(Refused, code="OUTLIVES_PARENT"):
    """The child would last longer than its parent."""


class NotPermitted(Refused, code="NOT_PERMITTED", http_status=403):
    """Only an operator may do this, and the caller is none."""


class NotAuthenticated(Refused, code="NOT_AUTHENTICATED", http_status=401):
    """The server wants an access key, and was shown none, or none that is good."""


class RateLimited(Refused, code="RATE_LIMITED", http_status=429):
    """A caller asks for more, or more often, than its key may. Ask again after `retry_after` seconds."""


class LeaseLost(LeaseholdError, code="LEASE_LOST", http_status=410, exit_code=EXIT_LOST):
    """The lease is not the caller's any more. Whatever it protects must not be touched."""


class LeaseExpired(LeaseLost, code="LEASE_EXPIRED"):
    """The lease's time is over."""


class LeaseTerminal(LeaseLost, code="LEASE_TERMINAL"):
    """The lease was released or revoked, or has expired."""


class NotHolder(LeaseLost, code="NOT_HOLDER", http_status=403):
    """Somebody else holds this lease."""


class LeaseNotFound(LeaseLost, code="LEASE_NOT_FOUND", http_status=404):
    """There is no such lease."""


class WrongProcess(LeaseLost, code="WRONG_PROCESS"):
    """The lease belongs to the process this one was forked from."""


class ClientClosed(LeaseholdError, code="CLIENT_CLOSED"):
    """The client was closed before the call."""


class StoreError(LeaseholdError, code="STORE_ERROR", http_status=503):
    """The store could not do what was asked."""

    outcome_unknown: ClassVar[bool] = False
    """Whether the change may have happened all the same. Ask again with the same request id to find out."""


class StoreBusy(StoreError, code="STORE_BUSY"):
    """Another process kept the store's write lock for too long. Nothing was changed."""


class StoreFull(StoreError, code="STORE_FULL", http_status=507):
    """There is no space left for the store. Nothing was changed."""


class StoreFailed(StoreError, code="STORE_FAILED"):
    """Reading or writing the store failed."""

    outcome_unknown = True


class ReplyLost(StoreFailed, code="REPLY_LOST"):
    """The server was asked, and its reply did not arrive, or could not be read."""


class ServerUnreachable(StoreError, code="SERVER_UNREACHABLE"):
    """There is no connection to the server. Nothing was changed."""


class StoreRejected(StoreError, code="STORE_REJECTED"):
    """The store's own constraints forbid the change. Nothing was changed."""


class StoreUnusable(StoreError, code="STORE_UNUSABLE"):
    """This store cannot be used by this program; the message says why and what to do."""


class StoreDamaged(StoreUnusable, code="STORE_DAMAGED"):
    """Files of this store are missing, damaged or not its own. `leasehold restore` puts a backup in place."""


class StoreReplaced(StoreUnusable, code="STORE_REPLACED"):
    """Another store is where this client's was, and knows nothing of its leases. Connect again to use it."""


class LedgerBroken(StoreError, code="LEDGER_BROKEN"):
    """The ledger is not what it was when it was written, so nothing can be built on it."""

    position: int | None = None
    """The first entry that is not right."""


class JobUnknown(StoreError, code="JOB_UNKNOWN", http_status=404):
    """The registrar knows nothing of this job (any more), so nobody can tell what became of it."""

    outcome_unknown = True


class JobCancelled(LeaseholdError, code="JOB_CANCELLED", http_status=409):
    """The job was cancelled before its end."""


class HistoryPruned(LeaseholdError, code="HISTORY_PRUNED", http_status=410):
    """Entries that were asked for are gone, so they cannot be followed without a gap."""

    position: int | None = None
    """The last entry that is gone: continue after it if the gap does not matter."""


def _below(kind: type[LeaseholdError]) -> Iterator[type[LeaseholdError]]:
    """Yield an error and all those that are kinds of it."""
    yield kind
    for below in kind.__subclasses__():
        yield from _below(below)


def error_of(refusal: Refusal) -> LeaseholdError:
    """Return the exception that a refusal becomes for callers in this language."""
    expires_in = None if refusal.expires_in_ns is None else refusal.expires_in_ns / NANOSECONDS_PER_SECOND
    return error_with(refusal.rule or refusal.code)(
        message_of(refusal, expires_in),
        lease_id=refusal.lease_id,
        resource=refusal.resource,
        holder=refusal.holder,
        reason=refusal.reason,
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
        **refusal.facts,
    )


@cache
def error_with(code: str) -> type[LeaseholdError]:
    """Return the error that has a code: of this module, or of the face whose family refuses with it."""
    return next((kind for kind in _below(LeaseholdError) if kind.code == code), Refused)
