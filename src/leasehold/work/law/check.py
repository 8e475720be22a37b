"""Whether a command about work can be right at all, whatever the records say."""

from leasehold.kernel.ledger.limits import (
    ID_BYTES,
    REASON_BYTES,
    WAKE_BYTES,
    check_holder,
    check_optional,
    check_text,
    check_ttl,
    invalid,
    over_limit,
)
from leasehold.kernel.ledger.refusals import Refusal
from leasehold.work.law.commands import (
    DOMAIN_BYTES,
    ENQUEUE_OFFSETS,
    RETRIES_MAXIMUM,
    Enqueue,
    Fail,
    GiveBack,
    KeepAlive,
    Succeed,
    TryAcquire,
    WorkCommand,
)
from leasehold.work.law.model import OFFSET_MAXIMUM


def check_command(command: WorkCommand) -> Refusal | None:
    """Refuse what is empty, too long, too much, or below 0."""
    refusal = (
        check_text("tenant", command.tenant)
        or check_text("request_id", command.request_id)
        or check_domain(command.domain)
        or check_holder("holder", command.holder)
    )
    if refusal is not None:
        return refusal
    match command:
        case TryAcquire():
            return (
                check_offset(command.offset)
                or check_ttl(command.ttl_ns or None)
                or _check_retries(command.max_retries)
                or check_optional("wake", command.wake, WAKE_BYTES)
            )
        case Enqueue():
            return _check_offsets(command.offsets) or check_optional("wake", command.wake, WAKE_BYTES)
        case GiveBack(acquired_by=request_key) if request_key:
            return check_text("acquired_by", request_key, 2 * ID_BYTES)
        case Succeed() | GiveBack():
            return check_text("token", command.token)
        case Fail():
            return (
                check_text("token", command.token)
                or check_optional("reason", command.reason, REASON_BYTES)
                or _check_retries(command.max_retries)
            )
        case KeepAlive():
            return check_text("token", command.token) or check_ttl(command.ttl_ns or None)
        case _:
            return check_offset(command.offset)


def check_domain(domain: str) -> Refusal | None:
    """Refuse a domain's name that is empty, too long, or not printable."""
    return check_text("domain", domain, DOMAIN_BYTES)


def check_offset(offset: int, field: str = "offset") -> Refusal | None:
    """Refuse an offset below 0, or beyond 63 bits."""
    if offset < 0:
        return invalid(field, f"must be at least 0, not {offset}")
    if offset > OFFSET_MAXIMUM:
        return over_limit(field, OFFSET_MAXIMUM, f"must be at most {OFFSET_MAXIMUM}")
    return None


def _check_offsets(offsets: tuple[int, ...]) -> Refusal | None:
    if not offsets:
        return invalid("offsets", "must name at least one offset")
    if len(offsets) > ENQUEUE_OFFSETS:
        detail = f"names {len(offsets)}; at most {ENQUEUE_OFFSETS} fit in one call"
        return over_limit("offsets", ENQUEUE_OFFSETS, detail)
    return next(filter(None, (check_offset(offset, "offsets") for offset in offsets)), None)


def _check_retries(retries: int | None) -> Refusal | None:
    if retries is None:
        return None
    if retries < 0:
        return invalid("max_retries", f"must be at least 0, not {retries}")
    if retries > RETRIES_MAXIMUM:
        return over_limit("max_retries", RETRIES_MAXIMUM, f"must be at most {RETRIES_MAXIMUM}")
    return None
