"""What an event's payload says, and how it is written: MessagePack, tagged with the event's type.

`decode` reads both the payloads that `helpers` makes and the bodies of a leasehold ledger (JSON). What is
neither, or does not belong to the type that its record names, is a DecodeError. Unknown fields are skipped:
a newer registrar may say more.
"""

from typing import Annotated, Any

import msgspec

from leasehold.kernel.lease.events import LeaseEvent
from leasehold.kernel.lease.family import LEASES
from leasehold.kernel.ledger.tick import Tick
from leasehold.reducer.errors import DecodeError

FAMILY = "lease."
"""What the types of all events begin with that concern the reducer."""

WallNanoseconds = Annotated[int, msgspec.Meta(ge=0)]
"""Wall time since 1970. MessagePack ends at 2**64 - 1 by itself."""


class EventRecord(msgspec.Struct, frozen=True, gc=False):
    """An event as a ledger hands it on: what kind, who caused it, and its bytes."""

    event_type: str
    session_id: str
    actor_id: str
    """Who acts. For a release this has to be the holder."""
    payload: bytes
    timestamp_ns: int | None = None
    """Wall time of the record. None: as of the last thing that happened to the lease."""
    seal: bytes = b""
    """The registrar's signature over the event's commit, where the payload has none of its own."""


class ReducerContext(msgspec.Struct, frozen=True, gc=False):
    """Where in the ledger the event stands."""

    position: int


class _Payload(msgspec.Struct, frozen=True, kw_only=True, gc=False, omit_defaults=True, tag_field="type"):
    pass


class Issued(_Payload, frozen=True, kw_only=True, omit_defaults=True, tag="lease.issued"):
    """The registrar granted a claim."""

    lease_id: str
    work_id: str
    actor_id: str
    issued_at: WallNanoseconds
    expires_at: WallNanoseconds
    registrar_signature: bytes
    issued_at_tick: Tick | None = None
    expires_at_tick: Tick | None = None


class Renewed(_Payload, frozen=True, kw_only=True, omit_defaults=True, tag="lease.renewed"):
    """The registrar gave a lease more time."""

    lease_id: str
    new_expires_at: WallNanoseconds
    registrar_signature: bytes
    renewed_at_tick: Tick | None = None
    new_expires_at_tick: Tick | None = None


class Released(_Payload, frozen=True, kw_only=True, omit_defaults=True, tag="lease.released"):
    """The holder, who is the record's actor, gave its lease back."""

    lease_id: str
    release_reason: str


class Expired(_Payload, frozen=True, kw_only=True, omit_defaults=True, tag="lease.expired"):
    """The registrar noticed that a lease's time was over."""

    lease_id: str
    expired_at: WallNanoseconds
    expired_at_tick: Tick | None = None


class Conflict(_Payload, frozen=True, kw_only=True, omit_defaults=True, tag="lease.conflict"):
    """Claims were in conflict, and this was done about it. For the audit."""

    work_id: str
    conflicting_lease_ids: list[str]
    resolution: str


class Denied(_Payload, frozen=True, kw_only=True, omit_defaults=True, tag="lease.denied"):
    """A claim was not granted. For the audit."""

    work_id: str
    actor_id: str
    reason: str


Payload = Issued | Renewed | Released | Expired | Conflict | Denied

_encoder = msgspec.msgpack.Encoder()
_decoder: msgspec.msgpack.Decoder[Payload] = msgspec.msgpack.Decoder(Payload)


def encode(payload: Payload) -> bytes:
    """Return the payload's bytes; the same payload always gives the same."""
    return _encoder.encode(payload)


def decode(record: EventRecord) -> Payload | LeaseEvent:
    """Return what a record of our family says; raise DecodeError for anything that is not quite that."""
    # A MessagePack map never begins with the byte that a JSON object begins with.
    read = LEASES.decode_event if record.payload[:1] == b"{" else _decoder.decode
    try:
        event: Any = read(record.payload)
    except (ValueError, RecursionError, TypeError) as error:
        raise DecodeError(reason=f"a {record.event_type} payload: {error}") from error
    kind = event.__struct_config__.tag
    if kind != record.event_type:
        raise DecodeError(reason=f"a record of {record.event_type} holds a payload of {kind}")
    decoded: Payload | LeaseEvent = event
    return decoded
