"""Many commands, one transaction.

The commands of a batch are decided one after another on the same view, so each sees what the ones before
it did, and all their events are committed together. What one command is refused, or how it fails, does
not touch the others: a batch that fails as a whole, because the store rejects it or because a defect comes to
light, is run again one by one.
"""

from collections.abc import Callable, Sequence

import msgspec

from leasehold.engine.port import Batch, Conflict, Head, Store, Transaction, WouldBlock
from leasehold.engine.recording import chained, open_epoch
from leasehold.engine.retrying import undisturbed
from leasehold.engine.sealing import NoKeyAtHand
from leasehold.engine.signing import SigningKey
from leasehold.errors import StoreError, StoreRejected
from leasehold.kernel.lease.answers import Answer
from leasehold.kernel.lease.check import check_command
from leasehold.kernel.lease.commands import Command, Sweep
from leasehold.kernel.lease.decide import decide_wellformed
from leasehold.kernel.lease.decision import Decision
from leasehold.kernel.lease.events import Event
from leasehold.kernel.lease.records import Keys, Missing
from leasehold.kernel.lease.view import View
from leasehold.kernel.ledger.authority import now_of, observe
from leasehold.kernel.ledger.limits import Quotas
from leasehold.kernel.ledger.refusals import Refusal
from leasehold.kernel.ledger.tick import Now

Outcome = Answer | Refusal | Exception


class Recall:
    """What the last batch knew, for the next one: worth having as long as nobody else has written."""

    def __init__(self) -> None:
        self._view: View | None = None
        self._head = Head()
        self._revision: object = None

    def take(self, transaction: Transaction, quotas: Quotas) -> tuple[View, Head] | None:
        """Return the view of the last batch and the ledger's head if they still hold, else fresh ones.

        They are forgotten here until the batch is committed: what it does to the view may come to nothing.
        None: nobody has used this store yet.
        """
        view, self._view = self._view, None
        if view is not None and transaction.revision == self._revision:
            return view, self._head
        authority = transaction.authority
        return None if authority is None else (View(authority, quotas), transaction.head)

    def keep(self, view: View, head: Head, transaction: Transaction) -> None:
        """Remember a view that says what the store says now, if it can serve once more."""
        if view.settle():
            self._head, self._revision = head, transaction.revision
            self._view = view if self._revision is not None else None


