"""What the registrar's refusals are called for people: what happened, and what to do next."""

from leasehold.kernel.lease.model import LeaseState
from leasehold.kernel.lease.quotas import Quotas
from leasehold.kernel.ledger.events import REGISTRAR
from leasehold.kernel.ledger.refusals import Refusal, RefusalCode


def message_of(refusal: Refusal, expires_in: float | None) -> str:
    """Say what happened, and what to do next."""
    if refusal.code is RefusalCode.REFUSED:
        return refusal.detail or refusal.rule
    return _message_about_waiting(refusal) or _message(refusal, expires_in)


def _message(refusal: Refusal, expires_in: float | None) -> str:
    lease, resource, holder = refusal.lease_id, refusal.resource, refusal.holder
    left = "for an unknown time" if expires_in is None else f"for at most {expires_in:.1f} s more"
    match refusal.code:
        case RefusalCode.HELD:
            return _message_of_held(refusal, expires_in, left)
        case RefusalCode.ALREADY_HELD:
            return (
                f"{resource} is already held by you ({holder}) as lease {lease}; "
                "use that lease, or pass adopt=True to replace it"
            )
        case RefusalCode.LEASE_EXISTS:
            return f"lease {lease} exists already; repeat its claim as it was, or propose another id"
        case RefusalCode.LEASE_NOT_FOUND:
            return f"there is no lease {lease}; list the leases to find the right id"
        case RefusalCode.LEASE_TERMINAL:
            how = ending(refusal.state, refusal.facts.get("ended_by"), refusal.facts.get("end_reason"))
            return f"lease {lease} on {resource} is over ({how}); acquire the resource again"
        case RefusalCode.LEASE_EXPIRED:
            return f"lease {lease} on {resource} has expired; acquire the resource again"
        case RefusalCode.NOT_HOLDER:
            return f"lease {lease} on {resource} belongs to {holder}; only its holder can do that"
        case RefusalCode.RENEWALS_EXHAUSTED:
            return f"lease {lease} has been renewed as often as it may be; it stands {left}"
        case RefusalCode.RENEWAL_DOES_NOT_EXTEND:
            return f"lease {lease} stands {left} already; renew it for longer, or later"
        case RefusalCode.UNKNOWN_TIME:
            return f"nobody can tell when lease {lease} expires; release it, or have it revoked"
        case RefusalCode.INVALID_INPUT | RefusalCode.LIMIT_EXCEEDED:
            return _message_of_input(refusal)
        case _:
            return _message_of_delegation(refusal, left)


def ending(state: str | None, ended_by: str | None, reason: str | None) -> str:
    """Say how a lease has ended, by whom, and why, as far as somebody ended it."""
    by = f" by {ended_by}" if ended_by and state in (LeaseState.RELEASED, LeaseState.REVOKED) else ""
    return f"{state}{by}: {reason}" if reason else f"{state}{by}"


def _message_of_held(refusal: Refusal, expires_in: float | None, left: str) -> str:
    resource, holder = refusal.resource, refusal.holder
    if holder == REGISTRAR:
        return f"{resource} is kept closed {left}, after a lease that was not released; try again then"
    step = "ask an operator to revoke it" if expires_in is None else "try again then, or ask them"
    return f"{resource} is held by {holder}{_why(refusal)} {left} unless renewed; {step}"


def _why(refusal: Refusal) -> str:
    return f" ({refusal.reason})" if refusal.reason else ""


def _message_of_input(refusal: Refusal) -> str:
    if refusal.field in Quotas.__struct_fields__:
        return f"{refusal.detail} ({refusal.field}); release some first, or raise the quota"
    return f"{refusal.field} {refusal.detail}"


def _message_of_delegation(refusal: Refusal, left: str) -> str:
    lease, resource = refusal.lease_id, refusal.resource
    match refusal.code:
        case RefusalCode.NOTHING_GRANTED:
            return (
                f"lease {lease} on {resource} was acquired without scope and budget; "
                "acquire it with what it may do and spend"
            )
        case RefusalCode.SCOPE_DENIED | RefusalCode.SCOPE_EXCEEDED as code:
            step = "use one that does" if code is RefusalCode.SCOPE_DENIED else "ask for less"
            return f"lease {lease} on {resource} does not allow {refusal.detail}; {step}"
        case RefusalCode.BUDGET_EXCEEDED:
            return (
                f"{refusal.field} of lease {lease} on {resource}: {refusal.detail}; "
                "ask for less, or end children first: what they did not use comes back"
            )
        case RefusalCode.BUDGET_EXHAUSTED:
            return (
                f"the budget of lease {lease} on {resource} is exhausted: no {refusal.field} left; "
                "end children to get back what they did not use, or acquire a new lease"
            )
        case _:
            return f"the parent of such a lease stands {left}; ask for less time, or renew the parent first"


def _message_about_waiting(refusal: Refusal) -> str | None:
    lease, resource, holder = refusal.lease_id, refusal.resource, refusal.holder
    match refusal.code:
        case RefusalCode.ALREADY_WAITING if refusal.detail:
            return f"{holder} waits for {resource} already, as lease {lease}: {refusal.detail}"
        case RefusalCode.ALREADY_WAITING:
            return f"{holder} waits for {resource} already, as lease {lease}; use one name for each waiter"
        case RefusalCode.DEADLOCK:
            return f"waiting would never end: {refusal.detail}; release something first, then ask again"
        case RefusalCode.LEASE_PENDING:
            return f"lease {lease} on {resource} is not granted and confirmed yet; ask for it again first"
        case RefusalCode.HELD if refusal.state == LeaseState.PENDING:
            return (
                f"{resource} is reserved for {holder}{_why(refusal)}, who waits for it; "
                "wait as well, or try again later"
            )
    return None
