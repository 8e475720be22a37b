"""What follows from a command about access keys, and what an event does to a key.

A caller bound to a tenant finds the keys of that tenant only; any other key is as if there were none. The
last live admin key for all tenants cannot be revoked: only who has the store at hand could undo that.
"""

from typing import Any

from msgspec.structs import replace

from leasehold.access.law.commands import CreateAccessKey, RevokeAccessKey, RotateAccessKey
from leasehold.access.law.events import AccessKeyCreated, AccessKeyRevoked, AccessKeyRotated
from leasehold.access.law.model import (
    ACCESS,
    ALL,
    AccessKey,
    AccessRecord,
    Role,
    Until,
    keys_of,
    record_key,
    shown,
)
from leasehold.kernel.ledger.commands import Command
from leasehold.kernel.ledger.draft import Draft
from leasehold.kernel.ledger.events import IllegalTransition
from leasehold.kernel.ledger.limits import over_limit
from leasehold.kernel.ledger.refusals import Refusal, RefusalCode

KEYS_MAXIMUM = 10_000
"""How many keys one tenant can have, with those that were revoked and are not pruned yet."""


def create(command: CreateAccessKey, draft: Draft) -> Refusal | AccessKey:
    """Create a key."""
    if command.for_all and draft.caller.tenant is not None:
        detail = f"this caller is bound to tenant {draft.caller.tenant}, and creates no keys for all tenants"
        return refused("NOT_PERMITTED", f"{detail}; ask an admin for all tenants")
    if draft.remembered(command) is not None:
        return _answer(command.key_id, draft)
    if command.only_first and _live_admins(draft):
        return refused("ACCESS_KEY_EXISTS", "there is a live admin key for all tenants already")
    if draft.get(ACCESS, record_key(command.key_id)) is not None:
        return refused("ACCESS_KEY_EXISTS", f"access key {command.key_id} exists already; draw another id")
    if draft.count(ACCESS, *keys_of(command.bound_to)) >= KEYS_MAXIMUM:
        detail = f"are {KEYS_MAXIMUM} already; revoke some, and prune history"
        return over_limit("access keys", KEYS_MAXIMUM, detail)
    draft.append(
        AccessKeyCreated(
            **_said(command, command.bound_to, draft),
            digest=command.digest,
            role=command.role,
            holders=command.holders,
            description=command.description,
            expires=_in(command.lifetime_ns, draft),
        )
    )
    return _answer(command.key_id, draft)


def rotate(command: RotateAccessKey, draft: Draft) -> Refusal | AccessKey:
    """Give a key another secret."""
    record = _found(command.key_id, draft)
    if record is None:
        return _not_found(command.key_id)
    if draft.remembered(command) is not None:
        return _answer(command.key_id, draft)
    if not record.is_live(draft.now):
        detail = f"access key {command.key_id} was revoked or has expired; create another"
        return refused("ACCESS_KEY_ENDED", detail)
    draft.append(
        AccessKeyRotated(
            **_said(command, record.tenant, draft),
            digest=command.digest,
            overlap=_in(command.overlap_ns, draft),
        )
    )
    return _answer(command.key_id, draft)


def revoke(command: RevokeAccessKey, draft: Draft) -> Refusal | AccessKey:
    """Revoke a key; one that is revoked already stays as it is."""
    record = _found(command.key_id, draft)
    if record is None:
        return _not_found(command.key_id)
    if record.revoked_at_ns is not None:
        return _answer(command.key_id, draft)
    if _live_admins(draft) == [record]:
        detail = (
            f"access key {command.key_id} is the last live admin key for all tenants; create another one "
            "first, or rotate this one if its secret is known to others"
        )
        return refused("LAST_ADMIN_KEY", detail)
    draft.append(AccessKeyRevoked(**_said(command, record.tenant, draft), reason=command.reason))
    return _answer(command.key_id, draft)


def evolve(record: AccessRecord | None, event: Any, key: str) -> AccessRecord | None:
    """Return a key after something happened to it."""
    del key
    if isinstance(event, AccessKeyCreated):
        return AccessRecord(
            key_id=event.key_id,
            tenant=event.tenant,
            role=event.role,
            holders=event.holders,
            description=event.description,
            digest=event.digest,
            created_at_ns=event.at_ns,
            created_by=event.actor,
            expires=event.expires,
        )
    if record is None or record.revoked_at_ns is not None:
        raise IllegalTransition(f"{event.type}: there is no access key {event.key_id} that is not revoked")
    if isinstance(event, AccessKeyRevoked):
        return replace(record, revoked_at_ns=event.at_ns, earlier_digest="", earlier_until=None)
    return replace(
        record,
        digest=event.digest,
        generation=record.generation + 1,
        earlier_digest="" if event.overlap is None else record.digest,
        earlier_until=event.overlap,
    )


def refused(rule: str, detail: str) -> Refusal:
    """Refuse with a code of this family."""
    return Refusal(code=RefusalCode.REFUSED, rule=rule, detail=detail)


def _not_found(key_id: str) -> Refusal:
    if "_" in key_id:  # It may be the text of a key, with its secret: it is not repeated.
        detail = "that is not the id of an access key; give the second part of its text, between the `_`"
    else:
        detail = f"there is no access key {key_id}; list them to find the right id"
    return refused("ACCESS_KEY_NOT_FOUND", detail)


def _found(key_id: str, draft: Draft) -> AccessRecord | None:
    """Return a key, if the caller may know of it."""
    record: AccessRecord | None = draft.get(ACCESS, record_key(key_id))
    bound_to = draft.caller.tenant
    return None if record is None or bound_to not in (None, record.tenant) else record


def _live_admins(draft: Draft) -> list[AccessRecord]:
    """Return the keys that can do everything at this moment."""
    found: list[AccessRecord] = draft.scan(ACCESS, *keys_of(ALL))
    return [one for one in found if one.tenant == ALL and one.role is Role.ADMIN and one.is_live(draft.now)]


def _said(command: Command, tenant: str, draft: Draft) -> dict[str, Any]:
    """Return what every event says that a command has caused."""
    said: Any = command
    return {
        "tick": draft.now.tick,
        "at_ns": draft.now.wall_ns,
        "actor": said.holder,
        "request": command.request_key,
        "key_id": said.key_id,
        "tenant": tenant,
        "by": draft.caller.access,
    }


def _in(duration_ns: int, draft: Draft) -> Until | None:
    now = draft.now
    return Until(at_ns=now.wall_ns + duration_ns, tick=now.tick.after(duration_ns)) if duration_ns else None


def _answer(key_id: str, draft: Draft) -> AccessKey:
    return shown(draft.get(ACCESS, record_key(key_id)), draft.now)