class Rules(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """What a batch is run under."""

    quotas: Quotas = Quotas()
    sweep_limit: int = 0
    """How many overdue leases to record as ended in passing."""
    wake: Callable[[frozenset[str]], None] | None = None
    """Told after the commit, outside the transaction, where waiters are to be woken. Must not raise."""
    presuming: bool = True
    """Take the ids of claims for new ones without looking. A batch in which that was wrong is run again."""


def run_batch(
    store: Store,
    commands: Sequence[Command],
    rules: Rules,
    *,
    recall: Recall | None = None,
    blocking: bool = True,
) -> list[Outcome]:
    """Run commands in one transaction and return what became of each, in order.

    Raises WouldBlock (only if not `blocking`) or StoreError when nothing was changed for any of them, or
    when the error says that the outcome is unknown. `recall` spares the reading of what the last batch with
    the same `recall` and rules has left.
    """
    refusals = [check_command(command) for command in commands]
    wellformed = [command for command, refusal in zip(commands, refusals, strict=True) if refusal is None]
    outcomes = iter(run_taken(store, lambda: wellformed, rules, recall=recall, blocking=blocking))
    return [next(outcomes) if refusal is None else refusal for refusal in refusals]


def run_taken(
    store: Store,
    take: Callable[[], Sequence[Command]],
    rules: Rules,
    *,
    recall: Recall | None = None,
    blocking: bool,
) -> list[Outcome]:
    """Do as `run_batch` does with the well-formed commands that `take` gives once it is this writer's turn.

    So commands that come while the writer waits for its turn still get on board. `take` is not called if the
    turn never came. It may be called again, and then gives the same commands, and perhaps more behind them.
    """
    known = recall or Recall()
    return undisturbed(lambda: _run_whole_or_singly(store, take, rules, known, blocking=blocking))


def _run_whole_or_singly(
    store: Store, take: Callable[[], Sequence[Command]], rules: Rules, recall: Recall, *, blocking: bool
) -> list[Outcome]:
    try:
        return _run_once(store, take, rules, recall, blocking=blocking)
    except (Conflict, WouldBlock):
        raise
    except Exception as error:
        if isinstance(error, StoreError) and not isinstance(error, StoreRejected):
            raise
        commands = take()
        if len(commands) == 1 and not rules.sweep_limit and not rules.presuming:
            return [error]
        # One by one, and without the sweep or a wrong presumption, which may be what failed.
        alone = Rules(quotas=rules.quotas, wake=rules.wake, presuming=False)
        return [_run_alone(store, command, alone) for command in commands]


def _run_alone(store: Store, command: Command, rules: Rules) -> Outcome:
    """Run one command of a batch that could not be run whole; its failure is its own."""
    try:
        return run_batch(store, [command], rules)[0]
    except StoreError as error:
        return error


def _run_once(
    store: Store, take: Callable[[], Sequence[Command]], rules: Rules, recall: Recall, *, blocking: bool
) -> list[Outcome]:
    while True:
        try:
            with store.write(blocking=blocking) as transaction:
                done = _transact(store, transaction, take, rules, recall)
        except NoKeyAtHand:
            done = None
        if done is not None:
            outcomes, wakes = done
            if wakes and rules.wake is not None:
                rules.wake(frozenset(wakes))
            return outcomes
        open_epoch(store, to_write=True)


def _transact(
    store: Store,
    transaction: Transaction,
    take: Callable[[], Sequence[Command]],
    rules: Rules,
    recall: Recall,
) -> tuple[list[Outcome], set[str]] | None:
    """Run what there is to do inside a transaction; return None if an epoch has to be opened first."""
    known, reading = recall.take(transaction, rules.quotas), transaction.reading()
    if known is None:
        return None
    view, head = known
    authority = view.authority
    if observe(authority, reading) is not None:
        return None
    key = store.sealer.key_for(authority, transaction.signing_keys)
    outcomes, events, wakes = _decide_all(transaction, view, take(), rules, now_of(authority, reading))
    if events:
        head = _commit(transaction, view, head, events, key)
    recall.keep(view, head, transaction)
    return outcomes, wakes


def _decide_all(
    transaction: Transaction, view: View, commands: Sequence[Command], rules: Rules, now: Now
) -> tuple[list[Outcome], list[Event], set[str]]:
    """Return what became of each command, what happened, and where waiters are to be woken for it."""
    asked = len(commands)
    if rules.sweep_limit:
        commands = [*commands, *_sweep(transaction, now, rules.sweep_limit)]
    keys = view.lacking(commands, presuming=rules.presuming)
    if keys is not None:
        view.load(keys, transaction.read(keys))
    if view.is_crowded:
        keys = view.lacking_in_crowds(commands)
        if keys is not None:
            view.load(keys, transaction.read(keys))
    events: list[Event] = []
    wakes: set[str] = set()
    outcomes: list[Outcome] = []
    for command in commands:
        decided = _decide(transaction, view, command, now)
        if isinstance(decided, Refusal):
            outcomes.append(decided)
            continue
        if decided.events:
            view.fold(decided.events, decided.leases)
            events += decided.events
            wakes.update(decided.wakes)
        outcomes.append(decided.answer)
    return outcomes[:asked], events, wakes


def _sweep(transaction: Transaction, now: Now, limit: int) -> list[Sweep]:
    """Return a command that records, in passing, the end of some leases whose time is over."""
    overdue = transaction.lapsed(now.tick, limit)
    return [Sweep(lease_ids=tuple(overdue), request_id="sweep")] if overdue else []


def _decide(transaction: Transaction, view: View, command: Command, now: Now) -> Decision | Refusal:
    while True:
        try:
            decided = decide_wellformed(command, view, now)
        except Missing as missing:
            keys: Keys | None = missing.keys
        else:
            keys = view.doubtful(command) if isinstance(decided, Refusal) else None
        if keys is None:
            return decided
        _read(transaction, view, keys)


def _read(transaction: Transaction, view: View, keys: Keys) -> None:
    """Read what a decision lacks, and whatever else the rest of its search for a circle will look at."""
    view.load(keys, transaction.read(keys))
    holders = keys.waits
    while holders:
        behind = view.lacking_behind(holders)
        if behind is not None:
            view.load(behind, transaction.read(behind))
        holders = view.in_the_way(holders)
        following = Keys(waits=holders)
        view.load(following, transaction.read(following))


def _commit(
    transaction: Transaction, view: View, head: Head, events: Sequence[Event], key: SigningKey
) -> Head:
    """Commit events and the records they changed, and return where the ledger ends then."""
    entries = chained(head, events, key)
    batch = Batch(
        entries=entries,
        created=list(view.created.values()),
        changed=list(view.changed.values()),
        authority=view.authority,
        ended_eras=[],
        reshaped=view.reshaped,
        opens_epoch=False,
    )
    transaction.commit(batch)
    return Head(position=entries[-1].position, hash=entries[-1].hash)
