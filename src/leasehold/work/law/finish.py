"""How an offset ends: processed, to be tried again, given up, or given back.

Whoever waits for the offset itself, or for what is at the head of the backlog now, is woken after the commit.
"""

from typing import Any

from msgspec.structs import replace

from leasehold.kernel.ledger.draft import Draft
from leasehold.kernel.ledger.events import REGISTRAR
from leasehold.kernel.ledger.refusals import Refusal
from leasehold.work.law.answers import Acquired, Failed, FailOutcome, GivenBack, Succeeded, SucceedOutcome
from leasehold.work.law.commands import Fail, GiveBack, Succeed
from leasehold.work.law.events import (
    WorkAcquired,
    WorkFailed,
    WorkRetried,
    WorkReturned,
    WorkSucceeded,
    happening,
)
from leasehold.work.law.model import WORK, Attempt, Domain, Flight, Queued, domain_key
from leasehold.work.law.ranges import reach_with
from leasehold.work.law.rules import acquire, acquired_again, bearer_of, head_of

GIVEN_BACK = "given back"
"""The reason given when whoever worked on an offset has stopped, and let others go on."""


def succeed(command: Succeed, draft: Draft) -> Refusal | Succeeded:
    """Let the offset in flight be processed."""
    earlier = draft.remembered(command)
    if isinstance(earlier, WorkSucceeded):
        return _succeeded(earlier.next_offset)
    if isinstance(earlier, WorkAcquired):
        return _succeeded(earlier.offset, _handed_off_again(earlier, draft))
    flight = bearer_of(draft, command)
    if isinstance(flight, Refusal):
        return flight
    head = head_of(draft, command.tenant, command.domain)
    draft.append(
        WorkSucceeded(
            **happening(draft.now, command.tenant, command.domain, command.holder),
            request=_request(command, head),
            offset=flight.offset,
            fence=flight.fence,
            done=reach_with(draft, command.tenant, command.domain, flight.offset),
            next_offset=None if head is None else head[1].offset,
        )
    )
    acquired = _go_on(command, draft, flight, head)
    return _succeeded(None if head is None else head[1].offset, acquired)


def _succeeded(next_offset: int | None, acquired: Acquired | None = None) -> Succeeded:
    outcome = SucceedOutcome.NO_BACKLOG if next_offset is None else SucceedOutcome.NEXT_HINT
    return Succeeded(outcome=outcome, next_offset=next_offset, acquired=acquired)


def _request(command: Succeed | Fail, head: tuple[int, Queued] | None) -> str | None:
    """Return the key of the request, unless the hand-off will remember it, which comes last."""
    return None if command.hand_off and head is not None else command.request_key


def _go_on(
    command: Succeed | Fail, draft: Draft, ended: Flight, head: tuple[int, Queued] | None
) -> Acquired | None:
    """Wake who waits for what has ended; hand off to the head of the backlog, or wake who waits for it."""
    wake(draft, ended.wake)
    if head is None:
        return None
    if not command.hand_off:
        wake(draft, head[1].wake)
        return None
    return acquire(
        draft,
        command,
        head[1].offset,
        head,
        max_retries=ended.max_retries,
        ttl_ns=ended.ttl_ns,
        gave_up_after=ended.retry_count if isinstance(command, Fail) else 0,
    )


def _handed_off_again(earlier: WorkAcquired, draft: Draft) -> Acquired | None:
    """Answer a retry with what was handed off, unless that has ended since: it is only a hint then."""
    acquired = acquired_again(earlier, draft)
    return None if acquired.ended else acquired


def wake(draft: Draft, address: str) -> None:
    """Have somebody woken, once it is committed."""
    if address:
        draft.wakes.append(address)


