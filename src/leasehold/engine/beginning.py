"""Where a walk along the ledger begins: at its first entry, or at the checkpoint that stands for it.

A checkpoint is believed as far as the entry goes that vouches for it: the state that is kept must have the
digest which that entry has, and the walk, which starts from the state, has to come by the entry and find
it chained and sealed like any other. The keys in the state are no exception: each must be the first, or have
the signature of another that vouches for it, or be one that nobody vouches for, which is reported as ever.
"""

import msgspec

from leasehold.engine.port import Checkpoint, Head, Snapshot
from leasehold.engine.signing import is_signed
from leasehold.kernel.ledger.chain import BrokenChain
from leasehold.kernel.ledger.checkpoint import decode_state, state_digest
from leasehold.kernel.ledger.events import DecodeError, StoreCheckpointed
from leasehold.kernel.ledger.keys import voucher_message
from leasehold.kernel.ledger.state import State


class Beginning(msgspec.Struct, frozen=True, kw_only=True):
    """What there is before the first entry that is left."""

    head: Head = Head()
    """The last entry that is gone."""
    state: State = msgspec.field(default_factory=State)
    checkpoint: int = 0
    """Which entry vouches for all that; 0 for a ledger that has its first entry."""


def find_beginning(snapshot: Snapshot) -> Beginning:
    """Return where to begin; raise BrokenChain if what is kept cannot be what stands for what is gone."""
    kept, gone = snapshot.checkpoint(), snapshot.pruned
    if kept is None:
        if gone:
            raise BrokenChain(1, f"is missing: the ledger begins with {gone + 1}, and has no checkpoint")
        return Beginning()
    checkpoint = _voucher_of(kept, snapshot)
    if state_digest(kept.state) != checkpoint.state_digest:
        raise BrokenChain(kept.position, "the state that is kept for this checkpoint is another than it says")
    if gone < checkpoint.covers:
        raise BrokenChain(gone + 1, f"was pruned by {kept.position}, and is there again")
    try:
        state = decode_state(kept.state, snapshot.families)
    except ValueError as error:
        raise BrokenChain(
            kept.position, f"its state is none that this version understands: {error}"
        ) from error
    _check_keys(kept.position, state)
    head = Head(position=checkpoint.covers, hash=checkpoint.covers_hash)
    return Beginning(head=head, state=state, checkpoint=kept.position)


def _voucher_of(kept: Checkpoint, snapshot: Snapshot) -> StoreCheckpointed:
    """Return the event that a kept state says it belongs to."""
    try:
        rows = snapshot.rows(kept.position - 1, 1)
        event = snapshot.families.decode_event(rows[0][1]) if rows and rows[0][0] == kept.position else None
    except (DecodeError, ValueError) as error:
        raise BrokenChain(kept.position, f"cannot be read: {error}") from error
    if not isinstance(event, StoreCheckpointed) or event.covers >= kept.position:
        raise BrokenChain(kept.position, "is not a checkpoint, although a state is kept for it")
    return event


def _check_keys(place: int, state: State) -> None:
    for key in state.keys.values():
        if key.vouched_by and not is_signed(key.vouched_by, voucher_message(key.public_key), key.voucher):
            raise BrokenChain(place, "the signature that vouches for one of its keys is not right")
