"""Families: how a ledger takes more kinds of state.

A family is a kind of record, with the events that change it and the commands that cause them. Leases are one.
A family is a value; everything that handles state is handed `Families`, an immutable list of them, and loops
over it: deciding, folding, verifying, rebuilding, pruning, storing. The registrar's own records, i.e. its
authority, eras, signing keys and checkpoint, are no family.
"""

import functools
import operator
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from enum import IntEnum
from typing import TYPE_CHECKING, Any

import msgspec

from leasehold.kernel.ledger.commands import Caller, Command, Sweep, SweepDue
from leasehold.kernel.ledger.events import SCHEMA, DecodeError, Event, OwnEvent
from leasehold.kernel.ledger.limits import BATCH_LEASES, check_text, invalid
from leasehold.kernel.ledger.refusals import Refusal
from leasehold.kernel.ledger.tick import Tick

if TYPE_CHECKING:
    from leasehold.kernel.ledger.draft import Draft
    from leasehold.kernel.ledger.events import StoreCheckpointed
    from leasehold.kernel.ledger.records import Keys
    from leasehold.kernel.ledger.state import State
    from leasehold.kernel.ledger.view import Part, View

_LIMITS = f"must be from 1 to {BATCH_LEASES}"

Rule = Callable[[Any, "Draft"], Any]
"""Decides a command on a draft: returns a refusal, the answer, or what makes it once all has settled."""

Soft = Mapping[str, bytes]
"""Soft state of a family by key: the last value wins, and nothing of it is in the ledger."""


class Stage(IntEnum):
    """When a reaction comes: inside the append, after the rule, or once nothing else is left to do."""

    WITH = 0
    """What belongs to the event itself."""
    THEN = 1
    """What follows in this and in other families."""
    FREE = 2
    """Who is entitled to what has become free."""


class Reaction(msgspec.Struct, frozen=True):
    """What an event brings about. It never refuses, and tells from the event alone if it is concerned."""

    stage: Stage
    react: Callable[[Any, "Draft"], None]


def _none(*facts: object) -> None:
    """Refuse, need, await and do nothing: what a family does that says nothing else."""
    del facts


def _nothing(*facts: object) -> Iterable[str]:
    del facts
    return ()


def _alone(record: Any) -> bool:
    del record
    return False


class Family(msgspec.Struct, frozen=True, kw_only=True):
    """One kind of record, and everything that is to be known about it."""

    name: str
    """Also the prefix of its events' types, and what its records are kept under. An identifier."""
    record: Any
    """The type of its records: a struct that reads back from JSON as it was."""
    events: tuple[type[Event], ...]
    rules: Mapping[type[Command], Rule] = {}
    """What can be asked of it, and what decides that."""
    evolve: Callable[[Any, Any, str], Any]
    """What one event does to the record with one of its keys: from None where there is none, to None where
    it ends. Asked for each of the event's `keys`."""
    version: int = 1
    """Rises when older engines could not understand its records or events any more."""
    check: Callable[[Any], Refusal | None] = _none
    """Whether a command can be right at all."""
    needs: Callable[[Sequence[Any], "View"], "Keys | None"] = _none
    """What commands are sure to need and the view lacks; asked in rounds for the whole batch. None: nothing.

    What is not foreseen, a decision asks for itself, and is taken again."""
    reacts: Mapping[type[Event], Reaction] = {}
    """To events of any family."""
    due: Callable[[Any], Tick | None] = _none
    """When time has something to do with a record; None: never."""
    depends: Callable[[Any], bool] = _alone
    """Whether what became of other records may have ended this one, which has a due time, before that."""
    age: Callable[[str, Any, "Draft"], None] = _none
    """What time does to a record, given by key, that is due, or from an earlier era, or `depends` on others:
    it may be nothing."""
    admits: Callable[[Caller, Any, "Draft"], Refusal | None] | None = None
    """Whether a caller may ask that: a command of whatever family, before any rule; a question or a job,
    which has a `right` as commands have, on a draft of the snapshot that it is answered from. A local caller
    may ask everything, and nobody is asked about it."""
    knows: Callable[[Collection[Caller], "View"], "Keys | None"] = _none
    """What `admits` is sure to need of callers that are not local, and the view lacks. None: nothing."""
    sweeps: Callable[["Draft"], bool] | None = None
    """Whether what is overdue, of any family, may be swept in passing. Who asks for a sweep gets it."""
    invariants: Callable[["State"], Iterable[str]] = _nothing
    """A sentence for everything that must always hold of its records, and does not."""
    forgotten: Callable[["State", "StoreCheckpointed"], Iterable[str]] = _nothing
    """The records that pruning may drop."""
    keeps: Callable[["State", Soft], int | None] = _none
    """The ledger position that pruning must not pass; None: any."""
    part: "Callable[[View], Part] | None" = None
    """Makes what a view knows of its records; None: as of all families that have no shelf of their own."""


