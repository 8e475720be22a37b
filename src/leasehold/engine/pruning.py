"""Removing old history, such that what is left can still be proved.

First the whole ledger is checked: nothing is removed from one that is not right, because what is removed can
never be looked at again. Then it goes batch by batch, so that nobody who writes has to wait for long. Each
batch is one transaction: it writes a checkpoint, removes the entries that this covers, and lets go of leases
that ended before all that is kept. After any of them the ledger verifies; who was interrupted prunes again.

Covered is the longest beginning of the ledger in which everything is older than what is to be kept, and no
request is still remembered. It ends with a sealed commit, so history from before there were seals goes with
the first sealed commit behind it. A ledger with nothing but checkpoints to remove is left alone.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import partial

import msgspec
from msgspec.structs import replace

from leasehold.engine.port import Checkpoint, Progress, Pruned, Snapshot, Store, Transaction
from leasehold.engine.recording import open_epoch, record
from leasehold.engine.retrying import undisturbed
from leasehold.engine.sealing import Sealer
from leasehold.engine.walking import Walk
from leasehold.errors import InvalidInput, LedgerBroken
from leasehold.kernel.ledger.authority import Authority, now_of
from leasehold.kernel.ledger.chain import BrokenChain
from leasehold.kernel.ledger.checkpoint import encode_state, state_digest
from leasehold.kernel.ledger.commands import REQUEST_MEMORY_NS
from leasehold.kernel.ledger.events import Event, StoreCheckpointed
from leasehold.kernel.ledger.family import Families, Soft
from leasehold.kernel.ledger.state import forgotten
from leasehold.kernel.ledger.tick import NANOSECONDS_PER_SECOND, Now

DEFAULT_KEEP_NS = 30 * 24 * 3600 * NANOSECONDS_PER_SECOND
BATCH_ENTRIES = 20_000
"""After so many entries a batch ends with the commit that it is in, unless its state has even more leases.
Others write between two batches."""
_PAGE = 1_000


class Pruning(msgspec.Struct, frozen=True, kw_only=True):
    """What was removed, or would be."""

    entries: int
    """How many entries of the ledger."""
    records: int
    """How many ended leases, and other records, left the tables."""
    through: int
    """The position of the last entry that is gone; 0 if there never was anything to remove."""
    checkpoint: int | None
    """The entry that stands for those that were removed now; None if none were."""


class _Plan(msgspec.Struct, kw_only=True):
    """What is to be removed from a ledger that was checked, and how far that has come."""

    checked: Walk
    """Has checked everything."""
    following: Walk
    """Comes along behind, and knows the state at the end of each batch."""
    draft: StoreCheckpointed
    """A checkpoint as it would be at this moment, for nothing yet."""
    ends: list[int]
    """The last entries of the batches."""
    gone: int
    """The last entry that has gone already."""


def prune(
    store: Store,
    *,
    actor: str,
    keep_ns: int = DEFAULT_KEEP_NS,
    dry_run: bool = False,
    batch_entries: int = BATCH_ENTRIES,
    progress: Progress | None = None,
) -> Pruning:
    """Remove history that is older than `keep_ns`, or only say what would be removed.

    Raises LedgerBroken if anything is wrong with the ledger. Then nothing was removed, unless what is wrong
    came while this was at work.
    """
    if keep_ns < REQUEST_MEMORY_NS:
        raise InvalidInput("keep an hour at least: requests are remembered for so long", field="keep")
    if not dry_run:
        open_epoch(store, to_write=True)
    done = Pruning(entries=0, records=0, through=0, checkpoint=None)
    try:
        while True:
            soft = {family.name: store.soft.get(family.name) for family in store.families}
            with store.snapshot() as snapshot:
                plan = _plan(
                    snapshot, soft, actor=actor, keep_ns=keep_ns, batch=batch_entries, progress=progress
                )
                if plan is None:
                    return replace(done, through=snapshot.pruned)
                if dry_run:
                    return _foretell(snapshot, plan)
            done = _carry_out(store, plan, done)
            if plan.gone == plan.ends[-1]:
                return done
    except BrokenChain as error:
        raise LedgerBroken(
            f"{error}; nothing {'more ' if done.entries else ''}was pruned. See what `leasehold verify` "
            "says, or restore a backup",
            position=error.position,
        ) from error


def _plan(
    snapshot: Snapshot,
    soft: Mapping[str, Soft],
    *,
    actor: str,
    keep_ns: int,
    batch: int,
    progress: Progress | None,
) -> _Plan | None:
    """Check the ledger, and find what is to be removed from it; None: nothing is to be."""
    authority, reading = snapshot.authority, snapshot.reading()
    if authority is None:
        return None
    now, before_ns = now_of(authority, reading), reading.wall_ns - keep_ns
    families = snapshot.families
    checked, following = Walk(families), Walk(families)
    following.begin(snapshot)
    gone = following.head.position

    def may_go(event: Event) -> bool:
        return event.at_ns < before_ns and _is_past(event, authority, now)

    ends = _ends_of_batches(snapshot, gone, batch, may_go)
    if not ends:
        return None
    checked.go(snapshot, progress)
    kept = (family.keeps(checked.state, soft[family.name]) for family in families)
    last = min((position for position in kept if position is not None), default=ends[-1])
    if last < ends[-1]:  # Some family still needs what comes after that.
        ends = _ends_of_batches(snapshot, gone, batch, may_go, last)
        if not ends:
            return None
    draft = StoreCheckpointed(
        tick=now.tick,
        at_ns=now.wall_ns,
        actor=actor,
        covers=0,
        covers_hash=b"",
        state_digest=b"",
        ended_before_ns=before_ns,
        token_below=0,
    )
    return _Plan(checked=checked, following=following, draft=draft, ends=ends, gone=gone)


def _ends_of_batches(
    snapshot: Snapshot,
    start: int,
    batch_entries: int,
    may_go: Callable[[Event], bool],
    until: int | None = None,
) -> list[int]:
    """Return the ends of commits that are to be the ends of batches: the last is that of all that can go.

    `until`: entries after this one stay in any case.
    """
    ends: list[int] = []
    position = through = sealed = start
    worthwhile = False
    while rows := snapshot.rows(position, _PAGE):
        for position, body, _, seal, *_ in rows:
            try:
                event = snapshot.families.decode_event(body)
            except ValueError as error:
                raise BrokenChain(
                    position, f"is not an event that this version understands: {error}"
                ) from error
            if not may_go(event) or (until is not None and position > until):
                return _with_last(ends, through, start)
            worthwhile = worthwhile or not isinstance(event, StoreCheckpointed)
            if seal is not None:
                sealed = position
            if worthwhile:
                through = sealed
            if through - (ends[-1] if ends else start) >= batch_entries:
                ends.append(through)
    return _with_last(ends, through, start)


def _with_last(ends: list[int], through: int, start: int) -> list[int]:
    return ends if through == (ends[-1] if ends else start) else [*ends, through]


def _is_past(event: Event, authority: Authority, now: Now) -> bool:
    """Say whether surely nobody remembers an event's request: by ticks, because wall clocks are set.

    Since an event of an earlier era at least as much time has passed as this era has lasted.
    """
    since = event.tick.value if event.tick.era == authority.era else authority.era_first_tick
    return now.tick.value - since >= REQUEST_MEMORY_NS


def _foretell(snapshot: Snapshot, plan: _Plan) -> Pruning:
    """Say what would be removed."""
    plan.following.go(snapshot, until=plan.ends[-1])
    gone = forgotten(plan.checked.state, _draft_at(plan), snapshot.families)
    entries = plan.ends[-1] - plan.gone
    return Pruning(entries=entries, records=_number(gone), through=plan.ends[-1], checkpoint=None)


def _carry_out(store: Store, plan: _Plan, done: Pruning) -> Pruning:
    """Remove batch after batch; stop where somebody else has pruned, or put another ledger in place."""
    for end in plan.ends:
        with store.snapshot() as snapshot:
            if not _is_as_planned(snapshot, plan):
                break
            plan.following.go(snapshot, until=end)
        draft = _draft_at(plan)
        if end < plan.ends[-1] and not _is_worth_its_state(plan, draft, store.families):
            continue
        state = encode_state(plan.following.state, draft, store.families)
        draft = replace(draft, state_digest=state_digest(state))
        removed = undisturbed(partial(_remove, store, plan, draft, state))
        if removed is None:
            break
        done = replace(
            removed, entries=done.entries + removed.entries, records=done.records + removed.records
        )
    return done


def _is_worth_its_state(plan: _Plan, draft: StoreCheckpointed, families: Families) -> bool:
    """Say whether a batch removes as many entries as its state has records; else it goes with the next.

    So what is written in all is no more than what is removed, and the last state, however many records stand.
    """
    state = plan.following.state
    kept = sum(map(len, state.records.values())) - _number(forgotten(state, draft, families))
    return draft.covers - plan.gone >= kept


def _number(records: Mapping[str, Sequence[str]]) -> int:
    return sum(map(len, records.values()))


def _draft_at(plan: _Plan) -> StoreCheckpointed:
    """Return the checkpoint for all up to where the state is known."""
    following = plan.following
    assert following.state.authority is not None, "a ledger that begins has a registrar"
    return replace(
        plan.draft,
        covers=following.head.position,
        covers_hash=following.head.hash,
        token_below=following.state.authority.next_token(),
    )


def _is_as_planned(snapshot: Snapshot, plan: _Plan) -> bool:
    """Say whether nobody else has pruned, or put another ledger in place, since the plan was made."""
    rows = snapshot.rows(plan.checked.head.position - 1, 1)
    return snapshot.pruned == plan.gone and bool(rows) and rows[0][2] == plan.checked.head.hash


def _remove(store: Store, plan: _Plan, draft: StoreCheckpointed, state: bytes) -> Pruning | None:
    """Remove one batch; None if that is not what is planned any more."""
    with store.write(durable=True) as transaction:
        if not _is_as_planned(transaction, plan):
            return None
        return _remove_in(transaction, store.sealer, plan, draft, state)


def _remove_in(
    transaction: Transaction, sealer: Sealer, plan: _Plan, draft: StoreCheckpointed, state: bytes
) -> Pruning:
    plan.checked.go(transaction)  # What has come since.
    authority = transaction.authority
    assert authority is not None, "a store that was opened has a registrar"
    now = now_of(authority, transaction.reading())
    checkpoint = replace(draft, tick=now.tick, at_ns=now.wall_ns)
    position = transaction.head.position + 1
    pruned = Pruned(
        through=checkpoint.covers,
        forgotten=forgotten(plan.checked.state, checkpoint, transaction.families),
        checkpoint=Checkpoint(position=position, state=state),
    )
    record(transaction, [checkpoint], sealer, pruned=pruned)
    entries = checkpoint.covers - plan.gone
    plan.gone = checkpoint.covers
    plan.checked.stand_on(position)
    return Pruning(
        entries=entries, records=_number(pruned.forgotten), through=checkpoint.covers, checkpoint=position
    )
