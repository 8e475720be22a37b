"""Whether a command can be right at all, whatever the records say.

The checks come before anything is read: a command that fails them names no record that a store should be
asked for. They are in the order in which the fields stand, and the first that fails is the answer.
"""

from leasehold.kernel.lease.budget import AMOUNT_MAXIMUM, DIMENSIONS, Amounts, Budget
from leasehold.kernel.lease.commands import (
    Acquire,
    ChangeMode,
    Derive,
    LeaseCommand,
    Release,
    Renew,
    Revoke,
    Spend,
)
from leasehold.kernel.lease.globs import BadPattern, parsed
from leasehold.kernel.lease.paths import covers, is_canonical, is_path
from leasehold.kernel.lease.scope import PARTS, Scope, climbs
from leasehold.kernel.lease.ticket import PRIORITY_LEAST, PRIORITY_MOST, PRIORITY_USUAL
from leasehold.kernel.ledger.events import REGISTRAR
from leasehold.kernel.ledger.limits import (
    ID_BYTES,
    REASON_BYTES,
    RENEWALS_MAXIMUM,
    RESOURCE_BYTES,
    RESOURCES_PER_CLAIM,
    SCOPE_NAMES,
    TTL_MAXIMUM_NS,
    WAKE_BYTES,
    are_plain,
    check_batch,
    check_holder,
    check_metadata,
    check_optional,
    check_text,
    check_ttl,
    invalid,
    over_limit,
)
from leasehold.kernel.ledger.refusals import Refusal

_TOO_MANY_RENEWALS = over_limit("max_renewals", RENEWALS_MAXIMUM, f"must be at most {RENEWALS_MAXIMUM}")


def check_command(command: LeaseCommand) -> Refusal | None:
    """Refuse what is empty, too long, too much, or no text."""
    if isinstance(command, Acquire):
        return _check_acquire(command)
    if (
        isinstance(command, Release)
        and command.lease_ids
        and are_plain(command.tenant, command.request_id, command.holder, *command.lease_ids)
    ):
        return None
    refusal = check_text("tenant", command.tenant) or check_text("request_id", command.request_id)
    if refusal is not None:
        return refusal
    match command:
        case Renew():
            return (
                check_batch(command.lease_ids)
                or check_text("holder", command.holder)
                or check_ttl(command.ttl_ns)
            )
        case Release():
            return check_batch(command.lease_ids) or check_text("holder", command.holder)
        case Revoke():
            return (
                check_text("lease_id", command.lease_id)
                or check_holder("operator", command.operator)
                or check_text("reason", command.reason, REASON_BYTES)
            )
        case Derive():
            return _check_derive(command)
        case Spend():
            return (
                check_text("lease_id", command.lease_id)
                or check_text("holder", command.holder)
                or _check_amounts(command.amounts)
            )
        case ChangeMode():
            return (
                check_text("lease_id", command.lease_id)
                or check_text("holder", command.holder)
                or check_optional("wake", command.wake, WAKE_BYTES)
            )
        case _:
            return (
                check_text("lease_id", command.lease_id)
                or check_text("holder", command.holder)
                or check_holder("to", command.to)
                or check_text("new_lease_id", command.new_lease_id)
                or check_ttl(command.ttl_ns)
            )


def _check_acquire(command: Acquire) -> Refusal | None:
    refusal: Refusal | None = None
    if not are_plain(command.tenant, command.request_id, command.lease_id, command.resource, command.holder):
        refusal = (
            check_text("tenant", command.tenant)
            or check_text("request_id", command.request_id)
            or check_text("lease_id", command.lease_id)
            or check_text("resource", command.resource, RESOURCE_BYTES)
            or check_text("holder", command.holder)
        )
    if refusal is None and (is_path(command.resource) or command.holder == REGISTRAR):
        refusal = _check_resource(command.resource) or check_holder("holder", command.holder)
    refusal = refusal or check_ttl(command.ttl_ns)
    if refusal is None and command.metadata:
        refusal = check_metadata(command.metadata)
    if refusal is None and command.max_renewals > RENEWALS_MAXIMUM:
        refusal = _TOO_MANY_RENEWALS
    if refusal is None and command.config_version:
        refusal = check_text("config_version", command.config_version)
    if refusal is None and command.zone_version:
        refusal = check_text("zone_version", command.zone_version)
    if refusal is None and command.scope is not None:
        refusal = _check_scope(command.scope)
    if refusal is None and command.budget is not None:
        refusal = _check_budget(command.budget)
    if refusal is None and command.also:
        refusal = _check_also(command)
    if refusal is None and (command.priority, command.wake, command.lock_delay_ns) != (PRIORITY_USUAL, "", 0):
        refusal = _check_waiting(command)
    return refusal


