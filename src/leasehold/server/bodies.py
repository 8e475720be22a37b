"""What plain REST takes and gives: JSON objects, each with an example.

Wall times are ISO 8601 in UTC, durations are seconds. What is given has the shapes that `--json` prints
(`leasehold.shapes`): fields may be added, never renamed or removed.
"""

from typing import Annotated, Any

import msgspec
from msgspec import Meta, Struct

from leasehold.engine.questions import LeaseStatus, Waiter, lasting
from leasehold.kernel.lease.model import Lease, LeaseState, Mode, ReleaseReason
from leasehold.kernel.lease.ticket import PRIORITY_LEAST, PRIORITY_MOST, PRIORITY_USUAL
from leasehold.kernel.ledger.chain import Entry
from leasehold.shapes import entry_shape, lease_shape, waiter_shape

Seconds = Annotated[float, Meta(description="Seconds.")]
RenewalTtl = Annotated[float | None, Meta(description="Seconds from now; its own TTL if left out.")]
HandedOnTtl = Annotated[float | None, Meta(description="Seconds; the old lease's TTL if left out.")]
NextPage = Annotated[str | None, Meta(description="Ask again with this as `after`; null: the last page.")]
NextEntry = Annotated[int | None, Meta(description="Ask again with this as `after`; null: nothing more yet.")]
RequestId = Annotated[
    str | None, Meta(description="Send a request again under the same id if its answer was lost.")
]


class Taken(Struct, kw_only=True, forbid_unknown_fields=True):
    """What is taken: a field that is misspelled is refused, not ignored."""


class WantedBody(Taken, kw_only=True):
    """A further resource of a claim."""

    resource: str
    mode: Mode = Mode.EXCLUSIVE


class ScopeBody(Taken, kw_only=True):
    """What a lease is to allow. `unlimited` allows everything, and stands alone."""

    work_ids: tuple[str, ...] = ()
    tools: tuple[str, ...] = ()
    namespaces: tuple[str, ...] = ()
    unlimited: bool = False


class BudgetBody(Taken, kw_only=True):
    """What a lease is to have to spend: a limit for each; null: no limit."""

    episodes: int | None = None
    tool_calls: int | None = None
    tokens: int | None = None
    duration_ms: int | None = None


class AcquireBody(Taken, kw_only=True):
    """A claim on a resource, or on several at once."""

    resource: str
    holder: str
    ttl: Seconds = 30.0
    mode: Mode = Mode.EXCLUSIVE
    wait: Annotated[
        float,
        Meta(description="How many seconds to wait if somebody else holds it; the server sets a maximum."),
    ] = 0.0
    priority: Annotated[int, Meta(ge=PRIORITY_LEAST, le=PRIORITY_MOST)] = PRIORITY_USUAL
    adopt: Annotated[bool, Meta(description="Replace the holder's own lease on it.")] = False
    max_renewals: int = -1
    lock_delay: Annotated[
        float, Meta(description="Seconds that it stays closed to others after an expiry or revocation.")
    ] = 0.0
    reason: Annotated[str, Meta(description="What it is for: whoever is refused is told.")] = ""
    metadata: dict[str, Any] = {}
    config_version: str = ""
    zone_version: str = ""
    scope: ScopeBody | None = None
    budget: BudgetBody | None = None
    also: Annotated[
        list[WantedBody], Meta(description="Further resources: all are granted together, or none.")
    ] = []
    request_id: Annotated[
        str | None, Meta(description="Send a claim again under the same id if its answer was lost.")
    ] = None


class RenewBody(Taken, kw_only=True):
    """More time for a lease."""

    holder: str
    ttl: RenewalTtl = None


class RenewalsBody(RenewBody, kw_only=True):
    """More time for many leases of one holder."""

    lease_ids: list[str]


class ReleaseBody(Taken, kw_only=True):
    """A lease that is given back."""

    holder: str
    reason: ReleaseReason = ReleaseReason.VOLUNTARY


class RevokeBody(Taken, kw_only=True):
    """A lease that is ended by force. History keeps who did it and why."""

    operator: str
    reason: str


class TransferBody(Taken, kw_only=True):
    """A lease that is handed to another holder."""

    holder: str
    to: str
    ttl: HandedOnTtl = None


