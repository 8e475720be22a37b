"""A reducer's state as bytes, and back.

The bytes begin with a digest of the rest, so damage is found before anything is believed. A digest is no
signature: whoever can write a checkpoint can write one that restores.
"""

from hashlib import sha256

import msgspec

from leasehold.reducer.errors import DecodeError
from leasehold.reducer.lease import Lease
from leasehold.reducer.state import LeaseReducerState

_MAGIC = b"leasehold reducer checkpoint 1\n"
_DIGEST_BYTES = 32


class Checkpoint(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """Everything a reducer knows."""

    tenant: str
    position: int
    leases: list[Lease]


_encoder = msgspec.msgpack.Encoder()
_decoder: msgspec.msgpack.Decoder[Checkpoint] = msgspec.msgpack.Decoder(Checkpoint)


def to_bytes(checkpoint: Checkpoint) -> bytes:
    """Return a checkpoint to keep; the same state always gives the same bytes."""
    body = _encoder.encode(checkpoint)
    return _MAGIC + sha256(body).digest() + body


def from_bytes(kept: bytes) -> Checkpoint:
    """Return what was kept; raise DecodeError unless every byte of it is as it was written."""
    if not kept.startswith(_MAGIC):
        raise DecodeError(reason="these bytes are no checkpoint of this reducer")
    digest, body = kept[len(_MAGIC) : len(_MAGIC) + _DIGEST_BYTES], kept[len(_MAGIC) + _DIGEST_BYTES :]
    if sha256(body).digest() != digest:
        raise DecodeError(reason="the checkpoint is damaged; take an older one, or replay the events")
    try:
        checkpoint = _decoder.decode(body)
    except (msgspec.MsgspecError, ValueError) as error:
        raise DecodeError(reason=f"the checkpoint: {error}") from error
    _check_at_most_one(checkpoint)
    return checkpoint


def _check_at_most_one(checkpoint: Checkpoint) -> None:
    state = LeaseReducerState()
    for lease in checkpoint.leases:
        if state.get(lease.lease_id) is not None:
            raise DecodeError(reason=f"the checkpoint has lease {lease.lease_id} twice")
        for standing in state.standing_on(lease.work_id) if lease.is_active else ():
            if standing.record.mode.conflicts_with(lease.record.mode):
                raise DecodeError(reason=f"the checkpoint has {lease.work_id} leased twice")
        state.put(lease)
