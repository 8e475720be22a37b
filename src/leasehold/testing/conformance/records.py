"""Records made up for the suite: complete, valid, and of no meaning."""

from typing import Any

from msgspec.structs import replace

from leasehold.engine.port import Batch, Head
from leasehold.kernel.lease.events import LeaseIssued, LeaseReleased, LeaseRenewed
from leasehold.kernel.lease.model import Lease, LeaseState, ReleaseReason
from leasehold.kernel.lease.records import LEASE
from leasehold.kernel.lease.ticket import Ticket
from leasehold.kernel.ledger.authority import Authority, Era
from leasehold.kernel.ledger.chain import Entry, link
from leasehold.kernel.ledger.events import REGISTRAR, Event, StoreOpened, encode_event
from leasehold.kernel.ledger.journal import Change
from leasehold.kernel.ledger.tick import Tick

EMPTY = Head()
"""Where a ledger without entries ends."""


def lease(lease_id: str = "lease-1", **fields: Any) -> Lease:
    """Return a standing exclusive lease of ann on the door, from tick 50 to tick 100."""
    defaults: dict[str, Any] = {
        "resource": "door",
        "holder": "ann",
        "token": (1 << 23) + 1,
        "ttl_ns": 50,
        "issued_tick": Tick(value=50),
        "expires_tick": Tick(value=100),
        "issued_at_ns": 5_000,
        "expires_at_ns": 5_050,
    }
    return Lease(lease_id=lease_id, **(defaults | fields))


def waiter(lease_id: str, number: int, **fields: Any) -> Lease:
    """Return a lease that waits for the door with a ticket."""
    ticket = {"priority": fields.pop("priority", 5), "upgrade": fields.pop("upgrade", False)}
    defaults: dict[str, Any] = {
        "holder": f"holder of {lease_id}",
        "token": number,
        "state": LeaseState.PENDING,
        "ticket": Ticket(number=number, since=Tick(value=50), since_ns=5_000, **ticket),
    }
    return lease(lease_id, **(defaults | fields))


def authority(**fields: Any) -> Authority:
    """Return the registrar's record in its first epoch and era."""
    defaults: dict[str, Any] = {
        "epoch": 1,
        "counter": 1,
        "era": 1,
        "era_first_tick": 10,
        "boot_id": "boot-1",
        "identity": "8:77",
        "tick": 50,
        "wall_ns": 5_000,
    }
    return Authority(**(defaults | fields))


def era(number: int, **fields: Any) -> Era:
    """Return an ended era."""
    defaults: dict[str, Any] = {
        "boot_id": f"boot-{number}",
        "first_tick": 10,
        "last_tick": 1_000 + number,
        "rate": 1_000_000_000,
    }
    return Era(number=number, **(defaults | fields))


def opened(*, tick: int = 50, at_ns: int = 5_000) -> StoreOpened:
    """Return an event that concerns no lease."""
    return StoreOpened(
        tick=Tick(value=tick), at_ns=at_ns, actor=REGISTRAR, epoch=1, boot_id="boot-1", identity="8:77"
    )


def issued(one: Lease, request: str | None = None) -> LeaseIssued:
    """Return an event that grants a lease."""
    return LeaseIssued(
        tick=Tick(value=50),
        at_ns=one.issued_at_ns,
        actor=one.holder,
        request=request,
        tenant=one.tenant,
        lease_id=one.lease_id,
        resource=one.resource,
        holder=one.holder,
        token=one.token,
        ttl_ns=one.ttl_ns,
        metadata=one.metadata,
    )


def released(one: Lease, request: str | None = None) -> LeaseReleased:
    """Return an event that gives a lease back."""
    return LeaseReleased(
        tick=Tick(value=60),
        at_ns=5_010,
        actor=one.holder,
        request=request,
        tenant=one.tenant,
        lease_id=one.lease_id,
        resource=one.resource,
        holder=one.holder,
        token=one.token,
        reason=ReleaseReason.COMPLETED,
    )


def renewed(*leases: Lease, request: str | None = None) -> LeaseRenewed:
    """Return an event that renews leases of one holder."""
    alone = leases[0] if len(leases) == 1 else None
    return LeaseRenewed(
        tick=Tick(value=60),
        at_ns=5_010,
        actor=leases[0].holder,
        request=request,
        tenant=leases[0].tenant,
        holder=leases[0].holder,
        renewals={one.lease_id: 200 for one in leases},
        resource=None if alone is None else alone.resource,
        token=None if alone is None else alone.token,
    )


def batch(
    head: Head,
    *events: Event,
    created: tuple[Lease, ...] = (),
    changed: tuple[tuple[Lease, Lease], ...] = (),
    changes: tuple[Change, ...] = (),
    record: Authority | None = None,
    ended_eras: tuple[Era, ...] = (),
) -> Batch:
    """Return a batch that follows `head`. Without events, one for each lease that it creates.

    `changed` are leases before and after; `changes` are those of any family.

    The registrar's record in it stands at the time of the last event, as it always does.
    """
    entries: list[Entry] = []
    position, previous_hash = head.position, head.hash
    chosen: list[Event] = [*events] or [*map(issued, created)] or [opened()]
    for event in chosen:
        position += 1
        body = encode_event(event)
        previous_hash = link(previous_hash, position, body)
        entries.append(Entry(position=position, event=event, body=body, hash=previous_hash))
    last = chosen[-1]
    return Batch(
        entries=entries,
        changes=[
            *(Change(LEASE, before.lease_id, before, after) for before, after in changed),
            *(Change(LEASE, one.lease_id, None, one) for one in created),
            *changes,
        ],
        authority=replace(record or authority(), tick=last.tick.value, wall_ns=last.at_ns),
        ended_eras=list(ended_eras),
    )


def head_of(made: Batch) -> Head:
    """Return where the ledger ends once a batch is committed."""
    return Head(position=made.entries[-1].position, hash=made.entries[-1].hash)
