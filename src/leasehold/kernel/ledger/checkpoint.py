"""The state that a checkpoint stands for: how it is spelled, and how it is known again.

A checkpoint is an event; the state itself is kept beside the ledger, and the event has its digest. So the
state is vouched for by the chain and the seals, as everything else is. All of `State` is in it, whatever
fields that has or will have. Fields only ever grow, as those of events do.
"""

from typing import Any

import msgspec
from msgspec.structs import replace

from leasehold.kernel.ledger.events import StoreCheckpointed
from leasehold.kernel.ledger.family import Families
from leasehold.kernel.ledger.state import State, forgotten

_DOMAIN = b"leasehold checkpoint state 1"

_encoder = msgspec.json.Encoder()


def encode_state(state: State, checkpoint: StoreCheckpointed, families: Families) -> bytes:
    """Spell the state that a checkpoint stands for, without what it lets go of."""
    gone = {name: set(keys) for name, keys in forgotten(state, checkpoint, families).items()}
    kept = {
        name: {key: record for key, record in records.items() if key not in gone[name]}
        for name, records in state.records.items()
    }
    return _encoder.encode(replace(state, records=kept))


def state_digest(encoded: bytes) -> bytes:
    """Return what the checkpoint says about its state."""
    from hashlib import sha256

    return sha256(_DOMAIN + encoded).digest()


def decode_state(encoded: bytes, families: Families) -> State:
    """Read a state; raise ValueError if it is none."""
    state = msgspec.json.decode(encoded, type=_Spelled)
    records: dict[str, dict[str, Any]] = {}
    for name, spelled in state.records.items():
        family = families.named.get(name)
        if family is None:
            raise ValueError(f"it has records of a family {name!r}, which is not known here")
        records[name] = msgspec.json.decode(spelled, type=dict[str, family.record])  # type: ignore[name-defined]
    return State(records=records, authority=state.authority, eras=state.eras, keys=state.keys)


class _Spelled(State, kw_only=True):
    records: dict[str, msgspec.Raw] = {}  # type: ignore[assignment]
