"""Whether a command can be right at all, whatever the records say.

The checks come before anything is read: a command that fails them names no record that a store should be
asked for. They are in the order in which the fields stand, and the first that fails is the answer.
"""

from leasehold.kernel.commands import Acquire, Command, Release, Renew, Revoke
from leasehold.kernel.limits import (
    REASON_BYTES,
    RENEWALS_MAXIMUM,
    RESOURCE_BYTES,
    are_plain,
    check_batch,
    check_metadata,
    check_text,
    check_ttl,
    over_limit,
)
from leasehold.kernel.refusals import Refusal


def check_command(command: Command) -> Refusal | None:
    """Refuse what is empty, too long, too much, or no text."""
    if isinstance(command, Acquire):
        return _check_acquire(command)
    if isinstance(command, Release) and command.lease_ids and are_plain(*_texts(command)):
        return None
    refusal = check_text("tenant", command.tenant) or check_text("request_id", command.request_id)
    if refusal is not None:
        return refusal
    match command:
        case Renew():
            return _check_renew(command)
        case Release():
            return check_batch(command.lease_ids) or check_text("holder", command.holder)
        case Revoke():
            return (
                check_text("lease_id", command.lease_id)
                or check_text("operator", command.operator)
                or check_text("reason", command.reason, REASON_BYTES)
            )
        case _:
            return check_batch(command.lease_ids)


def _texts(command: Release) -> tuple[str, ...]:
    return (command.tenant, command.request_id, command.holder, *command.lease_ids)


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
    refusal = refusal or check_ttl(command.ttl_ns)
    if refusal is None and command.metadata:
        refusal = check_metadata(command.metadata)
    if refusal is None and command.max_renewals > RENEWALS_MAXIMUM:
        detail = f"must be at most {RENEWALS_MAXIMUM}"
        refusal = over_limit("max_renewals", RENEWALS_MAXIMUM, detail)
    if refusal is None and command.config_version:
        refusal = check_text("config_version", command.config_version)
    if refusal is None and command.zone_version:
        refusal = check_text("zone_version", command.zone_version)
    return refusal


def _check_renew(command: Renew) -> Refusal | None:
    refusal = check_batch(command.lease_ids) or check_text("holder", command.holder)
    if refusal is None and command.ttl_ns is not None:
        refusal = check_ttl(command.ttl_ns)
    return refusal
