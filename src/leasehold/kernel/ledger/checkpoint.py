"""The state that a checkpoint stands for: how it is spelled, and how it is known again.

A checkpoint is an event; the state itself is kept beside the ledger, and the event has its digest. So the
state is vouched for by the chain and the seals, as everything else is. All of `State` is in it, whatever
fields that has or will have. Fields only ever grow, as those of events do.
"""

from hashlib import sha256

import msgspec
from msgspec.structs import replace

from leasehold.kernel.lease.events import StoreCheckpointed
from leasehold.kernel.lease.forgotten import forgotten
from leasehold.kernel.ledger.state import State

_DOMAIN = b"leasehold checkpoint state 1"

_encoder = msgspec.json.Encoder()
_decoder: msgspec.json.Decoder[State] = msgspec.json.Decoder(State)


def encode_state(state: State, checkpoint: StoreCheckpointed) -> bytes:
    """Spell the state that a checkpoint stands for, without what it lets go of."""
    gone = set(forgotten(state.leases, checkpoint))
    kept = {lease_id: lease for lease_id, lease in state.leases.items() if lease_id not in gone}
    return _encoder.encode(replace(state, leases=kept))


def state_digest(encoded: bytes) -> bytes:
    """Return what the checkpoint says about its state."""
    return sha256(_DOMAIN + encoded).digest()


def decode_state(encoded: bytes) -> State:
    """Read a state; raise ValueError if it is none."""
    return _decoder.decode(encoded)
