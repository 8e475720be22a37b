"""Many commands, one transaction.

The commands of a batch are decided one after another on the same view, so each sees what the ones before
it did, and all their events are committed together. What one command is refused, or how it fails, does
not touch the others: a batch that fails as a whole, because the store rejects it or because a defect comes to
light, is run again one by one.
"""

from collections.abc import Callable, Collection, Sequence
from operator import attrgetter
from typing import Any

import msgspec

from leasehold.engine.port import Batch, Conflict, Head, Store, Transaction, WouldBlock
from leasehold.engine.recording import chained, open_epoch, refuse_unknown_families
from leasehold.engine.retrying import ATTEMPTS, disturbed
from leasehold.engine.sealing import NoKeyAtHand
from leasehold.engine.signing import SigningKey
from leasehold.errors import StoreError, StoreRejected
from leasehold.kernel.ledger.authority import now_of, observe
from leasehold.kernel.ledger.commands import LOCAL, Caller, Command, Sweep, SweepDue, Swept, SweptDue
from leasehold.kernel.ledger.decide import decide
from leasehold.kernel.ledger.draft import Draft
from leasehold.kernel.ledger.events import Event
from leasehold.kernel.ledger.family import Families
from leasehold.kernel.ledger.records import Keys, Missing
from leasehold.kernel.ledger.tick import Now, Tick
from leasehold.kernel.ledger.view import View

_COMMAND, _CALLER = attrgetter("command"), attrgetter("caller")

Outcome = Any
"""An answer, a refusal, or the exception that kept a command from having either."""


class Request(msgspec.Struct, frozen=True, gc=False):
    """A command, and who asks."""

    command: Command
    caller: Caller = LOCAL


class Recall:
    """What the last batch knew, for the next one: worth having as long as nobody else has written."""

    def __init__(self) -> None:
        self._draft: Draft | None = None
        self._head = Head()
        self._revision: object = None

    def take(self, transaction: Transaction, families: Families) -> tuple[Draft, Head] | None:
        """Return the draft of the last batch and the ledger's head if they still hold, else fresh ones.

        They are forgotten here until the batch is committed: what it does to the draft may come to nothing.
        None: nobody has used this store yet.
        """
        draft, self._draft = self._draft, None
        if draft is not None and transaction.revision == self._revision:
            return draft, self._head
        authority = transaction.authority
        if authority is None:
            return None
        return Draft(View(families, authority), _NEVER), transaction.head

    def keep(self, draft: Draft, head: Head, transaction: Transaction) -> None:
        """Remember a draft whose view says what the store says now, if it can serve once more."""
        if draft.view.settle():
            self._head, self._revision = head, transaction.revision
            self._draft = draft if self._revision is not None else None


_NEVER = Now(tick=Tick(value=0), wall_ns=0)
"""When a draft is that nobody has begun yet."""