def _check_resource(resource: str) -> Refusal | None:
    refusal = check_text("resource", resource, RESOURCE_BYTES)
    if refusal is None and is_path(resource) and not is_canonical(resource):
        detail = (
            "begins with / and so is a path: it must not end with /, nor contain //, /./ or /../, nor a "
            "backslash that does not escape *, ?, [, { or a backslash"
        )
        refusal = invalid("resource", detail)
    if refusal is None and is_path(resource):
        try:
            parsed(resource)
        except BadPattern as error:
            refusal = invalid("resource", f"is a pattern that cannot be read: {error}")
    return refusal


def _check_also(command: Acquire) -> Refusal | None:
    """Refuse too many resources, and resources that are, or contain, each other."""
    names = [command.resource, *(one.resource for one in command.also)]
    if len(names) > RESOURCES_PER_CLAIM:
        detail = f"are {len(names)}; at most {RESOURCES_PER_CLAIM} fit in one claim"
        return over_limit("resources", RESOURCES_PER_CLAIM, detail)
    if len(command.lease_ids[-1].encode()) > ID_BYTES:
        return over_limit("lease_id", ID_BYTES, "is too long to number the leases of a claim behind it")
    if command.scope is not None or command.budget is not None:
        return invalid("resources", "cannot share one scope and budget; claim the resources one by one")
    for number, name in enumerate(names):
        refusal = _check_resource(name)
        if refusal is not None:
            return refusal
        for other in names[:number]:
            if covers(name, other) or covers(other, name):
                what = f"{name} twice" if name == other else f"{name} beside {other}: one covers the other"
                return invalid("resources", f"must not name {what}")
    return None


def _check_waiting(command: Acquire) -> Refusal | None:
    if not PRIORITY_LEAST <= command.priority <= PRIORITY_MOST:
        return invalid("priority", f"must be from {PRIORITY_LEAST} to {PRIORITY_MOST}")
    if command.lock_delay_ns < 0:
        return invalid("lock_delay", "must not be negative")
    if command.lock_delay_ns > TTL_MAXIMUM_NS:
        return over_limit("lock_delay", TTL_MAXIMUM_NS, "must be at most 30 days")
    return check_optional("wake", command.wake, WAKE_BYTES)


def _check_derive(command: Derive) -> Refusal | None:
    return (
        check_text("parent_id", command.parent_id)
        or check_text("holder", command.holder)
        or check_text("lease_id", command.lease_id)
        or _check_resource(command.resource)
        or check_text("child_holder", command.child_holder)
        or check_metadata(command.metadata)
        or _check_scope(command.scope)
        or _check_budget(command.budget)
        or check_ttl(command.ttl_ns)
        or (_TOO_MANY_RENEWALS if command.max_renewals > RENEWALS_MAXIMUM else None)
    )


def _check_scope(scope: Scope) -> Refusal | None:
    """Refuse a scope that names too much, nothing that can be a name, or everything and something."""
    count = 0
    for part in PARTS:
        names: tuple[str, ...] = getattr(scope, part)
        count += len(names)
        if count > SCOPE_NAMES:
            return over_limit("scope", SCOPE_NAMES, f"must name at most {SCOPE_NAMES} things")
        for name in names:
            refusal = check_text(part, name, RESOURCE_BYTES)
            if refusal is not None:
                return refusal
            if part == "namespaces" and climbs(name):
                return invalid(part, f"must not have a '..' component, as {name!r} has")
    if scope.unlimited and count:
        return invalid("scope", "must either be unlimited or name what it allows")
    return None


def _check_budget(budget: Budget) -> Refusal | None:
    for name in DIMENSIONS:
        limit: int | None = getattr(budget, name)
        if limit is None:
            continue
        if limit < 1:
            detail = f"must grant at least 1 of {name}: a budget is exhausted when any part of it is 0"
            return invalid("budget", detail)
        if limit > AMOUNT_MAXIMUM:
            return over_limit("budget", AMOUNT_MAXIMUM, f"must grant at most {AMOUNT_MAXIMUM} of {name}")
    return None


def _check_amounts(amounts: Amounts) -> Refusal | None:
    for name in DIMENSIONS:
        amount: int = getattr(amounts, name)
        if amount < 0:
            return invalid("amounts", f"must not be negative, as {name} is")
        if amount > AMOUNT_MAXIMUM:
            return over_limit("amounts", AMOUNT_MAXIMUM, f"must be at most {AMOUNT_MAXIMUM} of {name}")
    return invalid("amounts", "must not all be 0") if amounts == Amounts() else None
