"""A family that neither leasehold nor the simulator knows of: tally sheets, one for each lease that has one.

Whoever holds a lease makes marks on its sheet. A sheet is closed when its lease ends, by a reaction, and when
its own time is over, which ends the lease, too; finishing a sheet releases its lease, by the rule of leases.
"""

from collections.abc import Callable, Iterable
from typing import Any

import msgspec
from msgspec.structs import replace

from leasehold.kernel.lease.commands import Release
from leasehold.kernel.lease.events import LeaseExpired, LeaseReleased, LeaseRevoked
from leasehold.kernel.lease.model import Lease, LeaseState
from leasehold.kernel.lease.records import LEASE
from leasehold.kernel.ledger.commands import Command
from leasehold.kernel.ledger.draft import Draft
from leasehold.kernel.ledger.events import REGISTRAR, Event, IllegalTransition, StoreCheckpointed
from leasehold.kernel.ledger.family import Family, Reaction, Stage
from leasehold.kernel.ledger.key import spell_key
from leasehold.kernel.ledger.refusals import Refusal, RefusalCode
from leasehold.kernel.ledger.state import State
from leasehold.kernel.ledger.tick import Tick

SHEET = "sheet"


class Sheet(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What was marked for a lease."""

    tenant: str
    lease_id: str
    holder: str
    count: int
    number: int
    """From the store's counter: that of the first mark."""
    due: Tick | None
    closed_ns: int | None = None


class _SheetEvent(Event, frozen=True, kw_only=True, omit_defaults=True):
    tenant: str
    lease_id: str

    @property
    def keys(self) -> tuple[str, ...]:
        return (key_of(self.tenant, self.lease_id),)


class SheetMarked(_SheetEvent, frozen=True, kw_only=True, omit_defaults=True, tag="sheet.marked"):
    """Something was counted; the first mark makes the sheet."""

    is_remembered = True
    draws = True

    holder: str
    by: int
    drawn: int
    ttl_ns: int

    @property
    def number(self) -> int:
        return self.drawn


class SheetCarried(_SheetEvent, frozen=True, kw_only=True, omit_defaults=True, tag="sheet.carried"):
    """A sheet of an earlier era goes on with what it had left."""

    due: int


class SheetClosed(_SheetEvent, frozen=True, kw_only=True, omit_defaults=True, tag="sheet.closed"):
    """Nothing more is counted there."""


class Mark(Command, frozen=True, kw_only=True, omit_defaults=True, tag="mark"):
    """Count something for a lease."""

    holder: str
    lease_id: str
    by: int
    ttl_ns: int


class Finish(Command, frozen=True, kw_only=True, omit_defaults=True, tag="finish_sheet"):
    """Release the lease of a sheet, which closes the sheet."""

    holder: str
    lease_id: str


class Marked(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """It is counted."""

    count: int
    repeated: bool = False


class Finished(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """The lease, and with it the sheet, is over."""


def key_of(tenant: str, lease_id: str) -> str:
    """Return what a sheet is kept under."""
    return spell_key(tenant, lease_id)


def evolve(sheet: Sheet | None, event: _SheetEvent, key: str) -> Sheet:
    """Return a sheet after an event."""
    del key  # Each event is of one sheet.
    if isinstance(event, SheetMarked) and sheet is None:
        return Sheet(
            tenant=event.tenant,
            lease_id=event.lease_id,
            holder=event.holder,
            count=event.by,
            number=event.drawn,
            due=event.tick.after(event.ttl_ns),
        )
    if sheet is None or sheet.closed_ns is not None:
        raise IllegalTransition(f"{event.type} for {event.lease_id}, whose sheet is closed")
    match event:
        case SheetMarked():
            return replace(sheet, count=sheet.count + event.by)
        case SheetCarried():
            return replace(sheet, due=Tick(value=event.due, era=event.tick.era, rate=event.tick.rate))
        case _:
            return replace(sheet, closed_ns=event.at_ns, due=None)


def _mark(command: Mark, draft: Draft) -> Refusal | Callable[[], Marked]:
    key = key_of(command.tenant, command.lease_id)
    lease: Lease | None = draft.get(LEASE, command.lease_id)
    sheet: Sheet | None = draft.get(SHEET, key)
    draft.settle()  # So that what time has done to either is done to both.
    lease, sheet = draft.get(LEASE, command.lease_id), draft.get(SHEET, key)
    if draft.remembered(command) is not None:
        return lambda: Marked(count=0 if sheet is None else sheet.count, repeated=True)
    if lease is None or lease.tenant != command.tenant:
        return Refusal(code=RefusalCode.LEASE_NOT_FOUND, lease_id=command.lease_id)
    if lease.holder != command.holder or lease.state is not LeaseState.ACTIVE:
        return Refusal(code=RefusalCode.NOT_HOLDER, lease_id=command.lease_id)
    if sheet is not None and sheet.closed_ns is not None:
        return Refusal(code=RefusalCode.REFUSED, rule="CLOSED", lease_id=command.lease_id)
    draft.append(
        SheetMarked(
            tick=draft.now.tick,
            at_ns=draft.now.wall_ns,
            actor=command.holder,
            request=command.request_key,
            tenant=command.tenant,
            lease_id=command.lease_id,
            holder=command.holder,
            by=command.by,
            drawn=draft.next_number(),
            ttl_ns=command.ttl_ns,
        )
    )
    return lambda: Marked(count=draft.get(SHEET, key).count)


def _finish(command: Finish, draft: Draft) -> Refusal | Callable[[], Finished]:
    sheet = draft.get(SHEET, key_of(command.tenant, command.lease_id))
    if sheet is None or sheet.closed_ns is not None:
        return Refusal(code=RefusalCode.REFUSED, rule="CLOSED", lease_id=command.lease_id)
    if sheet.holder != command.holder:
        return Refusal(code=RefusalCode.NOT_HOLDER, lease_id=command.lease_id)
    release(sheet, command.request_id, draft)
    return Finished


def release(sheet: Sheet, request_id: str, draft: Draft) -> None:
    """Release the lease of a sheet, for its holder."""
    made = draft.call(
        Release(tenant=sheet.tenant, lease_ids=(sheet.lease_id,), holder=sheet.holder, request_id=request_id)
    )
    assert not isinstance(made, Refusal), made


def _close(sheet: Sheet, draft: Draft) -> None:
    now = draft.now
    draft.append(
        SheetClosed(
            tick=now.tick,
            at_ns=now.wall_ns,
            actor=REGISTRAR,
            tenant=sheet.tenant,
            lease_id=sheet.lease_id,
        )
    )


def close_with_lease(event: LeaseReleased | LeaseExpired | LeaseRevoked, draft: Draft) -> None:
    """Close the sheet of a lease that has ended."""
    sheet: Sheet | None = draft.view.parts[SHEET].get(key_of(event.tenant, event.lease_id))
    if sheet is not None and sheet.closed_ns is None:
        _close(sheet, draft)


def age(key: str, sheet: Sheet, draft: Draft) -> None:
    """Let a sheet of an earlier era go on, and close one whose time is over, with its lease."""
    del key
    due, now = sheet.due, draft.now
    if due is not None and due.era != now.tick.era:
        due = draft.carried(due)
        if due is not None:
            draft.append(
                SheetCarried(
                    tick=now.tick,
                    at_ns=now.wall_ns,
                    actor=REGISTRAR,
                    tenant=sheet.tenant,
                    lease_id=sheet.lease_id,
                    due=due.value,
                )
            )
    if due is not None and due.value <= now.tick.value:
        _close(sheet, draft)
        release(sheet, "time-is-over", draft)


def _invariants(state: State) -> Iterable[str]:
    leases = state.of(LEASE)
    for sheet in state.of(SHEET).values():
        lease = leases.get(sheet.lease_id)
        if sheet.closed_ns is None and (lease is None or lease.is_terminal):
            yield f"the sheet of {sheet.lease_id} is open, and the lease has ended"


def _forgotten(state: State, checkpoint: StoreCheckpointed) -> list[str]:
    return [
        key
        for key, sheet in state.of(SHEET).items()
        if sheet.closed_ns is not None
        and sheet.closed_ns < checkpoint.ended_before_ns
        and sheet.number < checkpoint.token_below
    ]


def sheet_family(**others: Any) -> Family:
    """Return the family; `others` puts something else in the place of its parts."""
    parts: dict[str, Any] = {
        "name": SHEET,
        "record": Sheet,
        "events": (SheetMarked, SheetCarried, SheetClosed),
        "commands": (Mark, Finish),
        "rules": {Mark: _mark, Finish: _finish},
        "evolve": evolve,
        "reacts": dict.fromkeys(
            (LeaseReleased, LeaseExpired, LeaseRevoked), Reaction(Stage.THEN, close_with_lease)
        ),
        "due": lambda sheet: sheet.due,
        "age": age,
        "invariants": _invariants,
        "forgotten": _forgotten,
    }
    return Family(**parts | others)