class Rules(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """What a batch is run under."""

    sweep_limit: int = 0
    """How many overdue records to see to in passing."""
    wake: Callable[[frozenset[str]], None] | None = None
    """Told after the commit, outside the transaction, where waiters are to be woken. Must not raise."""
    presuming: bool = True
    """Take the names of new records for new without looking. A batch in which that was wrong is run again."""
    observe: "Callable[[Done], None] | None" = None
    """Told after the commit what became of the batch. Must be quick, and not raise."""


class Done(msgspec.Struct, kw_only=True, gc=False):
    """What became of a batch."""

    outcomes: list[Outcome] = msgspec.field(default_factory=list)
    events: list[Event] = msgspec.field(default_factory=list)
    wakes: list[str] = msgspec.field(default_factory=list)
    swept: int = 0
    """How many records time had ended, of those that were seen to in passing."""


def run_batch(
    store: Store,
    commands: Sequence[Command],
    rules: Rules,
    *,
    callers: Sequence[Caller] | None = None,
    recall: Recall | None = None,
    blocking: bool = True,
) -> list[Outcome]:
    """Run commands in one transaction and return what became of each, in order; local `callers` by default.

    Raises WouldBlock (only if not `blocking`) or StoreError when nothing was changed for any of them, or
    when the error says that the outcome is unknown. `recall` spares the reading of what the last batch with
    the same `recall` and rules has left.
    """
    check = store.families.check
    refusals = [check(command) for command in commands]
    requests = map(Request, commands, callers or (LOCAL,) * len(commands))
    wellformed = [one for one, refusal in zip(requests, refusals, strict=True) if refusal is None]
    outcomes = iter(run_taken(store, wellformed, rules, recall=recall, blocking=blocking))
    return [next(outcomes) if refusal is None else refusal for refusal in refusals]


def run_taken(
    store: Store,
    requests: Sequence[Request],
    rules: Rules,
    *,
    board: Callable[[], None] | None = None,
    recall: Recall | None = None,
    blocking: bool,
) -> list[Outcome]:
    """Do as `run_batch` does with well-formed commands, to which `board` may add more behind them.

    It is called once it is this writer's turn, so that commands which come while it waits for that still get
    on board; again if the batch has to be run again; and not at all if the turn never came.
    """
    recall = recall or Recall()
    for _ in ATTEMPTS:
        try:
            with store.write(blocking=blocking) as transaction:
                done = _transact(store, transaction, requests, rules, board=board, recall=recall)
        except Conflict:
            continue
        except NoKeyAtHand:
            done = None
        except WouldBlock:
            raise
        except Exception as error:
            if isinstance(error, StoreError) and not isinstance(error, StoreRejected):
                raise
            if board is not None:
                board()
            return _run_singly(store, requests, rules, error)
        if done is None:
            open_epoch(store, to_write=True)
            continue
        if done.wakes and rules.wake is not None:
            rules.wake(frozenset(done.wakes))
        if rules.observe is not None:
            rules.observe(done)
        return done.outcomes
    raise disturbed()


def _run_singly(store: Store, requests: Sequence[Request], rules: Rules, error: Exception) -> list[Outcome]:
    """Run the commands of a batch one by one that could not be run whole; a failure is each one's own."""
    if len(requests) == 1 and not rules.sweep_limit and not rules.presuming:
        return [error]
    # Without the sweep or a wrong presumption, which may be what failed.
    alone = Rules(wake=rules.wake, observe=rules.observe, presuming=False)
    outcomes: list[Outcome] = []
    for request in requests:
        try:
            outcomes += run_taken(store, (request,), alone, blocking=True)
        except StoreError as its_own:
            outcomes.append(its_own)
    return outcomes


def _transact(
    store: Store,
    transaction: Transaction,
    requests: Sequence[Request],
    rules: Rules,
    *,
    board: Callable[[], None] | None,
    recall: Recall,
) -> Done | None:
    """Run what there is to do inside a transaction; return None if the registrar has to record something."""
    families = store.families
    known, reading = recall.take(transaction, families), transaction.reading()
    if known is None:
        return None
    draft, head = known
    view = draft.view
    authority = view.authority
    if authority.families != families.versions:
        refuse_unknown_families(authority, families)
        return None
    if observe(authority, reading) is not None:
        return None
    key = store.sealer.key_for(authority, transaction.signing_keys)
    view.presuming = rules.presuming
    draft.now = now_of(authority, reading)
    if board is not None:
        board()
    done = _decide_all(transaction, draft, requests, rules.sweep_limit)
    if done.events:
        head = _commit(transaction, view, head, done.events, key)
    recall.keep(draft, head, transaction)
    return done


def _decide_all(
    transaction: Transaction, draft: Draft, requests: Sequence[Request], sweep_limit: int
) -> Done:
    """Decide every command, and then see to what is overdue."""
    strangers = set(map(_CALLER, requests)) - {LOCAL}
    if strangers:
        _load_callers(transaction, draft.view, strangers)
    _load_needs(transaction, draft.view, list(map(_COMMAND, requests)))
    if sweep_limit and not _may_sweep(transaction, draft):
        sweep_limit = 0
    done = Done()
    asked: list[int] = []
    for place, request in enumerate(requests):
        try:
            outcome = decide(request.command, request.caller, draft)
        except Missing as missing:
            outcome = _decide_with(missing, transaction, draft, request)
        done.outcomes.append(outcome)
        done.events += draft.events
        done.wakes += draft.wakes
        if type(outcome) is SweptDue and isinstance(request.command, SweepDue):
            asked.append(place)
            sweep_limit = max(sweep_limit, request.command.limit)
    sweeps = _sweeps(transaction, draft, sweep_limit) if sweep_limit else []
    if sweeps:
        _load_needs(transaction, draft.view, sweeps)
        _sweep(transaction, draft, sweeps, done)
    for place in asked[:1]:  # Who asked first has swept it all.
        done.outcomes[place] = SweptDue(ended=done.swept)
    return done


def _decide_with(missing: Missing, transaction: Transaction, draft: Draft, request: Request) -> Outcome:
    """Read what a decision was lacking, and decide again."""
    while True:
        draft.view.load(missing.keys, transaction.read(missing.keys))
        _load_needs(transaction, draft.view, (request.command,))
        try:
            return decide(request.command, request.caller, draft)
        except Missing as more:
            missing = more


def _may_sweep(transaction: Transaction, draft: Draft) -> bool:
    """Ask every family whether what is overdue may be swept in passing."""
    draft.begin()
    while True:
        try:
            return all(sweeps(draft) for sweeps in draft.view.families.sweeping)
        except Missing as missing:
            draft.view.load(missing.keys, transaction.read(missing.keys))


def _sweeps(transaction: Transaction, draft: Draft, limit: int) -> list[Command]:
    """Return a command for each record that is overdue."""
    return [
        Sweep(family=family, key=key, request_id="sweep")
        for family, key in transaction.due(draft.now.tick, limit)
        if family in draft.view.families.named
    ]


def _sweep(transaction: Transaction, draft: Draft, sweeps: list[Command], done: Done) -> None:
    """See to each overdue record for itself; what is lacking for any of them is read for all at once."""
    while sweeps:
        lacking = Keys()
        left: list[Command] = []
        for command in sweeps:
            try:
                answer = decide(command, LOCAL, draft)
            except Missing as missing:
                lacking.add(missing.keys)
                left.append(command)
                continue
            done.swept += isinstance(answer, Swept) and answer.ended
            done.events += draft.events
            done.wakes += draft.wakes
        if left:
            draft.view.load(lacking, transaction.read(lacking))
            _load_needs(transaction, draft.view, left)
        sweeps = left


def _load_callers(transaction: Transaction, view: View, callers: Collection[Caller]) -> None:
    """Read what is to be known of those who ask and are not local, at once for all of them."""
    for family in view.families:
        keys = family.knows(callers, view)
        if keys is not None:
            view.load(keys, transaction.read(keys))


def _load_needs(transaction: Transaction, view: View, commands: Sequence[Command]) -> None:
    """Read what commands are sure to need, in rounds, each for all of them at once."""
    families = view.families
    by_family: dict[str, list[Command]] = {}
    for command in commands:
        family = families.of_command.get(type(command))
        if family is not None:
            by_family.setdefault(family.name, []).append(command)
        elif isinstance(command, Sweep):
            by_family.setdefault(command.family, []).append(command)
    for name, theirs in by_family.items():
        needs = families.named[name].needs
        keys = needs(theirs, view)
        # Where nothing was found, nothing more is needed because of it.
        while keys is not None and view.load(keys, transaction.read(keys)):
            keys = needs(theirs, view)


def _commit(
    transaction: Transaction, view: View, head: Head, events: Sequence[Event], key: SigningKey
) -> Head:
    """Commit events and the records they changed, and return where the ledger ends then."""
    entries = chained(head, events, key)
    transaction.commit(
        Batch(
            entries=entries,
            changes=view.changes(),
            authority=view.authority,
            ended_eras=[],
            opens_epoch=False,
        )
    )
    return Head(position=entries[-1].position, hash=entries[-1].hash)
