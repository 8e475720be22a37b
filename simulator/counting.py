"""What comes of commits, counted."""

from collections.abc import Callable

from leasehold.engine.port import Batch
from leasehold.kernel.lease.events import (
    REBOOT,
    LeaseDelegated,
    LeaseExpired,
    LeaseIssued,
    LeaseReleased,
    LeaseRenewed,
    LeaseRevoked,
)
from leasehold.kernel.lease.model import Mode
from leasehold.kernel.ledger.events import REGISTRAR, EpochRaised, Event, KeyEnrolled, KeyRetired, KeyVouched
from simulator.closings import ended_before
from simulator.truth import Truth

_Note = Callable[[str], None]


def note_commit(note: _Note, batch: Batch, truth: Truth, is_of_leases: Callable[[Event], bool]) -> None:
    """Count what came of a batch, which the truth has taken in."""
    events = [entry.event for entry in batch.entries]
    expired = {event.resource for event in events if isinstance(event, LeaseExpired)}
    for event in events:
        if is_of_leases(event):
            _note_lease(note, event, expired)
            _note_outage(note, event, truth)
        elif isinstance(event, EpochRaised):
            note(f"epoch raised: {event.reason}")
        elif isinstance(event, KeyEnrolled | KeyVouched | KeyRetired):
            note(event.type)


def _note_lease(note: _Note, event: Event, expired: set[str]) -> None:
    match event:
        case LeaseIssued():
            note("granted exclusive" if event.mode is Mode.EXCLUSIVE else "granted shared")
            if event.adopted_from is not None:
                note("granted by adoption")
            _note_delegation(note, event)
            if event.resource in expired:
                note("granted where a lease had expired")
        case LeaseRenewed():
            note("renewed one" if len(event.renewals) == 1 else "renewed many")
        case LeaseRevoked():
            note(_revocation(event))
        case LeaseDelegated():
            pass
        case _:
            note(event.type.removeprefix("lease.").replace("_", " "))


def _note_outage(note: _Note, event: Event, truth: Truth) -> None:
    if not isinstance(event, LeaseExpired | LeaseIssued | LeaseReleased):
        return
    lease, ended = truth.leases[event.lease_id], truth.leases.get(ended_before(event.lease_id))
    if ended is None or not ended.confirmed or not truth.settling.has_lapsed(ended.end_tick):
        return
    if lease is ended:
        if isinstance(event, LeaseExpired):
            note("lapsed while the registrar was down")
    elif isinstance(event, LeaseIssued):
        note("kept closed after an outage")
    elif isinstance(event, LeaseReleased):
        note("came back after an outage")


def _note_delegation(note: _Note, event: LeaseIssued) -> None:
    if event.delegation is not None:
        depth = len(event.delegation.ancestors)
        note("granted with a budget" if depth == 0 else "derived" if depth == 1 else "derived from a child")


def _revocation(event: LeaseRevoked) -> str:
    if event.actor != REGISTRAR:
        return "revoked by an operator"
    return "revoked by a reboot" if event.reason == REBOOT else "fell with its parent"
