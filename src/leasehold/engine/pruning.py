"""Removing old history, such that what is left can still be proved.

One transaction writes a checkpoint, removes the entries that it covers, and lets go of leases that ended
before all that is kept. Before that the whole ledger is checked: nothing is removed from one that is not
right, because what is removed can never be looked at again.

Covered is the longest beginning of the ledger in which everything is older than what is to be kept, and no
request is still remembered. It ends with a sealed commit, so history from before there were seals goes with
the first sealed commit behind it. A ledger with nothing but checkpoints to remove is left alone.
"""

from contextlib import suppress

import msgspec
from msgspec.structs import replace

from leasehold.engine.batch import open_epoch, record
from leasehold.engine.port import Checkpoint, Conflict, Pruned, Snapshot, Store, Transaction
from leasehold.engine.walking import Progress, Walk
from leasehold.errors import InvalidInput, LedgerBroken
from leasehold.kernel.authority import Authority, now_of
from leasehold.kernel.chain import BrokenChain
from leasehold.kernel.checkpoint import encode_state, state_digest
from leasehold.kernel.commands import REQUEST_MEMORY_NS
from leasehold.kernel.events import Event, StoreCheckpointed, decode_event
from leasehold.kernel.forgetting import forgotten
from leasehold.kernel.tick import NANOSECONDS_PER_SECOND, Now

DEFAULT_KEEP_NS = 30 * 24 * 3600 * NANOSECONDS_PER_SECOND
_PAGE = 1_000


class Pruning(msgspec.Struct, frozen=True, kw_only=True):
    """What was removed, or would be."""

    entries: int
    """How many entries of the ledger."""
    leases: int
    """How many ended leases left the tables."""
    through: int
    """The position of the last entry that is gone; 0 if there never was anything to remove."""
    checkpoint: int | None
    """The entry that stands for those that were removed now; None if none were."""


class _Plan(msgspec.Struct, kw_only=True):
    """How far the ledger was checked, and what is to be removed from it."""

    walk: Walk
    draft: StoreCheckpointed
    """The checkpoint as it would be at this moment."""
    state: bytes
    entries: int


def prune(
    store: Store,
    *,
    actor: str,
    keep_ns: int = DEFAULT_KEEP_NS,
    dry_run: bool = False,
    progress: Progress | None = None,
) -> Pruning:
    """Remove history that is older than `keep_ns`, or only say what would be removed.

    Raises LedgerBroken, and changes nothing, if anything is wrong with the ledger.
    """
    if keep_ns < REQUEST_MEMORY_NS:
        raise InvalidInput("keep an hour at least: requests are remembered for so long", field="keep")
    if not dry_run:
        open_epoch(store, to_write=True)
    try:
        while True:
            with store.snapshot() as snapshot:
                plan = _plan(snapshot, actor, keep_ns, progress)
                if plan is None:
                    return Pruning(entries=0, leases=0, through=snapshot.pruned, checkpoint=None)
            if dry_run:
                return _told(plan, plan.draft, None)
            with suppress(Conflict), store.write(durable=True) as transaction:
                if _is_as_planned(transaction, plan):
                    return _carry_out(store, transaction, plan)
    except BrokenChain as error:
        raise LedgerBroken(
            f"{error}; nothing was pruned. See what `leasehold verify` says, or restore a backup",
            position=error.position,
        ) from error


def _plan(snapshot: Snapshot, actor: str, keep_ns: int, progress: Progress | None) -> _Plan | None:
    """Check the ledger, and note the state up to which it is to be pruned; None: nothing is to be."""
    authority, reading = snapshot.authority, snapshot.reading()
    if authority is None:
        return None
    now, before_ns = now_of(authority, reading), reading.wall_ns - keep_ns
    walk = Walk()
    walk.begin(snapshot)
    start = walk.head.position
    through = _last_to_go(snapshot, start, before_ns, authority, now)
    if through == start:
        return None
    walk.go(snapshot, progress, until=through)
    assert walk.state.authority is not None, "a ledger that begins has a registrar"
    draft = StoreCheckpointed(
        tick=now.tick,
        at_ns=now.wall_ns,
        actor=actor,
        covers=through,
        covers_hash=walk.head.hash,
        state_digest=b"",
        ended_before_ns=before_ns,
        token_below=walk.state.authority.next_token(),
    )
    state = encode_state(walk.state, draft)
    walk.go(snapshot, progress)
    draft = replace(draft, state_digest=state_digest(state))
    return _Plan(walk=walk, draft=draft, state=state, entries=through - start)


def _last_to_go(snapshot: Snapshot, start: int, before_ns: int, authority: Authority, now: Now) -> int:
    """Return the end of the last commit up to which everything can go; `start` if that is nothing."""
    position = through = sealed = start
    worthwhile = False
    while rows := snapshot.rows(position, _PAGE):
        for position, body, _, seal, *_ in rows:
            try:
                event = decode_event(body)
            except ValueError as error:
                raise BrokenChain(position, f"is no event that this version understands: {error}") from error
            if event.at_ns >= before_ns or not _is_past(event, authority, now):
                return through
            worthwhile = worthwhile or not isinstance(event, StoreCheckpointed)
            if seal is not None:
                sealed = position
            if worthwhile:
                through = sealed
    return through


def _is_past(event: Event, authority: Authority, now: Now) -> bool:
    """Say whether surely nobody remembers an event's request: by ticks, because wall clocks are set.

    Since an event of an earlier era at least as much time has passed as this era has lasted.
    """
    since = event.tick.value if event.tick.era == authority.era else authority.era_first_tick
    return now.tick.value - since >= REQUEST_MEMORY_NS


def _is_as_planned(transaction: Transaction, plan: _Plan) -> bool:
    """Say whether nobody else has pruned, or put another ledger in place, since the plan was made."""
    rows = transaction.rows(plan.walk.head.position - 1, 1)
    began = plan.draft.covers - plan.entries
    return transaction.pruned == began and bool(rows) and rows[0][2] == plan.walk.head.hash


def _carry_out(store: Store, transaction: Transaction, plan: _Plan) -> Pruning:
    plan.walk.go(transaction)  # What has come since the plan was made.
    authority = transaction.authority
    assert authority is not None, "a store that was opened has a registrar"
    now = now_of(authority, transaction.reading())
    checkpoint = replace(plan.draft, tick=now.tick, at_ns=now.wall_ns)
    position = transaction.head.position + 1
    pruned = Pruned(
        through=checkpoint.covers,
        forgotten=forgotten(plan.walk.state.leases, checkpoint),
        checkpoint=Checkpoint(position=position, state=plan.state),
    )
    record(transaction, [checkpoint], store.sealer, pruned=pruned)
    return _told(plan, checkpoint, position)


def _told(plan: _Plan, checkpoint: StoreCheckpointed, position: int | None) -> Pruning:
    return Pruning(
        entries=plan.entries,
        leases=len(forgotten(plan.walk.state.leases, checkpoint)),
        through=checkpoint.covers,
        checkpoint=position,
    )