def fail(command: Fail, draft: Draft) -> Refusal | Failed:
    """Let the attempt count as failed, and give the offset up if it was the last."""
    earlier = draft.remembered(command)
    if earlier is not None:
        return _failed_before(earlier, draft)
    flight = bearer_of(draft, command)
    if isinstance(flight, Refusal):
        return flight
    limit = flight.max_retries if command.max_retries is None else command.max_retries
    if flight.retry_count < limit:
        retried = WorkRetried(
            **happening(draft.now, command.tenant, command.domain, command.holder),
            request=command.request_key,
            offset=flight.offset,
            fence=flight.fence,
            retry_count=flight.retry_count + 1,
            reason=command.reason,
        )
        draft.append(retried)
        return Failed(outcome=FailOutcome.RETRY_SCHEDULED, retry_count=retried.retry_count)
    head = head_of(draft, command.tenant, command.domain)
    give_up(
        draft,
        command.tenant,
        command.domain,
        flight,
        head,
        actor=command.holder,
        reason=command.reason,
        request=_request(command, head),
    )
    acquired = _go_on(command, draft, flight, head)
    next_offset = None if head is None else head[1].offset
    return _given_up(flight.retry_count, next_offset, acquired)


def give_up(
    draft: Draft,
    tenant: str,
    domain: str,
    flight: Flight,
    head: tuple[int, Queued] | None,
    *,
    reason: str,
    actor: str = REGISTRAR,
    request: str | None = None,
) -> None:
    """End the offset in flight as failed."""
    draft.append(
        WorkFailed(
            **happening(draft.now, tenant, domain, actor),
            request=request,
            offset=flight.offset,
            fence=flight.fence,
            done=reach_with(draft, tenant, domain, flight.offset),
            failed=reach_with(draft, tenant, domain, flight.offset, failed=True),
            retry_count=flight.retry_count,
            reason=reason,
            next_offset=None if head is None else head[1].offset,
        )
    )


def _given_up(retry_count: int, next_offset: int | None, acquired: Acquired | None = None) -> Failed:
    outcome = FailOutcome.GIVE_UP_NO_BACKLOG if next_offset is None else FailOutcome.GIVE_UP_NEXT_HINT
    return Failed(outcome=outcome, retry_count=retry_count, next_offset=next_offset, acquired=acquired)


def _failed_before(earlier: Any, draft: Draft) -> Failed:
    match earlier:
        case WorkRetried():
            return Failed(outcome=FailOutcome.RETRY_SCHEDULED, retry_count=earlier.retry_count)
        case WorkFailed():
            return _given_up(earlier.retry_count, earlier.next_offset)
        case _:
            return _given_up(earlier.gave_up_after, earlier.offset, _handed_off_again(earlier, draft))


def give_back(command: GiveBack, draft: Draft) -> Refusal | GivenBack:
    """Let the offset in flight go back to the head of the backlog, as if this attempt had never been."""
    earlier = draft.remembered(command)
    if isinstance(earlier, WorkReturned):
        return GivenBack(offset=earlier.offset)
    flight = bearer_of(draft, _with_token(command, draft))
    if isinstance(flight, Refusal):
        return flight
    go_back(
        draft,
        command.tenant,
        command.domain,
        flight,
        reason=GIVEN_BACK,
        actor=command.holder,
        request=command.request_key,
    )
    return GivenBack(offset=flight.offset)


def _with_token(command: GiveBack, draft: Draft) -> GiveBack:
    """Return the command with the token that was given out for the request it names."""
    if not command.acquired_by:
        return command
    acquired = draft.view.recalled(command.acquired_by, draft.now)
    if isinstance(acquired, WorkAcquired) and acquired.tenant == command.tenant:
        return replace(command, token=str(acquired.fence))
    return command


def go_back(
    draft: Draft,
    tenant: str,
    domain: str,
    flight: Flight,
    *,
    reason: str,
    actor: str = REGISTRAR,
    request: str | None = None,
) -> None:
    """Put the offset in flight back at the head of the backlog, and wake whoever waits for it."""
    record: Domain = draft.get(WORK, domain_key(tenant, domain))
    draft.append(
        WorkReturned(
            **happening(draft.now, tenant, domain, actor),
            request=request,
            offset=flight.offset,
            fence=flight.fence,
            place=record.first - 1,
            before=Attempt(acquired_at_ns=flight.acquired_at_ns, retry_count=flight.retry_count),
            reason=reason,
        )
    )
    wake(draft, flight.wake)