class LeaseBody(Struct, kw_only=True):
    """A lease, as it stands at the moment of the answer."""

    lease_id: str
    resource: str
    holder: str
    tenant: str
    mode: Mode
    state: LeaseState
    token: Annotated[int, Meta(description="The fencing token: it only ever rises.")]
    ttl: float
    expires_in: float
    issued_at: str | None
    expires_at: str | None
    renewal_count: int
    max_renewals: int
    last_renewed_at: str | None
    terminated_at: str | None
    release_reason: str | None
    ended_by: str | None
    end_reason: str | None
    adopted_from: str | None
    survives_reboot: bool
    metadata: dict[str, Any]
    config_version: str
    zone_version: str
    delegation: dict[str, Any] | None
    kept_for: Annotated[
        str | None,
        Meta(description="Of a lease that only keeps a resource closed: who may come back before."),
    ]


class GrantBody(Struct, kw_only=True):
    """What was granted."""

    lease: LeaseBody
    also: list[LeaseBody] = []
    repeated: bool = False
    """Whether this answers a claim that had been granted before."""


class PageBody(Struct, kw_only=True):
    """A page of leases."""

    leases: list[LeaseBody]
    next: NextPage


class RenewalBody(Struct, kw_only=True):
    """What became of one lease of a renewal."""

    lease: LeaseBody | None = None
    problem: Annotated[dict[str, Any] | None, Meta(description="Why it was not renewed.")] = None


class RenewedBody(Struct, kw_only=True):
    """What became of each lease, in the order asked."""

    outcomes: list[RenewalBody]


class WaiterBody(Struct, kw_only=True):
    """A claim that waits, and its place in the queue."""

    position: int
    holder: str
    resource: str
    mode: Mode
    priority: int | None
    waiting_since: str | None
    waited: float
    estimate: float
    ttl: float
    lease_id: str


class QueueBody(Struct, kw_only=True):
    """Who holds a resource, and who waits for it."""

    resource: str
    held_by: list[LeaseBody]
    waiters: list[WaiterBody]


class HistoryBody(Struct, kw_only=True):
    """A page of the ledger."""

    entries: list[dict[str, Any]]
    next: NextEntry
    pruned: Annotated[int, Meta(description="Entries up to here are gone.")] = 0


class CertificateBody(Struct, kw_only=True):
    """The registrar's signed word that a lease stands."""

    certificate: str


class KeysBody(Struct, kw_only=True):
    """The public keys by which certificates are checked: a JSON Web Key Set."""

    keys: list[dict[str, Any]]


def lease_body(status: LeaseStatus) -> LeaseBody:
    """Return a lease, as plain REST gives it."""
    return msgspec.convert(lease_shape(status), LeaseBody)


def granted_body(lease: Lease, expires_in_ns: int) -> LeaseBody:
    """Return a lease that was just granted or renewed."""
    return lease_body(lasting(lease, expires_in_ns))


def waiter_body(waiter: Waiter) -> WaiterBody:
    """Return a claim that waits, as plain REST gives it."""
    return msgspec.convert(waiter_shape(waiter), WaiterBody)


def entry_body(entry: Entry) -> dict[str, Any]:
    """Return an entry of the ledger, as plain REST and streams give it."""
    return entry_shape(entry)


LEASE_EXAMPLE: dict[str, Any] = {
    "lease_id": "01999b2a-5c7d-7b0e-8f3a-6c1d2e4f5a6b",
    "resource": "report-42",
    "holder": "ann",
    "tenant": "default",
    "mode": "exclusive",
    "state": "active",
    "token": 229613453148161,
    "ttl": 30.0,
    "expires_in": 29.9,
    "issued_at": "2026-11-17T12:00:00.000000Z",
    "expires_at": "2026-11-17T12:00:30.000000Z",
    "renewal_count": 0,
    "max_renewals": -1,
    "last_renewed_at": None,
    "terminated_at": None,
    "release_reason": None,
    "ended_by": None,
    "end_reason": None,
    "adopted_from": None,
    "survives_reboot": True,
    "metadata": {},
    "config_version": "",
    "zone_version": "",
    "delegation": None,
    "kept_for": None,
}
