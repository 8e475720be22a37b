"""The law of guards: what history keeps of somebody who went past one.

Pure. A bypass changes no record, and takes nothing from anybody: it is an event, which says who wrote to what
somebody else had leased, why, and whose it was.
"""

import msgspec

from leasehold.kernel.ledger.commands import Command, Right
from leasehold.kernel.ledger.draft import Draft
from leasehold.kernel.ledger.events import Event, Filing
from leasehold.kernel.ledger.family import Family
from leasehold.kernel.ledger.limits import BATCH_LEASES, RESOURCE_BYTES, check_text, invalid, over_limit
from leasehold.kernel.ledger.refusals import Refusal

FAMILY = "guard"
REASON_BYTES = 512


class NoRecord(msgspec.Struct, frozen=True):
    """Guards keep no records."""


class Passed(msgspec.Struct, frozen=True, kw_only=True):
    """What was bypassed, and who had leased it."""

    resource: str
    held_by: str


class GuardBypassed(Event, frozen=True, kw_only=True, omit_defaults=True, tag="guard.bypassed"):
    """Somebody wrote to what another holder had leased, and said why."""

    is_remembered = True

    tenant: str
    resource: str
    """What was about to be written."""
    held_by: str
    """Who had leased it, or something around it."""
    reason: str
    """Why it could not wait."""

    @property
    def filing(self) -> Filing:
        return (self.tenant, None, self.resource, self.actor, None)

    @property
    def story(self) -> str:
        return f"held by {self.held_by}"


class Recorded(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """History has the bypass."""


class RecordBypass(Command, frozen=True, kw_only=True, omit_defaults=True, tag="record_bypass"):
    """Record that a holder goes past a guard."""

    answer = Recorded
    right = Right.HOLD

    holder: str
    reason: str
    passed: tuple[Passed, ...]


def check(command: RecordBypass) -> Refusal | None:
    """Refuse a bypass without a reason, or of nothing."""
    if not command.reason.strip():
        return invalid("reason", "must say why the guard is bypassed")
    if not command.passed:
        return invalid("passed", "must name what is bypassed")
    if len(command.passed) > BATCH_LEASES:
        return over_limit("passed", BATCH_LEASES, f"must name at most {BATCH_LEASES} resources")
    texts = [("tenant", command.tenant), ("request_id", command.request_id), ("holder", command.holder)]
    texts += [("held_by", one.held_by) for one in command.passed]
    refusals = [check_text(field, text) for field, text in texts]
    refusals += [check_text("resource", one.resource, RESOURCE_BYTES) for one in command.passed]
    refusals.append(check_text("reason", command.reason, REASON_BYTES))
    return next(filter(None, refusals), None)


def record(command: RecordBypass, draft: Draft) -> Recorded:
    """Record each resource that is bypassed; a request that is sent again, once."""
    if draft.remembered(command) is None:
        for one in command.passed:
            draft.append(
                GuardBypassed(
                    tick=draft.now.tick,
                    at_ns=draft.now.wall_ns,
                    actor=command.holder,
                    request=command.request_key,
                    tenant=command.tenant,
                    resource=one.resource,
                    held_by=one.held_by,
                    reason=command.reason,
                )
            )
    return Recorded()


def evolve(record: NoRecord | None, event: GuardBypassed, key: str) -> NoRecord | None:
    """Change nothing: a bypass concerns no record."""
    del event, key
    return record


def guard_family() -> Family:
    """Return the family of guards."""
    return Family(
        name=FAMILY,
        record=NoRecord,
        events=(GuardBypassed,),
        rules={RecordBypass: record},
        check=check,
        evolve=evolve,
    )