class Families:
    """The families of a ledger, in the order in which they are asked."""

    def __init__(self, families: Iterable[Family]) -> None:
        self._families = tuple(families)
        self.named: dict[str, Family] = {family.name: family for family in self._families}
        self.versions: dict[str, int] = {family.name: family.version for family in self._families}
        self.of_event: dict[type[Event], Family] = {}
        self.of_command: dict[type[Command], Family] = {}
        self.rules: dict[type[Command], Rule] = {}
        self.reactions: dict[type[Event], tuple[Reaction, ...]] = {}
        self.admitting: tuple[Callable[[Caller, Any, Draft], Refusal | None], ...] = tuple(
            family.admits for family in self._families if family.admits is not None
        )
        """What is to be asked of every caller that is not local."""
        self.sweeping: tuple[Callable[[Draft], bool], ...] = tuple(
            family.sweeps for family in self._families if family.sweeps is not None
        )
        """What is to be asked before anything is swept in passing."""
        for family in self._families:
            self._take(family)
        union = functools.reduce(operator.or_, self.of_event, OwnEvent)
        self._decoder: msgspec.json.Decoder[Event] = msgspec.json.Decoder(union)

    def _take(self, family: Family) -> None:
        if not family.name.isidentifier() or self.named[family.name] is not family:
            raise ValueError(f"{family.name!r} is not a name for one family")
        if family.version < 1:
            raise ValueError(f"the versions of {family.name} begin with 1")
        for event in family.events:
            tag = event.__struct_config__.tag
            if not str(tag).startswith(f"{family.name}."):
                raise ValueError(f"{tag} does not begin with the name of its family, {family.name}")
            self.of_event[event] = family
        self.of_command |= dict.fromkeys(family.rules, family)
        self.rules |= family.rules
        for event, reaction in family.reacts.items():
            self.reactions[event] = (*self.reactions.get(event, ()), reaction)

    def __iter__(self) -> Iterator[Family]:
        return iter(self._families)

    def check(self, command: Command) -> Refusal | None:
        """Refuse a command that can never be right, whatever the records say."""
        family = self.of_command.get(type(command))
        return family.check(command) if family is not None else self._check_sweep(command)

    def _check_sweep(self, command: Command) -> Refusal | None:
        match command:
            case SweepDue(limit=limit):
                return None if 1 <= limit <= BATCH_LEASES else invalid("limit", _LIMITS)
            case Sweep(family=name):
                if name not in self.named:
                    return invalid("family", f"{name!r} is not known here")
                named = check_text("tenant", command.tenant) or check_text("request_id", command.request_id)
                return named or (None if command.key else invalid("key", "must not be empty"))
            case _:
                return invalid("command", f"{type(command).__name__} is of no family that is known here")

    def decode_event(self, body: bytes | str) -> Event:
        """Return the event that `body` holds; raise DecodeError for anything else."""
        try:
            event = self._decoder.decode(body)
        except (ValueError, RecursionError) as error:
            raise DecodeError(str(error)) from error
        if event.schema > SCHEMA:
            raise DecodeError(
                f"{event.type} has schema {event.schema}, and {SCHEMA} is the newest known here"
            )
        return event

    def lacking(self, known: Mapping[str, int]) -> dict[str, int]:
        """Return the families, with their versions, that a ledger has and this engine does not know."""
        return {name: version for name, version in known.items() if version > self.versions.get(name, 0)}

    def new_to(self, known: Mapping[str, int]) -> dict[str, int]:
        """Return the families, with their versions, that this engine has and a ledger does not know yet."""
        return {name: version for name, version in self.versions.items() if version > known.get(name, 0)}
