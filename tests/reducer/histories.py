"""Short ways to write down what happened, for the tests of the reducer."""

from typing import Any

from leasehold.kernel.ledger.tick import Tick
from leasehold.reducer import EventRecord, Lease, LeaseReducer, ReducerContext, helpers

SECOND = 1_000_000_000
RATE = 1_000
"""Of the ticks used here: one is a millisecond, so that nobody takes them for wall nanoseconds."""


def tick(value: int, rate: int = RATE) -> Tick:
    return Tick(value=value, rate=rate)


class History:
    """A reducer that is told events one after another."""

    def __init__(self) -> None:
        self.reducer = LeaseReducer()
        self.position = 0

    @property
    def state(self) -> Any:
        return self.reducer.state

    def lease(self, lease_id: str = "lease-1") -> Lease:
        found = self.reducer.state.get(lease_id)
        assert found is not None
        return found

    def tell(self, kind: str, payload: bytes, actor: str = "registrar", at: int | None = None) -> None:
        self.position += 1
        record = EventRecord(kind, "session-1", actor, payload, timestamp_ns=at)
        self.reducer.apply(record, ReducerContext(self.position))

    def issue(self, lease_id: str = "lease-1", work_id: str = "work-1", **fields: Any) -> None:
        defaults: dict[str, Any] = {
            "actor_id": "ann",
            "issued_at": 1 * SECOND,
            "expires_at": 2 * SECOND,
            "registrar_signature": b"signed",
        }
        payload = helpers.lease_issued_payload(lease_id, work_id, **(defaults | fields))
        self.tell("lease.issued", payload)

    def issue_with_ticks(self, lease_id: str = "lease-1", work_id: str = "work-1", **fields: Any) -> None:
        ticks: dict[str, Any] = {"issued_at_tick": tick(100), "expires_at_tick": tick(200)}
        self.issue(lease_id, work_id, **(ticks | fields))

    def renew(
        self,
        lease_id: str = "lease-1",
        new_expires_at: int = 3 * SECOND,
        *,
        at: int | None = None,
        signature: bytes = b"signed",
        **ticks: Any,
    ) -> None:
        payload = helpers.lease_renewed_payload(lease_id, new_expires_at, signature, **ticks)
        self.tell("lease.renewed", payload, at=at)

    def release(
        self,
        lease_id: str = "lease-1",
        reason: str = "COMPLETED",
        *,
        actor: str = "ann",
        at: int | None = None,
    ) -> None:
        self.tell("lease.released", helpers.lease_released_payload(lease_id, reason), actor, at)

    def expire(self, lease_id: str = "lease-1", expired_at: int = 2 * SECOND, **ticks: Any) -> None:
        payload = helpers.lease_expired_payload(lease_id, expired_at, **ticks)
        self.tell("lease.expired", payload)
